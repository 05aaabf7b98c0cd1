// A body that is larger than a route takes is refused before anything parses it, also when its length is not announced; the rest of it is left unread.
import { AppError } from '../../shared/protocol/error.ts'

export const tooLarge = (bytesMax: number): AppError => new AppError('too_large', { detail: `at most ${bytesMax} bytes` })

/** As it came, still compressed if it is. */
export async function readBody(request: Request, bytesMax: number): Promise<Uint8Array<ArrayBuffer>> {
  if (Number(request.headers.get('content-length') ?? 0) > bytesMax) {
    await request.body?.cancel()
    throw tooLarge(bytesMax)
  }
  const chunks: Uint8Array[] = []
  let bytes = 0
  const reader = request.body?.getReader()
  for (let chunk = await reader?.read(); chunk?.value !== undefined; chunk = await reader?.read()) {
    bytes += chunk.value.byteLength
    if (bytes > bytesMax) {
      await reader?.cancel()
      throw tooLarge(bytesMax)
    }
    chunks.push(chunk.value)
  }
  return Buffer.concat(chunks)
}

/** The same request with its body in memory. */
export async function withLimitedBody(request: Request, bytesMax: number): Promise<Request> {
  if (request.body === null) return request
  const body = await readBody(request, bytesMax)
  return new Request(request.url, { method: request.method, headers: request.headers, body, signal: request.signal })
}
