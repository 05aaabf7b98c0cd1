// What people are told before a service is removed: the exact objects, those that hold data apart and by name; and that
// only names which were given go with the order.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { confirmedData } from '../../server/actions/removal-plans.ts'
import { removalText } from '../../server/cli/removal-text.ts'
import { encodeRenderedSet } from '../../server/desired/rendered-set.ts'
import type { StatusWrite } from '../../server/fleet/records.ts'
import { type HeldObjects, removalEffect } from '../../server/fleet/removal-effect.ts'
import { type K8sObject, refKey, refOf } from '../../shared/kube/object.ts'
import { objectRowId } from '../../shared/model/desired.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { naming } from '../support/naming.ts'
import { joinCluster, publishOne } from '../support/store-fixtures.ts'

const DEFAULTS = syncOptionsSchema.parse({})
const object = (kind: string, name: string, extra: object = {}, namespace = 'shop'): K8sObject => ({
  apiVersion:
    {
      PersistentVolume: 'v1',
      StatefulSet: 'apps/v1',
      StorageClass: 'storage.k8s.io/v1',
      CustomResourceDefinition: 'apiextensions.k8s.io/v1',
    }[kind] ?? 'v1',
  kind,
  metadata: { name, ...(namespace === '' ? {} : { namespace }) },
  ...extra,
})
const marked = (value: K8sObject, annotations: Record<string, string>): K8sObject => ({
  ...value,
  metadata: { ...value.metadata, annotations },
})
const sentOf = (...objects: K8sObject[]): HeldObjects['sent'] =>
  new Map(objects.map((one) => [refKey(refOf(one)), { ref: refOf(one), object: one }]))
