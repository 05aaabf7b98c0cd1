import { describe, expect, test } from 'bun:test'
import type { ApiResource, ApplyResult } from '../../agent/cluster/cluster.ts'
import { takeOver } from '../../agent/reconcile/apply/take-over.ts'
import {
  ownedMember,
  type Take,
  takenManagedFields,
  toTake,
  unchosenMember,
  union,
} from '../../agent/reconcile/snapshot/fields/client-side.ts'
import { EACH } from '../../agent/reconcile/snapshot/fields/ignore.ts'
import { otherFieldsOf } from '../../agent/reconcile/snapshot/fields/other-fields.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { pointerSegments } from '../../shared/kube/ignore-marks.ts'
import type { K8sObject } from '../../shared/kube/object.ts'

type Fields = Record<string, unknown>
const entry = (manager: string, fieldsV1: Fields, operation = 'Update', subresource = '') => ({
  manager,
  operation,
  apiVersion: 'v1',
  time: '2026-01-01T00:00:00Z',
  fieldsType: 'FieldsV1',
  fieldsV1,
  ...(subresource === '' ? {} : { subresource }),
})
const manifest: K8sObject = {
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name: 'n' },
  spec: { replicas: 1, containers: [{ name: 'a' }, { name: 'web', image: 'web:1' }] },
}
const object = (...managedFields: Fields[]): K8sObject =>
  ({ ...manifest, metadata: { name: 'n', resourceVersion: '7', managedFields } }) as K8sObject
const take = (moment: Take['moment'], pointers: string[] = [], managers: string[] = []): Take => ({
  moment,
  leave: pointers.length + managers.length === 0 ? null : { paths: pointers.map(pointerSegments), managers },
  wanted: canonicalJson(manifest),
})
const REPLICAS = { 'f:spec': { 'f:replicas': {} } }
const own = (fields: Fields = { 'f:data': {} }) => entry('skerry', fields, 'Apply')

describe('TK1 whose fields are taken', () => {
  test.each<[string, string, string, string, 'always' | 'adopt' | 'never']>([
    ['kubectl apply', 'kubectl-client-side-apply', 'Update', '', 'always'],
    ['what was there before anybody applied, and is not ours', 'before-first-apply', 'Update', '', 'never'],
    ['Helm 3', 'helm', 'Update', '', 'always'],
    ['Helm 4', 'helm', 'Apply', '', 'always'],
    ['Argo CD', 'argocd-controller', 'Update', '', 'always'],
    ['Argo CD by server-side apply', 'argocd-controller', 'Apply', '', 'always'],
    ['Fleet', 'fleetagent', 'Update', '', 'always'],
    ['Plural', 'application/apply-patch', 'Apply', '', 'always'],
    ['Flux, kustomize', 'kustomize-controller', 'Apply', '', 'always'],
    ['Flux, helm', 'helm-controller', 'Update', '', 'always'],
    ['kubectl edit', 'kubectl-edit', 'Update', '', 'adopt'],
    ['kubectl create', 'kubectl-create', 'Update', '', 'adopt'],
    ['kubectl apply --server-side', 'kubectl', 'Apply', '', 'adopt'],
    ['kubectl rollout restart', 'kubectl-rollout', 'Update', '', 'never'],
    ['kubectl label', 'kubectl-label', 'Update', '', 'never'],
    ['kubectl scale', 'kubectl', 'Update', 'scale', 'never'],
    ['a controller', 'kube-controller-manager', 'Update', '', 'never'],
    ['Helm in a status', 'helm', 'Update', 'status', 'never'],
  ])('%s', (_, manager, operation, subresource, when) => {
    const live = object(own(), entry(manager, REPLICAS, operation, subresource))
    const found = (['keep', 'adopt'] as const).map((moment) => toTake(otherFieldsOf(live), take(moment)))
    const [keep, adopt] = [when === 'always' ? [manager] : [], when === 'never' ? [] : [manager]]
    expect(found).toEqual([keep, adopt])
    expect((['keep', 'adopt'] as const).map((moment) => takenManagedFields(live, take(moment)) !== null)).toEqual([
      when === 'always',
      when !== 'never',
    ])
  })

  test('not those of a manager to which a rule leaves them, nor the path that a rule names', () => {
    const live = object(own(), entry('helm', REPLICAS))
    expect(toTake(otherFieldsOf(live), take('keep', [], ['helm']))).toEqual([])
    expect(toTake(otherFieldsOf(live), take('keep', ['/spec/replicas']))).toEqual([])
    expect(takenManagedFields(live, take('keep', ['/spec/replicas']))).toBeNull()
  })
})

