import { describe, expect, test } from 'bun:test'
import { isNewer } from '../../agent/cluster/resource-version.ts'
import { objectPart } from '../../agent/messages/object-messages.ts'
import { describeDrift, driftText, shownPaths } from '../../agent/reconcile/snapshot/fields/drift.ts'
import { isFilledByOthers, ownedHash } from '../../agent/reconcile/snapshot/fields/owned-fields.ts'
import { liveObjectOf, ownerOf } from '../../agent/reconcile/snapshot/watch/live-object.ts'
import type { K8sObject } from '../../shared/kube/object.ts'

const OWN = {
  'f:metadata': { 'f:labels': { 'f:app': {}, 'f:skerry.dev/service': {} } },
  'f:spec': {
    'f:replicas': {},
    'f:template': {
      'f:spec': {
        'f:containers': {
          'k:{"name":"web"}': {
            '.': {},
            'f:name': {},
            'f:image': {},
            'f:ports': { 'k:{"containerPort":80,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {} } },
          },
        },
      },
    },
  },
}
type Fields = Record<string, unknown>
const container = { name: 'web', image: 'web:1', ports: [{ containerPort: 80 }] }
const applied = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'web', labels: { app: 'web', 'skerry.dev/service': 'p.s' } },
  spec: { replicas: 2, template: { spec: { containers: [container] } } },
} as K8sObject

interface Change {
  own?: Fields | null
  replicas?: number
  image?: string
  labels?: Record<string, string>
  extra?: Fields
  sidecar?: boolean
  others?: Fields[]
}
function live({ own = OWN, replicas = 2, image = 'web:1', labels = {}, extra = {}, sidecar = false, others = [] }: Change): K8sObject {
  const ours = own === null ? [] : [{ manager: 'skerry', operation: 'Apply', time: '2026-01-01T00:00:00Z', fieldsV1: own }]
  const containers = [
    { ...container, image, ports: [{ containerPort: 80, protocol: 'TCP' }], resources: {} },
    ...(sidecar ? [{ name: 'proxy' }] : []),
  ]
  return {
    ...applied,
    metadata: {
      ...applied.metadata,
      uid: 'u',
      resourceVersion: '7',
      labels: { ...applied.metadata.labels, ...labels },
      managedFields: [...ours, ...others],
    },
    spec: { replicas, template: { spec: { containers } } },
    ...extra,
  } as K8sObject
}
const without = (cut: (copy: typeof OWN) => void): Fields => {
  const copy = structuredClone(OWN)
  cut(copy)
  return copy
}
const update = (manager: string, fieldsV1: Fields, time = '2026-01-02T00:00:00Z', subresource?: string) => ({
  manager,
  operation: 'Update',
  time,
  fieldsV1,
  ...(subresource ? { subresource } : {}),
})

const SCALED = live({
  replicas: 5,
  own: without((copy) => Reflect.deleteProperty(copy['f:spec'], 'f:replicas')),
  others: [update('kubectl', { 'f:spec': { 'f:replicas': {} } }, '2026-01-02T00:00:00Z', 'scale')],
})
const IMAGE_PATH = { 'f:spec': { 'f:template': { 'f:spec': { 'f:containers': { 'k:{"name":"web"}': { 'f:image': {} } } } } } }
const IMAGE_SET = live({
  image: 'web:2',
  own: without((copy) => Reflect.deleteProperty(copy['f:spec']['f:template']['f:spec']['f:containers']['k:{"name":"web"}'], 'f:image')),
  others: [update('kubectl-set', IMAGE_PATH), update('kube-controller-manager', { 'f:status': {} }, '2026-01-03T00:00:00Z', 'status')],
})

describe('DR1 the hash of what we own', () => {
  const before = ownedHash(live({}))
  test.each([
    ['status of others', live({ extra: { status: { replicas: 2 } } }), 'same'],
    ['an injected sidecar and defaults', live({ sidecar: true }), 'same'],
    ['a label of others', live({ labels: { theirs: 'x' } }), 'same'],
    ['another entry in managedFields', live({ others: [update('kubectl', { 'f:metadata': {} })] }), 'same'],
    ['a value at a path we own', live({ image: 'web:2' }), 'changed'],
    ['a path that left our entry', SCALED, 'changed'],
    ['an entry that is gone', live({ own: null }), 'changed'],
  ] as const)('DR1 %s: %s', (_, object, expected) => expect(ownedHash(object) === before ? 'same' : 'changed').toBe(expected))
  test('DR1 nothing owned is the empty hash', () => expect(ownedHash(live({ own: null }))).toBe(''))
})

