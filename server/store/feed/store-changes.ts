// The feed of changes over the store: reading from a number on, following it, and letting go of what is old.
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Store } from '../store.ts'
import type { StoreDb } from '../store-db.ts'
import { readNames, type Tables } from '../tables.ts'
import type { Change, ChangeFeed, FeedChanges, FeedGone, FeedIdle, FollowOptions } from './change-feed.ts'
import { ChangeTail, READ_MAX } from './change-tail.ts'

type ChangeStore = Pick<Store, 'changes'> & { endFollowing(): void }

type FeedDb = Pick<StoreDb, 'read' | 'settledChange'>

/** Rows that one call looks at while it looks for a topic. */
const SCAN_ROWS_MAX = 5_000
/** Rows that go in one transaction. */
const PRUNE_ROWS = 2_000

export function createChangeStore(db: StoreDb, clock: Clock): ChangeStore {
  const closing = new AbortController()
  const tail = new ChangeTail({ read: (after, limit) => readAfter(db, after, limit), position: () => positionOf(db), clock }, closing)
  const unsubscribe = db.onCommit(() => tail.wake())
  let listening = false
  const changes: ChangeFeed = {
    position: () => positionOf(db),
    read: async (after, { topics, limit }) => {
      const items: Change[] = []
      let next = after
      for (let scanned = 0; scanned < SCAN_ROWS_MAX; ) {
        const read = await readAfter(db, next, topics === undefined ? limit : READ_MAX)
        if (read.kind === 'gone') return next === after ? read : { kind: 'changes', items, next }
        for (const change of read.items) {
          if (items.length === limit) return { kind: 'changes', items, next }
          if (topics?.has(change.topic) !== false) items.push(change)
          next = change.id
        }
        scanned += read.items.length
        if (topics === undefined || read.items.length < READ_MAX) break
      }
      return { kind: 'changes', items, next }
    },
    follow: (after, options) => {
      if (!listening) db.listen(() => tail.wake(), closing.signal)
      listening = true
      return follow({ db, tail, clock, closing: closing.signal }, after, options)
    },
  }
  return {
    changes,
    endFollowing: () => {
      closing.abort()
      unsubscribe()
    },
  }
}

interface FollowDeps {
  db: StoreDb
  tail: ChangeTail
  clock: Clock
  closing: AbortSignal
}

async function* follow(
  { db, tail, clock, closing }: FollowDeps,
  after: number,
  { signal, topics, idleMs }: FollowOptions,
): AsyncGenerator<FeedChanges | FeedIdle | FeedGone> {
  const leave = tail.enter()
  const failed = (error: unknown) => {
    if (signal.aborted || closing.aborted) return null // the store is closed under it
    throw error
  }
  try {
    let at = after
    let saidMs = clock.nowMs()
    while (!signal.aborted && !closing.aborted) {
      // The store knows changes that are not in memory, and whether that number ever existed.
      const held = tail.after(at)
      const read =
        held === null
          ? await readAfter(db, at, READ_MAX).catch(failed)
          : { kind: 'changes' as const, items: held, next: held.at(-1)?.id ?? at }
      if (read === null || signal.aborted || closing.aborted) return
      if (read.kind === 'gone') {
        at = read.newest
        yield read
        continue
      }
      const items = topics === undefined ? read.items : read.items.filter(({ topic }) => topics.has(topic))
      const moved = read.next > at
      at = read.next
      if (items.length > 0) {
        yield { kind: 'changes', items, next: at }
        saidMs = clock.nowMs()
      } else if (clock.nowMs() >= saidMs + idleMs) {
        yield { kind: 'idle', next: at }
        saidMs = clock.nowMs()
      }
      if (moved) continue
      if (held === null) tail.wake() // we saw more in the store than is in memory
      await tail.wait(at, saidMs + idleMs, signal)
    }
  } finally {
    leave()
  }
}

/**
 * Watchers never learn of a change that a power failure could undo: its number would be given out again, for another
 * one.
 */
const positionOf = async (db: FeedDb): Promise<number> => Math.min(await lastGiven(db), db.settledChange())

async function lastGiven({ read }: FeedDb): Promise<number> {
  const row = await read.selectFrom('counters').select('value').where('name', '=', 'change').executeTakeFirst()
  return row?.value ?? 0
}

/** Numbers have no gaps: if the next one that is there is not the next number, something is missing. */
async function readAfter(db: FeedDb, after: number, limit: number): Promise<FeedChanges | FeedGone> {
  const select = async () => {
    const rows = await db.read.selectFrom('changes').selectAll().where('id', '>', after).orderBy('id').limit(limit).execute()
    const settled = db.settledChange()
    return rows.filter(({ id }) => id <= settled)
  }
  let rows = await select()
  if (rows.length === 0) {
    const given = await lastGiven(db)
    const newest = Math.min(given, db.settledChange())
    if (newest <= after && after <= given) return { kind: 'changes', items: [], next: after } // a query may have seen more than what is settled
    if (newest > after) rows = await select() // committed since we looked, or pruned
  }
  if (rows[0]?.id !== after + 1) {
    const oldest = await db.read.selectFrom('changes').select('id').orderBy('id').limit(1).executeTakeFirst()
    return { kind: 'gone', oldest: oldest?.id ?? null, newest: await positionOf(db) }
  }
  const gap = rows.findIndex((row, index) => row.id !== after + 1 + index)
  const items = (gap < 0 ? rows : rows.slice(0, gap)).map(toChange)
  return { kind: 'changes', items, next: items.at(-1)?.id ?? after }
}

/**
 * Deletes the oldest changes, never one from between: those beyond `countMax`, and those before `sinceMs`. Some at a
 * time; returns their number, 0 when there are no more.
 */
export async function pruneChanges(db: StoreDb, { countMax, sinceMs }: { countMax: number; sinceMs: number }): Promise<number> {
  const newest = await positionOf(db)
  const young = await db.read.selectFrom('changes').select('id').where('at_ms', '>=', sinceMs).orderBy('id').limit(1).executeTakeFirst()
  const upTo = Math.max(newest - countMax, (young?.id ?? newest + 1) - 1)
  const oldest = await db.read.selectFrom('changes').select('id').orderBy('id').limit(1).executeTakeFirst()
  if (oldest === undefined || oldest.id > upTo) return 0
  const { numDeletedRows } = await db.write(({ sql: trx }) =>
    trx
      .deleteFrom('changes')
      .where('id', '<=', Math.min(upTo, oldest.id + PRUNE_ROWS - 1))
      .executeTakeFirstOrThrow(),
  )
  return Number(numDeletedRows)
}

const toChange = (row: Tables['changes']): Change => ({
  id: row.id,
  atMs: row.at_ms,
  topic: row.topic,
  cluster: row.cluster,
  project: row.project,
  name: row.name,
  keys: row.keys === null ? null : readNames(row.keys),
})
