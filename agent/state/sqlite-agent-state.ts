// AgentState in one plain SQLite file. Every method is one transaction; nothing here is replicated.

import { existsSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { createLogSync, type LogFile, NO_LOG } from '../../shared/adapters/log-sync.ts'
import {
  DamagedFile,
  type Database,
  INDEXED_BYTES_MAX,
  isDamage,
  isDiskFull,
  openSqlite,
  structureDamage,
  writeTransaction,
} from '../../shared/adapters/sqlite.ts'
import { syncPath } from '../../shared/adapters/sync-path.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { type ObjectRef, parseRefKey, refKey } from '../../shared/kube/object.ts'
import { isStatusKind } from '../../shared/model/status.ts'
import { INCARNATION_MAX, REV_INCARNATION } from '../../shared/protocol/status.ts'
import { assert } from '../../shared/runtime/assert.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { parseServiceKey, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import type { AgentState, Identity, InventoryEntry, OutboxRow, Removal, ServiceState } from './agent-state.ts'
import type { WrittenClaim } from './claims.ts'
import type { DiskReserve } from './disk-reserve.ts'
import { createEventBounds, createRepeats, OUTBOX_EVENTS_MAX } from './outbox-events.ts'
import { appliedPlace, factPlace, ownedPlace, type StateBox, type StateTexts, sealClearTexts, stateTexts } from './state-box.ts'
import { type InventoryRecord, prepareStatements, type Waiting } from './state-statements.ts'

const SCHEMA_VERSION = 4

const SCHEMA = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE service (key TEXT PRIMARY KEY, applied TEXT, healthy TEXT) WITHOUT ROWID;
CREATE TABLE inventory (
  ref TEXT PRIMARY KEY, service TEXT NOT NULL, api_version TEXT NOT NULL, uid TEXT, applied_doc TEXT, owned_hash TEXT, digest TEXT
) WITHOUT ROWID;
CREATE INDEX inventory_service ON inventory (service);
-- The last state of every key that was ever reported. acked: the server has it. A removed key leaves when its removal is acknowledged.
CREATE TABLE outbox (kind TEXT NOT NULL, key TEXT NOT NULL, rev INTEGER NOT NULL, doc TEXT, acked INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE INDEX outbox_waiting ON outbox (rev) WHERE acked = 0;
`

/** Each brings a file of the version before up to its own. */
const MIGRATIONS = [
  SCHEMA,
  'CREATE TABLE fact (service TEXT NOT NULL, key TEXT NOT NULL, doc TEXT NOT NULL, PRIMARY KEY (service, key)) WITHOUT ROWID',
  'ALTER TABLE inventory ADD COLUMN commit_text TEXT',
  '', // applied_doc, owned_hash and fact.doc may be sealed (state-box.ts)
  'ALTER TABLE inventory ADD COLUMN revision TEXT',
]

/** Rows are read in order or one at a time, and the kernel caches their pages: SQLite's own 2 MB of copies would be
 *  useless. */
const CACHE_KIB = 512

/** Join tokens of one registration that are remembered. */
const TOKENS_MAX = 16
/** Names, punctuation and rev of a row in a push, at most. */
const ROW_ENVELOPE_BYTES = 80

/** `reserve`: given back when a write finds no space (RP4). `logFile`: default that of the file. `box`: seals documents
 *  (SL8); default none. */
export function openAgentState(path: string, reserve?: DiskReserve, logFile?: LogFile, box?: StateBox): AgentState {
  const db = openWithSpace(path, reserve, box)
  const texts = stateTexts(box)
  db.run('PRAGMA synchronous=NORMAL') // from here on who needs it waits for the disk by `log`
  const log = createLogSync(path, path === ':memory:' ? NO_LOG : logFile)
  log.settle() // what a process before this one wrote may not be there yet
  const listeners: Array<() => void> = []
  const repeats = createRepeats()
  const statements = prepareStatements(db)
  const bounds = createEventBounds(statements)
  /** The content of the file; no other process writes it. */
  const meta = new Map<string, string | null>()
  /** Reads a value that was written as JSON. */
  const stored = <T>(text: string): T => {
    try {
      return JSON.parse(text) as T
    } catch (error) {
      throw damaged(path, error)
    }
  }

  let eventsMax = OUTBOX_EVENTS_MAX
  /**
   * RP4: the reserve is released first, and deleting the older half of the events makes room in the file: the program
   * that filled the disk may take the released space too.
   */
  const makeRoom = (from: DiskReserve) => {
    from.giveBack('write')
    foldLog(db)
    eventsMax = Math.floor((statements.events.get()?.n ?? 0) / 2)
    writeTransaction(db, () => statements.boundEvents.run(eventsMax))
    foldLog(db)
  }
  const writeOnce = <T>(work: () => T extends Promise<unknown> ? never : T): T => {
    try {
      return writeTransaction(db, work)
    } catch (error) {
      meta.clear()
      bounds.recount()
      throw error
    }
  }
  const write = <T>(work: () => T extends Promise<unknown> ? never : T): T => {
    try {
      return writeOnce(work)
    } catch (error) {
      if (reserve === undefined || !isDiskFull(error)) throw error
      makeRoom(reserve)
      return writeOnce(work)
    }
  }

  /** For rare facts that cannot be found out again. */
  const writeSettled = <T>(work: () => T extends Promise<unknown> ? never : T): T => {
    const result = write(work)
    log.settle()
    return result
  }

  const readMeta = (key: string): string | null => {
    const known = meta.get(key)
    if (known !== undefined) return known
    const value = statements.readMeta.get(key)?.value ?? null
    meta.set(key, value)
    return value
  }
  const writeMeta = (key: string, value: string) => {
    statements.writeMeta.run(key, value)
    meta.set(key, value)
  }

  const identity = (): Identity | null => {
    const text = readMeta('identity')
    return text === null ? null : stored<Identity>(text)
  }
  /** Continues after the greater of this file's last rev and the server's, within the incarnation (PU1). */
  const lastRev = (): number => {
    const incarnation = identity()?.incarnation ?? 0
    assert(incarnation <= INCARNATION_MAX, 'incarnation fits into a rev')
    return Math.max(Number(readMeta('rev') ?? 0), incarnation * REV_INCARNATION)
  }
  /** Acknowledged rows too, because it is unknown which of them the server has now. */
  const renumber = (after: number) => {
    let rev = after
    for (const row of statements.every.all()) statements.renumber.run(++rev, row.kind, row.key)
    writeMeta('rev', String(rev))
    writeMeta('acknowledged', '0')
    writeMeta('inventory', 'due')
  }
  const outboxRow = (row: Waiting): OutboxRow => {
    assert(isStatusKind(row.kind), 'the outbox holds known kinds')
    return { kind: row.kind, key: row.key, rev: row.rev, doc: row.doc === null ? null : stored(row.doc) }
  }

  const recordApplied = (service: ServiceId, entries: readonly InventoryEntry[]) => {
    const key = serviceKey(service)
    for (const { ref, apiVersion, uid, appliedDoc, ownedHash, digest, commit, revision } of entries) {
      const name = refKey(ref)
      const [doc, owned] = [texts.write(appliedPlace(name), appliedDoc), texts.write(ownedPlace(name), ownedHash)]
      const { changes } = statements.record.run(apiVersion, uid, doc, owned, digest, commit, revision, name, key)
      assert(changes === 1, 'an object is in the inventory before it is applied (IV1)')
    }
  }
  const setServiceState = (service: ServiceId, { applied, healthy }: ServiceState) => {
    const text = (point: ServiceState['applied']) => (point === null ? null : JSON.stringify(point))
    statements.setServiceState.run(serviceKey(service), text(applied), text(healthy))
  }

  return {
    settled: log.settled,
    settle: log.settle,
    identity,
    setIdentity: (next) => {
      const grew = identity()?.incarnation !== next.incarnation
      writeSettled(() => {
        writeMeta('identity', JSON.stringify(next))
        // A new incarnation outranks every rev of the one before. Also when it went back (SE6): the numbers of another
        // one would be refused.
        if (!grew) return
        writeMeta('next_incarnation', '')
        renumber(next.incarnation * REV_INCARNATION)
      })
      if (grew) emptyLog(db)
    },
    wantNextIncarnation: () => {
      writeSettled(() => void writeMeta('next_incarnation', 'wanted'))
      emptyLog(db)
    },
    wantsNextIncarnation: () => readMeta('next_incarnation') === 'wanted',

    removal: () => {
      const text = readMeta('removal')
      return text === null || text === '' ? null : stored<Removal>(text)
    },
    setRemoval: (removal) => {
      writeSettled(() => void writeMeta('removal', removal === null ? '' : JSON.stringify(removal)))
      emptyLog(db)
    },
    usedTokens: () => stored<string[]>(readMeta('join_tokens') ?? '[]'),
    noteToken: (hash) => {
      const known = stored<string[]>(readMeta('join_tokens') ?? '[]')
      if (!known.includes(hash)) writeSettled(() => void writeMeta('join_tokens', JSON.stringify([...known, hash].slice(-TOKENS_MAX))))
    },
    forgetRegistration: () => {
      writeSettled(() => {
        for (const table of ['inventory', 'fact', 'service', 'outbox']) db.run(`DELETE FROM ${table}`)
        db.run("DELETE FROM meta WHERE key NOT IN ('claim', 'definitions')")
        meta.clear()
      })
      emptyLog(db)
    },

    writtenClaim: () => {
      const text = readMeta('claim')
      if (text === null) return null
      const written = stored<WrittenClaim>(text)
      // An agent older than rule CM11 wrote one claim, or null.
      return { ...written, over: [written.over ?? []].flat() }
    },
    setWrittenClaim: (written) => void writeSettled(() => writeMeta('claim', JSON.stringify(written))),

    definitions: () => new Map(Object.entries(stored<Record<string, string>>(readMeta('definitions') ?? '{}'))),
    noteDefinition: (kind, crd) =>
      void writeSettled(() =>
        writeMeta('definitions', JSON.stringify({ ...stored<Record<string, string>>(readMeta('definitions') ?? '{}'), [kind]: crd })),
      ),

    services: () => statements.services.all().map((row) => parseServiceKey(row.key)),
    inventory: (service) => {
      const shared = sharedTexts()
      return statements.inventory.all(serviceKey(service)).map((row) => entryOf(row, shared, texts))
    },
    ownerOf: (ref) => {
      const owner = statements.owner.get(ref)?.service
      return owner === undefined ? null : parseServiceKey(owner)
    },
    widenInventory: (service, entries) =>
      write(() => {
        const key = serviceKey(service)
        statements.addService.run(key)
        const taken: ObjectRef[] = []
        for (const { ref, apiVersion } of entries) {
          const id = refKey(ref)
          const added = statements.widen.run(id, key, apiVersion).changes
          if (added === 0 && statements.owner.get(id)?.service !== key) taken.push(ref)
        }
        return taken
      }),
    recordApplied: (service, entries) => write(() => recordApplied(service, entries)),
    narrowInventory: (service, refs, heirs = []) =>
      write(() => {
        for (const ref of refs) statements.narrow.run(refKey(ref), serviceKey(service))
        for (const heir of heirs) {
          statements.addService.run(serviceKey(heir.service))
          statements.widen.run(refKey(heir.ref), serviceKey(heir.service), heir.apiVersion)
        }
      }),
    serviceState: (service) => {
      const row = statements.serviceState.get(serviceKey(service))
      return {
        applied: row?.applied ? stored<ServiceState['applied']>(row.applied) : null,
        healthy: row?.healthy ? stored<ServiceState['healthy']>(row.healthy) : null,
      }
    },
    setServiceState: (service, state) => write(() => void setServiceState(service, state)),
    facts: (service, prefix) =>
      new Map(
        statements.facts.all(serviceKey(service)).flatMap(({ key, doc }) => {
          const text = key.startsWith(prefix) ? texts.read(factPlace(serviceKey(service), key), doc) : null
          return text === null ? [] : [[key, stored(text)]]
        }),
      ),
    factsOf: (key) =>
      new Map(
        statements.factsOf.all(key).flatMap(({ service, doc }) => {
          const text = texts.read(factPlace(service, key), doc)
          return text === null ? [] : [[service, stored(text)]]
        }),
      ),
    setFacts: (service, facts) =>
      writeSettled(() => {
        const id = serviceKey(service)
        for (const [key, doc] of facts) {
          if (doc === null || doc === undefined) statements.dropFact.run(id, key)
          else statements.setFact.run(id, key, texts.write(factPlace(id, key), JSON.stringify(doc)))
        }
      }),
    forgetService: (service) =>
      write(() => {
        statements.forgetInventory.run(serviceKey(service))
        statements.forgetFacts.run(serviceKey(service))
        statements.forgetService.run(serviceKey(service))
      }),

    report: (rows, turns = []) => {
      if (rows.length === 0 && turns.every(({ applied, state }) => applied.length === 0 && state === null)) return
      const changed = write(() => {
        for (const turn of turns) {
          recordApplied(turn.service, turn.applied)
          if (turn.state !== null) setServiceState(turn.service, turn.state)
        }
        const before = lastRev()
        let rev = before
        for (const { kind, key, doc: given } of rows) {
          const doc = kind === 'event' ? repeats.count(key, given, (earlier) => statements.forgetEvent.run(earlier).changes > 0) : given
          const text = doc === null ? null : canonicalJson(doc)
          const { changes } =
            text === null ? statements.reportGone.run(rev + 1, kind, key) : statements.report.run(kind, key, rev + 1, text)
          rev += changes
          if (kind === 'event' && text !== null) bounds.added(text)
        }
        if (rev === before) return false
        writeMeta('rev', String(rev))
        if (reserve?.problem() === null) eventsMax = OUTBOX_EVENTS_MAX
        bounds.enforce(eventsMax)
        return true
      })
      if (changed) for (const listener of listeners) listener()
    },
    outbox: (limit) => {
      repeats.forget() // from now on the server may have them
      return statements.waiting.all(limit).map(outboxRow)
    },
    outboxUrgent: () => statements.urgent.get() !== null,
    outboxDepth: () => statements.depth.get()?.n ?? 0,
    acknowledge: (settled, ack = settled) =>
      write(() => {
        statements.forgetAcked.run(settled) // removed keys and events have no further use once the server has them
        statements.ack.run(settled)
        if (settled > Number(readMeta('rev') ?? 0)) writeMeta('rev', String(settled))
        writeMeta('acknowledged', String(ack))
      }),
    lastRev,
    sentRev: () => Number(readMeta('sent') ?? lastRev()),
    noteSent: (rev) => void write(() => writeMeta('sent', String(rev))),
    acknowledgedRev: () => Number(readMeta('acknowledged') ?? 0),
    reportAnew: () => {
      writeSettled(() => renumber(lastRev()))
      for (const listener of listeners) listener()
    },
    inventoryDue: () => readMeta('inventory') === 'due',
    inventoryDone: () => void write(() => writeMeta('inventory', 'done')),
    inventoryRange: (after, limit, bytesMax) => {
      // SQLite sorts by bytes, JavaScript and the protocol by code units: the same for all but rare characters, so it
      // is sorted here.
      const keys = statements.inventoryKeys.all().map((row) => ({ ...row, name: `${row.kind}/${row.key}` }))
      const wanted = keys.filter(({ name }) => after === null || name > after).sort((a, b) => (a.name < b.name ? -1 : 1))
      const rows: OutboxRow[] = []
      let bytes = 0
      for (const { kind, key } of wanted) {
        const row = statements.row.get(kind, key)
        if (row === null) continue
        bytes += Buffer.byteLength(row.doc ?? '') + Buffer.byteLength(key) + ROW_ENVELOPE_BYTES
        if (rows.length > 0 && (rows.length >= limit || bytes > bytesMax)) break
        rows.push(outboxRow(row))
      }
      const last = rows.at(-1)
      return { rows, upTo: last === undefined || rows.length === wanted.length ? null : `${last.kind}/${last.key}` }
    },
    lastReported: (kind, key) => {
      const doc = statements.reported.get(kind, key)?.doc
      return doc === null || doc === undefined ? null : stored(doc)
    },
    onOutbox: (listener) => void listeners.push(listener),
    close: () => {
      for (const statement of Object.values(statements)) statement.finalize()
      log.close()
      db.close()
    },
  }
}

/** Tables of equal form whose pages took each other's place are whole in themselves. */
const STRANGE_SERVICE =
  "SELECT key FROM service WHERE key NOT GLOB '?*/?*' UNION ALL SELECT service FROM inventory WHERE service NOT GLOB '?*/?*' LIMIT 1"

/** Opening writes, too: the index of the log. */
function openWithSpace(path: string, reserve: DiskReserve | undefined, box: StateBox | undefined): Database {
  const open = () => {
    if (path !== ':memory:' && !existsSync(path)) createFile(path)
    const db = openSqlite(path, { synchronous: 'FULL', cacheKiB: CACHE_KIB })
    const damage = structureDamage(db, INDEXED_BYTES_MAX)
    if (damage !== null) throw new DamagedFile(damage)
    migrate(db)
    if (box !== undefined) sealClearTexts(db, box)
    if (db.query(STRANGE_SERVICE).get() !== null) throw new DamagedFile('a row of another table is among the services')
    return db
  }
  try {
    return open()
  } catch (error) {
    if (isDamage(error)) throw damaged(path, error)
    if (reserve === undefined || !isDiskFull(error)) throw error
    reserve.giveBack('open')
    return open()
  }
}

/** Under a temporary name: a leftover of a crash is no state. */
function createFile(path: string): void {
  const staged = `${path}.new`
  for (const suffix of ['', '-wal', '-shm']) rmSync(staged + suffix, { force: true })
  const db = openSqlite(staged, { synchronous: 'FULL' })
  try {
    migrate(db)
  } finally {
    db.close()
  }
  syncPath(staged)
  renameSync(staged, path)
  syncPath(dirname(path))
}

const damaged = (path: string, cause: unknown): AppError =>
  new AppError(
    'data_unusable',
    {
      doing: 'open the agent state',
      detail: `${path} is damaged`,
      remedy: `Move ${path}, ${path}-wal and ${path}-shm away and start the agent with a join token of its server. It finds its objects by their labels. Applied objects stay until then.`,
    },
    { cause },
  )

/**
 * Facts in the main file survive a lost end of the log, which disks that report false syncs lose first. Used for the
 * few facts without which no server accepts this agent again.
 */
function emptyLog(db: Database): void {
  try {
    db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch (error) {
    if (!isDiskFull(error)) throw error
  }
}

/** Restarts the log at its beginning. The log keeps its length, which reserves that space. */
function foldLog(db: Database): void {
  try {
    db.run('PRAGMA wal_checkpoint(RESTART)')
  } catch (error) {
    if (!isDiskFull(error)) throw error
  }
}

function migrate(db: Database): void {
  const version = db.query<{ user_version: number }, []>('PRAGMA user_version').get()?.user_version ?? 0
  if (version > SCHEMA_VERSION) {
    db.close()
    throw new AppError('store_newer', { doing: 'open the agent state', detail: `schema ${version} is newer than ${SCHEMA_VERSION}` })
  }
  if (version === SCHEMA_VERSION) return
  writeTransaction(db, () => {
    for (const migration of MIGRATIONS.slice(version)) if (migration !== '') db.run(migration)
    db.run(`PRAGMA user_version=${SCHEMA_VERSION}`)
  })
}

/** Stores equal texts once: entries are held for as long as the agent runs, and thousands of them have the same
 *  kind, namespace and revision. */
function sharedTexts(): (text: string) => string {
  const texts = new Map<string, string>()
  return (text) => {
    const known = texts.get(text)
    if (known === undefined) texts.set(text, text)
    return known ?? text
  }
}

function entryOf(row: InventoryRecord, shared: (text: string) => string, texts: StateTexts): InventoryEntry {
  const read = parseRefKey(row.ref)
  assert(read !== null, `the inventory holds well-formed refs, not ${row.ref}`)
  const ref = { group: shared(read.group), kind: shared(read.kind), namespace: shared(read.namespace), name: read.name }
  const [digest = null, commit = null, revision = null] = [row.digest, row.commit_text, row.revision].map((text) =>
    text === null ? null : shared(text),
  )
  const { uid } = row
  const appliedDoc = texts.read(appliedPlace(row.ref), row.applied_doc)
  const ownedHash = texts.read(ownedPlace(row.ref), row.owned_hash)
  return { ref, apiVersion: shared(row.api_version), uid, appliedDoc, ownedHash, digest, commit, revision }
}
