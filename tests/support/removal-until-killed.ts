// A test run of its own for removal-levels.test.ts: places a service in a cluster, deletes it, and dies before the call
// of the store that is named.
import type { Store } from '../../server/store/store.ts'
import { configMap, createIngestKit, SHOP } from './ingest-kit.ts'

const { dir, deadly, count } = JSON.parse(process.env['REMOVAL'] ?? '') as { dir: string; deadly: keyof Store; count: number }
const kit = await createIngestKit({ dir })
const clusterId = await kit.join('1')
await kit.git.commit({ 'shop/a.yaml': configMap('a', '1') }, 'first')
await kit.repository()
await kit.service()
const objects = Array.from({ length: 1_200 }, (_, i) => ({
  kind: 'object' as const,
  key: `default/shop//Pod/n/x${i}`,
  rev: 1_000 + i,
  doc: {},
}))
await kit.store.upsertStatus(clusterId, objects, { complete: false, nowMs: 1 })

const store = kit.store as unknown as Record<string, (...args: unknown[]) => unknown>
const method = store[deadly]
if (method === undefined) throw new Error(`the store has no ${deadly}`)
let calls = 0
store[deadly] = (...args) => {
  calls += 1
  if (calls === count) process.kill(process.pid, 'SIGKILL')
  return method(...args)
}
await kit.actions.deleteService(SHOP, 'ann')
await kit.reportRemoved(clusterId)
throw new Error(`${deadly} was called ${calls} times`)
