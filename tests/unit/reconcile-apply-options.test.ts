// Annotations that change how one object is applied (Replace, Force, IfNotPresent, Ignore), with a crash at each step.
import { afterEach, describe, expect, test } from 'bun:test'
import type { ApiFailure, Cluster } from '../../agent/cluster/cluster.ts'
import { deletionText } from '../../agent/messages/deletion-messages.ts'
import { warning } from '../../agent/messages/event-messages.ts'
import { objectText } from '../../agent/messages/object-messages.ts'
import { RECREATES_MAX } from '../../agent/reconcile/plan/recreate.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { requests, setup, stopAll, track, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMapRef, createReconcileKit } from '../support/reconcile-kit.ts'
import { SOME, said } from '../support/said.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

afterEach(stopAll)

const OPTIONS = 'skerry.dev/sync-options'
const annotated = (object: K8sObject, annotations: Record<string, string>): K8sObject => ({
  ...object,
  metadata: { ...object.metadata, annotations },
})
/** Its data cannot be changed. */
const frozen = (value: string, options: Record<string, string> = { [OPTIONS]: 'Force' }): K8sObject =>
  annotated({ ...configMap('a', { v: value }), immutable: true } as K8sObject, options)
const A = configMapRef('a')
const KEY = configMapKey('a')
const dataOf = (object: K8sObject | null) => (object?.['data'] as Record<string, string> | undefined)?.['v'] ?? null

