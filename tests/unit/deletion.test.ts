// What may be deleted, what waits for a person, and under which name it is confirmed: tables over data. RM rules speak
// of removal orders, PR rules of prunes.
import { describe, expect, test } from 'bun:test'
import {
  type Candidate,
  type Contents,
  type DeletionRequest,
  decideDeletions,
  holdingOf,
  permitHook,
} from '../../agent/reconcile/plan/prune/deletion.ts'
import { type Item, itemOf, otherObjects, ownersOutside } from '../../agent/reconcile/plan/prune/other-objects.ts'
import type { Problem } from '../../agent/reconcile/snapshot/situation.ts'
import { liveObjectOf } from '../../agent/reconcile/snapshot/watch/live-object.ts'
import { deletionName, nameWithLoss } from '../../shared/kube/data-loss.ts'
import { type K8sObject, type ObjectRef, refOf } from '../../shared/kube/object.ts'

const ref = (kind: string, name: string, namespace = 'shop', group = ''): ObjectRef => ({ group, kind, namespace, name })
const CLAIM = ref('PersistentVolumeClaim', 'data')
const SPACE = ref('Namespace', 'shop', '')
const CRD = ref('CustomResourceDefinition', 'boats.sea.example', '', 'apiextensions.k8s.io')
const MAP = ref('ConfigMap', 'settings')
const SET = ref('StatefulSet', 'db', 'shop', 'apps')
const VOLUME = ref('PersistentVolume', 'pv', '')
const CLASS = ref('StorageClass', 'fast', '', 'storage.k8s.io')
const OTHERS: Contents = { kind: 'others', count: 1, names: ['ConfigMap shop/theirs'], more: false }

type Live = Parameters<typeof holdingOf>[2]
const PLAIN: Live = {}

describe('what goes with an object', () => {
  test.each<[string, 'prune' | 'removal', ObjectRef, Live, Contents | null, string]>([
    ['RM1 a claim', 'removal', CLAIM, PLAIN, null, 'lost'],
    ['RM1 a volume that is deleted with its object', 'removal', VOLUME, PLAIN, null, 'lost'],
    ['RM1 a volume that stays when its object goes', 'removal', VOLUME, { takes: 'nothing' }, null, 'nothing'],
    ['PR3 the same, in a prune', 'prune', VOLUME, { takes: 'nothing' }, null, 'lost'],
    ['RM1 a StatefulSet whose claims stay', 'removal', SET, PLAIN, null, 'nothing'],
    ['RM1 a StatefulSet whose claims go', 'removal', SET, { takes: 'claims' }, null, 'lost'],
    ['PR3 the same, in a prune', 'prune', SET, { takes: 'claims' }, null, 'lost'],
    ['RM1 configuration', 'removal', MAP, PLAIN, null, 'nothing'],
    ['RM1 a StorageClass', 'removal', CLASS, PLAIN, null, 'nothing'],
    ['PR3 the same, in a prune', 'prune', CLASS, PLAIN, null, 'lost'],
    ['RM3 a Namespace that nobody looked into', 'removal', SPACE, PLAIN, null, 'unseen'],
    ['RM3 a Namespace with objects of the service alone', 'removal', SPACE, PLAIN, { kind: 'own' }, 'nothing'],
    ['RM3 a Namespace with objects of others', 'removal', SPACE, PLAIN, OTHERS, 'lost'],
    ['RM3 a Namespace that cannot be read', 'removal', SPACE, PLAIN, { kind: 'unread', why: 'forbidden' }, 'lost'],
    [
      'RM3 a Namespace with objects of a service that goes, too',
      'removal',
      SPACE,
      PLAIN,
      { kind: 'leaving', services: ['web/b'] },
      'leaving',
    ],
    ['PR3 a Namespace in a prune is asked about without a look', 'prune', SPACE, PLAIN, null, 'lost'],
    ['RM3 a CRD with custom resources of others', 'removal', CRD, PLAIN, OTHERS, 'lost'],
    ['RM3 a CRD that nobody looked at', 'removal', CRD, PLAIN, null, 'unseen'],
  ])('%s', (_, cause, object, live, contents, expected) => expect(holdingOf(cause, object, live, contents).kind).toBe(expected as never))

  test.each<[string, Record<string, unknown>, string | undefined]>([
    [
      'a volume of reclaimPolicy Delete',
      { apiVersion: 'v1', kind: 'PersistentVolume', spec: { persistentVolumeReclaimPolicy: 'Delete' } },
      undefined,
    ],
    [
      'a volume of reclaimPolicy Retain',
      { apiVersion: 'v1', kind: 'PersistentVolume', spec: { persistentVolumeReclaimPolicy: 'Retain' } },
      'nothing',
    ],
    ['a volume that does not say', { apiVersion: 'v1', kind: 'PersistentVolume', spec: {} }, undefined],
    ['a StatefulSet that deletes its claims', stateful('Delete', [{}]), 'claims'],
    ['a StatefulSet that retains them', stateful('Retain', [{}]), undefined],
    ['a StatefulSet without templates', stateful('Delete', []), undefined],
    ['a kind of that name in another group', { ...stateful('Delete', [{}]), apiVersion: 'apps.example.com/v1' }, undefined],
  ])('RM1 by its spec: %s', (_, object, expected) =>
    expect(liveObjectOf({ ...object, metadata: { name: 'x' } } as K8sObject, 0).takes).toBe(expected as never),
  )
})

