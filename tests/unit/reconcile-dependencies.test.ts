// dependsOn in the agent: who waits for whom, what wakes, what is healed meanwhile, and in which order services go.
import { afterEach, describe, expect, test } from 'bun:test'
import { deletionText } from '../../agent/messages/deletion-messages.ts'
import { serviceText } from '../../agent/messages/service-messages.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { waved } from '../support/hook-fixtures.ts'
import { setup, stopAll, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMapRef } from '../support/reconcile-kit.ts'
import { SOME, said } from '../support/said.ts'
import { tempDir } from '../support/temp-dir.ts'

afterEach(stopAll)

const service = (name: string): ServiceId => ({ project: 'web', service: name })
const [APP, BASE, MIDDLE] = [service('app'), service('base'), service('middle')]
const on = (...names: string[]) => ({ dependsOn: names.map((name) => ({ name })) })
/** Healthy when its status says so. */
const deployment = (name: string, replicas = 1): K8sObject =>
  ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'default' },
    spec: { replicas, selector: { matchLabels: { app: name } }, template: { metadata: { labels: { app: name } }, spec: {} } },
  }) as K8sObject
const deploymentRef = (name: string) => ({ group: 'apps', kind: 'Deployment', namespace: 'default', name })
const status = (replicas = 1, observedGeneration = 1) => ({
  observedGeneration,
  replicas,
  updatedReplicas: replicas,
  readyReplicas: replicas,
  availableReplicas: replicas,
})
type Setup = ReturnType<typeof setup>

/** The order of a removal; the row keeps what it depended on, as the server leaves it. */
function order({ kit }: Setup, id: ServiceId, dependsOn: { name: string }[], atMs = 1): void {
  kit.remove('prune', id, atMs)
  const read = kit.replica.reads.get(serviceKey(id))
  if (read?.kind === 'complete') read.revision.row.dependsOn = dependsOn
}

