// The query of GET desired: a poll, or a part of a page. Nothing in it needs percent-encoding, so nothing is decoded; a
// parameter that is not known is left out.
import { cursorText, type Position, parseCursor } from '../../shared/crdt/position.ts'
import { ASK_NONCE, ASK_PARAM } from '../../shared/protocol/ask.ts'
import { PROJECTS_PARAM } from '../../shared/protocol/frames.ts'
import { HEAD_NONCE, HEAD_PARAM } from '../../shared/protocol/head.ts'
import { PART_BYTES_MAX, WAIT_SECONDS_DEFAULT, WAIT_SECONDS_MAX } from '../../shared/protocol/routes.ts'
import { BOUND_PARAM, SEAL_PARAM } from '../../shared/protocol/sealed-keys.ts'
import { SLICE_BYTES_MIN, SLICE_PARAM } from '../../shared/protocol/transfer.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { SOPS_PARAM } from '../../shared/sops/parcel.ts'
import type { Accept } from '../desired/shards.ts'

/** The features that the agent announces. */
export type AgentFeatures = Required<Pick<Accept, 'seal' | 'bound' | 'sops' | 'projects'>>

const QUERY_LENGTH_MAX = 1_024

export type DesiredQuery =
  /** `head`: a nonce, if the server is to sign where it is (PL14). `asks`: a nonce, if the agent takes questions.
   *  `seal`: it opens sealed rows (SL5). */
  | {
      kind: 'poll'
      cursor: Position | null
      waitSeconds: number
      sliceBytes: number
      head: string | null
      asks: string | null
      features: AgentFeatures
    }
  | { kind: 'part'; transfer: string; part: number }

export function desiredQuery(query: string): DesiredQuery {
  const values = parameters(query)
  const { transfer, part, cursor } = values
  if (transfer === undefined && part === undefined) {
    numberOf('outbox', values['outbox'], 0)
    const head = values[HEAD_PARAM] ?? null
    if (head !== null && !HEAD_NONCE.test(head)) throw new AppError('bad_request', { detail: `${HEAD_PARAM} is not a nonce` })
    const asks = values[ASK_PARAM] ?? null
    if (asks !== null && !ASK_NONCE.test(asks)) throw new AppError('bad_request', { detail: `${ASK_PARAM} is not a nonce` })
    const waitSeconds = waitSecondsOf(values['wait'] ?? null)
    return {
      kind: 'poll',
      cursor: cursorOf(cursor),
      waitSeconds,
      sliceBytes: sliceBytesOf(values),
      head,
      asks,
      features: featuresOf(values),
    }
  }
  if (transfer === undefined || part === undefined || cursor !== undefined)
    throw new AppError('bad_request', { detail: 'a request for a part has only the parameters transfer and part' })
  if (!/^[A-Za-z0-9_-]{22}$/.test(transfer)) throw new AppError('bad_request', { detail: 'transfer is not the id of a transfer' })
  return { kind: 'part', transfer, part: numberOf('part', part, 0) }
}

/** Reads the query of POST desired/buckets. */
export function bucketsQuery(query: string): { sliceBytes: number; features: AgentFeatures } {
  const values = parameters(query)
  return { sliceBytes: sliceBytesOf(values), features: featuresOf(values) }
}

/** An agent that opens sealed rows is newer than Projects; the first of these did not say so of both. */
function featuresOf(values: Record<string, string | undefined>): AgentFeatures {
  const seal = values[SEAL_PARAM] === '1'
  const [bound, sops, projects] = [BOUND_PARAM, SOPS_PARAM, PROJECTS_PARAM].map((name) => values[name] === '1') as [
    boolean,
    boolean,
    boolean,
  ]
  return { seal, bound, sops, projects: seal || projects }
}

function parameters(query: string): Record<string, string | undefined> {
  if (query.length > QUERY_LENGTH_MAX)
    throw new AppError('bad_request', { detail: `the query is longer than ${QUERY_LENGTH_MAX} characters` })
  const values: Record<string, string | undefined> = Object.create(null)
  if (query === '') return values
  for (const pair of query.split('&')) {
    const equals = pair.indexOf('=')
    const name = equals < 0 ? pair : pair.slice(0, equals)
    if (name in values) throw new AppError('bad_request', { detail: 'duplicate parameter' })
    values[name] = equals < 0 ? '' : pair.slice(equals + 1)
  }
  return values
}

function numberOf(name: string, text: string | undefined, absent: number): number {
  if (text === undefined) return absent
  if (!/^(0|[1-9]\d{0,8})$/.test(text)) throw new AppError('bad_request', { detail: `${name} is a number` })
  return Number(text)
}

function sliceBytesOf(values: Record<string, string | undefined>): number {
  const asked = numberOf(SLICE_PARAM, values[SLICE_PARAM], PART_BYTES_MAX)
  return Math.min(Math.max(asked, SLICE_BYTES_MIN), PART_BYTES_MAX)
}

function cursorOf(text: string | undefined): Position | null {
  if (text === undefined) return null
  const cursor = parseCursor(text)
  if (cursor === null || cursorText(cursor) !== text) throw new AppError('bad_cursor')
  return cursor
}

export function waitSecondsOf(text: string | null): number {
  if (text === null) return WAIT_SECONDS_DEFAULT
  if (!/^\d{1,6}$/.test(text)) throw new AppError('bad_request', { detail: 'wait must be a number of seconds' })
  return Math.min(Number(text), WAIT_SECONDS_MAX)
}