function stateful(whenDeleted: string, volumeClaimTemplates: unknown[]): Record<string, unknown> {
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    spec: { persistentVolumeClaimRetentionPolicy: { whenDeleted }, volumeClaimTemplates },
  }
}

const of = (object: ObjectRef, change: Partial<Candidate> = {}, contents: Contents | null = null): Candidate => ({
  ref: object,
  holding: holdingOf('removal', object, PLAIN, contents),
  allowed: false,
  ...change,
})
const removal = (candidates: readonly Candidate[], change: Partial<DeletionRequest> = {}): DeletionRequest => ({
  cause: 'removal',
  candidates,
  doomed: candidates.map((one) => one.ref),
  undecided: [],
  unreachable: [],
  guard: null,
  token: 'order',
  ownedCount: candidates.length,
  isConfirmed: false,
  confirmed: new Set(),
  before: () => undefined,
  nowMs: 1_000,
  ...change,
})
const decided = (request: DeletionRequest) => {
  const { permits, kept, unseen, refusal, isShut } = decideDeletions(request)
  const nameOf = (key: string) => key.slice(key.lastIndexOf('/') + 1)
  return {
    go: [...permits.keys()].map(nameOf),
    kept: [...kept.keys()].map(nameOf),
    look: unseen.map(({ name }) => name),
    asked: refusal?.names ?? [],
    isShut,
  }
}

describe('a removal order', () => {
  const all = [of(CLAIM), of(MAP), of(SPACE, {}, OTHERS)]
  test.each<[string, DeletionRequest, Partial<ReturnType<typeof decided>>]>([
    [
      'RM1 data waits, and everything else goes',
      removal(all),
      { go: ['settings'], kept: ['data', 'shop'], asked: ['PersistentVolumeClaim shop/data', 'Namespace shop'] },
    ],
    [
      'RM1 what the order names goes',
      removal(all, { confirmed: new Set(['PersistentVolumeClaim shop/data']) }),
      { go: ['data', 'settings'], asked: ['Namespace shop'] },
    ],
    [
      'RM1 a name in another namespace confirms nothing',
      removal(all, { confirmed: new Set(['PersistentVolumeClaim web/data']) }),
      { go: ['settings'] },
    ],
    [
      'RM1 an order that was confirmed as a whole confirms no name',
      removal([of(CLAIM)], { isConfirmed: true }),
      { go: [], asked: ['PersistentVolumeClaim shop/data'] },
    ],
    ['RM1 an annotation allows it', removal([of(CLAIM, { allowed: true })]), { go: ['data'], asked: [] }],
    ['RM3 a Namespace is looked into first', removal([of(SPACE)]), { go: [], look: ['shop'], asked: [] }],
    ['RM3 a confirmed one is not', removal([of(SPACE)], { confirmed: new Set(['Namespace shop']) }), { go: ['shop'], look: [] }],
    [
      'RM3 objects of a service that goes, too, are waited for and nobody is asked',
      removal([of(SPACE, {}, { kind: 'leaving', services: ['web/b'] })]),
      { go: [], kept: ['shop'], asked: [] },
    ],
    [
      'RP2 an order out of a backup goes through the guard',
      removal([of(MAP)], { guard: guard({ restored: true }) }),
      { go: [], isShut: true, asked: ['ConfigMap shop/settings'] },
    ],
    [
      'IV9 an object that nobody can see is asked about',
      removal([], { unreachable: [ref('Boat', 'skiff', 'shop', 'sea.example')] }),
      { asked: ['Boat.sea.example shop/skiff'] },
    ],
    [
      'IV9 once stopped nobody asks',
      removal([], { unreachable: [ref('Boat', 'skiff', 'shop', 'sea.example')], confirmed: new Set(['Boat.sea.example shop/skiff']) }),
      { asked: [] },
    ],
  ])('%s', (_, request, expected) => expect(decided(request)).toMatchObject(expected))

  test('RM3 what was found is not looked at again before its time, and stays in the list that is asked', () => {
    const kept: Problem = { kind: 'kept', what: 'others', asks: true, attempt: 2, retryAtMs: 5_000 }
    expect(decided(removal([of(SPACE)], { before: () => kept }))).toMatchObject({ look: [], kept: ['shop'], asked: ['Namespace shop'] })
    expect(decided(removal([of(SPACE)], { before: () => kept, nowMs: 5_000 }))).toMatchObject({ look: ['shop'], asked: [] })
  })
  test('RM1 the question says what is lost, and the list has a digest of its own', () => {
    const { refusal } = decideDeletions(removal([of(CLAIM), of(MAP)]))
    expect(refusal).toMatchObject({
      digest: 'order',
      count: 1,
      only: true,
      why: 'PersistentVolumeClaim shop/data (its data will be lost)',
    })
    const { refusal: other } = decideDeletions(removal([of(CLAIM), of(SET, { holding: { kind: 'lost', what: 'x' } })]))
    expect(other?.list).not.toBe(refusal?.list as string)
  })
})