describe('AO4 Force', () => {
  const applied = async (options?: Record<string, string>, row = {}) => {
    const parts = setup()
    parts.kit.desire([frozen('1', options)], row)
    await parts.run()
    writes(parts.cluster)
    return parts
  }

  test('an immutable field: refused, deleted, made again; then nothing more', async () => {
    const { cluster, kit, settle } = await applied()
    const before = cluster.object(A)?.metadata.uid
    kit.desire([frozen('2')])
    await settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap a', 'delete ConfigMap a', 'apply ConfigMap a'])
    expect(dataOf(cluster.object(A))).toBe('2')
    expect(cluster.object(A)?.metadata.uid).not.toBe(before)
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
    expect(kit.events().map(({ reason }) => reason)).toContain('Recreated')
    expect(kit.events().find(({ reason }) => reason === 'Failed')?.message).toMatch(
      said(warning('Failed.recreates', { object: SOME, failure: SOME }).message),
    )
    expect(kit.state.facts({ project: 'web', service: 'shop' }, 'recreate/').size).toBe(0)
    await kit.stop()
    kit.start()
    await settle()
    expect(writes(cluster)).toEqual([])
  })

  test('PR12 a keep mark that came a moment before the delete counts, also before its event', async () => {
    const { cluster, kit, settle } = await applied()
    cluster.lagWatches(() => 60_000)
    cluster.patchAs('kubectl', A, { metadata: { annotations: { 'skerry.dev/prune': 'disabled' } } })
    kit.desire([frozen('2')])
    await settle()
    expect(dataOf(cluster.object(A))).toBe('1')
    expect(kit.object(KEY)).toMatchObject({ reason: 'Immutable', message: expect.stringContaining('because it has skerry.dev/prune') })
  })

  test('PR12 an object that changes before each delete is tried three times at once and then with backoff', async () => {
    const { cluster, clock, kit } = await applied()
    let revision = 0
    let isBusy = true
    cluster.fail(({ verb }) => {
      if (isBusy && verb === 'delete') cluster.patchAs('controller', A, { metadata: { annotations: { seen: String(revision++) } } })
      return null
    })
    kit.desire([frozen('2')])
    await clock.advance(60_000)
    expect(writes(cluster).length).toBeLessThanOrEqual(18)
    expect(kit.events().filter(({ reason }) => reason === 'DeletionConflict')).toHaveLength(1)
    isBusy = false
    await clock.advance(600_000)
    expect(dataOf(cluster.object(A))).toBe('2')
    expect(kit.service()).toMatchObject({ reason: 'Synced' })
  })

  test('what finalizers hold is waited for, by its event', async () => {
    const { clock, cluster, kit, settle } = await applied()
    cluster.editAs('somebody', A, (object) => Object.assign(object.metadata, { finalizers: ['example.com/hold'] }))
    kit.desire([frozen('2')])
    await settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap a', 'delete ConfigMap a'])
    expect(kit.object(KEY)).toMatchObject({
      reason: 'Waiting',
      message: expect.stringContaining('held by the finalizers example.com/hold'),
    })
    await clock.advance(3_600_000)
    expect(writes(cluster)).toEqual([])
    cluster.editAs('somebody', A, (object) => Object.assign(object.metadata, { finalizers: [] }))
    await settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap a'])
    expect(dataOf(cluster.object(A))).toBe('2')
  })

  test.each([
    ['AO4 without the option', {}, {}, objectText('Immutable', { failure: SOME })],
    ['AO5 a protected service', { [OPTIONS]: 'Force' }, { protect: true }, deletionText('not_of_protected')],
    [
      'AO5 a keep mark',
      { [OPTIONS]: 'Force', 'skerry.dev/prune': 'disabled' },
      {},
      deletionText('not_marked', { mark: `skerry.dev/prune${SOME}` }),
    ],
  ])('%s: nothing is deleted, and why is said', async (_, options, row, message) => {
    const { clock, cluster, kit, settle } = await applied(options, row)
    kit.desire([frozen('2', options)], row)
    await settle()
    await clock.advance(3_600_000)
    expect(writes(cluster)).toEqual(['apply ConfigMap a'])
    expect(dataOf(cluster.object(A))).toBe('1')
    expect(kit.object(KEY)).toMatchObject({ reason: 'Immutable', message: expect.stringMatching(said(message)) })
  })

  test('AO5 a new one that is refused: the old one comes back, and no object goes again for this document, also after a restart', async () => {
    const { cluster, kit, settle } = await applied()
    const bad = { ...frozen('2'), data: { 'bad key!': '2' } } as K8sObject
    // Like a real server, the fake checks immutability after validity, so the object is gone only after a valid apply.
    let applies = 0
    cluster.fail(({ verb, ref }) => {
      if (verb !== 'apply' || ref?.name !== 'a') return null
      applies += 1
      const kind = applies === 1 ? 'immutable' : applies === 2 ? 'invalid' : null
      return kind === null ? null : ({ kind, status: 422, reason: 'Invalid', message: `${kind}!` } as ApiFailure)
    })
    kit.desire([bad])
    await settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap a', 'delete ConfigMap a', 'apply ConfigMap a', 'apply ConfigMap a'])
    expect(dataOf(cluster.object(A))).toBe('1')
    expect(kit.object(KEY)).toMatchObject({ reason: 'Invalid', message: expect.stringContaining('invalid!') })
    applies = 0
    await kit.stop()
    kit.start()
    await settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap a'])
    expect(kit.object(KEY)).toMatchObject({
      reason: 'Immutable',
      message: expect.stringContaining(deletionText('refused_again', { failure: 'invalid!' })),
    })
  })

  test('AO5 somebody who makes it first each time is not outrun for ever', async () => {
    const { clock, cluster, kit, settle } = await applied()
    cluster.fail(({ verb, ref }) => {
      if (verb === 'apply' && ref?.name === 'a' && cluster.object(A) === null) {
        cluster.editAs('rival', A, (object) => Object.assign(object, frozen('rival')))
        cluster.editAs('rival', A, (object) => Object.assign(object.metadata, { labels: { 'skerry.dev/service': 'web.shop' } }))
      }
      return null
    })
    kit.desire([frozen('2')])
    await settle()
    await clock.advance(3_600_000)
    const deletes = writes(cluster).filter((write) => write.startsWith('delete'))
    expect(deletes.length).toBeGreaterThan(0)
    expect(deletes.length).toBeLessThanOrEqual(RECREATES_MAX)
    expect(dataOf(cluster.object(A))).toBe('rival')
    expect(kit.object(KEY)?.sync).toBe('OutOfSync')
  })
})

