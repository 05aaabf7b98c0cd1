// Requests to identity providers: bounded in time and size, without redirects, and with the certificates that the
// settings name.
import { AppError } from '../../../shared/runtime/error.ts'

/** Discovery documents, keys and tokens are a few kilobytes. */
const ANSWER_BYTES_MAX = 512 * 1_024
const TIMEOUT_MS = 10_000

interface IdpRequest {
  method?: string
  headers?: HeadersInit
  body?: unknown
  signal?: AbortSignal
}

/** As `fetch`. */
export type IdpFetch = (url: string, options: IdpRequest) => Promise<Response>

/** `ca`: PEM. Null means the certificates of the system. */
export function createIdpFetch(ca: string | null): IdpFetch {
  const tls = ca === null ? {} : { tls: { ca } }
  return async (url, { signal, method = 'GET', headers = {}, body }) => {
    const timeout = AbortSignal.timeout(TIMEOUT_MS)
    const response = await fetch(url, {
      method,
      headers,
      ...(body == null ? {} : { body: body as BodyInit }),
      redirect: 'manual',
      signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
      ...tls,
    })
    const bytes = await readBounded(response)
    const { status, statusText } = response
    const answered = new Headers(response.headers)
    for (const name of ['content-encoding', 'content-length', 'transfer-encoding']) answered.delete(name) // the body is decoded
    return new Response(status === 204 || status === 304 ? null : bytes, { status, statusText, headers: answered })
  }
}

async function readBounded(response: Response): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    if (size > ANSWER_BYTES_MAX)
      throw new AppError('unavailable', { detail: `the answer of an identity provider is larger than ${ANSWER_BYTES_MAX} bytes` })
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** The innermost reason: libraries wrap what the network said. Holds no secret: bodies of requests are not part of it.
 */
export function reasonOf(error: unknown): string {
  const reasons: string[] = []
  for (let one: unknown = error; one instanceof Error && reasons.length < 4; one = one.cause) reasons.push(one.message)
  return [...new Set(reasons)].join(': ').slice(0, 500) || String(error).slice(0, 500)
}