describe('a service that depends on another one', () => {
  test('DE1 waits until the other is Healthy at the revision of its row, and begins within the same millisecond', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([configMap('app')], on('base'), APP)
    kit.desire([deployment('base')], {}, BASE)
    await run()
    expect(writes(cluster)).toEqual(['apply Deployment base'])
    expect(kit.object(configMapKey('app'), APP)).toMatchObject({ sync: 'OutOfSync', health: 'Missing', reason: 'BlockedBy' })
    expect(kit.service(APP)).toMatchObject({ sync: 'OutOfSync', reason: 'BlockedBy' })
    expect(kit.service(APP)?.message).toMatch(
      said(serviceText('BlockedBy.unready', { service: 'service web/base', now: `Synced, Progressing${SOME}`, more: 0 })),
    )
    expect(kit.service(APP)?.applied).toBeUndefined()
    const atMs = clock.nowMs()
    cluster.setStatus(deploymentRef('base'), status())
    await clock.settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap app'])
    expect(kit.service(APP)).toMatchObject({ sync: 'Synced', health: 'Healthy', reason: 'Synced', message: '' })
    expect(clock.nowMs()).toBe(atMs)
  })

  test('DE1 of one commit to both, the other goes first, also where its rows are read after more services than have their turns at once', async () => {
    const { cluster, kit, run, clock } = setup()
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'z']
    const desire = (data: Record<string, string>) => {
      for (const name of names) kit.desire([configMap(name, data)], name < 'c' ? on('z') : {}, service(name))
    }
    desire({ v: '1' })
    await run()
    writes(cluster)
    desire({ v: '2' })
    await clock.settle()
    const order = writes(cluster)
    expect(order).toHaveLength(names.length)
    expect(order.indexOf('apply ConfigMap z')).toBeLessThan(order.indexOf('apply ConfigMap a'))
    expect(kit.service(service('a'))).toMatchObject({ sync: 'Synced', reason: 'Synced' })
  })

  test('DE1 a chain begins link by link, each at once', async () => {
    const { cluster, kit, run } = setup()
    kit.desire([configMap('app')], on('middle'), APP)
    kit.desire([configMap('middle')], on('base'), MIDDLE)
    kit.desire([configMap('base')], {}, BASE)
    await run()
    expect(writes(cluster)).toEqual(['apply ConfigMap base', 'apply ConfigMap middle', 'apply ConfigMap app'])
  })

  test('DE1 what is Degraded now lets nobody begin, however well it was at that revision', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([deployment('base')], {}, BASE)
    await run()
    cluster.setStatus(deploymentRef('base'), status())
    await clock.settle()
    expect(kit.service(BASE)?.healthy).toBeDefined()
    const failed = [{ type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded', message: 'too long' }]
    cluster.setStatus(deploymentRef('base'), { ...status(), availableReplicas: 0, readyReplicas: 0, conditions: failed })
    await clock.settle()
    expect(kit.service(BASE)?.health).toBe('Degraded')
    writes(cluster)
    kit.desire([configMap('app')], on('base'), APP)
    await clock.settle()
    expect(writes(cluster)).toEqual([])
    expect(kit.service(APP)?.message).toContain('(now Synced, Degraded')
    cluster.setStatus(deploymentRef('base'), status())
    await clock.settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap app'])
  })

  test('DE2 one that is not in this cluster blocks, says what to do, and lets go as soon as it has come', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([configMap('app')], { dependsOn: [{ name: 'dns', project: 'net' }, { name: 'base' }] }, APP)
    await run()
    expect(writes(cluster)).toEqual([])
    expect(kit.service(APP)?.message).toBe(serviceText('BlockedBy.absent', { service: 'service net/dns', more: 1 }))
    kit.desire([configMap('base')], {}, BASE)
    await clock.settle()
    kit.desire([configMap('dns')], {}, { project: 'net', service: 'dns' })
    await clock.settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap base', 'apply ConfigMap dns', 'apply ConfigMap app'])
  })

  test('DE2 what is being removed, and what cannot be read, blocks', async () => {
    const { cluster, kit, run } = setup()
    kit.desire([configMap('app')], on('base'), APP)
    kit.desire([configMap('middle')], on('bad'), MIDDLE)
    kit.replica.reads.set('web/bad', { kind: 'incomplete', why: '0 of 1 objects' })
    kit.desire([configMap('base')], {}, BASE)
    kit.remove('prune', BASE)
    await run()
    expect(writes(cluster)).toEqual([])
    expect(kit.service(APP)?.message).toBe(serviceText('BlockedBy.removing', { service: 'service web/base', more: 0 }))
    expect(kit.service(MIDDLE)?.message).toMatch(
      said(serviceText('BlockedBy.unready', { service: 'service web/bad', now: `${SOME}RevisionIncomplete${SOME}`, more: 0 })),
    )
  })

  test('DE2 a circle that reached the agent stands still aloud, with all its members named', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([configMap('app')], on('middle'), APP)
    kit.desire([configMap('middle')], on('base'), MIDDLE)
    kit.desire([configMap('base')], on('app'), BASE)
    await run()
    expect(writes(cluster)).toEqual([])
    expect([APP, MIDDLE, BASE].map((id) => kit.service(id)?.message)).toEqual(
      ['app → middle → base → app', 'middle → base → app → middle', 'base → app → middle → base'].map((circle) =>
        serviceText('BlockedBy.cycle', { cycle: circle.replaceAll(/\w+/g, 'service web/$&') }),
      ),
    )
    kit.desire([configMap('base')], {}, BASE)
    await clock.settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap base', 'apply ConfigMap middle', 'apply ConfigMap app'])
  })

  test('DE3 the last revision stays in force and is healed while the next one waits', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([configMap('app'), configMap('old')], on('base'), APP)
    kit.desire([configMap('base')], {}, BASE)
    await run()
    const before = kit.service(APP)?.applied
    kit.desire([deployment('base')], {}, BASE)
    kit.desire([configMap('app', { a: '2' })], on('base'), APP)
    await clock.settle()
    writes(cluster)
    cluster.editAs('kubectl', configMapRef('app'), (object) => void Object.assign(object, { data: { a: 'x' } }))
    cluster.deleteAs('kubectl', configMapRef('old'))
    await clock.settle()
    // What the next revision drops is in force as well.
    expect(writes(cluster).sort()).toEqual(['apply ConfigMap app', 'apply ConfigMap old'])
    expect(cluster.object(configMapRef('old'))?.['data']).toEqual({ a: '1' })
    expect(cluster.object(configMapRef('app'))?.['data']).toEqual({ a: '1' })
    expect(kit.service(APP)).toMatchObject({ sync: 'OutOfSync', reason: 'BlockedBy', applied: before as object })
  })

  test('DE3 an object that moves to the service that is waited for is let go to it, and both go on', async () => {
    const { cluster, kit, run, clock } = setup()
    const moved = configMap('moved')
    kit.desire([configMap('app'), moved], on('base'), APP)
    kit.desire([configMap('base')], {}, BASE)
    await run()
    const uid = cluster.object(configMapRef('moved'))?.metadata.uid
    writes(cluster)
    kit.desire([configMap('app', { a: '2' })], on('base'), APP)
    kit.desire([configMap('base'), moved], {}, BASE)
    await clock.advance(10_000)
    expect(writes(cluster).filter((line) => line.startsWith('delete'))).toEqual([])
    expect(cluster.object(configMapRef('moved'))?.metadata.uid).toBe(uid as string)
    expect([APP, BASE].map((id) => kit.service(id)?.reason)).toEqual(['Synced', 'Synced'])
  })

  test('DE3 after a restart too what the waiting revision drops is put back', async () => {
    const { cluster, kit, run, clock } = setup({ statePath: `${tempDir()}/state.db` })
    kit.desire([configMap('app'), configMap('old')], on('base'), APP)
    kit.desire([configMap('base')], {}, BASE)
    await run()
    kit.desire([deployment('base')], {}, BASE)
    kit.desire([configMap('app')], on('base'), APP)
    await clock.settle()
    await kit.stop()
    cluster.deleteAs('kubectl', configMapRef('old'))
    writes(cluster)
    kit.start()
    await clock.advance(1_000)
    expect(writes(cluster)).toEqual(['apply ConfigMap old'])
    await kit.stop()
    kit.start()
    await clock.advance(1_000)
    expect(writes(cluster)).toEqual([])
  })

  test('DE3 a revision that only drops objects drops none while it waits', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([configMap('app'), configMap('old')], on('base'), APP)
    kit.desire([configMap('base')], {}, BASE)
    await run()
    writes(cluster)
    kit.desire([deployment('base')], {}, BASE)
    const digest = kit.desire([configMap('app')], on('base'), APP)
    await clock.settle()
    expect(writes(cluster).filter((line) => line.includes(' app') || line.includes(' old'))).toEqual([])
    expect(kit.service(APP)?.reason).toBe('BlockedBy')
    cluster.setStatus(deploymentRef('base'), status())
    await clock.settle()
    expect(writes(cluster)).toContain('delete ConfigMap old')
    expect(kit.service(APP)).toMatchObject({ reason: 'Synced', applied: { digest } })
  })

  test('DE3 what has begun goes to its end, and is corrected, whatever becomes of the other', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([configMap('app')], on('base'), APP)
    kit.desire([configMap('base')], {}, BASE)
    cluster.fail(({ verb, ref }) =>
      verb === 'apply' && ref?.name === 'app' ? { kind: 'server_error', status: 500, reason: '', message: 'later' } : null,
    )
    await run()
    kit.dropRow(BASE)
    await clock.settle()
    cluster.fail(() => null)
    await clock.advance(60_000)
    expect(kit.service(APP)).toMatchObject({ sync: 'Synced', health: 'Healthy' })
    writes(cluster)
    cluster.deleteAs('kubectl', configMapRef('app'))
    await clock.settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap app'])
  })

  test('DE3 after a restart too what has begun goes to its end', async () => {
    const { cluster, kit, run, clock } = setup({ statePath: `${tempDir()}/state.db` })
    kit.desire([configMap('base')], {}, BASE)
    kit.desire([configMap('app'), waved(deployment('first'), -1)], on('base'), APP)
    await run()
    kit.dropRow(BASE)
    await clock.settle()
    await kit.stop()
    await run()
    writes(cluster)
    cluster.setStatus(deploymentRef('first'), status())
    await clock.settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap app'])
    kit.desire([configMap('app', { v: '2' }), waved(deployment('first'), -1)], on('base'), APP)
    await clock.settle()
    expect(writes(cluster)).toEqual([])
    expect(kit.service(APP)?.reason).toBe('BlockedBy')
  })

  test.each([
    ['was applied', null],
    ['got half way', 'half'],
  ] as const)('DE1 RC15 a revision that comes back after another one that %s is not ready before it is there again', async (_, stuck) => {
    const { cluster, kit, run, clock } = setup()
    cluster.fail(({ verb, ref }) =>
      verb === 'apply' && ref?.name === 'half' ? { kind: 'invalid', status: 422, reason: 'Invalid', message: 'no' } : null,
    )
    const first = kit.desire([deployment('base')], {}, BASE)
    kit.desire([configMap('app', { v: '1' })], on('base'), APP)
    await run()
    cluster.setStatus(deploymentRef('base'), status())
    await clock.settle()
    expect(kit.service(BASE)?.healthy?.digest).toBe(first)
    kit.desire([deployment('base', 2), ...(stuck === null ? [] : [configMap(stuck)])], {}, BASE)
    await clock.settle()
    kit.desire([deployment('base')], {}, BASE)
    kit.desire([configMap('app', { v: '2' })], on('base'), APP)
    await clock.settle()
    expect(kit.service(BASE)).toMatchObject({ applied: { digest: first }, health: 'Progressing' })
    expect(kit.service(BASE)?.healthy).toBeUndefined()
    expect(cluster.object(configMapRef('app'))?.['data']).toEqual({ v: '1' })
    cluster.setStatus(deploymentRef('base'), status(1, 3))
    await clock.settle()
    expect(kit.service(BASE)?.healthy?.digest).toBe(first)
    expect(cluster.object(configMapRef('app'))?.['data']).toEqual({ v: '2' })
  })

  test('DE1 DE3 a restart writes nothing where nothing changed, and waits on where something waited', async () => {
    const statePath = `${tempDir()}/state.db`
    const { cluster, kit, run, clock } = setup({ statePath })
    kit.desire([configMap('done')], on('base'), MIDDLE)
    kit.desire([configMap('base')], {}, BASE)
    kit.desire([configMap('app')], on('none'), APP)
    await run()
    const before = [APP, MIDDLE, BASE].map((id) => kit.service(id))
    writes(cluster)
    await kit.stop()
    kit.start()
    await clock.advance(1_000)
    expect(writes(cluster)).toEqual([])
    expect([APP, MIDDLE, BASE].map((id) => kit.service(id))).toEqual(before)
    kit.desire([configMap('none')], {}, service('none'))
    await clock.settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap none', 'apply ConfigMap app'])
    // What was applied before the start needs nobody any more.
    kit.dropRow(BASE)
    await kit.stop()
    kit.start()
    await clock.advance(1_000)
    expect(kit.service(MIDDLE)).toEqual(before[1] ?? null)
  })
})