/** Dies at the nth write: before it arrives, or with its answer on the way back. All requests fail until it revives. */
function mortal(cluster: Cluster) {
  const dead: ApiFailure = { kind: 'unreachable', status: 0, reason: 'dead', message: 'dead' }
  let [left, after, isDead] = [Number.POSITIVE_INFINITY, false, false]
  const deletes: string[] = []
  const guard = async <R>(name: string, call: () => Promise<R>): Promise<R | { kind: 'failed'; failure: ApiFailure }> => {
    if (name === 'skerry-claim' || name === 'skerry-system') return call()
    if (isDead) return { kind: 'failed', failure: dead }
    left -= 1
    if (left > 0) return call()
    isDead = true
    if (after) await call()
    return { kind: 'failed', failure: dead }
  }
  const wrapped: Cluster = {
    info: () => cluster.info(),
    discover: () => cluster.discover(),
    get: (resource, ref) => cluster.get(resource, ref),
    watch: (resource, options) => cluster.watch(resource, options),
    apply: (resource, object, options) => guard(object.metadata.name ?? '', () => cluster.apply(resource, object, options)),
    mergePatch: (resource, ref, body, options) => guard(ref.name, () => cluster.mergePatch(resource, ref, body, options)),
    delete: (resource, ref, uid, options) =>
      guard(ref.name, () => {
        deletes.push(uid)
        return cluster.delete(resource, ref, uid, options)
      }),
  }
  return {
    cluster: wrapped,
    deletes,
    die: (atWrite: number, answered: 'before' | 'after') => {
      left = atWrite
      after = answered === 'after'
    },
    revive: () => {
      left = Number.POSITIVE_INFINITY
      isDead = false
    },
  }
}

describe('AO4 a crash at each step of a recreate', () => {
  const cases = [1, 2, 3].flatMap((step) =>
    (['before', 'after'] as const).flatMap((when) =>
      (['correct', 'report', 'pause'] as const).flatMap((drift) => [true, false].map((held) => [step, when, drift, held] as const)),
    ),
  )
  test.each(cases)('at write %i, %s its arrival; drift is to %s, held by a finalizer: %p', async (step, when, drift, held) => {
    const clock = createVirtualClock()
    const fake = createFakeCluster({ clock })
    const agent = mortal(fake)
    const kit = createReconcileKit({ cluster: agent.cluster, clock })
    track(kit)
    kit.desire([frozen('1'), configMap('bystander')], { sync: { drift } })
    kit.start()
    await clock.advance(50)
    if (held) fake.editAs('somebody', A, (object) => Object.assign(object.metadata, { finalizers: ['example.com/hold'] }))
    await clock.advance(50)
    agent.die(step, when)
    kit.desire([frozen('2'), configMap('bystander')], { sync: { drift } })
    await clock.advance(50)
    await kit.stop()
    if (held && fake.object(A)?.metadata.deletionTimestamp !== undefined)
      fake.editAs('somebody', A, (object) => Object.assign(object.metadata, { finalizers: [] }))
    agent.revive()
    kit.start()
    await clock.advance(50)
    if (held && fake.object(A)?.metadata.deletionTimestamp !== undefined)
      fake.editAs('somebody', A, (object) => Object.assign(object.metadata, { finalizers: [] }))
    await clock.advance(50)
    expect(dataOf(fake.object(A))).toBe('2')
    expect(new Set(agent.deletes).size).toBe(1)
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
    expect(kit.state.facts({ project: 'web', service: 'shop' }, 'recreate/').size).toBe(0)
    expect(kit.state.inventory({ project: 'web', service: 'shop' }).map(({ ref }) => ref.name)).toEqual(['a', 'bystander'])
  })
})

