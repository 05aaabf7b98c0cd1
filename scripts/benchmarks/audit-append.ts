// Entries of the audit log a second that are durable: each in a transaction of its own, as many at a time as a busy
// server has, with all that an entry usually says.
import { join } from 'node:path'
import { actAs } from '../../server/store/audit/caller.ts'
import { parsePostgresUrl } from '../../server/store/engines/postgres-url.ts'
import { openPostgresStore, openSqliteStore } from '../../server/store/kysely-store.ts'
import type { Store } from '../../server/store/store.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { systemRandom } from '../../shared/runtime/random.ts'
import { createDataFolder } from '../local-cluster/child-process.ts'
import { startPostgres } from '../local-cluster/postgres.ts'
import { rounded } from './figures.ts'

const ENTRIES = 20_000
const ENTRIES_POSTGRES = 5_000
const AT_ONCE = 64
const ACTOR = { kind: 'user', id: 'u-1', name: 'ada@example.com', provider: 'dex', verified: true } as const

/** `audit_append_per_s`: on SQLite, in a file. */
export async function measureAuditAppend(): Promise<Record<string, number>> {
  const folder = createDataFolder('skerry-bench-audit')
  try {
    const store = await openSqliteStore(join(folder.path, 'fleet.sqlite'), { random: systemRandom, clock: systemClock })
    const rate = await appendRate(store, ENTRIES)
    await store.close()
    return { audit_append_per_s: rounded(rate, 0) }
  } finally {
    folder.remove()
  }
}

export async function measureAuditAppendPostgres(): Promise<Record<string, number>> {
  const postgres = await startPostgres()
  try {
    const target = parsePostgresUrl(await postgres.createDatabase())
    const store = await openPostgresStore({ target }, { random: systemRandom, clock: systemClock })
    const rate = await appendRate(store, ENTRIES_POSTGRES)
    await store.close()
    return { audit_append_per_s_postgres: rounded(rate, 0) }
  } finally {
    await postgres.stop()
  }
}

async function appendRate(store: Store, count: number): Promise<number> {
  let next = 0
  const before = JSON.stringify({ labels: { team: 'web' }, spec: { replicas: 1, image: 'a:1' } })
  const writer = async () => {
    for (let n = next++; n < count; n = next++) {
      const known = { reason: 'incident 7', from: '192.0.2.7', requestId: `req-${n}` }
      const after = JSON.stringify({ labels: { team: 'web' }, spec: { replicas: n, image: 'a:1' } })
      const deed = { verb: 'update', kind: 'Service', project: 'shop', name: `web-${n % 100}`, before, after }
      await actAs(ACTOR, known, () => store.audit.append([deed]))
    }
  }
  const beganMs = performance.now()
  await Promise.all(Array.from({ length: AT_ONCE }, writer))
  return count / ((performance.now() - beganMs) / 1_000)
}

if (import.meta.main) {
  const which = process.argv[2] === 'postgres' ? measureAuditAppendPostgres : measureAuditAppend
  process.stdout.write(`${JSON.stringify(await which())}\n`)
}
