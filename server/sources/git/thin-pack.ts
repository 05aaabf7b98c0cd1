// A fetch of one commit costs what is new in it only if the server may send deltas against what is here, which
// isomorphic-git can read and does not ask for. Bytes in, bytes out.
import type { GitHttpRequest, GitHttpResponse, HttpClient } from 'isomorphic-git/http/web'

/** Where the server offers it: without it one commit without its history is sent with all of its files. */
export function askForThinPacks(http: HttpClient): HttpClient {
  let isOffered = false
  return {
    async request(request: GitHttpRequest): Promise<GitHttpResponse> {
      const { body } = request
      if (request.method === 'POST')
        return http.request(isOffered && body !== undefined ? { ...request, body: once(withThinPack(await joined(body))) } : request)
      const answer = await http.request(request)
      const bytes = await joined(answer.body ?? [])
      isOffered = bytes.toString('latin1', 0, OFFER_BYTES).includes(' thin-pack')
      return { ...answer, body: once(bytes) }
    },
  }
}

/** A server sends its capabilities with its first ref. */
const OFFER_BYTES = 4_096

/** `want ID ofs-delta …` is the first line: its length in four hexadecimal digits, itself included, and what the client
 *  can behind the id. */
export function withThinPack(request: Buffer): Buffer {
  const length = Number.parseInt(request.toString('latin1', 0, 4), 16)
  const line = request.toString('latin1', 4, length)
  const changed = line.replace(/^(want [0-9a-f]{40}) /, '$1 thin-pack ')
  return Buffer.concat([Buffer.from((changed.length + 4).toString(16).padStart(4, '0') + changed), request.subarray(length)])
}

async function joined(parts: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const part of parts) chunks.push(part)
  return Buffer.concat(chunks)
}

async function* once(bytes: Uint8Array): AsyncIterableIterator<Uint8Array> {
  yield bytes
}
