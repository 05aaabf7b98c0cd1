import { describe, expect, test } from 'bun:test'
import { objectPart } from '../../agent/messages/object-messages.ts'
import { additionsText } from '../../agent/reconcile/snapshot/fields/additions.ts'
import { describeDrift } from '../../agent/reconcile/snapshot/fields/drift.ts'
import { EACH, heldLeaveFacts, type Leave, leaveFacts, leaveOf } from '../../agent/reconcile/snapshot/fields/ignore.ts'
import { leftText } from '../../agent/reconcile/snapshot/fields/left-text.ts'
import { type OtherFields, otherFieldsOf, sameOthers } from '../../agent/reconcile/snapshot/fields/other-fields.ts'
import { ownedHash } from '../../agent/reconcile/snapshot/fields/owned-fields.ts'
import { settleShape, shapeDoc } from '../../agent/reconcile/snapshot/fields/shape.ts'
import { isInForce } from '../../agent/reconcile/snapshot/fields/shaping.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { ignoredPointers, pointerSegments } from '../../shared/kube/ignore-marks.ts'
import type { K8sObject } from '../../shared/kube/object.ts'

type Fields = Record<string, unknown>
const owns = (fields: Fields, manager = 'tuner', subresource = ''): OtherFields => ({
  manager,
  operation: 'Update',
  subresource,
  fields: canonicalJson(fields),
})
const leave = (pointers: string[], managers: string[] = []): Leave => ({ paths: pointers.map(pointerSegments), managers })
const HEAD = { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'n', labels: { a: '1', 'skerry.dev/service': 'p.s' } } }
const doc = (body: Fields) => canonicalJson({ ...HEAD, ...body })
const container = (fields: Fields) => ({ 'f:spec': { 'f:containers': { 'k:{"name":"web"}': fields } } })
const pods = (web: Fields, ...more: Fields[]) => ({ spec: { containers: [{ name: 'web', ...web }, ...more] } })

