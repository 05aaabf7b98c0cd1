// How long the server's event loop is blocked at ten thousand clusters and two hundred services, deed by deed: what
// people ask, a question that all clusters ask, and a service that is removed from all of them. Everything else on the
// loop, agents' polls too, waits for so long.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openSqliteStore } from '../../server/store/kysely-store.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { systemRandom } from '../../shared/runtime/random.ts'
import { createDataFolder } from '../local-cluster/child-process.ts'
import { clusterIdOf, clusterName } from './fleet-rows.ts'
import type { Say } from './parts.ts'
import { createProbedFleet, type ProbedFleet } from './server-process.ts'
import { fillSqlite } from './store-fleet.ts'

const CLUSTERS = Number(process.env['SKERRY_BENCH_AGENTS'] ?? 10_000)
const SERVICES = 200
const WEB = { project: 'shop', service: 'web' }
/** The reconciliations of services that follow a start. */
const SETTLE_MS = 8_000

export async function benchBlocks(say: Say): Promise<Record<string, number>> {
  const folder = createDataFolder('skerry-blocks')
  let probed: ProbedFleet | null = null
  try {
    const dataDir = join(folder.path, 'server')
    mkdirSync(dataDir)
    const path = join(dataDir, 'fleet.sqlite')
    const rows = await fillSqlite(path, { clusters: CLUSTERS, objects: 20, services: SERVICES, nowMs: systemClock.nowMs() })
    say(`${rows} status rows`)
    const confirmation = await askOfAll(path)
    probed = await createProbedFleet({ dataDir })
    return await measure(probed, confirmation, say)
  } finally {
    await probed?.fleet.stop()
    await folder.remove()
  }
}

/** As after a commit that every agent refuses. Answers the id of the question. */
async function askOfAll(path: string): Promise<string> {
  const store = await openSqliteStore(path, { clock: systemClock, random: systemRandom })
  const names = Array.from({ length: 200 }, (_, n) => `ConfigMap web/settings-${n}`)
  const asked = { kind: 'prune' as const, ...WEB, token: 'd'.repeat(64), names, why: 'would delete 200 of 200 objects', createdMs: 1 }
  const subjects = Array.from({ length: CLUSTERS }, (_, n) => ({ subject: `prune/${clusterIdOf(n)}/shop/web`, cluster: clusterName(n) }))
  for (let start = 0; start < subjects.length; start += 500)
    await Promise.all(subjects.slice(start, start + 500).map((of) => store.openConfirmation({ ...asked, ...of })))
  const [question] = await store.listConfirmations()
  await store.close()
  return question?.id ?? ''
}

async function measure({ fleet, measureLag }: ProbedFleet, confirmation: string, say: Say): Promise<Record<string, number>> {
  const figures: Record<string, number> = {}
  const deed = async (name: string, act: () => Promise<unknown>) => {
    const lagging = measureLag()
    const startMs = performance.now()
    await act()
    const tookMs = Math.round(performance.now() - startMs)
    await Bun.sleep(50)
    const { maxMs } = await lagging.stop()
    say(`${name}: ${tookMs} ms, longest block ${maxMs} ms`)
    figures[`block_${name}_max_ms`] = maxMs
  }
  const get = (address: string) => () => fleet.api(address)
  await deed('first_passes', () => Bun.sleep(SETTLE_MS))
  await deed('services', get('/services?limit=500'))
  await deed('service', get('/projects/shop/services/web'))
  await deed('service_clusters', get('/projects/shop/services/web/clusters?limit=500'))
  await deed('service_revisions', get('/projects/shop/services/web/revisions'))
  await deed('clusters', get('/clusters?limit=500'))
  await deed('cluster', get(`/clusters/${clusterName(1)}`))
  await deed('cluster_services', get(`/clusters/${clusterName(1)}/services?limit=500`))
  await deed('placements', get('/placements?limit=500'))
  await deed('confirmations', get('/confirmations'))
  await deed('removal_preview', get('/projects/shop/services/web/removal'))
  await deed('confirm_prune', () => fleet.api(`/confirmations/${confirmation}/confirm`, { method: 'POST' }))
  await deed('delete_service', () => fleet.api('/projects/shop/services/web', { method: 'DELETE' }))
  const { items } = await fleet.api<{ items: Array<{ id: string; kind: string }> }>('/confirmations')
  const removal = items.find(({ kind }) => kind === 'remove_service')
  if (removal !== undefined) await deed('removal_orders', () => fleet.api(`/confirmations/${removal.id}/confirm`, { method: 'POST' }))
  return figures
}
