// Agents of two registrations in one cluster, and a cluster that was removed and joins again: who enforces, and whose
// objects are whose.
import { afterEach, describe, expect, test } from 'bun:test'
import { CLAIM_NAME, CLAIM_NAMESPACE, formerOf } from '../../agent/reconcile/claim/claim.ts'
import { ANSWER_WITHIN_MS, ASK_AGAIN_MS } from '../../agent/reconcile/claim/claim-keeper.ts'
import { TRACKING_ANNOTATION } from '../../shared/kube/marks.ts'
import type { EventStatus } from '../../shared/model/status.ts'
import { FakeCluster } from '../support/fake-cluster.ts'
import { CLUSTER_ID, configMap, configMapRef, createReconcileKit, type KitOptions, type ReconcileKit } from '../support/reconcile-kit.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const CLAIM = configMapRef(CLAIM_NAME, CLAIM_NAMESPACE)
const OTHER_ID = 'c-00000000000000ff'
const STRANGER = { agentId: 'a-2', clusterId: OTHER_ID, seed: 2 }
const ANSWERED_MS = 5_000
const SILENT_MS = ANSWER_WITHIN_MS + 10_000

const decide = (kit: ReconcileKit) => kit.reconciler.order({ kind: 'take_over', by: 'ola', why: 'moved' })
const changes = (cluster: FakeCluster) => cluster.requests.filter(({ verb }) => verb === 'patch' || verb === 'apply').length

const kits: ReconcileKit[] = []
afterEach(async () => {
  for (const kit of kits.splice(0)) await kit.stop()
})

function site() {
  const clock = createVirtualClock(1_700_000_000_000)
  const cluster = new FakeCluster({ clock })
  const agent = (options: Partial<KitOptions> = {}) => {
    const kit = createReconcileKit({ cluster, clock, ...options })
    kits.push(kit)
    return kit
  }
  const start = async (kit: ReconcileKit, forMs = ANSWERED_MS) => {
    kit.start()
    await clock.advance(forMs)
    return kit
  }
  const data = () => cluster.object(CLAIM)?.['data'] as Record<string, string> | undefined
  const owner = (name: string) => cluster.object(configMapRef(name))?.metadata.annotations?.[TRACKING_ANNOTATION]?.split('/')[0]
  const reasons = (kit: ReconcileKit) => kit.events().map(({ reason }: EventStatus) => reason)
  const stateOf = (kit: ReconcileKit) => kit.claims.at(-1)?.kind
  return { clock, cluster, agent, start, data, owner, reasons, stateOf }
}