describe('AO3 Replace', () => {
  test('what others added goes with the next apply, and a later change of ours is drift as ever', async () => {
    const { cluster, kit, settle, run } = setup()
    const replaced = (v: string) => annotated(configMap('a', { v }), { [OPTIONS]: 'Replace' })
    kit.desire([replaced('1')])
    await run()
    cluster.editAs('kubectl-edit', A, (object) => Object.assign(object, { data: { ...(object['data'] as object), extra: 'x' } }))
    cluster.editAs('controller', A, (object) => Object.assign(object.metadata, { finalizers: ['example.com/theirs'] }))
    await settle()
    writes(cluster)
    kit.desire([replaced('2')])
    await settle()
    expect(writes(cluster)).toEqual(['patch ConfigMap a', 'apply ConfigMap a'])
    expect(cluster.object(A)?.['data']).toEqual({ v: '2' })
    expect(cluster.object(A)?.metadata.finalizers).toEqual(['example.com/theirs'])
    cluster.editAs('kubectl-edit', A, (object) => Object.assign(object, { data: { v: 'theirs' } }))
    await settle()
    expect(cluster.object(A)?.['data']).toEqual({ v: '2' })
    expect(kit.drift(KEY)).toMatchObject({ action: 'healed', manager: 'kubectl-edit', paths: ['.data.v'] })
  })

  const WEB = { group: 'apps', kind: 'Deployment', namespace: 'default', name: 'web' }
  const web = (replicas: number | undefined, image: string): K8sObject => {
    const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'web', image }] } }
    const spec = { ...(replicas === undefined ? {} : { replicas }), selector: { matchLabels: { app: 'web' } }, template }
    const metadata = { name: 'web', namespace: 'default' }
    return annotated({ apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec } as K8sObject, { [OPTIONS]: 'Replace' })
  }
  test.each([
    ['that Git names', 2],
    ['that Git leaves out', undefined],
  ])('AO3 DR10 replicas %s stay an autoscaler’s', async (_, replicas) => {
    const { cluster, kit, settle, run } = setup()
    const replicasNow = () => (cluster.object(WEB)?.['spec'] as { replicas?: number } | undefined)?.replicas
    kit.desire([web(replicas, 'a')])
    await run()
    cluster.editAs('somebody', { ...WEB, group: 'autoscaling', kind: 'HorizontalPodAutoscaler' }, (hpa) =>
      Object.assign(hpa, { spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' } } }),
    )
    await settle()
    cluster.editAs('kube-controller-manager', WEB, (object) => Object.assign(object['spec'] as object, { replicas: 9 }), {
      subresource: 'scale',
    })
    await settle()
    kit.desire([web(replicas, 'b')])
    await settle()
    expect(replicasNow()).toBe(9)
    expect(kit.service()).toMatchObject({ sync: 'Synced' })
  })

  test('AO3 DR9 what a rule leaves to others stays theirs', async () => {
    const { cluster, kit, settle, run } = setup()
    const tuned = (b: string) => annotated(configMap('a', { tuned: '1', b }), { [OPTIONS]: 'Replace', 'skerry.dev/ignore': '/data/tuned' })
    kit.desire([tuned('1')])
    await run()
    cluster.patchAs('tuner', A, { data: { tuned: '7', extra: 'x' } })
    await settle()
    kit.desire([tuned('2')])
    await settle()
    expect(cluster.object(A)?.['data']).toEqual({ tuned: '7', b: '2' })
  })

  test('a plain object keeps what others added', async () => {
    const { cluster, kit, settle, run } = setup()
    kit.desire([configMap('a', { v: '1' })])
    await run()
    cluster.editAs('somebody', A, (object) => Object.assign(object, { data: { ...(object['data'] as object), extra: 'x' } }))
    kit.desire([configMap('a', { v: '2' })])
    await settle()
    expect(cluster.object(A)?.['data']).toEqual({ v: '2', extra: 'x' })
  })
})

