// The agent's own audit log: the local commands that people gave over the socket of this machine, in a file of the data
// folder. A command is on disk before it is carried out. Each line holds the hash of the line before it. A full file
// becomes the earlier one, and the log continues in a new file.
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, statSync, truncateSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { canonicalJson } from '../shared/kube/canonical.ts'
import { AUDIT_GENESIS, type AuditBreak, AuditChain, type AuditRecord, auditHash, auditRecordSchema } from '../shared/model/audit.ts'
import { parseServiceKey } from '../shared/model/ids.ts'
import type { Clock } from '../shared/runtime/clock.ts'
import type { EdgeOrder } from './reconcile/edge-orders.ts'

const FILE = 'orders.jsonl'
const EARLIER = 'orders.1.jsonl'
const FILE_BYTES_MAX = 4 * 1_048_576

export interface OrderLog {
  /** Durable when it returns; throws when the disk refuses it. `failure`: why the order that was recorded before was not carried out. */
  record(order: EdgeOrder, failure?: string): void
}

export function createOrderLog(dataDir: string, clock: Pick<Clock, 'nowMs'>, bytesMax = FILE_BYTES_MAX): OrderLog {
  const path = join(dataDir, FILE)
  let end: { seq: number; hash: string } | null = null
  return {
    record(order, failure) {
      end ??= endOf(dataDir)
      if (existsSync(path) && statSync(path).size >= bytesMax) renameSync(path, join(dataDir, EARLIER))
      const at = new Date(clock.nowMs()).toISOString()
      const entry = { seq: end.seq + 1, at, ...deedOf(order), ...outcomeOf(failure), prev: end.hash }
      const hash = auditHash(canonicalJson(entry))
      appendLine(path, JSON.stringify({ ...entry, hash }))
      end = { seq: entry.seq, hash }
    },
  }
}

/** The end of the log. A line that a crash cut off was never acted on, and is removed. */
function endOf(dataDir: string): { seq: number; hash: string } {
  const path = join(dataDir, FILE)
  if (existsSync(path)) {
    const bytes = readFileSync(path)
    const whole = bytes.lastIndexOf(0x0a) + 1
    if (whole < bytes.length) truncateSync(path, whole)
  }
  const last = readOrderLog(dataDir).entries.at(-1)
  return last === undefined ? { seq: 0, hash: AUDIT_GENESIS } : { seq: last.seq, hash: last.hash }
}

function appendLine(path: string, line: string): void {
  const file = openSync(path, 'a', 0o600)
  try {
    writeSync(file, `${line}\n`)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

const outcomeOf = (failure: string | undefined) =>
  failure === undefined ? { result: 'started' as const } : { result: 'failed' as const, detail: failure.slice(0, 500) }

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
  /** Null: each entry follows the one before it. Entries before the earlier file are gone, so the first one is believed. */
  broken: AuditBreak | null
}

/** Works while the agent runs, and while none does. */
export function readOrderLog(dataDir: string): ReadOrderLog {
  const entries: AuditRecord[] = []
  let chain: AuditChain | null = null
  let broken: AuditBreak | null = null
  for (const line of [EARLIER, FILE].flatMap((name) => linesOf(join(dataDir, name)))) {
    const entry = parseLine(line)
    if (entry === null) {
      broken ??= { seq: (entries.at(-1)?.seq ?? 0) + 1, problem: 'is no line of the log' }
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