describe('CM6 a second agent', () => {
  test('refuses to enforce beside an active one, and both say so', async () => {
    const { clock, cluster, agent, start, reasons, stateOf, owner } = site()
    const first = agent()
    first.desire([configMap('a')])
    await start(first)
    const second = agent({ ...STRANGER, incarnation: 7, told: { kubeEvents: 'problems' } })
    second.desire([configMap('b')])
    await start(second)
    expect([stateOf(first), stateOf(second)]).toEqual(['held', 'contested'])
    expect(second.claims.at(-1)).toMatchObject({ by: { agent: 'a-1', cluster: CLUSTER_ID } })
    await clock.advance(3_600_000)
    expect([stateOf(first), stateOf(second), owner('a'), owner('b')]).toEqual(['held', 'contested', CLUSTER_ID, undefined])
    expect([reasons(first), reasons(second)]).toEqual([
      expect.arrayContaining(['AnotherAgentWaits']),
      expect.arrayContaining(['AnotherAgentActive']),
    ])
    const events = cluster.objects().filter(({ kind }) => kind === 'Event')
    expect(events).toMatchObject([
      { reason: 'AnotherAgentActive', involvedObject: { kind: 'ConfigMap', name: CLAIM_NAME, uid: cluster.object(CLAIM)?.metadata.uid } },
    ])
  })

  test('takes over from one that gives no answer, and only then', async () => {
    const { clock, agent, start, stateOf, data } = site()
    const first = await start(agent())
    await first.stop()
    const second = await start(agent(STRANGER), ANSWER_WITHIN_MS - 5_000)
    expect([stateOf(second), data()]).toMatchObject(['asking', { agent: 'a-1' }])
    await clock.advance(15_000)
    expect([stateOf(second), data()]).toMatchObject(['held', { agent: 'a-2', cluster: OTHER_ID, former: CLUSTER_ID }])
  })

  test('an API server that is away is no silence of the other agent', async () => {
    const { clock, cluster, agent, start, stateOf } = site()
    const first = await start(agent())
    await first.stop()
    const second = agent(STRANGER)
    await start(second, 1_000)
    cluster.fail(() => ({ kind: 'unreachable', status: 0, reason: '', message: 'connection refused' }))
    cluster.cutWatches()
    await clock.advance(ANSWER_WITHIN_MS - 10_000)
    first.start() // it answers as soon as it can
    cluster.fail(() => null)
    await clock.advance(SILENT_MS * 2)
    expect([stateOf(first), stateOf(second)]).toEqual(['held', 'contested'])
  })

  test('a claim that is deleted while both are there stays with the one that enforces', async () => {
    const { clock, cluster, agent, start, stateOf, data } = site()
    const first = await start(agent())
    const second = await start(agent(STRANGER))
    cluster.deleteAs('kubectl', CLAIM)
    await clock.advance(SILENT_MS)
    expect([stateOf(first), stateOf(second), data()]).toMatchObject(['held', 'contested', { agent: 'a-1' }])
  })

  test('begins when the other one is gone with its claim', async () => {
    const { clock, cluster, agent, start, stateOf } = site()
    const first = await start(agent())
    const second = await start(agent(STRANGER))
    await first.stop()
    cluster.deleteAs('kubectl', CLAIM)
    await clock.advance(SILENT_MS)
    expect(stateOf(second)).toBe('held')
  })

  test('CM2 an agent that lost its claim to a stranger stops at once and writes nothing before it asks', async () => {
    const { clock, agent, start, stateOf, cluster } = site()
    const first = await start(agent())
    cluster.requests.splice(0)
    cluster.editAs('skerry', CLAIM, (object) => Object.assign(object, { data: { agent: 'a-9', incarnation: '1', instance: 'x' } }))
    await clock.advance(ASK_AGAIN_MS.first / 2 - 1_000)
    expect([stateOf(first), changes(cluster)]).toEqual(['superseded', 0])
  })

  test('a question that the API server refuses because of another change is written again', async () => {
    const { clock, cluster, agent, start, stateOf } = site()
    const first = await start(agent())
    let isLabelled = false
    cluster.fail(({ verb, ref }) => {
      if (isLabelled || verb !== 'patch' || ref?.name !== CLAIM_NAME) return null
      isLabelled = true
      return { kind: 'conflict', status: 409, reason: 'Conflict', message: 'the object has been modified' }
    })
    const second = await start(agent(STRANGER), SILENT_MS)
    expect([isLabelled, stateOf(first), stateOf(second)]).toEqual([true, 'held', 'contested'])
    await clock.advance(SILENT_MS)
    expect([stateOf(first), stateOf(second)]).toEqual(['held', 'contested'])
  })
})

