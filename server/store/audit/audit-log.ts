// Audit entries of one write transaction. They commit with the change, so neither exists without the other.
// Write transactions have the store to themselves, so the place of an entry in the chain is the place of its commit.
import { CompiledQuery, sql, type Transaction } from 'kysely'
import { canonicalJson, sha256Hex } from '../../../shared/kube/canonical.ts'
import { type AuditActor, type AuditEntry, auditHash } from '../../../shared/model/audit.ts'
import type { AuditResult } from '../../../shared/model/audit-words.ts'
import { type Bulk, runBulk } from '../bulk.ts'
import type { Engine } from '../engines/engine.ts'
import { storable } from '../status/storable-text.ts'
import type { Tables } from '../tables.ts'
import { type Caller, SYSTEM } from './caller.ts'
import { changedFields } from './changed-fields.ts'

/** One action. Its person, reason and origin come from the caller. */
export interface Deed {
  verb: string
  kind: string
  project?: string | undefined
  name?: string | undefined
  /** Name of a cluster. */
  cluster?: string | undefined
  /** Default done. */
  result?: AuditResult
  /** Texts of the object; only their digests and the paths of changed fields are recorded. */
  before?: string | null | undefined
  after?: string | null | undefined
  detail?: string | undefined
  count?: number | undefined
  /** In place of the caller. */
  actor?: AuditActor
  from?: string | null
}

const TEXT_MAX = 500
const NAME_MAX = 256

const WRITE_ENTRIES: Bulk = {
  before: 'insert into audit (seq, at_ms, actor, verb, kind, project, name, cluster, result, hash, doc) values',
  row: '(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  after: '',
  types: ['bigint', 'bigint', 'text', 'text', 'text', 'text', 'text', 'text', 'text', 'text', 'text'],
}

export class AuditLog {
  private readonly deeds: Deed[] = []
  private readonly caller: Caller | undefined

  /** `caller`: of the moment when the transaction was asked for. Its work runs among that of others. */
  constructor(caller: Caller | undefined) {
    this.caller = caller
  }

  add(deed: Deed): void {
    this.deeds.push(deed)
  }

  get size(): number {
    return this.deeds.length
  }

  async write(trx: Transaction<Tables>, engine: Engine, nowMs: number): Promise<void> {
    if (this.deeds.length === 0) return
    const head = heads.get(trx) ?? (await readAuditHead(trx))
    let { seq, hash: prev } = head
    const at = new Date(nowMs).toISOString()
    const rows = this.deeds.map((deed) => {
      seq += 1
      const entry: AuditEntry = { seq, at, ...entryOf(deed, this.caller), prev }
      const doc = canonicalJson(entry)
      prev = auditHash(doc)
      const { actor, verb, kind, project = null, name = null, cluster = null, result } = entry
      return [seq, nowMs, actor.name, verb, kind, project, name, cluster, result, prev, doc]
    })
    await runBulk(trx, engine, WRITE_ENTRIES, rows)
    await trx.executeQuery(CompiledQuery.raw(SET_HEAD[engine], [seq, prev]))
    heads.set(trx, { seq, hash: prev })
    if (this.caller !== undefined) this.caller.entries += this.deeds.length
  }
}

const SET_HEAD: Record<Engine, string> = {
  sqlite: 'update audit_head set seq = ?, hash = ?',
  postgres: 'update audit_head set seq = $1, hash = $2',
}

/** Many works share a transaction: only the first of them reads where the log ends. */
const heads = new WeakMap<Transaction<Tables>, { seq: number; hash: string }>()
/** After a work that was undone, perhaps with its entries. */
export const forgetAuditHead = (trx: Transaction<Tables>): void => void heads.delete(trx)

export async function readAuditHead(trx: Pick<Transaction<Tables>, 'getExecutor'>): Promise<{ seq: number; hash: string }> {
  const { rows } = await sql<{ seq: number; hash: string }>`select seq, hash from audit_head`.execute(trx as Transaction<Tables>)
  const [head] = rows
  if (head === undefined) throw new Error('the store has no head of its audit log')
  return head
}

function entryOf(deed: Deed, caller: Caller | undefined): Omit<AuditEntry, 'seq' | 'at' | 'prev'> {
  const { verb, kind, project, name, cluster, result = 'done', before, after, detail, count } = deed
  const by = behalfOf(deed, caller)
  const { fields, more } = typeof before === 'string' && typeof after === 'string' ? changedFields(before, after) : NO_FIELDS
  return {
    actor: by.actor,
    verb,
    kind,
    ...optional('project', cut(project, NAME_MAX)),
    ...optional('name', cut(name, NAME_MAX)),
    ...optional('cluster', cut(cluster, NAME_MAX)),
    result,
    ...(typeof before === 'string' ? { before: sha256Hex(before) } : {}),
    ...(typeof after === 'string' ? { after: sha256Hex(after) } : {}),
    ...(fields.length === 0 ? {} : { fields: fields.map((path) => cut(path, NAME_MAX) ?? '') }),
    ...(more === 0 ? {} : { moreFields: more }),
    ...optional('detail', cut(detail, TEXT_MAX)),
    ...optional('reason', cut(by.reason, TEXT_MAX)),
    ...optional('cause', cut(by.cause, TEXT_MAX)),
    ...optional('from', cut(by.from, NAME_MAX)),
    ...optional('requestId', by.requestId),
    ...(count === undefined || count < 2 ? {} : { count }),
  }
}

const NO_FIELDS = { fields: [] as string[], more: 0 }

type Behalf = Pick<Caller, 'actor' | 'reason' | 'cause' | 'from' | 'requestId'>

function behalfOf({ actor, from }: Deed, caller: Caller | undefined): Behalf {
  if (actor !== undefined) return { reason: null, cause: null, requestId: null, ...caller, actor, from: from ?? caller?.from ?? null }
  if (caller === undefined) return { actor: SYSTEM, reason: null, cause: null, from: null, requestId: null }
  if (!caller.ended || caller.actor.kind === 'system') return caller
  return { actor: SYSTEM, reason: null, cause: `request of ${caller.actor.name}`, from: null, requestId: caller.requestId }
}

/** Callers choose some of these texts. */
function cut(text: string | null | undefined, max: number): string | undefined {
  if (text === null || text === undefined || text === '') return undefined
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  return storable(text.length > max ? `${text.slice(0, max - 1)}…` : text).replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, ' ')
}

const optional = <K extends string>(key: K, value: string | null | undefined): { [P in K]?: string } =>
  value === undefined || value === null || value === '' ? {} : ({ [key]: value } as { [P in K]?: string })
