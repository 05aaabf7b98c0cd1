import { afterEach, describe, expect, test } from 'bun:test'
import { workloadImages } from '../../agent/reconcile/snapshot/watch/workload-images.ts'
import { type K8sObject, refKey, refOf } from '../../shared/kube/object.ts'
import { objectStatusSchema } from '../../shared/model/status.ts'
import { requests, setup, stopAll } from '../support/reconcile-fixtures.ts'

afterEach(stopAll)

const podSpec = (...images: unknown[]) => ({ containers: images.map((image) => ({ name: 'c', image })) })
const template = (spec: unknown) => ({ template: { spec } })
const object = (apiVersion: string, kind: string, spec: unknown) => ({ apiVersion, kind, metadata: { name: 'x' }, spec }) as K8sObject
const deployment = (spec: unknown) => object('apps/v1', 'Deployment', template(spec))

describe('RC18 the images of', () => {
  test.each([
    ['a Deployment', 'apps/v1', 'Deployment', template(podSpec('a:1')), ['a:1']],
    ['a StatefulSet', 'apps/v1', 'StatefulSet', template(podSpec('a:1')), ['a:1']],
    ['a DaemonSet', 'apps/v1', 'DaemonSet', template(podSpec('a:1')), ['a:1']],
    ['a ReplicaSet', 'apps/v1', 'ReplicaSet', template(podSpec('a:1')), ['a:1']],
    ['a Job', 'batch/v1', 'Job', template(podSpec('a:1')), ['a:1']],
    ['a CronJob', 'batch/v1', 'CronJob', { jobTemplate: { spec: template(podSpec('a:1')) } }, ['a:1']],
    ['a Pod', 'v1', 'Pod', podSpec('a:1'), ['a:1']],
    ['a ConfigMap', 'v1', 'ConfigMap', template(podSpec('a:1')), null],
    ['a Deployment of somebody else', 'example.com/v1', 'Deployment', template(podSpec('a:1')), null],
    ['a ReplicationController', 'v1', 'ReplicationController', template(podSpec('a:1')), null],
  ] as const)('%s', (_, apiVersion, kind, spec, expected) => {
    expect(workloadImages(object(apiVersion, kind, spec))).toEqual(expected as string[] | null)
  })

  const longest = 'i'.repeat(512)
  const twenty = Array.from({ length: 20 }, (_, n) => `i${String(n).padStart(2, '0')}`)
  test.each([
    ['several containers: sorted, each once', podSpec('b:1', 'a:1', 'b:1'), ['a:1', 'b:1']],
    [
      'init and ephemeral containers: the former only',
      { ...podSpec('b'), initContainers: [{ image: 'a' }], ephemeralContainers: [{ image: 'z' }] },
      ['a', 'b'],
    ],
    ['a container without, and one that makes no sense', podSpec(undefined, '', 7, null, 'a'), ['a']],
    ['no container', podSpec(), []],
    ['no template', undefined, []],
    ['a template that makes no sense', { containers: 'a:1' }, []],
    ['the longest reference', podSpec(longest), [longest]],
    ['one character more', podSpec(`${longest}i`), []],
    ['twenty', podSpec(...twenty), twenty],
    ['one more: the first twenty', podSpec('i20', ...twenty), twenty],
  ] as const)('%s', (_, spec, expected) => {
    const images = workloadImages(deployment(spec))
    expect(images).toEqual([...expected])
    const status = { sync: 'Synced', health: 'Healthy', reason: 'Healthy', message: '', sinceMs: 0, images }
    expect(objectStatusSchema.parse(status).images).toEqual([...expected])
  })

  test('two workloads that run the same: one list', () => {
    expect(workloadImages(deployment(podSpec('a:1', 'b:1')))).toBe(workloadImages(deployment(podSpec('b:1', 'a:1'))))
  })
})

test('RC18 what another manager adds to the template is said, and is no drift', async () => {
  const { cluster, kit, run, settle } = setup()
  const selector = { matchLabels: { app: 'web' } }
  const spec = { selector, template: { metadata: { labels: selector.matchLabels }, spec: podSpec('web:1') } }
  const web = { ...object('apps/v1', 'Deployment', spec), metadata: { name: 'web', namespace: 'default' } } as K8sObject
  kit.desire([web])
  await run()
  expect(kit.object(refKey(refOf(web)))?.images).toEqual(['web:1'])
  requests(cluster)
  cluster.editAs('injector', refOf(web), (live) => {
    const { template } = live['spec'] as { template: { spec: Record<string, unknown> } }
    template.spec['initContainers'] = [{ name: 'i', image: 'proxy:3' }]
  })
  await settle()
  expect(kit.object(refKey(refOf(web)))).toMatchObject({ sync: 'Synced', images: ['proxy:3', 'web:1'] })
  expect(requests(cluster)).toEqual([])
})
