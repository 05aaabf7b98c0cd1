// What agents send: counted while it is read, inflated under the same limit, parsed by a schema.
import type { z } from 'zod'
import { AppError } from '../../shared/protocol/error.ts'
import { unzstd } from '../../shared/runtime/zstd.ts'
import { type BodyReading, readBody, tooLarge } from './body.ts'

export interface AgentBodyReading extends BodyReading {
  /** Asked when the body is here and nothing was made of it yet. */
  ready?: () => Promise<void>
}

export async function readInflated(request: Request, limit: number, { ready, ...reading }: AgentBodyReading = {}): Promise<Uint8Array> {
  const encoding = request.headers.get('content-encoding')
  const bytes = await readBody(request, limit, reading)
  await ready?.()
  if (encoding === null || encoding === 'identity') return bytes
  if (encoding !== 'zstd') throw new AppError('bad_request', { detail: 'content-encoding must be zstd or absent' })
  try {
    return unzstd(bytes, limit)
  } catch (error) {
    if (error instanceof RangeError) throw tooLarge(limit)
    throw new AppError('bad_request', { detail: 'the body is not zstd' }, { cause: error })
  }
}

export const readJson = async <T>(request: Request, limit: number, schema: z.ZodType<T>, reading?: AgentBodyReading): Promise<T> =>
  parseJson(await readInflated(request, limit, reading), schema)

/** Problems name paths, never the input. */
export function parseJson<T>(bytes: Uint8Array, schema: z.ZodType<T>): T {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    throw new AppError('bad_request', { detail: 'the body is not JSON in UTF-8' }, { cause: error })
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues
    .slice(0, 20)
    .map(({ path, message }) => ({ path: path.join('.').slice(0, 200), message: message.slice(0, 200) }))
  throw new AppError('bad_request', { detail: 'the body has not the form of this route', problems })
}
