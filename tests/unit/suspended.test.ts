// A service that was suspended on the server, in an agent over a fake cluster.
import { afterEach, expect, test } from 'bun:test'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { parseSuspensionRowId, resumeFlags, type SuspendedScope, suspensionRowId } from '../../shared/model/suspension.ts'
import { setup, stopAll, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapRef, type ReconcileKit, SHOP } from '../support/reconcile-kit.ts'

const MINUTE = 60_000
afterEach(stopAll)
const WORD = { by: 'ana', why: 'harbour', sinceMs: 1_700_000_000_000 }
const OF_SHOP: SuspendedScope = { service: SHOP, cluster: null }

function suspend(kit: ReconcileKit, scopes: readonly SuspendedScope[], doc: string = canonicalJson(WORD)) {
  kit.replica.suspended = scopes.map((scope) => [suspensionRowId(scope), doc] as const)
  kit.reconciler.revisionsChanged([])
}

const SCOPES: SuspendedScope[] = [
  { service: null, cluster: null },
  { service: null, cluster: 'ship-7' },
  { service: SHOP, cluster: null },
  { service: SHOP, cluster: 'ship-7' },
]

test.each(SCOPES)('SU1 the row of %j names it', (scope) => expect(parseSuspensionRowId(suspensionRowId(scope))).toEqual(scope))
test.each(['suspension/all/x', 'suspension/services/web', 'suspension/project/web', 'suspension/cluster/', 'service/web/shop'])(
  'SU1 %s is no suspension that this version knows',
  (id) => expect(parseSuspensionRowId(id)).toBeNull(),
)

test.each(SCOPES)(
  'SU2 SU3 SU4 under a suspension of %j nothing is applied, corrected, put back or pruned, over a restart without a replica, until it is lifted',
  async (scope) => {
    const { cluster, kit, run, clock, settle } = setup()
    kit.desire([configMap('a'), configMap('b'), configMap('leaves')])
    await run()
    suspend(kit, [scope])
    await settle()
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy', reason: 'Suspended', held: { by: 'ana', why: 'harbour' } })
    expect(kit.service()?.message).toContain(`suspended by ana since 2023-11-14T22:13Z: harbour; \`skerry resume ${resumeFlags(scope)}\``)
    await kit.stop()
    const rows = kit.replica.suspended
    kit.replica.suspended = null
    kit.start()
    await settle()
    writes(cluster)
    kit.desire([configMap('a', { a: '2' }), configMap('b'), configMap('new')])
    cluster.editAs('kubectl-edit', configMapRef('b'), (object) => Object.assign(object, { data: { a: 'by hand' } }))
    cluster.deleteAs('kubectl', configMapRef('a'))
    await clock.advance(30 * MINUTE)
    expect(writes(cluster)).toEqual([])
    expect(kit.service()).toMatchObject({ sync: 'OutOfSync', reason: 'Suspended' })
    kit.replica.suspended = rows
    suspend(kit, [])
    await clock.advance(MINUTE)
    expect(writes(cluster).sort()).toEqual(['apply ConfigMap a', 'apply ConfigMap b', 'apply ConfigMap new', 'delete ConfigMap leaves'])
    expect(kit.service()).toMatchObject({ reason: 'Synced' })
    expect(kit.service()?.held).toBeUndefined()
  },
)

test.each(['delete', 'orphan'] as const)('SU2 a removal (%s) of a suspended service waits', async (policy) => {
  const { cluster, kit, run, clock, settle } = setup()
  kit.desire([configMap('a')])
  await run()
  suspend(kit, [OF_SHOP])
  await settle()
  writes(cluster)
  kit.remove(policy)
  await clock.advance(30 * MINUTE)
  expect(writes(cluster)).toEqual([])
  expect(kit.service()).toMatchObject({ sync: 'OutOfSync', reason: 'Suspended' })
  expect(kit.service()?.removed).toBeUndefined()
  suspend(kit, [])
  await clock.advance(MINUTE)
  expect(kit.service()).toMatchObject({ removed: true })
})

test('SU2 a suspension of another service changes nothing, and one that comes meanwhile stops a turn at the next object', async () => {
  const { cluster, kit, run, clock, settle } = setup()
  suspend(kit, [{ service: { project: 'web', service: 'other' }, cluster: null }])
  kit.desire([configMap('a')])
  await run()
  expect(cluster.object(configMapRef('a'))).not.toBeNull()
  suspend(kit, [OF_SHOP])
  kit.desire([configMap('a', { a: '2' })])
  await settle()
  expect(cluster.object(configMapRef('a'))).toMatchObject({ data: { a: '1' } })
  suspend(kit, [])
  await clock.advance(MINUTE)
  expect(cluster.object(configMapRef('a'))).toMatchObject({ data: { a: '2' } })
})

test('SU4 a hold counts again when the service is resumed, and does not end the suspension', async () => {
  const { cluster, kit, run, clock, settle } = setup()
  kit.desire([configMap('a')])
  await run()
  kit.reconciler.order({ kind: 'hold', service: 'web/shop', by: 'ola', why: 'a repair' })
  suspend(kit, [OF_SHOP])
  await settle()
  expect(kit.service()).toMatchObject({ reason: 'Suspended', held: { by: 'ana' } })
  kit.desire([configMap('a', { a: '2' })])
  suspend(kit, [])
  await clock.advance(MINUTE)
  expect(kit.service()).toMatchObject({ reason: 'Held', held: { by: 'ola' } })
  suspend(kit, [OF_SHOP])
  kit.reconciler.order({ kind: 'unhold', service: 'web/shop', by: 'ola' })
  await clock.advance(MINUTE)
  expect(cluster.object(configMapRef('a'))).toMatchObject({ data: { a: '1' } })
})

test('SU5 a document that cannot be read suspends', async () => {
  const { cluster, kit, run, settle } = setup()
  suspend(kit, [OF_SHOP], '{"by":7}')
  kit.desire([configMap('a')])
  await run()
  await settle()
  expect([cluster.object(configMapRef('a')), kit.service()?.reason]).toEqual([null, 'Suspended'])
})