describe('DR9 what goes out', () => {
  test.each<[string, Fields, Leave, OtherFields[], Fields | null, Fields]>([
    [
      'all of it where nobody else owns anything',
      { spec: { replicas: 3 } },
      leave(['/spec/replicas']),
      [],
      null,
      { spec: { replicas: 3 } },
    ],
    [
      'not what another owns; a map that this empties goes with it',
      { spec: { replicas: 3 }, data: { a: '1' } },
      leave(['/spec/replicas']),
      [owns({ 'f:spec': { 'f:replicas': {} } })],
      null,
      { data: { a: '1' } },
    ],
    [
      'a pointer to nowhere means nothing',
      { data: { a: '1' } },
      leave(['/x/y', '/data/a/b']),
      [owns({ 'f:x': {} })],
      null,
      { data: { a: '1' } },
    ],
    [
      'of a subtree only the leaves that others own',
      { data: { a: '1', b: '1' } },
      leave(['/data']),
      [owns({ 'f:data': { '.': {}, 'f:a': {} } })],
      null,
      { data: { b: '1' } },
    ],
    [
      'what was given up stays out when nobody owns it any more',
      { data: { a: '1', b: '1' } },
      leave(['/data/a']),
      [],
      { data: { b: '1' } },
      { data: { b: '1' } },
    ],
    [
      'without a rule nothing is given up',
      { data: { a: '1', b: '1' } },
      leave([]),
      [owns({ 'f:data': { 'f:a': {} } })],
      { data: { b: '1' } },
      { data: { a: '1', b: '1' } },
    ],
    [
      'an index counts in the manifest, the owner is found by the item key',
      pods({ image: 'web:1' }),
      leave(['/spec/containers/0/image']),
      [owns(container({ 'f:image': {} }))],
      null,
      pods({}),
    ],
    [
      'a name may stand for an index',
      pods({ image: 'web:1' }, { name: 'b', image: 'b:1' }),
      leave(['/spec/containers/web/image']),
      [owns(container({ 'f:image': {} }))],
      null,
      pods({}, { name: 'b', image: 'b:1' }),
    ],
    [
      'the name of an item stays as long as the item is ours',
      pods({ image: 'web:1' }, { name: 'b' }),
      leave(['/spec/containers/0']),
      [owns(container({ 'f:image': {} }))],
      null,
      pods({}, { name: 'b' }),
    ],
    [
      'an item that is all theirs goes whole',
      pods({ image: 'web:1' }, { name: 'b' }),
      leave(['/spec/containers/0']),
      [owns(container({ '.': {}, 'f:name': {}, 'f:image': {} }))],
      null,
      { spec: { containers: [{ name: 'b' }] } },
    ],
    [
      'a pointer into a list of one value means the list',
      { spec: { args: ['a', 'b'], x: 1 } },
      leave(['/spec/args/0']),
      [owns({ 'f:spec': { 'f:args': {} } })],
      null,
      { spec: { x: 1 } },
    ],
    [
      'each item',
      pods({ resources: { limits: { cpu: '1' } }, image: 'i' }),
      { paths: [['spec', 'containers', EACH, 'resources']], managers: [] },
      [owns(container({ 'f:resources': { 'f:limits': { 'f:cpu': {} } } }))],
      null,
      pods({ image: 'i' }),
    ],
    [
      'whatever a named manager owns',
      { data: { a: '1', b: '1' } },
      leave([], ['tuner']),
      [owns({ 'f:data': { 'f:a': {} } })],
      null,
      { data: { b: '1' } },
    ],
    [
      'nothing that another one owns',
      { data: { a: '1', b: '1' } },
      leave([], ['other']),
      [owns({ 'f:data': { 'f:a': {} } })],
      null,
      { data: { a: '1', b: '1' } },
    ],
    [
      'members of sets',
      { spec: { set: ['x', 'y'] } },
      leave(['/spec/set']),
      [owns({ 'f:spec': { 'f:set': { 'v:"x"': {} } } })],
      null,
      { spec: { set: ['y'] } },
    ],
  ])('%s', (_, wanted, rule, others, applied, expected) => {
    const shaped = shapeDoc(doc(wanted), rule, others, applied === null ? null : doc(applied))
    expect(JSON.parse(shaped.doc)).toEqual(JSON.parse(doc(expected)))
    expect(shaped.left.length > 0).toBe(doc(wanted) !== doc(expected))
  })

  test('no rule takes out a name, nor our marks', () => {
    const all = [owns({ 'f:metadata': { 'f:name': {}, 'f:labels': { 'f:a': {}, 'f:skerry.dev/service': {} } } })]
    const shaped = shapeDoc(doc({}), leave(['/metadata', '/kind', '/apiVersion']), all, null)
    expect(JSON.parse(shaped.doc)).toEqual({ ...HEAD, metadata: { name: 'n', labels: { 'skerry.dev/service': 'p.s' } } })
  })

  test('a document without what was given up is in force; one that lacks more is not', () => {
    const rule = leave(['/data/a'])
    expect(isInForce({ sent: doc({ data: { a: '1', b: '1' } }) }, rule, null, doc({ data: { b: '1' } }))).toBe(true)
    expect(isInForce({ sent: doc({ data: { a: '1', b: '1' } }) }, rule, null, doc({ data: { a: '1' } }))).toBe(false)
    expect(isInForce({ sent: doc({ data: { a: '1', b: '1' } }) }, null, null, doc({ data: { b: '1' } }))).toBe(false)
  })
})

describe('DR9 taken by others without a request', () => {
  const ours = { 'f:data': { 'f:a': {}, 'f:b': {} } }
  const object = (data: Fields, own: Fields, theirs: Fields | null): K8sObject =>
    ({
      ...HEAD,
      data,
      metadata: {
        ...HEAD.metadata,
        managedFields: [
          { manager: 'skerry', operation: 'Apply', fieldsV1: own },
          ...(theirs === null ? [] : [{ manager: 'tuner', operation: 'Update', fieldsV1: theirs }]),
        ],
      },
    }) as K8sObject
  const appliedDoc = doc({ data: { a: '1', b: '1' } })
  const entry = { appliedDoc, ownedHash: ownedHash(object({ a: '1', b: '1' }, ours, null)) }
  const settle = (live: K8sObject, rule = leave(['/data/a'])) => settleShape(entry, live, otherFieldsOf(live), rule)

  test('only what the rule allows: noted', () => {
    const live = object({ a: '9', b: '1' }, { 'f:data': { 'f:b': {} } }, { 'f:data': { 'f:a': {} } })
    expect(settle(live)).toBe(doc({ data: { b: '1' } }))
  })
  test.each<[string, K8sObject, string]>([
    ['another field changed besides', object({ a: '9', b: '9' }, { 'f:data': { 'f:b': {} } }, { 'f:data': { 'f:a': {} } }), '/data/a'],
    ['another field was lost besides', object({ a: '9', b: '9' }, { 'f:data': {} }, { 'f:data': { 'f:a': {}, 'f:b': {} } }), '/data/a'],
    ['it is ours still: it is to be given up', object({ a: '1', b: '1' }, ours, { 'f:data': { 'f:a': {} } }), '/data/a'],
    ['no rule', object({ a: '9', b: '1' }, { 'f:data': { 'f:b': {} } }, { 'f:data': { 'f:a': {} } }), '/data/c'],
  ])('%s: not noted', (_, live, pointer) => expect(settle(live, leave([pointer]))).toBeNull())
})

