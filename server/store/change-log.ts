// What one write transaction changed, for those who follow the store: numbered in the order of commits when the transaction ends, because a number that is
// taken earlier is waited for longer.
import type { Transaction } from 'kysely'
import { nextNumber } from './counters.ts'
import type { Tables } from './tables.ts'

export const CHANGE_TOPICS = [
  'resource',
  'repository',
  'render',
  'desired',
  'cluster',
  'token',
  'status',
  'event',
  'confirmation',
  'restore',
] as const
export type ChangeTopic = (typeof CHANGE_TOPICS)[number]

/** What changed, not how: who follows reads it again. */
export interface ChangeNote {
  topic: ChangeTopic
  /** Cluster id. */
  cluster?: string
  project?: string
  /** Of the resource, with its kind before it: `Service/podinfo`; of a service: its name. */
  name?: string
  /** What of it; null: too much to name, look at all of it. */
  keys?: readonly string[] | null
}

/** Keys that an entry names. */
export const CHANGE_KEYS_MAX = 64
/** Rows in one statement. */
const BATCH_ROWS = 500

export class ChangeLog {
  private readonly notes: ChangeNote[] = []

  add(note: ChangeNote): void {
    this.notes.push(note)
  }

  /** The number of the last change; null when there is none. */
  async write(trx: Transaction<Tables>, nowMs: number): Promise<number | null> {
    if (this.notes.length === 0) return null
    const last = await nextNumber(trx, 'change', this.notes.length)
    const rows = this.notes.map((note, index) => toRow(note, last - this.notes.length + 1 + index, nowMs))
    for (let start = 0; start < rows.length; start += BATCH_ROWS)
      await trx
        .insertInto('changes')
        .values(rows.slice(start, start + BATCH_ROWS))
        .execute()
    return last
  }
}

function toRow({ topic, cluster, project, name, keys }: ChangeNote, id: number, atMs: number): Tables['changes'] {
  const named = keys != null && keys.length <= CHANGE_KEYS_MAX ? JSON.stringify(keys) : null
  return { id, at_ms: atMs, topic, cluster: cluster ?? null, project: project ?? null, name: name ?? null, keys: named }
}
