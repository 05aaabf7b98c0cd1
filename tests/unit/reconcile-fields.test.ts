// Fields that are left to others and fields that are taken from them, through the whole loop on the fake API server.
import { afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import { denied, setup, stopAll, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMapRef, SHOP } from '../support/reconcile-kit.ts'

afterEach(stopAll)

const WEB: ObjectRef = { group: 'apps', kind: 'Deployment', namespace: 'default', name: 'web' }
const WEB_KEY = 'apps/Deployment/default/web'
const HPA: ObjectRef = { group: 'autoscaling', kind: 'HorizontalPodAutoscaler', namespace: 'default', name: 'auto' }
const web = (replicas: number, image = 'web:1'): K8sObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'default' },
  spec: {
    replicas,
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'web', image }] } },
  },
})
type Site = Awaited<ReturnType<typeof start>>
async function start(objects: K8sObject[], options = {}, kitOptions = {}) {
  const site = setup(kitOptions)
  site.kit.desire(objects, options)
  await site.run()
  return site
}
const specOf = (object: K8sObject | null) =>
  object?.['spec'] as { replicas?: number; template: { spec: { containers: Array<{ image: string }> } } }
const scale = ({ cluster }: Site, manager: string, replicas: number) =>
  cluster.editAs(manager, WEB, (object) => Object.assign(specOf(object), { replicas }), { subresource: 'scale' })
const addAutoscaler = ({ cluster }: Site, target = 'web') =>
  cluster.editAs('somebody', HPA, (object) =>
    Object.assign(object, { spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: target } } }),
  )
const message = ({ kit }: Site) => kit.object(WEB_KEY)?.message ?? ''