const held = (change: Partial<HeldObjects>): HeldObjects => ({
  row: { namespace: 'shop', sync: DEFAULTS, count: 3 },
  policy: 'prune',
  sent: sentOf(),
  reported: [],
  ...change,
})
const CLAIM = object('PersistentVolumeClaim', 'data')
const MAP = object('ConfigMap', 'a')
const SPACE = object('Namespace', 'shop', {}, '')
const claims = { volumeClaimTemplates: [{}], persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete' } }
const reportOf = (one: K8sObject, reason = 'Synced') => ({ ref: refOf(one), reason })

test('TG21 objects that other services take over are neither deleted nor asked about, whatever the policy', () => {
  const takenBy = (key: string) => (key === refKey(refOf(CLAIM)) ? 'default/other' : null)
  for (const policy of ['prune', 'orphan'] as const)
    expect(removalEffect(held({ sent: sentOf(CLAIM), policy, takenBy }))).toMatchObject({
      deletes: { count: 0 },
      holding: [],
      stays: { count: 0 },
      takenOver: [{ name: 'PersistentVolumeClaim shop/data', by: 'default/other' }],
    })
  const reported = [reportOf(CLAIM, 'OwnedByOther')]
  expect(removalEffect(held({ sent: sentOf(CLAIM), reported, takenBy }))).toMatchObject({ stays: { count: 1 }, takenOver: [] })
})

test('TG21 the text of a removal names who takes over', () => {
  const none = { count: 0, first: [] }
  const removal = { project: 'p', service: 's', clusters: { count: 1, first: ['c1'] }, deletes: none, holding: [], stays: none }
  const owned = (...by: string[]) => ({
    count: by.length,
    first: by.map((service, index) => ({ name: `ConfigMap a/${index}`, by: service })),
  })
  expect(removalText([{ ...removal, takenOver: owned('p/x', 'p/x') }], 'will be')).toBe(
    'p/s in c1:\n  2 objects will be taken over by p/x:\n    ConfigMap a/0\n    ConfigMap a/1\n',
  )
  expect(removalText([{ ...removal, takenOver: owned('p/x', 'p/y') }], 'are')).toBe(
    'p/s in c1:\n  2 objects are taken over:\n    ConfigMap a/0 (by p/x)\n    ConfigMap a/1 (by p/y)\n',
  )
})

describe('what goes, what holds data and what stays', () => {
  const names = (change: Partial<HeldObjects>) => {
    const { deletes, holding, stays } = removalEffect(held(change))
    return [deletes.names, holding.map(({ name, kind }) => `${kind} ${name}`), stays.first.map(({ name, why }) => `${name}: ${why}`)]
  }
  test.each<[string, Partial<HeldObjects>, string[][]]>([
    ['RM1 a claim holds data', { sent: sentOf(CLAIM, MAP) }, [['ConfigMap shop/a'], ['data PersistentVolumeClaim shop/data'], []]],
    [
      'RM1 an allowed claim goes without a question',
      { sent: sentOf(marked(CLAIM, { 'skerry.dev/prune': 'allowed' })) },
      [['PersistentVolumeClaim shop/data'], [], []],
    ],
    [
      'RM1 a StatefulSet that deletes its claims',
      { sent: sentOf(object('StatefulSet', 'db', { spec: claims })) },
      [[], ['data StatefulSet shop/db'], []],
    ],
    ['RM1 a volume that is deleted', { sent: sentOf(object('PersistentVolume', 'v', {}, '')) }, [[], ['data PersistentVolume v'], []]],
    [
      'RM1 a volume that is retained',
      { sent: sentOf(object('PersistentVolume', 'v', { spec: { persistentVolumeReclaimPolicy: 'Retain' } }, '')) },
      [['PersistentVolume v'], [], []],
    ],
    ['RM1 a StorageClass holds nothing', { sent: sentOf(object('StorageClass', 's', {}, '')) }, [['StorageClass s'], [], []]],
    [
      'RM3 a Namespace and a CRD hold what is in them',
      { sent: sentOf(SPACE, object('CustomResourceDefinition', 'boats.sea', {}, '')) },
      [[], ['contents CustomResourceDefinition boats.sea', 'contents Namespace shop'], []],
    ],
    [
      'NS2 the namespace that was made for the service stays',
      { reported: [reportOf(SPACE), reportOf(MAP)] },
      [['ConfigMap shop/a'], [], ['Namespace shop: sync.deleteNamespace is not set']],
    ],
    [
      'NS2 unless it goes with the service',
      { reported: [reportOf(SPACE)], row: { namespace: 'shop', count: 1, sync: { ...DEFAULTS, deleteNamespace: true } } },
      [[], ['contents Namespace shop'], []],
    ],
    [
      'IV4 a keep mark',
      { sent: sentOf(marked(CLAIM, { 'helm.sh/resource-policy': 'keep' })) },
      [[], [], ['PersistentVolumeClaim shop/data: kept by helm.sh/resource-policy']],
    ],
    [
      'CL5 what belongs to another owner',
      { reported: [reportOf(MAP, 'OwnedByOther')] },
      [[], [], ['ConfigMap shop/a: belongs to another owner']],
    ],
    [
      'TG9 a service that lets go',
      { policy: 'orphan', sent: sentOf(CLAIM) },
      [[], [], ['PersistentVolumeClaim shop/data: deletionPolicy is orphan']],
    ],
    [
      'RM4 what the agent holds beside the revision counts, and what it has not got yet does not',
      { sent: sentOf(MAP), reported: [reportOf(CLAIM)] },
      [[], ['data PersistentVolumeClaim shop/data'], []],
    ],
  ])('%s', (_, change, expected) => expect(names(change)).toEqual(expected))

  test('CL5 where neither the revision nor a report can be read, the number is told', () => {
    expect(removalEffect(held({ sent: null })).deletes).toEqual({ count: 3, names: [] })
    expect(removalEffect(held({ sent: null, policy: 'orphan' }))).toMatchObject({ deletes: { count: 0 }, stays: { count: 3 } })
  })
})

describe('in the hands of a person', () => {
  let admin: TestAdmin
  let ids: ClusterId[]
  const web = { project: 'default', service: 'web' }
  beforeEach(async () => {
    admin = await createTestAdmin()
    ids = []
    await admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc('apps'), serviceDoc('web')] })
    const rows = [CLAIM, MAP].map((one) => [objectRowId(web, refOf(one)), JSON.stringify(one)] as const)
    admin.content.set('set', encodeRenderedSet(new Map(rows)))
    for (const digit of ['a', 'b']) {
      const id = await joinCluster(admin.store, digit, { env: 'prod' })
      ids.push(id)
      const doc = { commit: 'c0ffee', digest: 'd1', count: 2, sync: DEFAULTS, protect: false }
      await publishOne(admin.store, { clusterId: id, ...web, doc, setSha: 'set', placedBy: '' })
      await admin.store.markSeen(new Map([[id, admin.clock.nowMs]]))
    }
    admin.outcome.deleteService = { kind: 'removing', clusters: ['cluster-a', 'cluster-b'] }
  })
  afterEach(() => admin.store.close())
  const cli = (argv: string[], setup: { isTty?: boolean; stdin?: string } = {}) => runTestCli(admin, argv, setup)
  const asked = () => admin.asked.filter((text) => text.startsWith('delete') || text.startsWith('confirm'))
  const DATA = 'PersistentVolumeClaim shop/data'
  const SHOWN = `Service web of project default will be removed from 2 clusters; 2 objects will be deleted.
default/web in cluster-a, cluster-b:
  1 object will be deleted in each:
    ConfigMap shop/a
  1 object holds data, deleted only if confirmed by name:
    PersistentVolumeClaim shop/data (its data will be lost)
`

  test('RM1, CL5 --yes alone confirms no data: it is named, and how to confirm it', async () => {
    const { code, err, out } = await cli(['delete', 'service', 'web', '--yes'])
    expect([code, out]).toEqual([
      0,
      'service/web is being removed from cluster-a, cluster-b; skerry describe service/web shows the progress\n',
    ])
    expect(err).toBe(`${SHOWN}kept until confirmed: ${DATA}
hint: run \`skerry confirm\` after the clusters reported, or now: skerry delete service web --yes --confirm-data '${DATA}'
`)
    expect(asked()).toEqual(['delete default/web by admin'])
  })

  test('RM1, CL5 names that are given go with the order, to the clusters that were shown', async () => {
    const { code, err } = await cli(['delete', 'service', 'web', '--yes', '--confirm-data', DATA])
    expect([code, err]).toEqual([0, SHOWN])
    expect(asked()).toEqual([`delete default/web with ${DATA},${DATA} of default/web in 2 by admin`])
  })

  test('RM1, CL8 a name that is not among them changes nothing, here and on the server', async () => {
    const { code, err } = await cli(['delete', 'service', 'web', '--yes', '--confirm-data', 'PersistentVolumeClaim shop/dta'])
    expect(code).toBe(2)
    expect(err).toEqual(naming('--confirm-data', 'PersistentVolumeClaim shop/dta', `: ${DATA}`))
    const body = { confirmData: ['ConfigMap shop/a'] }
    expect(await admin.call('DELETE', '/api/v1/projects/default/services/web', body)).toMatchObject({ status: 400 })
    expect(await admin.call('DELETE', '/api/v1/projects/default/services/web', { confirm: true })).toMatchObject({ status: 400 })
    expect(asked()).toEqual([])
  })

  test.each([
    ['no to the deletion asks nothing more', 'n\n', 1, []],
    ['yes to the deletion alone', 'y\nn\n', 0, ['delete default/web by admin']],
    [
      'yes to both confirms the names that were shown',
      'y\ny\n',
      0,
      [`delete default/web with ${DATA},${DATA} of default/web in 2 by admin`],
    ],
    ['the end of the input is no answer', 'y\n', 0, ['delete default/web by admin']],
  ] as const)('RM1, CL5 at a terminal: %s', async (_, stdin, code, expected) => {
    const done = await cli(['delete', 'service', 'web'], { isTty: true, stdin })
    expect(done.code).toBe(code)
    expect(done.err).toStartWith(`${SHOWN}Delete service web? [y/N] `)
    expect(done.err.includes(`Also delete the object that holds data: ${DATA}? [y/N] `)).toBe(stdin.startsWith('y'))
    expect(asked()).toEqual([...expected])
  })

  test('RM1, TG18 an apply that takes a service away names the data, keeps it, and lets go what is named', async () => {
    const cluster = { apiVersion: 'skerry.dev/v1', kind: 'Cluster', metadata: { name: 'cluster-a', labels: { env: 'dev' } }, spec: {} }
    const apply = (...more: string[]) => cli(['apply', '-f', '-', ...more], { stdin: JSON.stringify(cluster) })
    const lines = `  would lose 1 service: default/web
  default/web in cluster-a:
    1 object would be deleted:
      ConfigMap shop/a
    1 object holds data, deleted only if confirmed by name:
      PersistentVolumeClaim shop/data (its data will be lost)
`
    expect(await apply('--dry-run')).toMatchObject({ code: 0, err: '', out: `cluster/cluster-a configured (dry run)\n${lines}` })
    expect(await apply('--dry-run', '--confirm-data', 'x')).toMatchObject({
      code: 1,
      err: naming('"x"', DATA),
    })
    const before = admin.asked.length
    expect(await apply('--confirm-data', DATA)).toMatchObject({ code: 0, err: '' })
    expect(admin.asked.slice(before)).toEqual([`changed Cluster /cluster-a with ${DATA} of default/web in 1`])
  })

  test('RM1 without a name the apply goes on and says what is kept', async () => {
    const before = serviceDoc('web')
    const service = {
      ...before,
      spec: { ...before.spec, targets: { selector: { matchLabels: { env: 'none' } } }, deletionPolicy: 'orphan' },
    }
    const orphan = await cli(['apply', '-f', '-', '--dry-run'], { stdin: JSON.stringify(service) })
    expect(orphan.out).toContain('    2 objects stay (deletionPolicy is orphan):\n')
    const { err } = await cli(['apply', '-f', '-'], {
      stdin: JSON.stringify({ ...service, spec: { ...service.spec, deletionPolicy: 'prune' } }),
    })
    expect(err).toBe(`kept until confirmed: ${DATA}\nhint: run \`skerry confirm\` after the clusters reported\n`)
  })

  test('RM1, CL5 a removal that waits for a person shows the objects again, and takes names with the answer', async () => {
    const question = { subject: 's', ...web, cluster: null, token: 't', why: 'the service is protected', createdMs: 1 }
    const { id } = await admin.store.openConfirmation({ kind: 'remove_service', names: ['cluster-b'], ...question })
    const shown = await cli(['confirm', id, '--yes', '--confirm-data', DATA])
    expect(shown.err).toContain(`default/web in cluster-b:\n  1 object will be deleted:\n    ConfigMap shop/a\n`)
    expect(asked()).toEqual([`confirm ${id} with ${DATA} of default/web in 1 by admin`])
    const prune = await admin.store.openConfirmation({ kind: 'prune', names: ['ConfigMap shop/a'], ...question, subject: 'p' })
    expect(await cli(['confirm', prune.id, '--yes', '--confirm-data', DATA])).toMatchObject({ code: 2 })
  })

  test('RM4 the same name in a cluster that was not shown is not confirmed', () => {
    const view = (cluster: string, names: string[]) => ({
      ...web,
      clusters: { count: 1, first: [cluster] },
      deletes: { count: 0, first: [] },
      holding: names.map((name) => ({ name, what: '', kind: 'data' as const })),
      stays: { count: 0, first: [] },
    })
    const [a, b] = ids as [ClusterId, ClusterId]
    const removals = [
      { view: view('a', ['PersistentVolumeClaim shop/one']), clusterIds: [a] },
      { view: view('b', ['PersistentVolumeClaim shop/one', DATA]), clusterIds: [b] },
    ]
    expect(confirmedData(removals, [DATA])).toEqual(new Map([['default/web', new Map([[b, [DATA]]])]]))
  })

  test('CL5 several services go by one request, each with its own answer', async () => {
    await admin.call('POST', '/api/v1/apply', { resources: [serviceDoc('till')] })
    const { code, err, out } = await cli(['delete', 'services', 'web', 'till', '--yes', '--confirm-data', DATA])
    expect([code, out.split('\n').length]).toEqual([0, 3])
    expect(err).toStartWith(
      '2 services of project default will be deleted; 2 objects will be deleted with them.\ndefault/web in cluster-a, cluster-b:\n',
    )
    expect(asked()).toEqual([`delete default/web with ${DATA},${DATA} of default/web in 2 by admin`, 'delete default/till by admin'])
    expect(await cli(['delete', 'services', 'web', 'none', '--yes'])).toMatchObject({ code: 1, out: '' })
    expect(await cli(['delete', 'clusters', 'a', 'b', '--yes'])).toMatchObject({ code: 2 })
    expect(asked()).toHaveLength(2)
  })

  test('CL5 one name that does not exist refuses the whole request, and nothing is deleted', async () => {
    const answer = await admin.call('POST', '/api/v1/projects/default/delete-services', { names: ['web', 'none'] })
    expect([answer.status, asked()]).toEqual([404, []])
  })

  test('RM4 objects that agents reported are listed although the set of the revision is not stored', async () => {
    admin.content.clear()
    const state = { sync: 'Synced', health: 'Healthy', reason: 'Synced', message: '', sinceMs: 1 }
    for (const id of ids) {
      const rows: StatusWrite[] = [{ kind: 'object', key: `default/web/${refKey(refOf(CLAIM))}`, rev: 1, doc: state }]
      await admin.store.upsertStatus(id, rows, { complete: false, nowMs: 1 })
    }
    expect((await cli(['delete', 'service', 'web', '--yes'])).err).toContain(`${DATA} (its data will be lost)`)
  })
})
