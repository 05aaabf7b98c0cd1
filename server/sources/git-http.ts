// The HTTP client that isomorphic-git speaks through: a deadline for each answer, a bound on bytes, and errors that name the host.
import type { GitHttpRequest, GitHttpResponse, HttpClient } from 'isomorphic-git/http/web'
import { AppError } from '../../shared/protocol/error.ts'

export type Fetcher = (url: string, init: RequestInit) => Promise<Response>

/** From the request to the last byte of its answer. */
export const GIT_TIMEOUT_MS = 60_000
export const GIT_ANSWER_BYTES_MAX = 512 * 1024 * 1024

export function createGitHttp(fetcher: Fetcher, timeoutMs: number = GIT_TIMEOUT_MS): HttpClient {
  return {
    async request({ url, method = 'GET', headers = {}, body }: GitHttpRequest): Promise<GitHttpResponse> {
      const { host } = new URL(url)
      try {
        const sent = body === undefined ? null : await collect(body, Number.MAX_SAFE_INTEGER)
        const answer = await fetcher(url, { method, headers, body: sent, signal: AbortSignal.timeout(timeoutMs) })
        const bytes = answer.body === null ? new Uint8Array() : await collect(answer.body, GIT_ANSWER_BYTES_MAX)
        return {
          url: answer.url === '' ? url : answer.url,
          method,
          statusCode: answer.status,
          statusMessage: answer.statusText,
          headers: Object.fromEntries(answer.headers),
          body: once(bytes),
        }
      } catch (error) {
        if (error instanceof AppError) throw error
        const why =
          error instanceof Error && error.name === 'TimeoutError' ? `did not answer within ${timeoutMs / 1000} s` : 'cannot be reached'
        throw new AppError('git_unreachable', { detail: `the Git server ${host} ${why}` }, { cause: error })
      }
    },
  }
}

async function collect(parts: AsyncIterable<Uint8Array>, bytesMax: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const part of parts) {
    size += part.byteLength
    if (size > bytesMax) throw new AppError('git_failed', { detail: `the answer is larger than ${bytesMax / 1024 / 1024} MiB` })
    chunks.push(part)
  }
  return new Uint8Array(Buffer.concat(chunks))
}

async function* once(bytes: Uint8Array): AsyncIterableIterator<Uint8Array> {
  yield bytes
}
