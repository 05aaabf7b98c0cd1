// What a person reads of a service's options and dependencies: describe, the API behind it, and the word before a
// delete.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { dependencyView } from '../../server/fleet/dependency-view.ts'
import { nextStep } from '../../server/fleet/next-steps.ts'
import { compareObjects, fromDigest, lastAllowed, waitsForSync } from '../../server/fleet/sync-plan.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import type { ServiceStatus } from '../../shared/model/status.ts'
import { SYNC_NAMES_MAX } from '../../shared/model/sync.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { createTestAdmin, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { clusterId, joinCluster } from '../support/store-fixtures.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
})
afterEach(() => admin.store.close())

const apply = (name: string, spec: Record<string, unknown>, project = 'default') =>
  admin.call('POST', '/api/v1/apply', {
    resources: [{ ...serviceDoc(name), metadata: { name, project }, spec: { ...serviceDoc(name).spec, ...spec } }],
  })
const rowOf = (more: Record<string, unknown> = {}) => serviceRowSchema.parse({ commit: 'c', digest: 'new', count: 1, sync: {}, ...more })
const place = (service: string, digit: string, doc = rowOf(), project = 'default') =>
  admin.store.publish([{ clusterId: clusterId(digit), project, service, doc, setSha: null, placedBy: '' }])
const status = (more: Partial<ServiceStatus> = {}): ServiceStatus => ({
  sync: 'Synced',
  health: 'Healthy',
  reason: 'Synced',
  message: '',
  sinceMs: 1,
  objectCount: 1,
  healthyCount: 1,
  healthy: { commit: 'c', digest: 'new', atMs: 1 },
  ...more,
})

test('AP8 describe shows the options that are not as by default, the rules, and how far each dependency is in each cluster', async () => {
  for (const digit of ['a', 'b', 'c']) await joinCluster(admin.store, digit, { env: 'prod' })
  await apply('web', {
    sync: { mode: 'manual', prune: true, waitForHealth: true, maxPrunePercent: 20, namespaceLabels: { a: 'b' } },
    ignore: [
      { group: 'apps', kind: 'Deployment', name: 'web', jsonPointers: ['/spec/replicas'] },
      { kind: 'Service', namespace: 'web', managers: ['cloud'] },
    ],
    health: [{ apiVersion: 'example.com/v1', kind: 'Thing', current: "status.phase == 'Ready'" }],
    dependsOn: [{ name: 'dns', project: 'net' }, { name: 'not-yet' }],
  })
  await apply('dns', {}, 'net')
  for (const digit of ['a', 'b', 'c']) await place('web', digit)
  for (const digit of ['a', 'b']) await place('dns', digit, rowOf(), 'net')
  await admin.store.upsertStatus(clusterId('a'), [{ kind: 'service', key: 'net/dns', rev: 1, doc: status() }], {
    complete: false,
    nowMs: 1,
  })
  const { code, out } = await runTestCli(admin, ['describe', 'service', 'web'])
  expect(code).toBe(0)
  expect(out).toMatch(/Sync: +maxPrunePercent=20 mode=manual namespaceLabels=a=b\n/)
  expect(out).toMatch(/Ignores: +Deployment\.apps web: \/spec\/replicas\nIgnores: +Service web: all of cloud\n/)
  expect(out).toMatch(/Health rules: +1: Thing of example\.com\/v1\n/)
  expect(out).toMatch(/Depends on: +default\/not-yet: does not exist yet; this service waits for it\n/)
  expect(out).toMatch(/Depends on: +net\/dns: ready in 1 of 3 clusters; not yet in cluster-b; not placed in cluster-c\n/)
  const plain = (await runTestCli(admin, ['describe', 'service', 'dns', '-p', 'net'])).out
  expect(plain).toMatch(/Needed by: +default\/web\n/)
  expect(plain).not.toMatch(/^(Sync|Ignores|Health rules|Depends on):/m)
})

test('CL5 DE4 before a delete it is said who depends on it, and that they stay', async () => {
  await apply('dns', {}, 'net')
  await apply('web', { dependsOn: [{ name: 'dns', project: 'net' }] })
  const { err } = await runTestCli(admin, ['delete', 'service', 'dns', '-p', 'net', '--yes'])
  expect(err).toContain('These services depend on it. They stay unchanged and start no new revision without it: default/web\n')
  expect((await runTestCli(admin, ['delete', 'service', 'web', '--yes'])).err).not.toContain('depend on it')
})

test('AP3 dependencies of a service that there is not are not found', async () => {
  expect(await admin.call('GET', '/api/v1/projects/default/services/none/dependencies')).toMatchObject({ status: 404 })
})