describe('DR9 rules and annotations', () => {
  test.each<[string, Record<string, string>, string[]]>([
    ['ours', { 'skerry.dev/ignore': '/spec/replicas, /metadata/labels/a~1b' }, ['/spec/replicas', '/metadata/labels/a~1b']],
    [
      "Plural's, pointers and paths",
      { 'deployments.plural.sh/ignore-fields': '/spec/replicas,spec.paused, .x' },
      ['/spec/replicas', '/spec/paused', '/x'],
    ],
    ["Argo CD's compare-options mean nothing here", { 'argocd.argoproj.io/compare-options': 'IgnoreExtraneous,ServerSideDiff=true' }, []],
  ])('%s', (_, annotations, expected) => expect(ignoredPointers(annotations)).toEqual(expected))

  test('RFC 6901', () => expect(pointerSegments('/a~1b/~0c//0')).toEqual(['a/b', '~c', '', '0']))

  const web = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace: 'shop' }, spec: {} } as K8sObject
  const ref = { group: 'apps', kind: 'Deployment', namespace: 'shop', name: 'web' }
  test.each<[string, Fields, boolean]>([
    ['kind alone', { kind: 'Deployment' }, true],
    ['all of it', { ...ref }, true],
    ['another kind', { kind: 'StatefulSet' }, false],
    ['another group', { kind: 'Deployment', group: 'example.com' }, false],
    ['the core group is a group', { kind: 'Deployment', group: '' }, false],
    ['another namespace', { kind: 'Deployment', namespace: 'x' }, false],
    ['another name', { kind: 'Deployment', name: 'x' }, false],
  ])('a rule is meant for an object: %s', (_, rule, meant) => {
    const facts = leaveFacts(web, ref, [{ kind: '', ...rule, jsonPointers: ['/spec/x'] }])
    expect(facts?.paths ?? []).toEqual(meant ? [['spec', 'x']] : [])
  })

  test('DR10 only what the manifest names can be yielded, and only to an autoscaler', () => {
    const scaled = leaveFacts({ ...web, spec: { replicas: 2 } }, ref, [])
    expect(leaveFacts(web, ref, [])).toBeNull()
    expect(leaveOf(scaled ?? undefined, [])).toBeNull()
    expect(leaveOf(scaled ?? undefined, ['replicas'])?.paths).toEqual([['spec', 'replicas']])
    expect(heldLeaveFacts(canonicalJson({ ...web, spec: { replicas: 2 } }), ref)).toEqual(scaled)
    expect(heldLeaveFacts(canonicalJson(web), ref)).toBeNull()
  })
})

describe('what is kept of other owners', () => {
  const of = (...managedFields: Fields[]) =>
    otherFieldsOf({ ...HEAD, metadata: { ...HEAD.metadata, managedFields } } as unknown as K8sObject)
  const own = { manager: 'skerry', operation: 'Apply', fieldsV1: { 'f:data': {} } }
  test('nothing for what is ours alone, or has others in its status only', () => {
    expect(of(own)).toBeNull()
    expect(of(own, { manager: 'skerry-marks', operation: 'Update', fieldsV1: { 'f:data': {} } })).toBeNull()
    expect(of(own, { manager: 'c', operation: 'Update', subresource: 'status', fieldsV1: { 'f:status': { 'f:x': {} } } })).toBeNull()
  })
  test('one copy for objects that have the same', () => {
    const theirs = {
      manager: 'c',
      operation: 'Update',
      time: '2026-01-01T00:00:00Z',
      fieldsV1: { 'f:spec': { 'f:a': {} }, 'f:status': {} },
    }
    const first = of(own, theirs)
    expect(first).toEqual([{ manager: 'c', operation: 'Update', subresource: '', fields: '{"f:spec":{"f:a":{}}}' }])
    expect(of(own, { ...theirs, time: '2026-01-02T00:00:00Z' })).toBe(first)
    expect(of(theirs)).toBe(first)
    expect(sameOthers(first ?? undefined, structuredClone(first) ?? undefined)).toBe(true)
    expect(sameOthers(first ?? undefined, undefined)).toBe(false)
  })
})