describe('CM12 an agent that does not enforce asks again', () => {
  test('CM6 and begins when the other one was stopped, without a restart', async () => {
    const { clock, agent, start, stateOf } = site()
    const first = await start(agent())
    const second = await start(agent(STRANGER))
    await first.stop()
    await clock.advance(ASK_AGAIN_MS.first + SILENT_MS)
    expect(stateOf(second)).toBe('held')
  })

  test('also long afterwards, within the longest wait', async () => {
    const { clock, agent, start, stateOf } = site()
    const first = await start(agent())
    const second = await start(agent(STRANGER))
    await clock.advance(7_200_000)
    expect([stateOf(first), stateOf(second)]).toEqual(['held', 'contested'])
    await first.stop()
    await clock.advance(ASK_AGAIN_MS.longest + SILENT_MS)
    expect(stateOf(second)).toBe('held')
  })

  test('CM7 also one that a person had stop, and a third one beside it', async () => {
    const { clock, agent, start, stateOf } = site()
    const first = await start(agent())
    const second = await start(agent(STRANGER))
    decide(second)
    await clock.advance(ANSWERED_MS)
    const third = await start(agent({ agentId: 'a-3', clusterId: 'c-00000000000000fe', seed: 3 }))
    await clock.advance(3_600_000)
    expect([stateOf(first), stateOf(second), stateOf(third)]).toEqual(['superseded', 'held', 'contested'])
    await second.stop()
    await clock.advance(2 * ASK_AGAIN_MS.longest)
    expect([stateOf(first), stateOf(third)].filter((kind) => kind === 'held')).toHaveLength(1)
  })

  test('CM3 and so does a copy of an agent', async () => {
    const { clock, agent, start, stateOf } = site()
    const first = await start(agent())
    const copy = await start(agent({ seed: 2 }))
    await clock.advance(3_600_000)
    expect([stateOf(first), stateOf(copy)]).toEqual(['superseded', 'held'])
    await copy.stop()
    await clock.advance(ASK_AGAIN_MS.longest + SILENT_MS)
    expect(stateOf(first)).toBe('held')
  })

  test('CM2 but not an earlier incarnation of the one that enforces, until that claim is gone', async () => {
    const { clock, cluster, agent, start, stateOf } = site()
    const first = await start(agent())
    const later = await start(agent({ incarnation: 2, seed: 2 }))
    await later.stop()
    cluster.requests.splice(0)
    await clock.advance(3_600_000)
    expect([first.claims.at(-1), changes(cluster)]).toMatchObject([{ kind: 'superseded', asks: false }, 0])
    cluster.deleteAs('kubectl', CLAIM)
    await clock.advance(SILENT_MS)
    expect(stateOf(first)).toBe('held')
  })

  test('while both are there: few requests, one event of each, and the state does not change', async () => {
    const { clock, cluster, agent, start, reasons } = site()
    const first = await start(agent())
    const second = await start(agent(STRANGER))
    cluster.requests.splice(0)
    second.claims.splice(0)
    await clock.advance(3_600_000)
    expect(second.claims.filter(({ kind }) => kind !== 'contested')).toEqual([])
    expect(changes(cluster)).toBeGreaterThan(2 * 6)
    expect(changes(cluster)).toBeLessThan(2 * 16)
    expect(first.events().map(({ reason, count = 1 }) => [reason, count])).toContainEqual(['AnotherAgentWaits', 1])
    expect(reasons(second).filter((reason) => reason === 'AnotherAgentActive')).toHaveLength(1)
  })
})

describe('CM7 a person at the site decides', () => {
  test('the other agent stops, and what it applied is taken over', async () => {
    const { clock, agent, start, stateOf, owner, reasons } = site()
    const first = agent()
    first.desire([configMap('a')])
    await start(first)
    const second = agent(STRANGER)
    second.desire([configMap('a')])
    await start(second)
    expect(decide(second)).toMatchObject({ kind: 'done' })
    await clock.advance(ANSWERED_MS)
    expect([stateOf(first), stateOf(second), owner('a')]).toEqual(['superseded', 'held', OTHER_ID])
    expect(reasons(second)).toContain('TakenOver')
  })

  test('CM6 a claim that is deleted afterwards stays with the one that was chosen', async () => {
    const { clock, cluster, agent, start, stateOf } = site()
    const first = await start(agent())
    const second = await start(agent(STRANGER))
    decide(second)
    await clock.advance(ANSWERED_MS)
    cluster.deleteAs('kubectl', CLAIM)
    await clock.advance(SILENT_MS)
    expect([stateOf(first), stateOf(second)]).toEqual(['superseded', 'held'])
  })

  test('in an agent that enforces there is nothing to decide', async () => {
    const { agent, start } = site()
    expect(decide(await start(agent()))).toMatchObject({ kind: 'refused' })
  })

  test('back again: the one that stopped may take over as well', async () => {
    const { clock, agent, start, stateOf } = site()
    const first = await start(agent())
    const second = await start(agent(STRANGER))
    decide(second)
    await clock.advance(ANSWERED_MS)
    expect(decide(first)).toMatchObject({ kind: 'done' })
    await clock.advance(ANSWERED_MS)
    expect([stateOf(first), stateOf(second)]).toEqual(['held', 'superseded'])
  })
})