describe('DR10 autoscalers', () => {
  test('an autoscaler changes replicas a hundred times: no write, no drift, and its name is said', async () => {
    const site = await start([web(2)])
    addAutoscaler(site)
    await site.settle()
    writes(site.cluster)
    for (let replicas = 3; replicas < 103; replicas += 1) {
      scale(site, 'kube-controller-manager', replicas)
      await site.settle()
    }
    expect(writes(site.cluster)).toEqual([])
    expect(specOf(site.cluster.object(WEB)).replicas).toBe(102)
    expect([site.kit.object(WEB_KEY)?.sync, site.kit.drift(WEB_KEY)]).toEqual(['Synced', null])
    expect(message(site)).toContain('replicas are ignored, managed by HorizontalPodAutoscaler auto')
  })

  test('a new revision leaves them out, a removed object begins with them, an end of the autoscaler brings them back', async () => {
    const site = await start([web(2)])
    addAutoscaler(site)
    await site.settle()
    scale(site, 'kube-controller-manager', 7)
    await site.settle()
    site.kit.desire([web(3, 'web:2')])
    await site.settle()
    expect([specOf(site.cluster.object(WEB)).replicas, specOf(site.cluster.object(WEB)).template.spec.containers[0]?.image]).toEqual([
      7,
      'web:2',
    ])
    site.cluster.deleteAs('somebody', WEB)
    await site.settle()
    expect(specOf(site.cluster.object(WEB)).replicas).toBe(3)
    scale(site, 'kube-controller-manager', 7)
    await site.settle()
    writes(site.cluster)
    site.cluster.deleteAs('somebody', HPA)
    await site.settle()
    expect([specOf(site.cluster.object(WEB)).replicas, writes(site.cluster)]).toEqual([3, ['apply Deployment web']])
    expect(message(site)).not.toContain('left to')
  })

  test('one that targets another workload yields nothing, and a person is no autoscaler', async () => {
    const site = await start([web(2)])
    addAutoscaler(site, 'other')
    await site.settle()
    scale(site, 'kubectl', 5)
    await site.settle()
    expect(specOf(site.cluster.object(WEB)).replicas).toBe(2)
    expect(site.kit.drift(WEB_KEY)?.manager).toBe('kubectl (scale)')
  })

  test('an autoscaler of the same revision: each object is written once', async () => {
    const scaler = {
      apiVersion: 'autoscaling/v2',
      kind: HPA.kind,
      metadata: { name: HPA.name, namespace: 'default' },
      spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }, minReplicas: 3, maxReplicas: 9 },
    } as K8sObject
    const site = await start([web(2), scaler])
    scale(site, 'kube-controller-manager', 3)
    await site.settle()
    expect(writes(site.cluster)).toEqual(['apply Deployment web', 'apply HorizontalPodAutoscaler auto'])
    expect([site.kit.service()?.sync, specOf(site.cluster.object(WEB)).replicas]).toEqual(['Synced', 3])
    site.kit.desire([web(2)], { sync: { pruneWhen: 'applied' } })
    await site.settle()
    expect([site.cluster.object(HPA), specOf(site.cluster.object(WEB)).replicas]).toEqual([null, 2])
  })

  test('of two autoscalers of one workload each is named, and one that goes leaves the other', async () => {
    const site = await start([web(2)])
    addAutoscaler(site)
    const second = { ...HPA, name: 'zwei' }
    site.cluster.editAs('somebody', second, (object) => Object.assign(object, site.cluster.object(HPA), { metadata: object.metadata }))
    await site.settle()
    scale(site, 'kube-controller-manager', 7)
    await site.settle()
    expect(message(site)).toContain('replicas are ignored, managed by HorizontalPodAutoscaler auto, HorizontalPodAutoscaler zwei')
    site.cluster.deleteAs('somebody', HPA)
    await site.settle()
    expect(message(site)).toContain('replicas are ignored, managed by HorizontalPodAutoscaler zwei')
    expect(specOf(site.cluster.object(WEB)).replicas).toBe(7)
  })

  test('resources of containers are Git’s, also of one that a VerticalPodAutoscaler targets: it changes Pods', async () => {
    const site = setup()
    const names = { kind: 'VerticalPodAutoscaler', plural: 'verticalpodautoscalers', singular: 'v', listKind: 'VList' }
    const versions = [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }]
    const definition = { group: 'autoscaling.k8s.io', kind: 'CustomResourceDefinition' }
    site.cluster.editAs(
      'somebody',
      { group: 'apiextensions.k8s.io', kind: definition.kind, namespace: '', name: `${names.plural}.autoscaling.k8s.io` },
      (object) => Object.assign(object, { spec: { group: definition.group, names, scope: 'Namespaced', versions } }),
    )
    await site.settle()
    site.cluster.editAs('somebody', { group: definition.group, kind: names.kind, namespace: 'default', name: 'v' }, (object) =>
      Object.assign(object, { spec: { targetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' } } }),
    )
    const object = web(2)
    Object.assign(specOf(object).template.spec.containers[0] ?? {}, { resources: { requests: { cpu: '1' } } })
    site.kit.desire([object])
    await site.run()
    site.cluster.editAs('kubectl-edit', WEB, (live) =>
      Object.assign(specOf(live).template.spec.containers[0] ?? {}, { resources: { requests: { cpu: '2' } } }),
    )
    await site.settle()
    const [container] = specOf(site.cluster.object(WEB)).template.spec.containers
    expect(container).toMatchObject({ name: 'web', image: 'web:1' })
    expect((container as { resources?: unknown } | undefined)?.resources).toEqual({ requests: { cpu: '1' } })
  })

  test('at adoption an entry of the scale subresource stands for an autoscaler that is not known yet', async () => {
    const site = setup()
    site.cluster.applyAs('somebody', web(2))
    scale(site, 'kube-controller-manager', 9)
    addAutoscaler(site)
    const isHeld = { now: true }
    site.cluster.fail(({ verb, kind }) => (isHeld.now && verb === 'watch' && kind === 'HorizontalPodAutoscaler' ? denied : null))
    site.kit.desire([web(2, 'web:2')])
    await site.run()
    expect(specOf(site.cluster.object(WEB))).toMatchObject({ replicas: 9, template: { spec: { containers: [{ image: 'web:2' }] } } })
    isHeld.now = false
    await site.clock.advance(60_000)
    expect(specOf(site.cluster.object(WEB)).replicas).toBe(9)
  })

  test('autoscalers are watched only while a manifest names replicas, by one stream', async () => {
    const site = await start([configMap('a')])
    const watched = () => site.cluster.requests.filter(({ verb, kind }) => verb === 'watch' && kind === HPA.kind).length
    expect(watched()).toBe(0)
    site.kit.desire([configMap('a'), web(2), { ...web(1), metadata: { name: 'two', namespace: 'default' } }])
    await site.settle()
    expect(watched()).toBe(1)
  })

  test('a restart writes nothing, and an autoscaler that acted meanwhile costs at most one apply', async () => {
    const statePath = join(mkdtempSync(join(tmpdir(), 'fields-')), 'state.db')
    const site = await start([web(2)], {}, { statePath })
    addAutoscaler(site)
    await site.settle()
    scale(site, 'kube-controller-manager', 7)
    await site.settle()
    await site.kit.stop()
    writes(site.cluster)
    await site.run()
    expect(writes(site.cluster)).toEqual([])
    await site.kit.stop()
    scale(site, 'kube-controller-manager', 9)
    await site.run()
    expect([writes(site.cluster), specOf(site.cluster.object(WEB)).replicas]).toEqual([[], 9])
  })
})

