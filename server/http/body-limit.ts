// A body that is larger than a route takes is refused before anything parses it, also when its length is not announced.
import { AppError } from '../../shared/protocol/error.ts'

/** The same request with its body in memory, or `too_large`. */
export async function withLimitedBody(request: Request, bytesMax: number): Promise<Request> {
  if (request.body === null) return request
  const tooLarge = () => new AppError('too_large', { detail: `at most ${bytesMax} bytes` })
  if (Number(request.headers.get('content-length') ?? 0) > bytesMax) throw tooLarge()
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of request.body) {
    bytes += chunk.byteLength
    if (bytes > bytesMax) throw tooLarge()
    chunks.push(chunk)
  }
  return new Request(request.url, { method: request.method, headers: request.headers, body: Buffer.concat(chunks), signal: request.signal })
}