describe('CM13 a claim that is not clear', () => {
  const forge = (cluster: FakeCluster, claim: Record<string, string>) =>
    cluster.editAs('somebody', CLAIM, (object) => Object.assign(object, { data: claim }))
  const FAR_AHEAD = { agent: 'a-1', incarnation: '900719925474099', instance: 'x' }
  const UNREADABLE = { agent: 'a-1', incarnation: 'many' }

  test.each([
    ['of an incarnation far ahead', FAR_AHEAD],
    ['that cannot be read', UNREADABLE],
  ])('%s: an agent that starts waits for a person, whose word overrules it', async (_, claim) => {
    const { clock, cluster, agent, start, stateOf, data, reasons } = site()
    await (await start(agent())).stop()
    forge(cluster, claim)
    const again = await start(agent({ seed: 2 }), 3_600_000)
    expect([again.claims.at(-1), data()]).toEqual([
      { kind: 'unclear', message: expect.stringContaining('kubectl -n skerry-system delete configmap skerry-claim') },
      claim,
    ])
    expect(reasons(again)).toContain('ClaimUnclear')
    expect(decide(again)).toMatchObject({ kind: 'done' })
    await clock.advance(ANSWERED_MS)
    expect([stateOf(again), data()]).toMatchObject(['held', { agent: 'a-1', incarnation: '1' }])
  })

  test.each([
    ['of an incarnation far ahead', FAR_AHEAD],
    ['that cannot be read', UNREADABLE],
  ])('%s: the agent goes on when a person deletes it', async (_, claim) => {
    const { clock, cluster, agent, start, stateOf } = site()
    await (await start(agent())).stop()
    forge(cluster, claim)
    const again = await start(agent({ seed: 2 }))
    cluster.deleteAs('kubectl', CLAIM)
    await clock.advance(ANSWERED_MS)
    expect(stateOf(again)).toBe('held')
  })

  test('CM2 of an incarnation far ahead ends enforcement, and the word of a person counts once', async () => {
    const { clock, cluster, agent, start, stateOf, data } = site()
    const first = await start(agent())
    forge(cluster, FAR_AHEAD)
    await clock.advance(ANSWERED_MS)
    expect(stateOf(first)).toBe('unclear')
    decide(first)
    await clock.advance(ANSWERED_MS)
    expect(stateOf(first)).toBe('held')
    // It was no forgery: that agent is active, and writes its claim again.
    forge(cluster, FAR_AHEAD)
    await clock.advance(ANSWERED_MS)
    expect([stateOf(first), data()]).toEqual(['unclear', FAR_AHEAD])
  })

  test('that cannot be read is put right by the agent that enforces, and by no other', async () => {
    const { clock, cluster, agent, start, stateOf, data } = site()
    const first = await start(agent())
    const second = await start(agent(STRANGER))
    forge(cluster, UNREADABLE)
    await clock.advance(ANSWERED_MS)
    expect([stateOf(first), data()]).toMatchObject(['held', { agent: 'a-1', incarnation: '1' }])
    await clock.advance(3_600_000)
    expect([stateOf(first), stateOf(second)]).toEqual(['held', 'contested'])
    expect(first.claims.filter(({ kind }) => kind !== 'held' && kind !== 'asking')).toEqual([])
  })

  test('CM7 a plausible later incarnation is not overruled, and the refusal says what is left to do', async () => {
    const { clock, cluster, agent, start, stateOf } = site()
    const first = await start(agent())
    forge(cluster, { agent: 'a-1', incarnation: '2', instance: 'x' })
    await clock.advance(ANSWERED_MS)
    const refused = { kind: 'refused', message: expect.stringContaining('kubectl -n skerry-system delete configmap') }
    expect([stateOf(first), decide(first)]).toMatchObject(['superseded', refused])
  })
})

