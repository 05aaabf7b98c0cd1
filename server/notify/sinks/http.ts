// One HTTP request of a sink: through the address guard, bounded, without redirects, and with errors that hold no
// secret.
import { AppError } from '../../../shared/runtime/error.ts'
import { type Sending, SinkError } from './sink.ts'

/** Maximum number of bytes read from an answer. */
const ANSWER_BYTES_MAX = 64 * 1024
const SHOWN_MAX = 200
/** A receiver that asks for more waits for this. */
const RETRY_AFTER_MS_MAX = 3_600_000
const RETRYABLE: ReadonlySet<number> = new Set([408, 409, 425, 429])

export interface Answer {
  status: number
  headers: Headers
  text: string
}

export interface HttpRequest {
  url: string
  method?: 'GET' | 'POST' | 'PATCH' | 'PUT'
  headers?: Record<string, string>
  /** JSON unless it is text. */
  body?: unknown
  /** Bytes of the answer that are read. */
  answerBytesMax?: number
}

/** Throws `SinkError` for everything but 2xx and what `allowed` names. */
export async function request(
  sending: Sending,
  { url, method = 'POST', headers = {}, body, answerBytesMax = ANSWER_BYTES_MAX }: HttpRequest,
  allowed: readonly number[] = [],
): Promise<Answer> {
  const host = URL.canParse(url) ? new URL(url).host : 'the address of the sink'
  let answer: Answer
  try {
    const response = await sending.addresses.fetcher(url, {
      method,
      redirect: 'manual',
      headers: { 'user-agent': 'skerry', ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      signal: sending.signal,
    })
    answer = { status: response.status, headers: response.headers, text: await boundedText(response, answerBytesMax) }
  } catch (error) {
    if (error instanceof AppError) throw new SinkError(redacted(refusedText(error), sending.secrets), { retryable: false })
    const cause = sending.signal.aborted ? 'no answer in time' : error instanceof Error ? codeOf(error) : 'unknown error'
    throw new SinkError(`cannot reach ${host}: ${redacted(cause, sending.secrets)}`, { retryable: true })
  }
  if ((answer.status >= 200 && answer.status < 300) || allowed.includes(answer.status)) return answer
  throw refusal(host, answer, sending)
}

/** An address that the guard refuses can be allowed by an operator only, so the message names the option. */
export const refusedText = ({ message, data }: AppError): string => (data.remedy === undefined ? message : `${message}. ${data.remedy}`)

const codeOf = (error: Error): string => ('code' in error && typeof error.code === 'string' ? error.code : error.name)

export function refusal(host: string, { status, headers, text }: Answer, { secrets, nowMs }: Sending): SinkError {
  const shown = redacted(text.replaceAll(/\s+/g, ' ').trim(), secrets).slice(0, SHOWN_MAX)
  const redirect = status >= 300 && status < 400 ? 'redirects are not followed; set the final address' : shown
  const retryAfterMs = retryAfterOf(headers.get('retry-after'), nowMs)
  return new SinkError(`${host} answered ${status}${redirect === '' ? '' : `: ${redirect}`}`, {
    retryable: status >= 500 || RETRYABLE.has(status),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  })
}

/** Seconds, or a date (RFC 9110). */
export function retryAfterOf(header: string | null, nowMs: number): number | undefined {
  if (header === null || header.trim() === '') return undefined
  const seconds = Number(header)
  const ms = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(header) - nowMs
  return Number.isFinite(ms) ? Math.min(RETRY_AFTER_MS_MAX, Math.max(0, ms)) : undefined
}

/** NX8: no value of a secret is in a message, nor a part of it that stands alone in an address. */
export function redacted(text: string, secrets: Readonly<Record<string, string>>): string {
  let shown = text
  for (const value of Object.values(secrets)) {
    const parts = [
      value.trim(),
      ...(URL.canParse(value.trim()) ? [new URL(value.trim()).pathname.slice(1), new URL(value.trim()).search.slice(1)] : []),
    ]
    for (const part of parts) if (part.length >= 4) shown = shown.replaceAll(part, '[redacted]')
  }
  return shown
}

async function boundedText(response: Response, bytesMax: number): Promise<string> {
  const reader = response.body?.getReader()
  if (reader === undefined) return ''
  const chunks: Uint8Array[] = []
  for (let size = 0; size < bytesMax; ) {
    const { done, value } = await reader.read()
    if (done) break
    chunks.push(value)
    size += value.length
  }
  await reader.cancel().catch(() => {})
  return new TextDecoder().decode(Buffer.concat(chunks).subarray(0, bytesMax))
}

/** At most `max` characters, without half of a surrogate pair. */
export const cut = (text: string, max: number): string =>
  text.length > max ? `${text.slice(0, max - 1).replace(/[\ud800-\udbff]$/, '')}…` : text

export function jsonOf(answer: Answer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(answer.text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
