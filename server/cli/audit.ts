// audit: the log of actions. It is verified here and not by the server, which could claim anything.
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import {
  type AuditLine,
  type AuditRecord,
  type AuditState,
  auditLineSchema,
  auditPageSchema,
  auditRecordSchema,
  auditStateSchema,
} from '../../shared/model/audit.ts'
import { AuditVerifier } from '../../shared/model/audit-verify.ts'
import { durationMs, durationSchema } from '../../shared/model/resources.ts'
import { type EventView, eventViewSchema } from '../../shared/model/views.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { fingerprint } from '../../shared/runtime/keys.ts'
import { printFieldManagers } from './ask/field-managers.ts'
import type { Client } from './client.ts'
import type { Column } from './columns.ts'
import { type Context, type Output, type PrintOptions, printItems } from './context.ts'
import { UsageError } from './io.ts'
import { eventColumns } from './tables.ts'
import { parseObjectAddress } from './trace/object-address.ts'

export interface AuditListOptions {
  since?: string | undefined
  until?: string | undefined
  actor?: string | undefined
  verb?: string | undefined
  kind?: string | undefined
  project?: string | undefined
  name?: string | undefined
  cluster?: string | undefined
  object?: string | undefined
  result?: string | undefined
  limit: number
  output?: Output
  headers?: boolean
}

export async function listAudit(
  context: Context,
  { limit, output, headers, since, until, object, ...wanted }: AuditListOptions,
): Promise<void> {
  if (object !== undefined)
    return listObject(context, object, wanted.cluster, { limit, output, ...(headers === undefined ? {} : { headers }) })
  const nowMs = context.io.clock.nowMs()
  const query = { ...wanted, since: timeOf(since, nowMs, '--since'), until: timeOf(until, nowMs, '--until') }
  const items = await context.client().list('/audit', auditRecordSchema, query, { limit })
  const what = { nameOf: ({ seq }: AuditRecord) => `audit/${seq}`, single: false, none: 'no entries', columns: COLUMNS }
  printItems(context, items, what, { output, ...(headers === undefined ? {} : { headers }) })
}

/** Prints who changed an object in a cluster: events that name the field manager of each drift, and the field managers
 *  of the live object. */
async function listObject(
  context: Context,
  object: string,
  cluster: string | undefined,
  { limit, ...shown }: PrintOptions & { limit: number },
): Promise<void> {
  if (cluster === undefined) throw new UsageError('--object: expected it with --cluster')
  const { kind, group, namespace, name } = parseObjectAddress(object)
  const named = `${kind}/${namespace}/${name}`
  const query = { cluster, object: group === undefined ? named : `${group}/${named}` }
  const found = await context.client().list('/events', eventViewSchema, query, { limit })
  const columns = eventColumns(context.io.clock.nowMs(), true)
  const what = { nameOf: ({ id }: EventView) => `event/${id}`, single: false, none: 'no events about this object', columns }
  printItems(context, found.reverse(), what, shown)
  if (shown.output === undefined || shown.output === 'wide') await printFieldManagers(context, cluster, object)
}

/** A duration before now, or a time. */
function timeOf(text: string | undefined, nowMs: number, option: string): string | undefined {
  if (text === undefined) return undefined
  const duration = durationSchema.safeParse(text)
  const atMs = duration.success ? nowMs - durationMs(duration.data) : Date.parse(text)
  if (Number.isFinite(atMs)) return new Date(atMs).toISOString()
  throw new UsageError(`${option}: expected a duration such as 24h or a time such as 2026-01-31T08:00:00Z, not "${text}"`)
}

const COLUMNS: readonly Column<AuditRecord>[] = [
  { title: 'SEQ', value: ({ seq }) => seq },
  { title: 'TIME', value: ({ at }) => at.replace(/\.\d+Z$/, 'Z') },
  { title: 'ACTOR', value: ({ actor }) => `${actor.kind}/${actor.name}${actor.verified ? '' : '?'}` },
  { title: 'VERB', value: ({ verb }) => verb },
  { title: 'OBJECT', value: ({ kind, name }) => (name === undefined ? kind : `${kind}/${name}`) },
  { title: 'PROJECT', value: ({ project }) => project ?? null },
  { title: 'CLUSTER', value: ({ cluster }) => cluster ?? null, wide: true },
  { title: 'RESULT', value: ({ result, count }) => (count === undefined ? result : `${result}(${count}x)`) },
  { title: 'FROM', value: ({ from }) => from ?? null },
  { title: 'REQUEST', value: ({ requestId }) => requestId ?? null, wide: true },
  { title: 'MESSAGE', value: (entry) => messageOf(entry) },
]