describe('DR9 rules', () => {
  const ignore = [{ kind: 'ConfigMap', name: 'a', jsonPointers: ['/data/tuned'] }]
  const data = ({ cluster }: Site) => cluster.object(configMapRef('a'))?.['data']
  const tune = ({ cluster }: Site, tuned: string | null) => cluster.patchAs('tuner', configMapRef('a'), { data: { tuned } })

  test('sent at first, then left to who takes it, also when they take it away; other fields are put back', async () => {
    const site = await start([configMap('a', { tuned: '1', b: '1' })], { ignore })
    expect(data(site)).toEqual({ tuned: '1', b: '1' })
    writes(site.cluster)
    for (const tuned of ['2', '3', null, '4']) {
      tune(site, tuned)
      await site.settle()
    }
    expect([data(site), writes(site.cluster), site.kit.drift(configMapKey('a'))]).toEqual([{ tuned: '4', b: '1' }, [], null])
    site.cluster.patchAs('tuner', configMapRef('a'), { data: { b: '2' } })
    await site.settle()
    expect(data(site)).toEqual({ tuned: '4', b: '1' })
    site.kit.desire([configMap('a', { tuned: '1', b: '1' })])
    await site.settle()
    expect(data(site)).toEqual({ tuned: '1', b: '1' })
  })

  test('a rule ends a reported drift of what it names, without putting anything back', async () => {
    const objects = [configMap('a', { tuned: '1', b: '1' })]
    const site = await start(objects, { sync: { drift: 'report' } })
    tune(site, '2')
    await site.settle()
    expect(site.kit.object(configMapKey('a'))?.reason).toBe('Drifted')
    site.kit.desire(objects, { sync: { drift: 'report' }, ignore })
    await site.settle()
    expect([data(site), site.kit.object(configMapKey('a'))?.sync]).toEqual([{ tuned: '2', b: '1' }, 'Synced'])
  })

  test('what a rule does not name stays a reported drift, and is not put back', async () => {
    const objects = [configMap('a', { tuned: '1', b: '1' })]
    const site = await start(objects, { sync: { drift: 'report' } })
    site.cluster.patchAs('tuner', configMapRef('a'), { data: { tuned: '2', b: '2' } })
    await site.settle()
    site.kit.desire(objects, { sync: { drift: 'report' }, ignore })
    await site.settle()
    expect([data(site), site.kit.object(configMapKey('a'))?.reason]).toEqual([{ tuned: '2', b: '2' }, 'Drifted'])
  })

  test('DR4 a manager that takes a field and drops it for ever is a rival like any other', async () => {
    const site = await start([configMap('a', { tuned: '1', b: '1' })], { ignore: [{ kind: 'ConfigMap', managers: ['tuner'] }] })
    writes(site.cluster)
    for (let round = 0; round < 20; round += 1) {
      tune(site, String(round))
      await site.settle()
      tune(site, null)
      await site.settle()
    }
    expect(writes(site.cluster)).toHaveLength(5)
    expect(site.kit.object(configMapKey('a'))?.reason).toBe('Contested')
  })

  test('by annotation of the manifest', async () => {
    const object = configMap('a', { tuned: '1' })
    const site = await start([{ ...object, metadata: { ...object.metadata, annotations: { 'skerry.dev/ignore': '/data/tuned' } } }])
    tune(site, '2')
    await site.settle()
    expect([data(site), site.kit.drift(configMapKey('a'))]).toEqual([{ tuned: '2' }, null])
  })

  test('what another one applies too is given up by one write', async () => {
    const site = await start([configMap('a', { tuned: '1', b: '1' })], { ignore })
    site.cluster.applyAs('tuner', configMap('a', { tuned: '1' }))
    writes(site.cluster)
    await site.settle()
    expect(writes(site.cluster)).toEqual(['apply ConfigMap a'])
    site.cluster.applyAs('tuner', configMap('a', { tuned: '2' }))
    await site.settle()
    expect([data(site), writes(site.cluster)]).toEqual([{ tuned: '2', b: '1' }, []])
  })

  test('RC8 a shaped document that was refused is sent again when its time has come, and then nothing is wrong any more', async () => {
    const site = await start([configMap('a', { tuned: '1', b: '1' })], { ignore })
    tune(site, '2')
    await site.settle()
    site.cluster.fail(({ verb, ref }) => (verb === 'apply' && ref?.name === 'a' ? denied : null))
    site.kit.desire([configMap('a', { tuned: '1', b: '2' })], { ignore })
    await site.settle()
    writes(site.cluster)
    site.kit.reconciler.revisionsChanged([SHOP])
    await site.settle()
    expect([writes(site.cluster), site.kit.object(configMapKey('a'))?.reason]).toEqual([[], 'Forbidden'])
    site.cluster.fail(() => null)
    await site.clock.advance(5_000)
    expect([data(site), site.kit.object(configMapKey('a'))?.sync]).toEqual([{ tuned: '2', b: '2' }, 'Synced'])
  })

  test('PR6 what is left to others keeps no prune waiting', async () => {
    const site = await start([configMap('a', { tuned: '1' }), configMap('z')], { ignore })
    tune(site, '2')
    await site.settle()
    site.kit.desire([configMap('a', { tuned: '1' })], { ignore })
    await site.settle()
    expect([site.cluster.object(configMapRef('z')), site.kit.service()?.sync]).toEqual([null, 'Synced'])
  })
})