test.each<[string, { row?: Record<string, unknown> | null; report?: ServiceStatus }, 'ready' | 'unready' | 'absent']>([
  ['Healthy at its revision', { report: status() }, 'ready'],
  ['Progressing since', { report: status({ health: 'Progressing' }) }, 'ready'],
  ['Degraded since', { report: status({ health: 'Degraded' }) }, 'unready'],
  ['Healthy at another revision', { report: status({ healthy: { commit: 'c', digest: 'old', atMs: 1 } }) }, 'unready'],
  ['not reported', {}, 'unready'],
  ['not placed', { row: null }, 'absent'],
  ['being removed', { row: { removal: { policy: 'prune', by: 'a', atMs: 1, why: '' } }, report: status() }, 'absent'],
])('DE1 a dependency that is %p', (_, { row = {}, report }, expected) => {
  const id = clusterId('a')
  const desired = { clusterId: id, project: 'net', service: 'dns', ordinal: 1, setSha: null, placedBy: '' }
  const view = dependencyView({
    project: 'net',
    service: 'dns',
    exists: true,
    clusters: new Map([[id, 'site']]),
    desired: [{ ...desired, doc: row === null ? null : rowOf(row) }],
    reports: new Map<ClusterId, ServiceStatus>(report === undefined ? [] : [[id, report]]),
  })
  const { ready, unready, absent } = view
  expect({ ready, unready: unready.count, absent: absent.count }).toEqual({ ready: 0, unready: 0, absent: 0, [expected]: 1 })
})

test.each([
  ['BlockedBy', 'Otherwise correct the dependency'],
  ['ManualSync', '`skerry sync web -p shop --cluster ship-7`'],
  ['WaitingForWave', 'while the object is in progress'],
  ['WaitingForHook', 'when the hook ends'],
  ['HookFailed', 'commit'],
  ['Held', 'skerry-agent unhold'],
  ['OutsideWindow', 'when the window opens'],
  ['RevisionIncomplete', 'Upgrade the agent'],
])('AP11 %s has a next step of its own', (reason, expected) => {
  expect(nextStep(reason, { project: 'shop', service: 'web', cluster: 'ship-7' })).toContain(expected)
})
test.each(['Synced', 'toString', ''])('AP11 %p has none of its own', (reason) => {
  expect(nextStep(reason, { project: 'shop', service: 'web', cluster: 'ship-7' })).toBeNull()
})

const id = (name: string) => `object/p/web//ConfigMap/n/${name}`
test('TG16 a plan names what is made, changed and deleted, sorted, and counts what is the same', () => {
  const from = new Map([[id('b'), '1'], [id('a'), '1'], [id('gone'), '1']]) // biome-ignore format: short
  const to = new Map([[id('b'), '2'], [id('a'), '1'], [id('z'), '1'], [id('c'), '1']]) // biome-ignore format: short
  expect(compareObjects(from, to)).toEqual({
    create: { count: 2, names: ['ConfigMap n/c', 'ConfigMap n/z'] },
    change: { count: 1, names: ['ConfigMap n/b'] },
    prune: { count: 1, names: ['ConfigMap n/gone'] },
    same: 1,
  })
  expect(compareObjects(null, to)).toMatchObject({ create: { count: 4 }, prune: { count: 0 }, same: 0 })
  const many = new Map(Array.from({ length: SYNC_NAMES_MAX + 1 }, (_, i) => [id(String(i)), '1'] as const))
  const { create } = compareObjects(null, many)
  expect([create.count, create.names.length]).toEqual([SYNC_NAMES_MAX + 1, SYNC_NAMES_MAX])
})

const manual = { sync: { mode: 'manual' } }
const removal = { removal: { policy: 'prune', by: 'a', atMs: 1, why: '' } }
test.each([
  ['nothing is there', null, undefined],
  ['auto', rowOf(), 'new'],
  ['manual, allowed before', rowOf({ ...manual, synced: 'old' }), 'old'],
  ['manual, never allowed', rowOf(manual), undefined],
  ['a removal order', rowOf({ ...removal }), undefined],
])('TG17 what was allowed last: %s', (_, row, expected) => expect(lastAllowed(row)).toBe(expected as string))

test('TG16 what waits, and what it is compared with', () => {
  expect([rowOf(), rowOf(manual), rowOf({ ...manual, synced: 'new' }), rowOf({ ...manual, ...removal })].map(waitsForSync)).toEqual([
    false,
    true,
    false,
    false,
  ])
  const applied = status({ applied: { commit: 'c', digest: 'applied', atMs: 1 } })
  expect([fromDigest(rowOf({ synced: 'old' }), applied), fromDigest(rowOf(), applied), fromDigest(rowOf(), null)]).toEqual([
    'old',
    'applied',
    null,
  ])
})