function guard(change = {}): NonNullable<DeletionRequest['guard']> {
  return { desiredCount: 10, ownedCount: 20, protect: false, maxPrunePercent: 50, restored: false, factsOnly: false, ...change }
}

describe('a prune', () => {
  const prune = (candidates: readonly Candidate[], change: Partial<DeletionRequest> = {}) =>
    removal(
      candidates.map((one) => ({ ...one, holding: holdingOf('prune', one.ref, PLAIN, null) })),
      { cause: 'prune', guard: guard(), ...change },
    )
  test.each<[string, DeletionRequest, Partial<ReturnType<typeof decided>>]>([
    [
      'PR3 data holds all of it',
      prune([of(CLAIM), of(MAP)]),
      { go: [], isShut: true, asked: ['PersistentVolumeClaim shop/data', 'ConfigMap shop/settings'] },
    ],
    [
      'PR4 confirmed with its names',
      prune([of(CLAIM), of(MAP)], { isConfirmed: true, confirmed: new Set(['PersistentVolumeClaim shop/data']) }),
      { go: ['data', 'settings'], asked: [] },
    ],
    [
      'PR4 data that was not in the confirmed list is asked about, and the rest goes',
      prune([of(CLAIM), of(MAP)], { isConfirmed: true, confirmed: new Set(['ConfigMap shop/settings']) }),
      { go: ['settings'], kept: ['data'], isShut: false, asked: ['PersistentVolumeClaim shop/data'] },
    ],
    ['PR4 confirmed by a server that knows no names', prune([of(CLAIM)], { isConfirmed: true, confirmed: 'all' }), { go: ['data'] }],
    ['PR3 data that cannot be judged yet holds all of it', prune([of(MAP)], { undecided: [CLAIM] }), { go: [], isShut: true }],
    ['PR3 an allowed object does not', prune([of(CLAIM, { allowed: true }), of(MAP)]), { go: ['data', 'settings'], asked: [] }],
  ])('%s', (_, request, expected) => expect(decided(request)).toMatchObject(expected))
})

test('HK6 a policy of a hook never deletes what holds data or other objects', () => {
  const may = (object: ObjectRef, live: Live = PLAIN) => permitHook(object, live) !== null
  expect([may(ref('Job', 'a', 'shop', 'batch')), may(CLAIM), may(SPACE), may(SET), may(SET, { takes: 'claims' })]).toEqual([
    true,
    false,
    false,
    true,
    false,
  ])
})

describe('the name of a deletion', () => {
  test.each([
    [CLAIM, 'PersistentVolumeClaim shop/data', 'PersistentVolumeClaim shop/data (its data will be lost)'],
    [SPACE, 'Namespace shop', 'Namespace shop (everything in it is deleted with it)'],
    [MAP, 'ConfigMap shop/settings', 'ConfigMap shop/settings'],
    [
      ref('Project', 'shop', '', 'project.openshift.io'),
      'Project.project.openshift.io shop',
      'Project.project.openshift.io shop (its Namespace is deleted with everything in it)',
    ],
    [
      ref('PersistentVolumeClaim', 'x', 'shop', 'example.com'),
      'PersistentVolumeClaim.example.com shop/x',
      'PersistentVolumeClaim.example.com shop/x',
    ],
  ])('RM1 is exact, and says what is lost: %#', (object, name, withLoss) => {
    expect(deletionName(object)).toBe(name)
    expect(nameWithLoss(name)).toBe(withLoss)
  })
})

