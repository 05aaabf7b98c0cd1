// Warnings that an API server sends in HTTP headers: `299 - "text"` (RFC 7234, section 5.5), several joined by commas.
// Pure.
import { WARNING_CHARS_MAX, WARNINGS_MAX } from '../../shared/model/status.ts'
import { safeText } from './redact/safe-text.ts'

const WARNING = /\s*,?\s*\d{3}\s+\S+\s+"((?:[^"\\]|\\.)*)"(?:\s+"[^"]*")?/y

/** The texts as the server wrote them, without the quotes of the header. */
export function parseWarnings(header: string | null): string[] {
  const texts: string[] = []
  if (header === null) return texts
  WARNING.lastIndex = 0
  for (let match = WARNING.exec(header); match !== null; match = WARNING.exec(header)) {
    const text = (match[1] ?? '').replace(/\\(.)/g, '$1').trim()
    if (text !== '') texts.push(text)
  }
  return texts
}

/** KA55: the warnings about the object that was sent, as people may read them: sorted, and each once. */
export function warningsOf(header: string | null, sent: unknown): string[] {
  const texts = parseWarnings(header).map((text) => safeText(text, { documents: [sent] }).slice(0, WARNING_CHARS_MAX))
  return [...new Set(texts)].sort().slice(0, WARNINGS_MAX)
}
