// What `apply` tells of relabelled clusters and of services with other targets, before and after it is done; and that
// the plan which follows does just that.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { leavingTally, moveOf, whyLeavingWaits } from '../../server/fleet/moves.ts'
import { planService } from '../../server/fleet/plan-service.ts'
import type { DesiredService } from '../../server/fleet/records.ts'
import { placedByText } from '../../server/fleet/targeting.ts'
import { type ServiceRow, serviceRowSchema } from '../../shared/model/desired.ts'
import { type ServiceSpec, serviceSpecSchema, syncOptionsSchema } from '../../shared/model/resources.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { joinCluster, publishOne } from '../support/store-fixtures.ts'

let admin: TestAdmin
let ids: ClusterId[]
beforeEach(async () => {
  admin = await createTestAdmin()
  ids = []
  for (const digit of ['a', 'b', 'c']) ids.push(await joinCluster(admin.store, digit, { env: 'prod' }))
  await admin.call('POST', '/api/v1/apply', {
    resources: [repositoryDoc('apps'), serviceDoc('web'), service('kept', 'prod', { deletionPolicy: 'orphan' })],
  })
  for (const name of ['web', 'kept'])
    for (const clusterId of ids)
      await publishOne(admin.store, { clusterId, project: 'default', service: name, doc: ROW, setSha: 'x', placedBy: PLACED })
})
afterEach(() => admin.store.close())

const ROW = serviceRowSchema.parse({ commit: 'c', digest: 'one', count: 1, sync: syncOptionsSchema.parse({}) })
const PLACED = placedByText({ selector: { matchLabels: { env: 'prod' } }, exclude: [] })
const targets = (env: string) => ({ selector: { matchLabels: { env } } })
const service = (name: string, env: string, spec: object = {}) => {
  const doc = serviceDoc(name)
  return { ...doc, spec: { ...doc.spec, targets: targets(env), ...spec } }
}
const cluster = (digit: string, env: string) => ({
  ...{ apiVersion: 'skerry.dev/v1', kind: 'Cluster', metadata: { name: `cluster-${digit}`, labels: { env } }, spec: {} },
})
const apply = async (resources: object[], argv: string[] = []) => {
  const stdin = resources.map((one) => JSON.stringify(one)).join('\n---\n')
  const { code, out, err } = await runTestCli(admin, ['apply', '-f', '-', ...argv], { stdin })
  expect([code, err]).toEqual([0, ''])
  return out.trimEnd().split('\n')
}

test('TG18 a relabelled cluster: what leaves it and what comes, before it happens and after', async () => {
  await admin.call('POST', '/api/v1/apply', { resources: [service('dev', 'dev')] })
  expect(await apply([cluster('a', 'dev')], ['--dry-run'])).toEqual([
    'cluster/cluster-a configured (dry run)',
    '  would lose 2 services: default/kept, default/web',
    '  default/kept in cluster-a:',
    '    1 object stays',
    '  default/web in cluster-a:',
    '    1 object would be deleted',
    '  would get 1 service: default/dev',
  ])
  expect((await admin.store.clusterByName('cluster-a'))?.labels).toEqual({ env: 'prod' })
  expect(await apply([cluster('a', 'dev')])).toEqual([
    'cluster/cluster-a configured',
    '  loses 2 services: default/kept, default/web',
    '  default/kept in cluster-a:',
    '    1 object stays',
    '  default/web in cluster-a:',
    '    1 object will be deleted',
    '  gets 1 service: default/dev',
  ])
  expect(await apply([cluster('b', 'prod')])).toEqual(['cluster/cluster-b unchanged'])
})

test('TG18 a service with other targets: which clusters it leaves and comes to, and what waits for a person', async () => {
  await apply([cluster('c', 'dev'), service('web', 'prod')])
  expect(await apply([service('kept', 'dev', { deletionPolicy: 'orphan' }), service('web', 'none')], ['--dry-run'])).toEqual([
    'service/kept configured (dry run)',
    '  would leave 2 clusters: cluster-a, cluster-b',
    '  default/kept in cluster-a, cluster-b:',
    '    1 object stays',
    'service/web configured (dry run)',
    '  would leave 3 clusters: cluster-a, cluster-b, cluster-c',
    '  default/web in cluster-a, cluster-b, cluster-c:',
    '    1 object would be deleted in each',
    '  default/web is removed after confirmation (`skerry confirm`): the changed targets no longer match any cluster, and it would be removed from 3 of 3 clusters',
  ])
})

test('TG18 what is relabelled and what gets other targets in one apply is looked at as both will be', async () => {
  expect(await apply([cluster('a', 'dev'), cluster('b', 'dev'), service('web', 'dev')], ['--dry-run'])).toEqual([
    'cluster/cluster-a configured (dry run)',
    '  would lose 1 service: default/kept',
    '  default/kept in cluster-a:',
    '    1 object stays',
    'cluster/cluster-b configured (dry run)',
    '  would lose 1 service: default/kept',
    '  default/kept in cluster-b:',
    '    1 object stays',
    'service/web configured (dry run)',
    '  would leave 1 cluster: cluster-c',
    '  default/web in cluster-c:',
    '    1 object would be deleted',
  ])
})