describe('DR1 what was sent empty', () => {
  const thing = (spec: unknown, own: Fields, theirs?: Fields): K8sObject =>
    ({
      apiVersion: 'example.com/v1',
      kind: 'Thing',
      metadata: {
        name: 'a',
        managedFields: [
          { manager: 'skerry', operation: 'Apply', fieldsV1: { 'f:spec': own } },
          ...(theirs === undefined ? [] : [update('operator', { 'f:spec': theirs })]),
        ],
      },
      spec,
    }) as K8sObject
  const EMPTY = { 'f:map': {}, 'f:list': {} }
  const before = ownedHash(thing({ map: {}, list: [] }, EMPTY))
  const THEIRS = {
    'f:map': { '.': {}, 'f:a': {}, 'f:deep': { '.': {}, 'f:b': {} } },
    'f:list': { 'k:{"name":"x"}': { '.': {}, 'f:name': {} } },
  }
  test.each([
    ['others fill it', thing({ map: { a: 1, deep: { b: 2 } }, list: [{ name: 'x' }] }, EMPTY, THEIRS), 'same'],
    ['what nobody else owns came into it', thing({ map: { a: 1, deep: { b: 2 }, c: 3 }, list: [{ name: 'x' }] }, EMPTY, THEIRS), 'changed'],
    ['others took the map itself', thing({ map: { a: 1 }, list: [] }, { 'f:list': {} }, { 'f:map': {} }), 'changed'],
    ['it is gone', thing({ list: [] }, { 'f:list': {} }), 'changed'],
  ] as const)('DR1 %s: %s', (_, object, expected) => expect(ownedHash(object) === before ? 'same' : 'changed').toBe(expected))
  test('DR1 RC25 a null that others fill is as a map that was sent empty, and a value in its place is a change', () => {
    const was = ownedHash(thing({ map: null }, { 'f:map': {} }))
    const filled = thing({ map: { a: 1 } }, { 'f:map': {} }, { 'f:map': { 'f:a': {} } })
    expect([ownedHash(filled) === was, isFilledByOthers(was, filled)]).toEqual([false, true])
    expect(ownedHash(thing({ map: 'x' }, {}, { 'f:map': {} }))).not.toBe(was)
  })
  test('DR1 what the API server does not keep is nothing of ours', () => {
    const kept = ownedHash(thing({ a: 1 }, { 'f:a': {}, 'f:data': {} }))
    expect(ownedHash(thing({ a: 1, data: { x: 1 } }, { 'f:a': {} }, { 'f:data': { '.': {}, 'f:x': {} } }))).toBe(kept)
  })
  test.each([
    [
      'somebody changes a default in it',
      thing({ map: { mode: 'theirs' }, list: [], a: 1 }, { ...EMPTY, 'f:a': {} }, { 'f:map': { 'f:mode': {} } }),
      true,
    ],
    [
      'and a value of ours, too',
      thing({ map: { mode: 'theirs' }, list: [], a: 2 }, { ...EMPTY, 'f:a': {} }, { 'f:map': { 'f:mode': {} } }),
      false,
    ],
    ['nobody else owns anything in it', thing({ map: { mode: 'other' }, list: [], a: 1 }, { ...EMPTY, 'f:a': {} }), false],
  ] as const)('DR1 a map that was sent empty has defaults; %s', (_, object, expected) => {
    const was = ownedHash(thing({ map: { mode: 'default' }, list: [], a: 1 }, { ...EMPTY, 'f:a': {} }))
    expect(ownedHash(object)).not.toBe(was)
    expect(isFilledByOthers(was, object)).toBe(expected)
  })
  test('DR2 a map from which all was taken names what was taken', () => {
    const sent = {
      apiVersion: 'example.com/v1',
      kind: 'Thing',
      metadata: { name: 'a' },
      spec: { deep: { list: [{ a: 1 }], b: 1 }, none: {} },
    }
    const live = thing({ deep: { list: [{ a: 2 }] } }, { 'f:deep': {} }, { 'f:deep': { 'f:list': {} } })
    expect(describeDrift(sent as K8sObject, live)).toEqual({ paths: ['.spec.deep.b', '.spec.deep.list'], manager: 'operator' })
  })
})

test.each([
  [{ paths: ['.a', '.b'], manager: 'x' }, false, objectPart('fields_changed', { paths: '.a, .b', manager: 'x' })],
  [
    { paths: ['.a'], manager: '', removed: true as const },
    false,
    objectPart('fields_removed', { paths: '.a', manager: objectPart('unknown_manager') }),
  ],
  [{ paths: [], manager: '' }, false, 'changed by an unknown manager'],
  [{ paths: ['.1', '.2', '.3', '.4', '.5', '.6'], manager: 'x' }, false, '.1, .2, .3, .4, .5 and 1 more changed by x'],
  [{ paths: [], manager: '' }, true, objectPart('deleted_outside')],
])('DR2 %j, deleted: %p, is told as what it is', (note, deleted, text) => expect(driftText(note, deleted)).toBe(text))

