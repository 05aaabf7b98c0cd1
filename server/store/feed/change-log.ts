// The changes of one write transaction, for watchers of the store: numbered when the transaction ends, in the order of
// commits and without a gap. One entry for each subject, however much of it changed.
import { sql, type Transaction } from 'kysely'
import type { ChangeTopic } from '../../../shared/model/change.ts'
import { type Bulk, runBulk } from '../bulk.ts'
import { nextNumber } from '../counters.ts'
import type { Engine } from '../engines/engine.ts'
import type { Tables } from '../tables.ts'

/** Names what changed, not how: watchers read it again. */
export interface ChangeNote {
  topic: ChangeTopic
  /** Cluster id. */
  cluster?: string
  project?: string
  /** Topics desired and render: of the service; confirmation: of its service, too; repository: of the repository. Else
   *  with its kind before it: `Service/podinfo`. */
  name?: string
  /**
   * The changed keys: `kind/key` of statuses, cluster ids of desired rows, ids of questions. Null if they are too many
   * to name: read all.
   */
  keys?: readonly string[] | null
}

/** The numbers of one transaction's changes. */
export interface WrittenChanges {
  first: number
  last: number
}

/** The channel of LISTEN and NOTIFY on PostgreSQL. */
export const CHANGES_CHANNEL = 'skerry_changes'
/** Keys that an entry names. */
export const CHANGE_KEYS_MAX = 64
/** As JSON. Agents choose the names of what they report, and a hundred thousand changes are kept. */
const CHANGE_KEYS_CHARS_MAX = 16_384

const WRITE_CHANGES: Bulk = {
  before: 'insert into changes (id, at_ms, topic, cluster, project, name, keys) values',
  row: '(?, ?, ?, ?, ?, ?, ?)',
  after: '',
  types: ['bigint', 'bigint', 'text', 'text', 'text', 'text', 'text'],
}

export class ChangeLog {
  private readonly notes = new Map<string, ChangeNote>()

  add(note: ChangeNote): void {
    const subject = `${note.topic}\n${note.cluster ?? ''}\n${note.project ?? ''}\n${note.name ?? ''}`
    const held = this.notes.get(subject)
    if (held === undefined) this.notes.set(subject, note)
    else this.notes.set(subject, { ...note, keys: bothKeys(held.keys, note.keys) })
  }

  /** Null when there is none. On PostgreSQL listeners of the database learn of the commit. */
  async write(trx: Transaction<Tables>, engine: Engine, nowMs: number): Promise<WrittenChanges | null> {
    if (this.notes.size === 0) return null
    const last = await nextNumber(trx, 'change', this.notes.size)
    if (engine === 'postgres') await sql`notify ${sql.id(CHANGES_CHANNEL)}`.execute(trx)
    const rows = [...this.notes.values()].map((note, index) => toRow(note, last - this.notes.size + 1 + index, nowMs))
    await runBulk(trx, engine, WRITE_CHANGES, rows)
    return { first: last - this.notes.size + 1, last }
  }
}

function bothKeys(a: ChangeNote['keys'], b: ChangeNote['keys']): readonly string[] | null {
  if (a == null || b == null || a.length > CHANGE_KEYS_MAX || b.length > CHANGE_KEYS_MAX) return null
  return [...new Set([...a, ...b])]
}

function toRow({ topic, cluster, project, name, keys }: ChangeNote, id: number, atMs: number): unknown[] {
  const named = keys != null && keys.length <= CHANGE_KEYS_MAX ? JSON.stringify(keys) : null
  const fits = named !== null && named.length <= CHANGE_KEYS_CHARS_MAX
  return [id, atMs, topic, cluster ?? null, project ?? null, name ?? null, fits ? named : null]
}

/** More than were ever given out beside those that the store knows of. */
export const CHANGE_LEAP = 1_000_000
/**
 * After a restore of the store: past all numbers of the lost time, so that watchers at one of them must read everything
 * again.
 */
export async function leapChanges(trx: Transaction<Tables>, nowMs: number): Promise<void> {
  // Beyond the clock's milliseconds, too: a second restore of the same backup does not give out the numbers of the
  // first again.
  const value = sql<number>`case when value + ${CHANGE_LEAP} > ${nowMs} then value + ${CHANGE_LEAP} else ${nowMs} end`
  await trx.updateTable('counters').set({ value }).where('name', '=', 'change').execute()
}