describe('TK2 how they are taken', () => {
  test('all of theirs becomes ours, the rest stays as it is', () => {
    const other = entry('stranger', { 'f:data': { 'f:x': {} } })
    const result = takenManagedFields(
      object(entry('helm', REPLICAS), own(), other, entry('kubectl-client-side-apply', { 'f:data': { 'f:a': {} } })),
      take('keep'),
    )
    expect(result).toEqual([other, own({ 'f:data': {}, ...REPLICAS })])
  })
  test('of what was there before anybody applied only what is ours, too; of an item of a list of ours all', () => {
    const item = (fields: Fields) => ({ 'k:{"name":"a"}': { '.': {}, 'f:name': {}, ...fields } })
    const ours = own({ 'f:spec': { 'f:size': {}, 'f:containers': item({}) } })
    const theirs = {
      'f:metadata': { 'f:finalizers': {} },
      'f:spec': { 'f:size': {}, 'f:volume': {}, 'f:containers': item({ 'f:defaulted': {} }) },
    }
    const live = object(ours, entry('before-first-apply', theirs))
    expect(toTake(otherFieldsOf(live), take('keep'))).toEqual(['before-first-apply'])
    const left = entry('before-first-apply', { 'f:metadata': { 'f:finalizers': {} }, 'f:spec': { 'f:volume': {} } })
    const result = takenManagedFields(live, take('keep'))
    expect(result).toEqual([left, own({ 'f:spec': { 'f:size': {}, 'f:containers': item({ 'f:defaulted': {} }) } })])
    expect(toTake(otherFieldsOf(object(...(result ?? []))), take('keep'))).toEqual([])
    expect(takenManagedFields(object(...(result ?? [])), take('keep'))).toBeNull()
  })
  test('an object that we never applied gets our entry', () => {
    expect(takenManagedFields(object(entry('helm', REPLICAS)), take('adopt'))).toEqual([own(REPLICAS)])
  })
  test('of an entry only what no rule leaves to others; indices count in the manifest', () => {
    const web = (fields: Fields) => ({ 'f:spec': { 'f:containers': { 'k:{"name":"web"}': fields } } })
    const both = entry('helm', { ...REPLICAS, ...web({ '.': {}, 'f:name': {}, 'f:image': {} }) })
    const result = takenManagedFields(object(own({}), both), take('keep', ['/spec/containers/1/image']))
    expect(result).toEqual([entry('helm', web({ 'f:image': {} })), own(web({ '.': {}, 'f:name': {} }))])
  })
  test('DR10 what an autoscaler has of each container is not taken', () => {
    const web = { 'f:spec': { 'f:containers': { 'k:{"name":"web"}': { '.': {}, 'f:image': {}, 'f:name': {} } } } }
    const leave = { paths: [['spec', 'containers', EACH, 'image']], managers: [] }
    const result = takenManagedFields(object(own({}), entry('helm', web)), { ...take('adopt'), leave })
    expect(result?.[0]).toEqual(entry('helm', { 'f:spec': { 'f:containers': { 'k:{"name":"web"}': { 'f:image': {} } } } }))
  })
  test.each<[string, Fields, Fields, Fields]>([
    ['members of both', { a: { x: {} } }, { a: { y: {} }, b: {} }, { a: { x: {}, y: {} }, b: {} }],
    ['who owns the whole owns its members', { a: {} }, { a: { y: {} } }, { a: {} }],
    ['the other way round', { a: { y: {} } }, { a: {} }, { a: {} }],
  ])('union: %s', (_, a, b, expected) => expect(union(a, b)).toEqual(expected))
})