describe('DR10, DR11 what a status says', () => {
  const hpa = [{ part: 'replicas' as const, name: 'HorizontalPodAutoscaler web' }]
  test('replicas that were given up', () => {
    const wanted = doc({ spec: { replicas: 1, x: 1 } })
    const text = (applied: Fields) => leftText({ wanted, applied: doc({ spec: applied }), autoscalers: hpa, additions: null })
    expect(text({ x: 1 })).toBe(objectPart('fields_of_autoscaler', { part: 'replicas', name: 'HorizontalPodAutoscaler web' }))
    expect([text({ replicas: 1, x: 1 }), text({ replicas: 1, x: 2 })]).toEqual(['', ''])
  })
  test('additions: topmost paths, sorted, counted, without values and without what the cluster adds itself', () => {
    const others = [
      owns({
        'f:data': { 'f:b': {}, 'f:a': {} },
        'f:extra': { 'f:x': {} },
        'f:spec': { 'f:containers': { 'k:{"name":"side"}': { '.': {}, 'f:image': {} } } },
      }),
      owns({ 'f:metadata': { 'f:annotations': { 'f:deployment.kubernetes.io/revision': {} } } }, 'kube-controller-manager'),
      owns({ 'f:spec': { 'f:replicas': {} } }, 'kubectl', 'scale'),
    ]
    const text = additionsText(doc({ data: { a: '1' }, ...pods({}) }), others)
    expect(text).toBe(objectPart('fields_added', { paths: '.data.b (tuner), .extra (tuner), .spec.containers[{"name":"side"}] (tuner)' }))
    const many = owns({ 'f:data': Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`f:k${n}`, {}])) })
    expect(additionsText(doc({}), [many])).toBe(objectPart('fields_added', { paths: '.data (tuner)' }))
    expect(additionsText(doc({ data: { x: '' } }), [many])).toContain(' and 2 more')
    expect(additionsText(doc({}), null)).toBe('')
  })
})

describe('DR1 an empty node: the whole value, or only that it is there', () => {
  const live = (body: Fields, own: Fields, theirs?: Fields) =>
    ({
      ...HEAD,
      ...body,
      metadata: {
        ...HEAD.metadata,
        managedFields: [
          { manager: 'skerry', operation: 'Apply', fieldsV1: own },
          ...(theirs === undefined ? [] : [{ manager: 'operator', operation: 'Update', fieldsV1: theirs }]),
        ],
      },
    }) as K8sObject
  test.each<[string, Fields, Fields, Fields | undefined, boolean]>([
    ['spec: {} that its operator fills in is as it was', { spec: { x: 1 } }, { 'f:spec': {} }, { 'f:spec': { 'f:x': {} } }, true],
    ['spec: {} that is another value without anybody inside is not', { spec: { x: 1 } }, { 'f:spec': {} }, undefined, false],
    ['spec: {} that is somebody else’s now is not', { spec: { x: 1 } }, {}, { 'f:spec': { 'f:x': {} } }, false],
  ])('%s', (_, body, own, theirs, same) => {
    const before = ownedHash(live({ spec: {} }, { 'f:spec': {} }))
    expect(ownedHash(live(body, own, theirs)) === before).toBe(same)
  })

  test('a default that another owns as an empty map is no claim to what is in it', () => {
    const context = { 'f:spec': { 'f:securityContext': {} } }
    const inside = { 'f:spec': { 'f:securityContext': { 'f:runAsUser': {} } } }
    expect(otherFieldsOf(live({ spec: { securityContext: { runAsUser: 1 } } }, inside, context))).toBeNull()
    expect(otherFieldsOf(live({ spec: { securityContext: {} } }, {}, context))).toBeNull()
    expect(otherFieldsOf(live({ spec: { securityContext: { a: 1 } } }, {}, context))).toHaveLength(1)
  })

  test('DR2 what another holds inside is named', () => {
    const body = { spec: { deep: { list: [{ a: 2 }] } } }
    const object = live(body, { 'f:spec': { 'f:deep': {} } }, { 'f:spec': { 'f:deep': { 'f:list': {} } } })
    const applied = { ...HEAD, metadata: { name: 'n' }, spec: { deep: { list: [{ a: 1 }] } } } as K8sObject
    expect(describeDrift(applied, object)).toEqual({ paths: ['.spec.deep.list'], manager: 'operator' })
  })
})
