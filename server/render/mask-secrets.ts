// Rendered objects for people's eyes: data of Secrets, and whatever came of the secrets of Configs, is replaced by marks. Pure.
import { isMap, type Json, type JsonMap } from './patch/merge.ts'

/** Shorter values are masked only where they are the whole text: a secret that is "a" is no reason to mask every a. */
const PART_LENGTH_MIN = 4

/** A text that has so many characters of a secret in a row, in any case or encoding, was made of it by a filter. */
const TRACE_LENGTH = 8
/** In other forms, only the beginning of a longer secret is recognized. */
const TRACED_MAX = 4_096

/** kubectl's copy of the whole object. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/** `mark`: what stands for a text. */
export function maskSecrets(documents: readonly string[], secrets: readonly string[], mark: (text: string) => string): JsonMap[] {
  const values = [...new Set(secrets)].filter((value) => value !== '').sort((a, b) => b.length - a.length)
  const forms = values.flatMap((value) => [value, Buffer.from(value).toString('base64')].map((form) => [form, mark(value)] as const))
  const traces = new Set(values.flatMap(tracesOf))
  const maskText = (text: string): string => {
    let masked = text
    let rest = text
    for (const [form] of forms) if (form.length >= PART_LENGTH_MIN) rest = rest.replaceAll(form, '\n')
    if (text.length >= PART_LENGTH_MIN && hasTrace(rest.toLowerCase(), traces)) return mark(text)
    for (const [form, shown] of forms)
      if (masked === form) masked = shown
      else if (form.length >= PART_LENGTH_MIN && masked.includes(form)) masked = masked.replaceAll(form, shown)
    return masked
  }
  const walk = (value: Json): Json => {
    if (typeof value === 'string') return maskText(value)
    if (Array.isArray(value)) return value.map(walk)
    return isMap(value) ? Object.fromEntries(Object.entries(value).map(([key, member]) => [maskText(key), walk(member)])) : value
  }
  return documents.map((text) => {
    const object: JsonMap = JSON.parse(text)
    return walk(object['kind'] === 'Secret' ? maskedData(object, mark) : object) as JsonMap
  })
}

/** In lower case: parts of the text, of its hexadecimal form, and of base64 wherever it begins. */
function tracesOf(whole: string): string[] {
  const value = whole.slice(0, TRACED_MAX)
  const bytes = Buffer.from(value)
  const coded = [0, 1, 2].map((skip) => bytes.subarray(skip).toString('base64url').slice(0, -2))
  const texts = [
    value,
    encodeURIComponent(value.toWellFormed()),
    bytes.toString('hex'),
    ...coded,
    ...coded.map((text) => text.replaceAll('-', '+').replaceAll('_', '/')),
  ]
  return texts.flatMap((text) => {
    const lower = text.toLowerCase()
    if (lower.length < TRACE_LENGTH) return lower.length >= PART_LENGTH_MIN && text === value ? [lower] : []
    const parts = Array.from({ length: lower.length - TRACE_LENGTH + 1 }, (_, at) => lower.slice(at, at + TRACE_LENGTH))
    return parts.filter((part) => !part.includes('://')) // many texts begin with a scheme
  })
}

function hasTrace(text: string, traces: ReadonlySet<string>): boolean {
  if (traces.size === 0) return false
  for (let at = 0; at <= text.length - PART_LENGTH_MIN; at++)
    for (let length = PART_LENGTH_MIN; length <= TRACE_LENGTH; length++) if (traces.has(text.slice(at, at + length))) return true
  return false
}

function maskedData(secret: JsonMap, mark: (text: string) => string): JsonMap {
  const masked = { ...secret }
  for (const field of ['data', 'stringData']) {
    const held = masked[field]
    if (!isMap(held)) continue
    masked[field] = Object.fromEntries(
      // The same value in `data` and `stringData` has the same mark.
      Object.entries(held).map(([key, value]) => [
        key,
        mark(field === 'data' ? Buffer.from(String(value), 'base64').toString() : String(value)),
      ]),
    )
  }
  const { metadata } = masked
  const annotations = isMap(metadata) ? metadata['annotations'] : undefined
  if (isMap(metadata) && isMap(annotations) && LAST_APPLIED in annotations)
    masked['metadata'] = { ...metadata, annotations: { ...annotations, [LAST_APPLIED]: mark(String(annotations[LAST_APPLIED])) } }
  return masked
}
