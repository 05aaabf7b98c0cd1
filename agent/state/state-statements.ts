// The statements of the agent's state, prepared once: a turn of a small service runs some dozens of them.
import type { Database, SQLQueryBindings } from '../../shared/adapters/sqlite.ts'
import type { StatusKind } from '../../shared/model/status.ts'
import type { Stored } from './state-box.ts'

export interface InventoryRecord {
  ref: string
  api_version: string
  uid: string | null
  applied_doc: Stored
  owned_hash: Stored
  digest: string | null
  commit_text: string | null
  revision: string | null
}

/** A stored row of the outbox. */
export interface Waiting {
  kind: StatusKind
  key: string
  rev: number
  doc: string | null
}

export function prepareStatements(db: Database) {
  const query = <Row, Params extends SQLQueryBindings[]>(sql: string) => db.prepare<Row, Params>(sql)
  return {
    readMeta: query<{ value: string }, [string]>('SELECT value FROM meta WHERE key = ?'),
    writeMeta: query<never, [string, string]>(
      'INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
    ),
    services: query<{ key: string }, []>('SELECT key FROM service ORDER BY key'),
    addService: query<never, [string]>('INSERT INTO service (key) VALUES (?) ON CONFLICT DO NOTHING'),
    serviceState: query<{ applied: string | null; healthy: string | null }, [string]>('SELECT applied, healthy FROM service WHERE key = ?'),
    setServiceState: query<never, [string, string | null, string | null]>(
      'INSERT INTO service (key, applied, healthy) VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET applied = excluded.applied, healthy = excluded.healthy',
    ),
    facts: query<{ key: string; doc: Stored }, [string]>('SELECT key, doc FROM fact WHERE service = ? ORDER BY key'),
    factsOf: query<{ service: string; doc: Stored }, [string]>('SELECT service, doc FROM fact WHERE key = ?'),
    setFact: query<never, [string, string, Stored]>(
      'INSERT INTO fact (service, key, doc) VALUES (?, ?, ?) ON CONFLICT (service, key) DO UPDATE SET doc = excluded.doc',
    ),
    dropFact: query<never, [string, string]>('DELETE FROM fact WHERE service = ? AND key = ?'),
    forgetFacts: query<never, [string]>('DELETE FROM fact WHERE service = ?'),
    forgetService: query<never, [string]>('DELETE FROM service WHERE key = ?'),
    inventory: query<InventoryRecord, [string]>(
      'SELECT ref, api_version, uid, applied_doc, owned_hash, digest, commit_text, revision FROM inventory WHERE service = ? ORDER BY ref',
    ),
    owner: query<{ service: string }, [string]>('SELECT service FROM inventory WHERE ref = ?'),
    widen: query<never, [string, string, string]>(
      'INSERT INTO inventory (ref, service, api_version) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
    ),
    record: query<never, [string, string | null, Stored, Stored, string | null, string | null, string | null, string, string]>(
      'UPDATE inventory SET api_version = ?, uid = ?, applied_doc = ?, owned_hash = ?, digest = ?, commit_text = ?, revision = ? WHERE ref = ? AND service = ?',
    ),
    narrow: query<never, [string, string]>('DELETE FROM inventory WHERE ref = ? AND service = ?'),
    forgetInventory: query<never, [string]>('DELETE FROM inventory WHERE service = ?'),
    reported: query<{ doc: string | null }, [string, string]>('SELECT doc FROM outbox WHERE kind = ? AND key = ?'),
    // PU6: both change no row without a change.
    report: query<never, [string, string, number, string]>(
      `INSERT INTO outbox (kind, key, rev, doc) VALUES (?, ?, ?, ?)
       ON CONFLICT (kind, key) DO UPDATE SET rev = excluded.rev, doc = excluded.doc, acked = 0 WHERE outbox.doc IS NOT excluded.doc`,
    ),
    reportGone: query<never, [number, string, string]>(
      'UPDATE outbox SET rev = ?, doc = NULL, acked = 0 WHERE kind = ? AND key = ? AND doc IS NOT NULL',
    ),
    renumber: query<never, [number, string, string]>('UPDATE outbox SET rev = ?, acked = 0 WHERE kind = ? AND key = ?'),
    waiting: query<Waiting, [number]>('SELECT kind, key, rev, doc FROM outbox WHERE acked = 0 ORDER BY rev LIMIT ?'),
    every: query<Waiting, []>('SELECT kind, key, rev, doc FROM outbox ORDER BY rev'),
    inventoryKeys: query<Pick<Waiting, 'kind' | 'key'>, []>("SELECT kind, key FROM outbox WHERE doc IS NOT NULL AND kind <> 'event'"),
    row: query<Waiting, [string, string]>('SELECT kind, key, rev, doc FROM outbox WHERE kind = ? AND key = ?'),
    urgent: query<{ one: number }, []>(
      "SELECT 1 AS one FROM outbox WHERE acked = 0 AND kind = 'service' AND json_extract(doc, '$.health') IN ('Degraded', 'Healthy') LIMIT 1",
    ),
    forgetEvent: query<never, [string]>("DELETE FROM outbox WHERE kind = 'event' AND acked = 0 AND key = ?"),
    events: query<{ n: number; bytes: number }, []>(
      "SELECT count(*) AS n, coalesce(sum(octet_length(doc)), 0) AS bytes FROM outbox WHERE kind = 'event'",
    ),
    depth: query<{ n: number }, []>('SELECT count(*) AS n FROM outbox WHERE acked = 0'),
    forgetAcked: query<never, [number]>("DELETE FROM outbox WHERE acked = 0 AND rev <= ? AND (doc IS NULL OR kind = 'event')"),
    ack: query<never, [number]>('UPDATE outbox SET acked = 1 WHERE acked = 0 AND rev <= ?'),
    boundEvents: query<never, [number]>(
      "DELETE FROM outbox WHERE kind = 'event' AND rev <= (SELECT rev FROM outbox WHERE kind = 'event' ORDER BY rev DESC LIMIT 1 OFFSET ?)",
    ),
    // Oldest first until the newer ones fit.
    boundEventBytes: query<never, [number]>(
      `DELETE FROM outbox WHERE kind = 'event' AND rev <= (SELECT max(rev) FROM (
        SELECT rev, sum(octet_length(doc)) OVER (ORDER BY rev DESC) AS total FROM outbox WHERE kind = 'event') WHERE total > ?)`,
    ),
  }
}

export type Statements = ReturnType<typeof prepareStatements>