describe('TK1 taking over', () => {
  const made =
    (manager: string, data: Record<string, string>) =>
    ({ cluster }: Site) =>
      cluster.editAs(manager, configMapRef('a'), (object) => Object.assign(object, { data }))

  test('at adoption: one patch before the apply, and what Git does not name goes', async () => {
    const site = setup()
    made('helm', { a: '1', gone: '1' })(site as Site)
    site.kit.desire([configMap('a', { a: '1' })])
    await site.run()
    expect(writes(site.cluster)).toEqual(['patch ConfigMap a', 'apply ConfigMap a'])
    expect(site.cluster.object(configMapRef('a'))?.['data']).toEqual({ a: '1' })
    expect(site.cluster.object(configMapRef('a'))?.metadata.managedFields?.map(({ manager }) => manager)).toEqual(['skerry'])
  })

  test('nothing is asked that is not needed: an object of a stranger is applied at once', async () => {
    const site = setup()
    made('stranger', { a: '1', theirs: '1' })(site as Site)
    site.kit.desire([configMap('a', { a: '1' })])
    await site.run()
    expect(writes(site.cluster)).toEqual(['apply ConfigMap a'])
  })

  test('later: kubectl apply is undone whole, within the patience for any rival', async () => {
    const site = await start([configMap('a', { a: '1' })])
    for (let round = 0; round < 20; round += 1) {
      site.cluster.patchAs('kubectl-client-side-apply', configMapRef('a'), { data: { more: String(round) } })
      await site.settle()
    }
    expect(site.kit.object(configMapKey('a'))?.reason).toBe('Contested')
    expect(writes(site.cluster).filter((write) => write === 'patch ConfigMap a')).toHaveLength(5)
  })

  test.each([
    ['without force', { force: false }],
    ['where drift is only reported', { drift: 'report' as const }],
  ])('%s nothing is taken', async (_, sync) => {
    const site = await start([configMap('a', { a: '1' })], { sync })
    site.cluster.patchAs('kubectl-client-side-apply', configMapRef('a'), { data: { more: '1' } })
    writes(site.cluster)
    await site.settle()
    expect([writes(site.cluster), site.kit.object(configMapKey('a'))?.sync]).toEqual([[], 'Synced'])
  })
})
