// The agent's own audit log: the local commands that people gave over the socket of this machine, in a file of the data
// folder. A command is on disk before it is carried out. Each line holds the hash of the line before it. A full file
// becomes the earlier one, and the log continues in a new file.
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, statSync, truncateSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { canonicalJson } from '../shared/kube/canonical.ts'
import { AUDIT_GENESIS, type AuditBreak, AuditChain, type AuditRecord, auditHash, auditRecordSchema } from '../shared/model/audit.ts'
import { type AskFrame, askedRefSchema } from '../shared/protocol/ask.ts'
import type { Clock } from '../shared/runtime/clock.ts'
import { parseServiceKey } from '../shared/runtime/ids.ts'
import { sitePart } from './messages/site-messages.ts'
import type { EdgeOrder } from './reconcile/edge-orders.ts'

interface LogFiles {
  readonly file: string
  readonly earlier: string
}
export const ORDERS: LogFiles = { file: 'orders.jsonl', earlier: 'orders.1.jsonl' }
export const QUESTIONS: LogFiles = { file: 'questions.jsonl', earlier: 'questions.1.jsonl' }
/** Restarts that people asked for through the server. */
export const RESTARTS: LogFiles = { file: 'restarts.jsonl', earlier: 'restarts.1.jsonl' }
const FILE_BYTES_MAX = 4 * 1_048_576

export interface OrderLog {
  /** Durable when it returns; throws when the disk refuses it. `failure`: why the order that was recorded before was
   *  not carried out. */
  record(order: EdgeOrder, failure?: string): void
}

/** AK7: questions of remote people, in files of their own: many questions displace no order, and no record of a
 *  restart. */
export interface QuestionLog {
  record(ask: Pick<AskFrame, 'question' | 'who' | 'within'>, refusal?: string): void
}

export function createOrderLog(dataDir: string, clock: Pick<Clock, 'nowMs'>, bytesMax = FILE_BYTES_MAX): OrderLog {
  const log = createChainedLog(dataDir, ORDERS, clock, bytesMax)
  return { record: (order, failure) => log.write({ ...deedOf(order), ...outcomeOf(failure) }, true) }
}

export function createQuestionLog(dataDir: string, clock: Pick<Clock, 'nowMs'>, bytesMax = FILE_BYTES_MAX): QuestionLog {
  const questions = createChainedLog(dataDir, QUESTIONS, clock, bytesMax)
  const restarts = createChainedLog(dataDir, RESTARTS, clock, bytesMax)
  return {
    record: (ask, refusal) => {
      const deed = deedOfAsk(ask)
      // An order that changes nothing does not wait for the disk, and a refused restart changes nothing.
      if (refusal !== undefined) questions.write({ ...deed, result: 'denied' as const, reason: refusal.slice(0, 500) }, false)
      else if (ask.question.kind === 'restart') restarts.write({ ...deed, result: 'started' as const }, true)
      else questions.write({ ...deed, result: 'started' as const }, false)
    },
  }
}

function createChainedLog(dataDir: string, files: LogFiles, clock: Pick<Clock, 'nowMs'>, bytesMax: number) {
  const path = join(dataDir, files.file)
  let end: { seq: number; hash: string; size: number } | null = null
  return {
    write(deed: object, isSynced: boolean): void {
      end ??= { ...endOf(dataDir, files), size: existsSync(path) ? statSync(path).size : 0 }
      if (end.size >= bytesMax) {
        if (existsSync(path)) renameSync(path, join(dataDir, files.earlier))
        end = { ...end, size: 0 }
      }
      const at = new Date(clock.nowMs()).toISOString()
      const entry = { seq: end.seq + 1, at, ...deed, prev: end.hash }
      const hash = auditHash(canonicalJson(entry))
      const { size } = end
      end = null // read again after a failure, which may have left a part of the line
      end = { seq: entry.seq, hash, size: size + appendLine(path, JSON.stringify({ ...entry, hash }), isSynced) }
    },
  }
}

/** The end of the log. A line that a crash cut off was never acted on, and is removed. */
function endOf(dataDir: string, files: LogFiles): { seq: number; hash: string } {
  const path = join(dataDir, files.file)
  if (existsSync(path)) {
    const bytes = readFileSync(path)
    const whole = bytes.lastIndexOf(0x0a) + 1
    if (whole < bytes.length) truncateSync(path, whole)
  }
  const last = readOrderLog(dataDir, files).entries.at(-1)
  return last === undefined ? { seq: 0, hash: AUDIT_GENESIS } : { seq: last.seq, hash: last.hash }
}

/** Returns the bytes that were written. */
function appendLine(path: string, line: string, isSynced: boolean): number {
  const file = openSync(path, 'a', 0o600)
  try {
    const bytes = writeSync(file, `${line}\n`)
    if (isSynced) fsyncSync(file)
    return bytes
  } finally {
    closeSync(file)
  }
}

const outcomeOf = (failure: string | undefined) =>
  failure === undefined ? { result: 'started' as const } : { result: 'failed' as const, detail: failure.slice(0, 500) }

const ACTORS = ['token', 'user', 'workload'] as const

function deedOfAsk({ question, who, within }: Parameters<QuestionLog['record']>[0]) {
  const kind = ACTORS.find((known) => known === who.kind) ?? 'token'
  const ref = askedRefSchema.safeParse(question['ref']).data
  const detail = ref === undefined ? {} : { detail: `${ref.kind} ${ref.namespace}/${ref.name}`.slice(0, 500) }
  const of = within === null ? { kind: 'Cluster' } : { kind: 'Service', project: within.project, name: within.service }
  return { actor: { kind, id: who.id, name: who.name, verified: true }, verb: `ask:${question.kind}`, ...of, ...detail }
}

function deedOf(order: EdgeOrder) {
  const verb = order.kind.replace('_', '-')
  const actor = { kind: 'local' as const, id: order.by, name: order.by, verified: false }
  const why = 'why' in order ? { reason: order.why.slice(0, 500) } : {}
  if (!('service' in order) || order.service === null) return { actor, verb, kind: 'Cluster', ...why }
  const { project, service: name } = parseServiceKey(order.service)
  return { actor, verb, kind: 'Service', project, name, ...why }
}

export interface ReadOrderLog {
  /** Oldest first. */
  entries: AuditRecord[]
  /**
   * Null if each entry follows the one before it. Entries before the earlier file are gone, so the first one is
   * believed.
   */
  broken: AuditBreak | null
}

/** Works with and without a running agent. */
export function readOrderLog(dataDir: string, files: LogFiles = ORDERS): ReadOrderLog {
  const entries: AuditRecord[] = []
  let chain: AuditChain | null = null
  let broken: AuditBreak | null = null
  for (const line of [files.earlier, files.file].flatMap((name) => linesOf(join(dataDir, name)))) {
    const entry = parseLine(line)
    if (entry === null) {
      broken ??= { seq: (entries.at(-1)?.seq ?? 0) + 1, problem: sitePart('not_a_log_line') }
      continue
    }
    chain ??= followedBy(entry)
    broken ??= chain.takeRecord(entry)
    entries.push(entry)
  }
  return { entries, broken }
}

function followedBy({ seq, prev }: AuditRecord): AuditChain {
  const chain = new AuditChain(null)
  if (seq > 1) Object.assign(chain, { seq: seq - 1, hash: prev })
  return chain
}

const linesOf = (path: string): string[] =>
  existsSync(path)
    ? readFileSync(path, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
    : []

function parseLine(line: string): AuditRecord | null {
  try {
    return auditRecordSchema.safeParse(JSON.parse(line)).data ?? null
  } catch {
    return null
  }
}
