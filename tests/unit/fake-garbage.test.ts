// The garbage collector of the fake cluster, as the one of Kubernetes does it; defaults are compared by
// cluster-differential.test.ts.
import { expect, test } from 'bun:test'
import type { K8sObject } from '../../shared/kube/object.ts'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const refOf = (name: string) => ({ group: '', kind: 'ConfigMap', namespace: 'default', name })

function world() {
  const fake = createFakeCluster({ clock: createVirtualClock() })
  const make = (name: string, owners: readonly K8sObject[] = [], finalizers: readonly string[] = []): K8sObject => {
    const ownerReferences = owners.map(({ apiVersion, kind, metadata }) => ({
      ...{ apiVersion, kind, name: metadata.name ?? '', uid: metadata.uid ?? '' },
    }))
    const metadata = { name, namespace: 'default', ownerReferences, finalizers: [...finalizers] }
    return fake.applyAs('kubectl', { apiVersion: 'v1', kind: 'ConfigMap', metadata } as K8sObject)
  }
  const names = async () => {
    await Promise.resolve()
    return fake.objects().flatMap(({ kind, metadata }) => (kind === 'ConfigMap' ? [metadata.name] : []))
  }
  return { fake, make, names }
}

test('an object goes with its owner, and so does what that one owns', async () => {
  const { fake, make, names } = world()
  const child = make('child', [make('owner')])
  make('grandchild', [child])
  make('other')
  fake.deleteAs('kubectl', refOf('owner'))
  for (let turn = 0; turn < 3; turn++) await names()
  expect(await names()).toEqual(['other'])
})

test('one of two owners holds it, and the UID counts, not the name', async () => {
  const { fake, make, names } = world()
  const [first, second] = [make('first'), make('second')]
  make('shared', [first, second])
  make('of-an-earlier-one', [{ ...first, metadata: { ...first.metadata, uid: 'gone' } } as K8sObject])
  fake.deleteAs('kubectl', refOf('first'))
  expect(await names()).toEqual(['of-an-earlier-one', 'second', 'shared'])
  fake.deleteAs('kubectl', refOf('second'))
  expect(await names()).toEqual(['of-an-earlier-one'])
})

test('a finalizer holds what is collected', async () => {
  const { fake, make, names } = world()
  make('held', [make('owner')], ['example.com/hold'])
  fake.deleteAs('kubectl', refOf('owner'))
  expect(await names()).toEqual(['held'])
  fake.patchAs('kubectl', refOf('held'), { metadata: { finalizers: null } })
  expect(await names()).toEqual([])
})
