// RC25 on an agent and a fake API server with schemas: a null that means something arrives, one that the schema refuses
// does not stop its object, and neither is written again.
import { afterEach, expect, test } from 'bun:test'
import { objectPart } from '../../agent/messages/object-messages.ts'
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import { isClaim, setup, stopAll, writes } from '../support/reconcile-fixtures.ts'

afterEach(stopAll)

const KIND = { group: 'example.com', kind: 'Release' }
const ref = (name: string): ObjectRef => ({ ...KIND, namespace: 'default', name })
const release = (name: string, spec: object): K8sObject =>
  ({ apiVersion: 'example.com/v1', kind: 'Release', metadata: { name, namespace: 'default' }, spec }) as K8sObject
const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'releases.example.com' },
  spec: {
    group: 'example.com',
    names: { kind: 'Release', plural: 'releases' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: {
                  values: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                  chart: { type: 'string' },
                  size: { type: 'integer' },
                },
              },
            },
          },
        },
      },
    ],
  },
} as unknown as K8sObject

async function site() {
  const made = setup()
  made.cluster.applyAs('somebody', definition)
  await made.settle()
  return made
}
const specOf = ({ cluster }: ReturnType<typeof setup>, name: string) => cluster.object(ref(name))?.['spec']
const stateOf = ({ kit }: ReturnType<typeof setup>, name: string) => kit.object(`example.com/Release/default/${name}`)

test('RC25 a null in a custom resource arrives, and nothing is written again: not by a restart, not by a new list', async () => {
  const made = await site()
  const spec = { chart: 'web', values: { nodeSelector: null, list: [null, { a: null }] } }
  made.kit.desire([release('a', spec)])
  await made.run()
  expect([writes(made.cluster), specOf(made, 'a')]).toEqual([['apply Release a'], spec])
  await made.kit.stop()
  made.kit.start()
  made.cluster.cutWatches({ forget: true })
  await made.settle()
  expect([writes(made.cluster), stateOf(made, 'a')?.sync]).toEqual([[], 'Synced'])
})

test('RC25 DR1 a value in the place of a null is drift, and the null comes back', async () => {
  const made = await site()
  made.kit.desire([release('a', { chart: 'web', values: { nodeSelector: null } })])
  await made.run()
  made.cluster.patchAs('editor', ref('a'), { spec: { values: { nodeSelector: 'ssd' } } })
  await made.settle()
  expect(specOf(made, 'a')).toEqual({ chart: 'web', values: { nodeSelector: null } })
  expect(made.kit.drift('example.com/Release/default/a')).toMatchObject({ paths: ['.spec.values.nodeSelector'], manager: 'editor' })
})

test('RC25 where the schema refuses a null the object is applied without it, once, and says so', async () => {
  const made = await site()
  made.kit.desire([release('a', { chart: null, size: 1 })])
  await made.run()
  const applies = () => made.cluster.requests.splice(0).filter((request) => request.verb === 'apply' && !isClaim(request)).length
  expect([applies(), specOf(made, 'a')]).toEqual([2, { size: 1 }])
  expect(stateOf(made, 'a')).toMatchObject({ sync: 'Synced', message: expect.stringContaining(objectPart('nulls_left_out')) })
  expect(made.kit.events().filter(({ reason }) => reason === 'NullRefused')).toHaveLength(1)
  await made.kit.stop()
  made.kit.start()
  await made.settle()
  expect([applies(), made.kit.service()?.sync]).toEqual([0, 'Synced'])
  made.cluster.deleteAs('kubectl', ref('a'))
  await made.settle()
  expect([applies(), specOf(made, 'a')]).toEqual([1, { size: 1 }])
  made.kit.desire([release('a', { chart: null, size: 2 })])
  await made.settle()
  expect([applies(), specOf(made, 'a'), made.kit.service()?.sync]).toEqual([2, { size: 2 }, 'Synced'])
})

test('RC25 KA1 what is refused without its nulls, too, is refused for that reason', async () => {
  const made = await site()
  made.kit.desire([{ ...release('UPPER', { chart: null }) }])
  await made.run()
  expect(stateOf(made, 'UPPER')).toMatchObject({ sync: 'OutOfSync', reason: 'Invalid', message: expect.stringContaining('metadata.name') })
})

test('RC25 an object that an older agent applied without its nulls is applied once', async () => {
  const made = await site()
  made.kit.desire([release('a', { chart: 'web', values: {} })])
  await made.run()
  await made.kit.stop()
  writes(made.cluster)
  made.kit.desire([release('a', { chart: 'web', values: { nodeSelector: null } })])
  made.kit.start()
  await made.settle()
  expect([writes(made.cluster), specOf(made, 'a')]).toEqual([['apply Release a'], { chart: 'web', values: { nodeSelector: null } }])
})