describe('AO6 IfNotPresent and Ignore', () => {
  const once = (v: string) => annotated(configMap('a', { v }), { [OPTIONS]: 'IfNotPresent' })

  test('made when it is absent, never touched after, made again when it is gone, and nothing waits for it', async () => {
    const { cluster, kit, settle, run } = setup()
    kit.desire([once('1'), configMap('b')])
    await run()
    expect(dataOf(cluster.object(A))).toBe('1')
    cluster.editAs('kubectl-edit', A, (object) => Object.assign(object, { data: { v: 'theirs' } }))
    kit.desire([once('2')])
    await settle()
    expect(dataOf(cluster.object(A))).toBe('theirs')
    expect(cluster.object(configMapRef('b'))).toBeNull()
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
    cluster.deleteAs('kubectl', A)
    await settle()
    expect(dataOf(cluster.object(A))).toBe('2')
    kit.desire([])
    kit.remove('prune')
    await settle()
    expect(cluster.object(A)).toBeNull()
  })

  test('somebody else’s is left alone, and stays when the manifest goes', async () => {
    const { cluster, kit, settle, run } = setup()
    cluster.editAs('somebody', A, (object) => Object.assign(object, { data: { v: 'theirs' } }))
    kit.desire([once('1')])
    await run()
    expect(writes(cluster)).toEqual([])
    expect(kit.object(KEY)).toMatchObject({ sync: 'Synced', health: 'Healthy', reason: 'ExistingKept' })
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy', healthyCount: 1 })
    kit.remove('prune')
    await settle()
    expect(dataOf(cluster.object(A))).toBe('theirs')
  })

  test('Ignore: not applied, not owned, said so; another service may have it', async () => {
    const { cluster, kit, settle, run } = setup()
    kit.desire([annotated(configMap('a'), { [OPTIONS]: 'Ignore' })])
    await run()
    expect(writes(cluster)).toEqual([])
    expect(kit.object(KEY)).toMatchObject({ sync: 'Synced', health: 'Healthy', reason: 'Ignored' })
    expect(kit.state.inventory({ project: 'web', service: 'shop' })).toEqual([])
    kit.desire([configMap('a', { v: 'other' })], {}, { project: 'web', service: 'other' })
    await settle()
    expect(dataOf(cluster.object(A))).toBe('other')
  })

  test('before any revision was read the options of what was applied hold', async () => {
    const { cluster, kit, settle, run } = setup()
    kit.desire([once('1')])
    await run()
    cluster.editAs('kubectl-edit', A, (object) => Object.assign(object, { data: { v: 'theirs' } }))
    await kit.stop()
    kit.replica.reads.set('web/shop', { kind: 'incomplete', why: 'a row is missing' })
    writes(cluster)
    kit.start()
    await settle()
    expect(writes(cluster)).toEqual([])
  })

  test('AO1 a word that we do not know is an error of its object alone', async () => {
    const { cluster, kit, run } = setup()
    kit.desire([annotated(configMap('a'), { [OPTIONS]: 'Replcae' }), configMap('b')])
    await run()
    expect(writes(cluster)).toEqual(['apply ConfigMap b'])
    expect(kit.object(KEY)).toMatchObject({ reason: 'Unreadable', message: expect.stringContaining('did you mean Replace?') })
  })
})

describe('RC20 an object that is being deleted', () => {
  test('somebody else’s, held: waited for, made when it is gone, with the finalizers named', async () => {
    const { clock, cluster, kit, run } = setup()
    cluster.editAs('somebody', A, (object) => Object.assign(object, { metadata: { ...object.metadata, finalizers: ['example.com/hold'] } }))
    cluster.deleteAs('somebody', A)
    kit.desire([configMap('a', { v: '1' })])
    await run()
    expect(writes(cluster)).toEqual([])
    expect(kit.object(KEY)).toMatchObject({
      reason: 'Waiting',
      message: expect.stringContaining('held by the finalizers example.com/hold'),
    })
    cluster.editAs('somebody', A, (object) => Object.assign(object.metadata, { finalizers: [] }))
    await clock.advance(400_000)
    expect(dataOf(cluster.object(A))).toBe('1')
  })

  test('one that begins to go while it is applied: the answer is yes, and it is not called applied', async () => {
    const { clock, cluster, kit, settle, run } = setup()
    // Whoever called it applied would now only report that it is gone.
    const sync = { drift: 'report' } as const
    kit.desire([configMap('a', { v: '1' })], { sync })
    await run()
    cluster.editAs('somebody', A, (object) => Object.assign(object.metadata, { finalizers: ['example.com/hold'] }))
    await settle()
    requests(cluster)
    let once = true
    cluster.fail(({ verb, ref }) => {
      if (verb === 'apply' && ref?.name === 'a' && once) {
        once = false
        cluster.deleteAs('somebody', A)
      }
      return null
    })
    kit.desire([configMap('a', { v: '2' })], { sync })
    await settle()
    expect(kit.service()?.applied?.digest).not.toBe(kit.service()?.received?.digest)
    expect(kit.object(KEY)).toMatchObject({ reason: 'Waiting' })
    cluster.editAs('somebody', A, (object) => Object.assign(object.metadata, { finalizers: [] }))
    await clock.advance(50)
    expect(dataOf(cluster.object(A))).toBe('2')
    expect(cluster.object(A)?.metadata.deletionTimestamp).toBeUndefined()
  })
})

test('KA14 with sync.force off a conflict names the other manager and the field, and nothing is changed', async () => {
  const { cluster, kit, run } = setup()
  cluster.applyAs('somebody', { ...configMap('a', { v: 'theirs' }) })
  kit.desire([configMap('a', { v: '1' })], { sync: { force: false } })
  await run()
  expect(dataOf(cluster.object(A))).toBe('theirs')
  expect(kit.object(KEY)).toMatchObject({ reason: 'Conflict', message: expect.stringContaining('conflict with "somebody": .data.v') })
})
