// A Service that is refused because of a port or an address that another has: told from what is wrong with it, waited
// for, and given way to.
import { afterEach, expect, test } from 'bun:test'
import { objectText } from '../../agent/messages/object-messages.ts'
import { isHeldByLeaving } from '../../agent/reconcile/plan/prune/held-by-leaving.ts'
import type { Problem } from '../../agent/reconcile/snapshot/situation.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { setup, stopAll } from '../support/reconcile-fixtures.ts'
import { configMap, configMapRef } from '../support/reconcile-kit.ts'
import { SOME, said } from '../support/said.ts'

afterEach(stopAll)

const port = (value: number) => `spec.ports[0].nodePort: Invalid value: ${value}: provided port is already allocated`
const address = (value: string) =>
  `spec.clusterIPs: Invalid value: ["${value}"]: failed to allocate IP ${value}: provided IP is already allocated`
const refused = (message: string, kind: 'taken' | 'invalid' = 'taken'): Problem => ({
  kind: 'failed',
  failure: { kind, status: 422, reason: 'Invalid', message },
  attempt: 0,
  retryAtMs: 0,
  sent: null,
})
const doc = (spec: object, kind = 'Service') => JSON.stringify({ kind, metadata: { name: 'old' }, spec })

test.each<[string, Problem, string[], boolean]>([
  ['its port', refused(port(30080)), [doc({ ports: [{ port: 80, nodePort: 30080 }] })], true],
  ['its address', refused(address('10.0.0.7')), [doc({ clusterIP: '10.0.0.7' })], true],
  ['one of its addresses', refused(address('fd00::7')), [doc({ clusterIPs: ['10.0.0.7', 'fd00::7'] })], true],
  ['both, of two', refused(`${port(1)}, ${port(2)}`), [doc({ ports: [{ nodePort: 1 }] }), doc({ ports: [{ nodePort: 2 }] })], true],
  ['only one of two', refused(`${port(1)}, ${port(2)}`), [doc({ ports: [{ nodePort: 1 }] })], false],
  ['another port', refused(port(30080)), [doc({ ports: [{ nodePort: 30081 }] })], false],
  ['a port that nobody wrote down', refused(port(30080)), [doc({ ports: [{ port: 80 }] })], false],
  ['no Service', refused(port(30080)), [doc({ ports: [{ nodePort: 30080 }] }, 'Thing')], false],
  ['a Service without a spec', refused(port(30080)), [JSON.stringify({ kind: 'Service', metadata: {} })], false],
  ['nothing', refused(port(30080)), [], false],
  ['other words', refused('it is already allocated'), [doc({ ports: [{ nodePort: 30080 }] })], false],
  ['a refusal for another reason', refused(port(30080), 'invalid'), [doc({ ports: [{ nodePort: 30080 }] })], false],
  ['no refusal', { kind: 'unknown' }, [doc({ ports: [{ nodePort: 30080 }] })], false],
])('PR6 what goes holds %s', (_, problem, leaving, expected) => expect(isHeldByLeaving(problem, leaving)).toBe(expected))

const service = (name: string): K8sObject =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default' },
    spec: { type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }] },
  }) as unknown as K8sObject
const serviceRef = (name: string) => ({ group: '', kind: 'Service', namespace: 'default', name })

/** As the API server does: one Service has the port. */
function withOnePort() {
  const parts = setup()
  const { cluster } = parts
  const apply = cluster.apply.bind(cluster)
  cluster.apply = async (resource, object, options) => {
    const { kind, metadata } = object
    const holder = ['old', 'new'].find((name) => name !== metadata.name && cluster.object(serviceRef(name)) !== null)
    if (kind !== 'Service' || holder === undefined) return apply(resource, object, options)
    return { kind: 'failed', failure: { kind: 'taken', status: 422, reason: 'Invalid', message: port(30080) } }
  }
  return parts
}

test('PR6, RC22 pruneWhen: applied: the one that goes makes way for the one that comes, at once', async () => {
  const { cluster, kit, clock, run } = withOnePort()
  kit.desire([service('old'), configMap('rest')], { sync: { pruneWhen: 'applied' } })
  await run()
  kit.desire([service('new')], { sync: { pruneWhen: 'healthy' } })
  await clock.advance(60_000)
  expect(cluster.object(serviceRef('old'))).not.toBeNull()
  expect(kit.service()).toMatchObject({ reason: 'AlreadyTaken' })
  expect(kit.service()?.message).toMatch(said(objectText('AlreadyTaken', { failure: SOME })))
  kit.desire([service('new')], { sync: { pruneWhen: 'applied' } })
  await clock.advance(100)
  expect(cluster.object(serviceRef('old'))).toBeNull()
  expect(cluster.object(configMapRef('rest'))).toBeNull()
  expect(cluster.object(serviceRef('new'))).not.toBeNull()
  expect(kit.service()).toMatchObject({ reason: 'Synced' })
})

test('PR6 what nobody of ours holds is waited for: nothing is deleted for a Service that cannot come', async () => {
  const { cluster, kit, clock, run } = withOnePort()
  cluster.applyAs('kubectl', service('old'))
  kit.desire([configMap('own'), configMap('rest')])
  await run()
  kit.desire([configMap('own'), service('new')], { sync: { pruneWhen: 'applied' } })
  await clock.advance(60_000)
  expect(cluster.object(configMapRef('rest'))).not.toBeNull()
})

test('RC22 a port of one service of ours is another’s as soon as it is free', async () => {
  const other: ServiceId = { project: 'web', service: 'other' }
  const { cluster, kit, clock, run } = withOnePort()
  kit.desire([configMap('own'), service('old')])
  await run()
  kit.desire([service('new')], {}, other)
  // Long after the first attempts: the next one by time is minutes away.
  await clock.advance(1_800_000)
  kit.desire([configMap('own')])
  await clock.advance(100)
  expect(cluster.object(serviceRef('old'))).toBeNull()
  expect(cluster.object(serviceRef('new'))).not.toBeNull()
})