describe('DR2 a drift names paths and rival', () => {
  test.each([
    ['kubectl scale', SCALED, ['.spec.replicas'], 'kubectl (scale)'],
    [
      'kubectl set image; the status writer came later and is not the rival',
      IMAGE_SET,
      ['.spec.template.spec.containers[{"name":"web"}].image'],
      'kubectl-set',
    ],
    [
      'a label removed: nobody holds it, and the latest writer may have done something else',
      live({
        own: without((copy) => Reflect.deleteProperty(copy['f:metadata']['f:labels'], 'f:app')),
        others: [update('old', {}, '2026-01-01T00:00:00Z'), update('kubectl-label', {}, '2026-01-02T00:00:00Z')],
      }),
      ['.metadata.labels.app'],
      '',
    ],
    [
      'two fields, two managers: both, the latest first',
      live({
        replicas: 5,
        image: 'web:2',
        own: without((copy) => {
          Reflect.deleteProperty(copy['f:spec'], 'f:replicas')
          Reflect.deleteProperty(copy['f:spec']['f:template']['f:spec']['f:containers']['k:{"name":"web"}'], 'f:image')
        }),
        others: [
          update('kubectl', { 'f:spec': { 'f:replicas': {} } }, '2026-01-02T00:00:00Z', 'scale'),
          update('kubectl-set', IMAGE_PATH, '2026-01-03T00:00:00Z'),
          update('kubectl-annotate', { 'f:metadata': { 'f:annotations': { 'f:note': {} } } }, '2026-01-04T00:00:00Z'),
        ],
      }),
      ['.spec.replicas', '.spec.template.spec.containers[{"name":"web"}].image'],
      'kubectl-set, kubectl (scale)',
    ],
    [
      'managedFields were cleared: what the API server calls before-first-apply is nobody',
      live({ own: null, others: [update('before-first-apply', { 'f:metadata': {}, 'f:spec': {} })] }),
      ['.metadata.labels', '.spec.replicas', '.spec.template'],
      '',
    ],
    [
      'a label with a slash in its name',
      live({ own: without((copy) => Reflect.deleteProperty(copy['f:metadata']['f:labels'], 'f:skerry.dev/service')) }),
      ['.metadata.labels["skerry.dev/service"]'],
      '',
    ],
    ['nothing of ours is left', live({ own: null }), ['.metadata', '.spec'], ''],
    ['all is ours still', live({}), [], ''],
  ] as const)('DR2 %s', (_, object, paths, manager) => expect(describeDrift(applied, object)).toMatchObject({ paths: [...paths], manager }))

  test.each([
    ['.spec.users[{"password":"hunter"}].role', '.spec.users[{"password":"<redacted>"}].role'],
    ['.spec.users[{"name":"a b","port":80}]', '.spec.users[{"name":"<redacted>","port":80}]'],
    ['.spec.containers[{"name":"web"}].ports[{"containerPort":80,"protocol":"TCP"}].name', null],
    ['.data["[{x}]"]', '.data["[<redacted>]"]'],
    ['.metadata.finalizers[*]', null],
  ])('KA31 of a list key only names are shown: %s', (path, shown) => {
    expect(shownPaths([path, path])).toEqual([shown ?? path])
    expect(driftText({ paths: [path], manager: 'eve' })).toBe(`${shown ?? path} changed by eve`)
  })

  test('DR3 no value of a Secret is in it', () => {
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, data: { password: 'aHVudGVyMg==' } } as K8sObject
    const changed = {
      ...secret,
      data: { password: 'c3dvcmRmaXNo' },
      metadata: { name: 's', managedFields: [update('eve', { 'f:data': { 'f:password': {} } })] },
    } as K8sObject
    const text = JSON.stringify(describeDrift(secret, changed))
    expect(text).toContain('.data.password')
    expect(text).not.toMatch(/aHVudGVyMg|c3dvcmRmaXNo/)
  })
})

test.each([
  ['9', '10', false],
  ['10', '9', true],
  ['10', '10', false],
  ['11', '10', true],
] as const)('RC6 resource version %s is newer than %s: %p', (a, b, newer) => expect(isNewer(a, b)).toBe(newer))

test('RC3 a tracking mark that names another object was copied, and counts as none', () => {
  const mark = (value: string) =>
    ({ ...applied, metadata: { ...applied.metadata, annotations: { 'skerry.dev/tracking': value } } }) as K8sObject
  expect(ownerOf(mark('c-1/p/s:apps/Deployment/web/web')).kind).toBe('service')
  expect(ownerOf(mark('c-1/p/s:apps/Deployment/web/other')).kind).toBe('none')
  const helm = { ...applied, metadata: { ...applied.metadata, annotations: { 'meta.helm.sh/release-name': 'web' } } } as K8sObject
  expect(ownerOf(helm)).toEqual({ kind: 'other', name: 'Helm (meta.helm.sh/release-name: web)' })
})

test('a live object keeps no document', () => expect(JSON.stringify(liveObjectOf(live({}), 0)).length).toBeLessThan(300))