function messageOf({ reason, cause, detail, fields, moreFields = 0 }: AuditRecord): string {
  const changed = fields === undefined ? null : `${fields.join(', ')}${moreFields === 0 ? '' : ` and ${moreFields} more`}`
  return [reason, detail, changed, cause === undefined ? null : `cause: ${cause}`].filter((part) => part != null).join('; ')
}

const PAGE = 500

async function* linesOf(client: Client, state: AuditState): AsyncGenerator<AuditLine | string> {
  const { head, anchor } = state
  if (anchor !== null) yield { type: 'anchor', anchor }
  for (let after = anchor?.seq ?? 0; after < head.seq; ) {
    const page = await client.get('/audit/entries', auditPageSchema, { after, limit: PAGE })
    for (const item of page.items) {
      if (item.seq > head.seq) break
      if ('unreadable' in item) yield `entry ${item.seq} cannot be read`
      else if (page.mismatched.includes(item.seq)) yield `entry ${item.seq}: its index columns were changed`
      else yield { type: 'entry', entry: item }
    }
    const last = page.items.at(-1)
    if (last === undefined) break
    after = last.seq
  }
  yield { type: 'head', head }
}

/** JSON lines on stdout. */
export async function exportAudit(context: Context): Promise<void> {
  const client = context.client()
  for await (const line of linesOf(client, await client.get('/audit/state', auditStateSchema))) {
    if (typeof line === 'string')
      throw new AppError('conflict', { detail: line, remedy: '`skerry audit verify` names the first broken entry.' })
    context.io.stdout.write(`${JSON.stringify(line)}\n`)
  }
}

export interface AuditVerifyOptions {
  serverKey?: string | undefined
  expect?: string | undefined
  output?: 'json' | undefined
}

/** Exit code 0: the log is whole; 1: it is not. */
export async function verifyAuditLog(context: Context, file: string | undefined, options: AuditVerifyOptions): Promise<number> {
  const { io } = context
  const client = file === undefined ? context.client() : null
  const state = client === null ? null : await client.get('/audit/state', auditStateSchema)
  const lines = client !== null && state !== null ? linesOf(client, state) : linesOfFile(io, file ?? '-')
  const verifier = new AuditVerifier({ serverKey: options.serverKey, expected: endOf(options.expect) })
  for await (const line of lines) if (!verifier.take(line)) break
  const report = verifier.end()
  const { broken, count, head, anchor, signers } = report
  const revoked = state?.keys.filter(({ isRevoked }) => isRevoked).map(({ publicKey }) => fingerprint(publicKey)) ?? []
  const problem = broken ?? revokedSigner(signers, revoked)
  if (options.output === 'json') io.stdout.write(`${JSON.stringify({ ...report, broken: problem }, null, 2)}\n`)
  else if (problem !== null) io.stdout.write(`broken at entry ${problem.seq}: ${problem.problem}\n${count} entries before it are intact\n`)
  else {
    const before = anchor === null ? '' : `; ${anchor.deleted} earlier ones were deleted by retention`
    io.stdout.write(`whole: ${count} entries${before}\nend: ${head?.seq}:${head?.hash}\nsigned by: ${signers.join(', ')}\n`)
  }
  return problem === null ? 0 : 1
}

const revokedSigner = (signers: readonly string[], revoked: readonly string[]) => {
  const print = signers.find((one) => revoked.includes(one))
  return print === undefined ? null : { seq: 0, problem: `signed by the revoked key ${print}` }
}

function endOf(text: string | undefined): { seq: number; hash: string } | undefined {
  if (text === undefined) return undefined
  const [, seq, hash = ''] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? []
  if (seq === undefined) throw new UsageError(`--expect: expected SEQ:HASH as an earlier verification printed it, not "${text}"`)
  return { seq: Number(seq), hash }
}

async function* linesOfFile({ stdin }: Pick<Context['io'], 'stdin'>, file: string): AsyncGenerator<AuditLine | string> {
  let number = 0
  for await (const text of textLines(stdin, file)) {
    number += 1
    if (text === '') continue
    yield parseLine(text) ?? `line ${number} is not a line of an export`
  }
}

function parseLine(text: string): AuditLine | undefined {
  try {
    return auditLineSchema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

async function* textLines(stdin: AsyncIterable<Uint8Array>, file: string): AsyncGenerator<string> {
  if (file === '-') {
    const decoder = new TextDecoder()
    let rest = ''
    for await (const chunk of stdin) {
      const lines = `${rest}${decoder.decode(chunk, { stream: true })}`.split('\n')
      rest = lines.pop() ?? ''
      yield* lines
    }
    if (rest !== '') yield rest
    return
  }
  try {
    yield* createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })
  } catch (cause) {
    const error = { detail: `${file} cannot be read`, remedy: 'Name a file that `skerry audit export` wrote.' }
    throw new AppError('bad_request', error, { cause })
  }
}
