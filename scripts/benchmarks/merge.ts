// The cost of the agent's replica: a page applied with all checks, against the bare loop that hands the same rows to
// cr-sqlite in the page's order, in one transaction of a file opened like any replica (CU4: with a log,
// synchronous=NORMAL).
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CheckedReplica, createCrdtReplica } from '../../agent/replica/crdt-replica.ts'
import { openCrdtDb } from '../../shared/adapters/crdt-db.ts'
import { writeTransaction } from '../../shared/adapters/sqlite.ts'
import type { Position } from '../../shared/crdt/position.ts'
import { hashOfRows } from '../../shared/crdt/row-hash.ts'
import { serviceRowId } from '../../shared/model/desired.ts'
import { checkpointBytes, type Hello, type Row, rowLine } from '../../shared/protocol/frames.ts'
import { PAGE_BYTES_MAX } from '../../shared/protocol/routes.ts'
import { generateKey, signBytes } from '../../shared/runtime/keys.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { unzstd } from '../../shared/runtime/zstd.ts'
import { corpusServices } from './corpus.ts'
import { percentile, rounded } from './figures.ts'

const OBJECTS = 20_000
const DELTA_ROWS = 4_000
const ROUNDS = 3
const CLUSTER = 'c-0000000000000001'
const SITE = 'ab'.repeat(16)
const KEY = generateKey('ed25519')

export async function benchMerge(say: (text: string) => void): Promise<Record<string, number>> {
  const dir = mkdtempSync(join(tmpdir(), 'skerry-merge-'))
  try {
    const rows = corpusServices(OBJECTS, 1).flatMap(({ id, doc, objects }) => [
      liveRow(serviceRowId(id), doc),
      ...[...objects].map(([at, text]) => liveRow(at, text)),
    ])
    const changed = rows
      .slice(0, DELTA_ROWS)
      .map((row) => ({ ...row, colVersion: 2, doc: (row.doc ?? '').replace('"metadata"', '"metadata" ') }))
    const bootstrap = signedPage(null, rows, rows)
    const delta = signedPage(bootstrap.to, changed, [...changed, ...rows.slice(DELTA_ROWS)])
    const wire = Bun.zstdCompressSync(bootstrap.bytes, { level: 3 })
    const runs = Array.from({ length: ROUNDS }, (_, round) => {
      const [bareBootstrapMs = 0, bareDeltaMs = 0] = bareMerge(join(dir, 'bare.sqlite'), [rows, changed])
      const [bootstrapMs, deltaMs, size] = withReplica(dir, (replica, path) => [
        timed(() => applied(replica, bootstrap.bytes)),
        timed(() => applied(replica, delta.bytes)),
        statSync(path).size,
      ])
      const applyMs = withReplica(dir, (replica) => timed(() => applied(replica, unzstd(wire, PAGE_BYTES_MAX))))
      const ms = (value: number) => `${value.toFixed(0)} ms`
      say(
        `round ${round + 1}: page of ${rows.length} rows ${ms(bootstrapMs)} (bare ${ms(bareBootstrapMs)}, with inflating ${ms(applyMs)}), delta of ${DELTA_ROWS} ${ms(deltaMs)} (bare ${ms(bareDeltaMs)})`,
      )
      return { mergeRatio: bareBootstrapMs / bootstrapMs, deltaRatio: bareDeltaMs / deltaMs, applyMs, size }
    })
    // Each ratio is of two runs that follow each other: what else the machine does meanwhile is in both.
    const median = (of: (run: (typeof runs)[number]) => number) => percentile(runs.map(of), 50)
    return {
      merge_ratio: rounded(
        median((run) => run.mergeRatio),
        2,
      ),
      delta_ratio: rounded(
        median((run) => run.deltaRatio),
        2,
      ),
      bootstrap_20k_apply_ms: rounded(
        median((run) => run.applyMs),
        0,
      ),
      replica_bytes_per_object: rounded(median((run) => run.size) / OBJECTS, 0),
    }
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

function withReplica<T>(dir: string, work: (replica: CheckedReplica, path: string) => T): T {
  const path = join(dir, 'replica.sqlite')
  const replica = createCrdtReplica({ path, clusterId: CLUSTER, serverKeys: () => [KEY.publicKey], log: silentLogger })
  const result = work(replica, path)
  replica.close()
  for (const suffix of ['', '.epoch']) rmSync(path + suffix)
  return result
}

const liveRow = (id: string, doc: string): Row => ({ id, doc, colVersion: 1, cl: 1 })

function timed(work: () => void): number {
  const start = performance.now()
  work()
  return performance.now() - start
}

function applied(replica: CheckedReplica, bytes: Uint8Array): void {
  const result = replica.applyPage(bytes)
  if (result.kind !== 'applied') throw new Error(`the page is ${JSON.stringify(result)}`)
}

function signedPage(from: Position | null, rows: readonly Row[], all: readonly Row[]): { bytes: Uint8Array; to: Position } {
  const hash = hashOfRows(all.map(({ id, doc }) => [id, doc ?? ''] as const))
  const to = { dbId: 'cd'.repeat(16), term: 1, dv: (from?.dv ?? 0) + 1, hash }
  const hello: Hello = { t: 'hello', epoch: 1, schema: 1, ordinal: to.dv, from, to, siteId: SITE }
  const lines = Buffer.from(rows.map(rowLine).join(''))
  const sums = { count: all.length, rows: createHash('sha256').update(lines).digest('hex') }
  const checkpoint = { t: 'checkpoint', ...sums, signature: signBytes(KEY.privateKey, checkpointBytes(CLUSTER, hello, sums)) }
  const bytes = Buffer.concat([Buffer.from(`${JSON.stringify(hello)}\n`), lines, Buffer.from(`${JSON.stringify(checkpoint)}\n`)])
  return { bytes, to }
}

/** Milliseconds of each batch, merged and nothing else. */
function bareMerge(path: string, batches: ReadonlyArray<readonly Row[]>): number[] {
  const crdt = openCrdtDb(path, { synchronous: 'NORMAL' })
  const merge = crdt.db.prepare<null, [string, string, string | null, number, number, Uint8Array, number, number]>(
    `INSERT INTO crsql_changes ("table", pk, cid, val, col_version, db_version, site_id, cl, seq) VALUES ('desired', crsql_pack_columns(?1, ?2), 'doc', ?3, ?4, ?5, ?6, ?7, ?8)`,
  )
  const site = Buffer.from(SITE, 'hex')
  const times = batches.map((rows, index) =>
    timed(() =>
      writeTransaction(crdt.db, () => {
        for (const [seq, { id, doc, colVersion, cl }] of rows.entries()) merge.run(CLUSTER, id, doc, colVersion, index + 1, site, cl, seq)
      }),
    ),
  )
  merge.finalize()
  crdt.close()
  rmSync(path)
  return times
}