test('TG18 the first ten are named, and what is protected waits; in JSON it is data', async () => {
  const names = Array.from({ length: 12 }, (_, n) => `s${String(n).padStart(2, '0')}`)
  await admin.call('POST', '/api/v1/apply', {
    resources: names.map((name) => service(name, 'prod', name === 's03' ? { protect: true } : {})),
  })
  const [clusterId] = ids
  for (const name of names)
    if (clusterId !== undefined)
      await publishOne(admin.store, { clusterId, project: 'default', service: name, doc: ROW, setSha: 'x', placedBy: PLACED })
  const lines = await apply([cluster('a', 'dev')], ['--dry-run'])
  expect(lines[1]).toStartWith('  would lose 14 services: default/kept, default/s00, default/s01,')
  expect(lines[1]).toEndWith('default/s08 and 4 more')
  expect(lines.filter((line) => line === '    1 object would be deleted')).toHaveLength(13)
  expect(lines.at(-1)).toBe(
    '  default/s03 is removed after confirmation (`skerry confirm`): the service is protected, and it would be removed from 1 of 1 cluster',
  )
  const { moves } = JSON.parse((await apply([cluster('a', 'dev')], ['-o', 'json'])).join('\n'))
  expect(moves).toMatchObject([
    { kind: 'Cluster', name: 'cluster-a', leaves: { count: 14, prunes: 13 }, comes: { count: 0, first: [] }, waits: [{ service: 's03' }] },
  ])
  expect(moves[0].leaves.first[0]).toEqual({ project: 'default', service: 'kept', cluster: 'cluster-a' })
  const unmoved = JSON.parse((await apply([cluster('a', 'dev')], ['-o', 'json'])).join('\n'))
  expect(unmoved.moves).toBeUndefined()
})

test('TG18 what is told is what the plan does then, whatever is relabelled, retargeted, protected or going already', () => {
  const random = seededRandom(11)
  const chance = (share: number) => random() < share
  const envs = ['prod', 'dev', 'none']
  const env = () => envs[Math.floor(random() * envs.length)] ?? ''
  const seen = { leaves: 0, waits: 0, comes: 0 }
  for (let round = 0; round < 400; round++) {
    const spec = (of: string): ServiceSpec =>
      serviceSpecSchema.parse({ source: { repository: 'apps', path: 'x' }, targets: targets(of), protect: round % 7 === 0 })
    const before = spec(env())
    const moving = { id: { project: 'p', service: 's' }, before, after: chance(0.5) ? spec(env()) : before }
    const share = random()
    const clusters = Array.from({ length: 1 + Math.floor(random() * 80) }, (_, n) => {
      const labels = { env: chance(share) ? (before.targets.selector.matchLabels?.['env'] ?? '') : env() }
      return { clusterId: `c-${n}` as ClusterId, name: `n-${n}`, before: labels, after: chance(0.1) ? { env: env() } : labels }
    })
    const removal: ServiceRow = { ...ROW, removal: { policy: 'prune', by: chance(0.5) ? 'skerry' : 'ann', atMs: 1, why: 'w' } }
    const rows = clusters.flatMap(({ clusterId, before: labels }): DesiredService[] =>
      labels.env === before.targets.selector.matchLabels?.['env'] || chance(0.1)
        ? [{ clusterId, ...moving.id, ordinal: 1, doc: chance(0.9) ? ROW : removal, setSha: 'x', placedBy: placedByText(before.targets) }]
        : [],
    )
    const after = clusters.map(({ clusterId, name, after: labels }) => ({ clusterId, name, labels }))
    const holds = new Set(rows.filter(({ doc }) => doc?.removal === undefined).map(({ clusterId }) => clusterId))
    const leaves = clusters.filter((one) => moveOf(moving, one, holds.has(one.clusterId)) === 'leaves').map(({ name }) => name)
    const comes = clusters.filter((one) => moveOf(moving, one, holds.has(one.clusterId)) === 'comes').map(({ clusterId }) => clusterId)
    const tally = leavingTally(moving, new Map(after.map((one) => [one.clusterId, one])))
    for (const row of rows) tally.addRow(row)
    for (const one of after) tally.addCluster(one)
    const why = whyLeavingWaits(moving, tally.facts(), null)
    const plan = planService({
      ...{ id: moving.id, spec: moving.after, deleting: false, deletedBy: null, clusters: after, current: rows, nowMs: 5 },
      render: { commit: 'c', in: () => ({ digest: 'two', count: 1 }) },
      removed: new Map(),
      confirmations: new Map(),
      loses: () => false,
    })
    const ordered = plan.publishes.filter(({ what }) => what === 'removal_ordered').map(({ cluster: name }) => name)
    expect([round, plan.open.map((one) => one.why)]).toEqual([round, why === null ? [] : [why]])
    expect([round, (why === null ? ordered : (plan.open[0]?.names ?? [])).toSorted()]).toEqual([round, leaves.toSorted()])
    const placed = new Set(plan.publishes.filter(({ doc }) => doc !== null && doc.removal === undefined).map(({ clusterId }) => clusterId))
    expect([round, comes.filter((id) => !placed.has(id))]).toEqual([round, []])
    seen.leaves += leaves.length
    seen.comes += comes.length
    seen.waits += why === null ? 0 : 1
  }
  expect(Math.min(seen.leaves, seen.comes, seen.waits)).toBeGreaterThan(30)
})
