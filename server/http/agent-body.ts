// Bodies of agents: counted while they are read, inflated under the same limit, parsed by a schema.
import type { z } from 'zod'
import { AppError } from '../../shared/runtime/error.ts'
import { unzstd } from '../../shared/runtime/zstd.ts'
import { type BodyReading, giveBack, readBody, tooLarge } from './body.ts'

export interface AgentBodyReading extends BodyReading {
  /** Asked when the body is here and nothing was made of it yet. */
  ready?: () => Promise<void>
}

export async function readInflated(request: Request, limit: number, { ready, ...reading }: AgentBodyReading = {}): Promise<Uint8Array> {
  const encoding = request.headers.get('content-encoding')
  const bytes = await readBody(request, limit, reading)
  try {
    await ready?.()
  } catch (error) {
    giveBack(bytes)
    throw error
  }
  if (encoding === null || encoding === 'identity') return bytes
  if (encoding !== 'zstd') throw new AppError('bad_request', { detail: 'content-encoding must be zstd or absent' })
  try {
    const inflated = unzstd(bytes, limit)
    giveBack(bytes)
    return inflated
  } catch (error) {
    if (error instanceof RangeError) throw tooLarge(limit)
    throw new AppError('bad_request', { detail: 'the body is not valid zstd' }, { cause: error })
  }
}

export const readJson = async <T>(request: Request, limit: number, schema: z.ZodType<T>, reading?: AgentBodyReading): Promise<T> =>
  parseJson(await readInflated(request, limit, reading), schema)

/**
 * Far more than any valid body needs. A body nested a hundred thousand deep can be parsed, but costs a second for each
 * walk over it; a million member names cost almost a second by themselves.
 */
const NESTING_MAX = 64
const MEMBERS_MAX = 100_000
const [QUOTE, BACKSLASH, COLON, OPEN_LIST, OPEN_OBJECT, CLOSE_LIST, CLOSE_OBJECT] = [0x22, 0x5c, 0x3a, 0x5b, 0x7b, 0x5d, 0x7d]

/** Before anything is parsed. Null means nothing of the kind. */
function badShape(bytes: Uint8Array): string | null {
  let [depth, members] = [0, 0]
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) {
      for (at++; at < bytes.length && bytes[at] !== QUOTE; at++) if (bytes[at] === BACKSLASH) at++
    } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      if (++depth > NESTING_MAX) return `it is nested more than ${NESTING_MAX} deep`
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth--
    else if (byte === COLON && ++members > MEMBERS_MAX) return `it has more than ${MEMBERS_MAX} members`
  }
  return null
}

/** Problems name paths, never the input. */
export function parseJson<T>(bytes: Uint8Array, schema: z.ZodType<T>): T {
  const bad = badShape(bytes)
  if (bad !== null) throw new AppError('bad_request', { detail: `the body was refused: ${bad}` })
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
  throw new AppError('bad_request', { detail: 'the request body does not match the schema', problems })
}