describe('objects that are not of the service', () => {
  const meta = (kind: string, name: string, more: Record<string, unknown> = {}, apiVersion = 'v1'): K8sObject =>
    ({ apiVersion, kind, metadata: { name, namespace: 'shop', uid: name, ...more } }) as K8sObject
  const ownedBy = (...names: string[]) => ({
    ownerReferences: names.map((name) => ({ apiVersion: 'apps/v1', kind: 'ReplicaSet', name, uid: name })),
  })
  const own = new Set(['ours'])
  const items = (objects: readonly K8sObject[]): Item[] =>
    objects.flatMap((object) => itemOf(object, own.has(object.metadata.name ?? '') ? 'own' : null) ?? [])
  const others = (objects: readonly K8sObject[], gone: readonly string[] = []) =>
    otherObjects(items(objects), (uid) => gone.includes(uid)).map(({ ref: { name } }) => name)

  test.each<[string, K8sObject[], readonly string[], string[]]>([
    ['somebody’s ConfigMap', [meta('ConfigMap', 'theirs')], [], ['theirs']],
    ['our own', [meta('ConfigMap', 'ours')], [], []],
    ['one that is being deleted', [meta('ConfigMap', 'theirs', { deletionTimestamp: 'x' })], [], []],
    ['what the control plane makes in every namespace', [meta('ConfigMap', 'kube-root-ca.crt'), meta('ServiceAccount', 'default')], [], []],
    [
      'the token of the default account',
      [meta('Secret', 'default-token', { annotations: { 'kubernetes.io/service-account.name': 'default' } })],
      [],
      [],
    ],
    ['another account', [meta('ServiceAccount', 'theirs')], [], ['theirs']],
    [
      'Events, Endpoints and Leases',
      [meta('Event', 'e'), meta('Endpoints', 'e'), meta('Lease', 'l', {}, 'coordination.k8s.io/v1')],
      [],
      [],
    ],
    [
      'a Pod of our Deployment, over its ReplicaSet',
      [meta('Deployment', 'ours'), meta('ReplicaSet', 'rs', ownedBy('ours')), meta('Pod', 'pod', ownedBy('rs'))],
      [],
      [],
    ],
    ['a Pod of somebody’s ReplicaSet', [meta('ReplicaSet', 'rs'), meta('Pod', 'pod', ownedBy('rs'))], [], ['rs', 'pod']],
    [
      'one of whose two owners only one is ours',
      [meta('Deployment', 'ours'), meta('ReplicaSet', 'rs'), meta('Pod', 'pod', ownedBy('ours', 'rs'))],
      [],
      ['rs', 'pod'],
    ],
    ['a Pod whose owner is gone', [meta('Pod', 'pod', ownedBy('deleted'))], ['deleted'], []],
    ['a Pod whose owner is elsewhere', [meta('Pod', 'pod', ownedBy('node'))], [], ['pod']],
    [
      'a claim that our StatefulSet made',
      [meta('StatefulSet', 'ours'), meta('PersistentVolumeClaim', 'data-0', ownedBy('ours'))],
      [],
      ['data-0'],
    ],
    ['a claim whose StatefulSet is gone', [meta('PersistentVolumeClaim', 'data-0', ownedBy('deleted'))], ['deleted'], ['data-0']],
    ['two that own each other', [meta('Pod', 'a', ownedBy('b')), meta('Pod', 'b', ownedBy('a'))], [], ['a', 'b']],
  ])('RM3 %s', (_, objects, gone, expected) => expect(others(objects, gone)).toEqual(expected))

  test('RM3 owners outside are looked up, each once, but for what is our own', () => {
    const found = ownersOutside(
      items([meta('Pod', 'a', ownedBy('x')), meta('Pod', 'b', ownedBy('x', 'a')), meta('Pod', 'ours', ownedBy('y'))]),
    )
    expect(found.map(({ uid, namespace }) => `${namespace}/${uid}`)).toEqual(['shop/x'])
    expect(refOf(meta('Pod', 'a')).namespace).toBe('shop')
  })
})