describe('CM8 a cluster that joins again', () => {
  /** A registration that applied two objects and is gone. */
  async function left() {
    const parts = site()
    const before = parts.agent()
    before.desire([configMap('a'), configMap('b')])
    await parts.start(before)
    await before.stop()
    return parts
  }

  test('PR13 takes over what its former registration applied, and asks before it prunes what is desired no more', async () => {
    const { agent, start, owner, cluster } = await left()
    const again = agent(STRANGER)
    again.desire([configMap('a')])
    await start(again, SILENT_MS)
    expect([owner('a'), cluster.object(configMapRef('b')) === null]).toEqual([OTHER_ID, false])
    expect(again.service()?.refusal?.names).toEqual(['ConfigMap default/b'])
  })

  test('also when its claim was deleted with its namespace, by the word of the server', async () => {
    const { agent, start, owner, cluster } = await left()
    cluster.deleteAs('kubectl', CLAIM)
    const again = agent({ ...STRANGER, formerClusters: [CLUSTER_ID] })
    again.desire([configMap('a')])
    await start(again)
    expect([owner('a'), again.service()?.refusal?.names]).toEqual([OTHER_ID, ['ConfigMap default/b']])
  })

  test('takes nothing from a registration of which nobody says that it was of this cluster', async () => {
    const { agent, start, owner, cluster } = await left()
    cluster.deleteAs('kubectl', CLAIM)
    const again = agent(STRANGER)
    again.desire([configMap('a')])
    await start(again)
    expect(owner('a')).toBe(CLUSTER_ID)
    expect(again.object('/ConfigMap/default/a')).toMatchObject({ message: expect.stringContaining(CLUSTER_ID) })
  })

  test('takes nothing by a claim that was copied from another cluster', async () => {
    const { agent, start, owner, cluster, stateOf } = await left()
    cluster.editAs('velero', CLAIM, (object) => Object.assign(object, { data: { ...(object['data'] as object), uid: 'of-another' } }))
    const again = agent(STRANGER)
    again.desire([configMap('a')])
    await start(again, SILENT_MS)
    expect([stateOf(again), owner('a')]).toEqual(['held', CLUSTER_ID])
  })

  test.each([
    ['names the holder and its former registrations', 'u', ['c-1', 'c-2'], ['c-1', 'c-2']],
    ['is of another cluster', 'v', ['c-1', 'c-2'], []],
    ['does not say of which cluster it is', '', ['c-1', 'c-2'], []],
    ['names the own registration', 'u', ['c-own', 'c-2'], ['c-2']],
  ])('a claim that %s', (_, uid, [cluster = '', ...former], expected) => {
    const claim = { agent: 'a', incarnation: 1, instance: 'i', cluster, former, uid }
    expect(formerOf({ cluster: 'c-own', uid: 'u' }, [claim, null])).toEqual(expected)
  })
})

describe('CM9 an agent whose cluster was removed', () => {
  test('keeps every object as it is, writes nothing but an Event, and answers nobody', async () => {
    const { clock, cluster, agent, start, stateOf, reasons } = site()
    const removed = agent({ told: { kubeEvents: 'problems' } })
    removed.desire([configMap('a'), configMap('b')])
    await start(removed)
    removed.reconciler.setRemoved(true)
    await clock.advance(ANSWERED_MS)
    cluster.requests.splice(0)
    cluster.deleteAs('kubectl', configMapRef('a'))
    removed.desire([configMap('c')])
    await clock.advance(SILENT_MS)
    expect([
      stateOf(removed),
      cluster
        .objects()
        .filter(({ kind }) => kind === 'ConfigMap')
        .map(({ metadata }) => metadata.name),
    ]).toEqual(['removed', expect.not.arrayContaining(['a', 'c'])])
    expect(cluster.requests.filter(({ verb }) => verb === 'apply' || verb === 'patch' || verb === 'delete')).toEqual([])
    expect(reasons(removed)).toContain('ClusterRemoved')
    expect(cluster.objects().find(({ kind }) => kind === 'Event')).toMatchObject({
      reason: 'ClusterRemoved',
      involvedObject: { name: CLAIM_NAME },
    })
    const again = await start(agent(STRANGER), SILENT_MS)
    expect(stateOf(again)).toBe('held')
  })

  test('goes on when the server knows it again', async () => {
    const { clock, cluster, agent, start, stateOf } = site()
    const removed = agent()
    removed.desire([configMap('a')])
    await start(removed)
    removed.reconciler.setRemoved(true)
    cluster.deleteAs('kubectl', configMapRef('a'))
    await clock.advance(ANSWERED_MS)
    removed.reconciler.setRemoved(false)
    await clock.advance(ANSWERED_MS)
    expect([stateOf(removed), cluster.object(configMapRef('a')) !== null]).toEqual(['held', true])
  })
})
