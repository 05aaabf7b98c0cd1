// What takes other objects along when it goes is deleted after them, whatever its wave.
import { afterEach, expect, test } from 'bun:test'
import { waved } from '../support/hook-fixtures.ts'
import { crd, namespace, setup, stopAll, thing, writes } from '../support/reconcile-fixtures.ts'
import { configMap } from '../support/reconcile-kit.ts'

afterEach(stopAll)

test('OR2, OR5 a Namespace and a CRD go after objects of earlier waves, of the service and of its own namespace', async () => {
  const { cluster, kit, run, settle } = setup()
  const inside = waved(configMap('early', { a: '1' }, 'shop'), -1)
  kit.desire([waved(namespace('shop'), 2), waved(crd, -1), thing('t'), inside, configMap('late', { a: '1' }, 'shop')])
  await run()
  await settle()
  writes(cluster)
  kit.remove('prune')
  await settle()
  const deletes = writes(cluster).filter((line) => line.startsWith('delete'))
  expect(deletes).toEqual([
    'delete Thing t',
    'delete ConfigMap late',
    'delete ConfigMap early',
    'delete CustomResourceDefinition things.example.com',
    'delete Namespace shop',
  ])
})