describe('services that are removed together', () => {
  test('DE4 go in reverse: first the one that depends on the other', async () => {
    const parts = setup()
    const { cluster, kit, run, clock } = parts
    kit.desire([configMap('app')], on('base'), APP)
    kit.desire([configMap('base')], {}, BASE)
    await run()
    writes(cluster)
    cluster.editAs('operator', configMapRef('app'), (object) => void Object.assign(object.metadata, { finalizers: ['example.com/wait'] }))
    await clock.settle()
    order(parts, BASE, [])
    order(parts, APP, [{ name: 'base' }])
    await clock.settle()
    expect(writes(cluster)).toEqual(['delete ConfigMap app'])
    expect(kit.service(BASE)).toMatchObject({
      reason: 'Removing',
      message: deletionText('dependents_first', { first: 'service web/app', count: 1 }),
    })
    const atMs = clock.nowMs()
    cluster.editAs('operator', configMapRef('app'), (object) => void Object.assign(object.metadata, { finalizers: [] }))
    await clock.settle()
    expect(writes(cluster)).toEqual(['delete ConfigMap base'])
    expect([APP, BASE].map((id) => kit.service(id)?.removed)).toEqual([true, true])
    expect(clock.nowMs()).toBe(atMs)
  })

  test('DE4 one that stays keeps nobody from going', async () => {
    const parts = setup()
    const { cluster, kit, run, clock } = parts
    kit.desire([configMap('app')], on('base'), APP)
    kit.desire([configMap('base')], {}, BASE)
    await run()
    writes(cluster)
    order(parts, BASE, [])
    await clock.settle()
    expect(writes(cluster)).toEqual(['delete ConfigMap base'])
    expect(kit.service(APP)).toMatchObject({ sync: 'Synced', health: 'Healthy' })
  })

  test.each([
    ['whose row is gone', ({ kit }: Setup): void => kit.dropRow(APP)],
    ['that stays after all and depends on it no more', ({ kit }: Setup): void => void kit.desire([configMap('other')], {}, APP)],
  ] as const)('DE4 nobody waits for one %s', async (_, becomes) => {
    const parts = setup()
    const { cluster, kit, run, settle } = parts
    const stuck = { ...configMap('app'), metadata: { ...configMap('app').metadata, finalizers: ['example.com/f'] } } as K8sObject
    kit.desire([stuck], on('base'), APP)
    kit.desire([configMap('base')], {}, BASE)
    await run()
    order(parts, APP, [{ name: 'base' }])
    order(parts, BASE, [])
    await settle()
    expect(kit.service(BASE)?.message).toContain(deletionText('dependents_first', { first: 'service web/app', count: 1 }))
    writes(cluster)
    becomes(parts)
    await settle()
    expect(writes(cluster)).toContain('delete ConfigMap base')
  })

  test('DE4 of a circle none waits for another', async () => {
    const parts = setup()
    const { cluster, kit, run, clock } = parts
    for (const id of [APP, BASE]) kit.desire([configMap(id.service)], {}, id)
    await run()
    writes(cluster)
    order(parts, APP, [{ name: 'base' }])
    order(parts, BASE, [{ name: 'app' }])
    await clock.settle()
    expect(writes(cluster).sort()).toEqual(['delete ConfigMap app', 'delete ConfigMap base'])
  })

  test('DE4 after a restart in the middle the order is the same', async () => {
    const parts = setup({ statePath: `${tempDir()}/state.db` })
    const { cluster, kit, run, clock } = parts
    kit.desire([configMap('app')], on('base'), APP)
    kit.desire([configMap('base')], {}, BASE)
    await run()
    cluster.editAs('operator', configMapRef('app'), (object) => void Object.assign(object.metadata, { finalizers: ['example.com/wait'] }))
    order(parts, BASE, [])
    order(parts, APP, [{ name: 'base' }])
    await clock.settle()
    await kit.stop()
    writes(cluster)
    kit.start()
    await clock.advance(1_000)
    expect(writes(cluster)).toEqual([])
    cluster.editAs('operator', configMapRef('app'), (object) => void Object.assign(object.metadata, { finalizers: [] }))
    await clock.settle()
    expect(writes(cluster)).toEqual(['delete ConfigMap base'])
  })
})