const RESOURCE: ApiResource = { group: '', version: 'v1', kind: 'Thing', plural: 'things', namespaced: false, verbs: [] }
const REF = { group: '', kind: 'Thing', namespace: '', name: 'n' }
const refused = { kind: 'failed', failure: { kind: 'conflict', status: 409, reason: 'Conflict', message: 'changed' } } as const

test('TK2 a change between look and patch is looked at again, three times at most', async () => {
  const live = object(own(), entry('helm', REPLICAS))
  const answers = (conflicts: number) => {
    const bodies: unknown[] = []
    const cluster = {
      get: async () => ({ kind: 'found' as const, object: live }),
      mergePatch: async (_: ApiResource, __: unknown, body: unknown): Promise<ApplyResult> => {
        bodies.push(body)
        return bodies.length <= conflicts ? refused : { kind: 'applied', object: live, created: false }
      },
    }
    return { cluster, bodies }
  }
  const twice = answers(2)
  expect(await takeOver(twice.cluster, RESOURCE, REF, take('keep'))).toBeNull()
  expect(twice.bodies).toHaveLength(3)
  expect(twice.bodies[0]).toEqual({ metadata: { resourceVersion: '7', managedFields: [own({ 'f:data': {}, ...REPLICAS })] } })
  const always = answers(9)
  expect(await takeOver(always.cluster, RESOURCE, REF, take('keep'))).toEqual(refused.failure)
  expect(always.bodies).toHaveLength(3)
})

describe('RC35 the defaults of a strategy that is not chosen any more', () => {
  const ROLLING = { type: 'RollingUpdate' }
  const RECREATE = { type: 'Recreate' }
  test.each<[string, string, object, string | null]>([
    ['Recreate', 'apps/v1/Deployment', { strategy: RECREATE }, 'spec.strategy.rollingUpdate'],
    ['a null beside it', 'apps/v1/Deployment', { strategy: { ...RECREATE, rollingUpdate: null } }, 'spec.strategy.rollingUpdate'],
    ['OnDelete', 'apps/v1/StatefulSet', { updateStrategy: { type: 'OnDelete' } }, 'spec.updateStrategy.rollingUpdate'],
    ['both named: the manifest is wrong', 'apps/v1/Deployment', { strategy: { ...RECREATE, rollingUpdate: {} } }, null],
    ['the type that has it', 'apps/v1/Deployment', { strategy: ROLLING }, null],
    ['no type', 'apps/v1/Deployment', { strategy: {} }, null],
    ['no strategy', 'apps/v1/Deployment', {}, null],
    ['another kind', 'example.com/v1/Deployment', { strategy: RECREATE }, null],
  ])('%s', (_, type, spec, expected) => {
    const [group, version, kind] = type.split('/') as [string, string, string]
    const path = unchosenMember({ apiVersion: `${group}/${version}`, kind, metadata: { name: 'n' }, spec })
    expect(path?.join('.') ?? null).toBe(expected)
  })

  const PATH = ['spec', 'strategy', 'rollingUpdate']
  const MEMBER = { 'f:spec': { 'f:strategy': { 'f:rollingUpdate': {} } } }
  const theirs = entry('kubectl-edit', { 'f:spec': { 'f:paused': {}, 'f:strategy': { 'f:rollingUpdate': { 'f:maxSurge': {} } } } })

  test('are ours then, also on an object that we do not own anything of', () => {
    expect(ownedMember(object(own()), PATH, false)).toEqual([own({ 'f:data': {}, ...MEMBER })])
    expect(ownedMember(object(), PATH, false)).toMatchObject([{ manager: 'skerry', operation: 'Apply', fieldsV1: MEMBER }])
  })
  test('stay with another manager, but for force', () => {
    expect(ownedMember(object(own(), theirs), PATH, false)).toEqual([theirs, own({ 'f:data': {}, ...MEMBER })])
    const left = entry('kubectl-edit', { 'f:spec': { 'f:paused': {} } })
    expect(ownedMember(object(own(), theirs), PATH, true)).toMatchObject([left, { manager: 'skerry' }])
  })
})
