// The claim over restarts and copies: an agent that starts again where it ran writes nothing, and of two that could be
// the same one the later wins.
import { describe, expect, test } from 'bun:test'
import { CLAIM_NAME, CLAIM_NAMESPACE, PAST_MAX } from '../../agent/reconcile/claim/claim.ts'
import type { WrittenClaim } from '../../agent/state/claims.ts'
import { FakeCluster } from '../support/fake-cluster.ts'
import { configMap, configMapRef, createReconcileKit, type KitOptions, type ReconcileKit } from '../support/reconcile-kit.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const CLAIM = configMapRef(CLAIM_NAME, CLAIM_NAMESPACE)
const FULL_PAUSE_MS = 600_000

function site() {
  const clock = createVirtualClock(1_700_000_000_000)
  const cluster = new FakeCluster({ clock })
  /** As often as the claim was written since the last look. */
  const claimWrites = () => cluster.requests.splice(0).filter(({ verb, ref }) => verb === 'apply' && ref?.name === CLAIM_NAME).length
  const kit = (options: Partial<KitOptions> = {}, seed = 1) => {
    const made = createReconcileKit({ cluster, clock, place: 'here', seed, ...options })
    made.desire([configMap('a')])
    return made
  }
  const startUntilHeld = async (started: ReconcileKit) => {
    started.start()
    await clock.advance(10_000)
    return started.claims.at(-1)?.kind
  }
  /** A copy of its disk, on another machine. */
  const copyOf = (origin: ReconcileKit, seed: number) => {
    const copy = kit({ place: 'there' }, seed)
    const written = origin.state.writtenClaim()
    if (written !== null) copy.state.setWrittenClaim(written)
    return copy
  }
  return { clock, cluster, claimWrites, kit, startUntilHeld, copyOf }
}

test('CM5 RC7 an agent that starts again at its place writes nothing at all', async () => {
  const { clock, cluster, kit, startUntilHeld } = site()
  const agent = kit()
  await startUntilHeld(agent)
  for (let start = 0; start < 3; start += 1) {
    await agent.stop()
    cluster.requests.splice(0)
    expect(await startUntilHeld(agent)).toBe('held')
    await clock.advance(FULL_PAUSE_MS)
    expect(cluster.requests.filter(({ verb }) => verb === 'apply' || verb === 'patch' || verb === 'delete')).toEqual([])
  }
  cluster.deleteAs('kubectl', configMapRef('a'))
  await clock.advance(1_000)
  expect(cluster.object(configMapRef('a'))).not.toBeNull()
  await agent.stop()
})

test.each<[what: string, options: Partial<KitOptions>]>([
  ['at another place', { place: 'there' }],
  ['at a place that cannot be told', { place: null }],
  ['in another incarnation', { incarnation: 2 }],
])('CM5 an agent that starts %s writes the claim once', async (_, options) => {
  const { clock, claimWrites, kit, startUntilHeld } = site()
  const before = kit()
  await startUntilHeld(before)
  await before.stop()
  claimWrites()
  const after = kit(options, 2)
  const written = before.state.writtenClaim()
  if (written !== null) after.state.setWrittenClaim(written)
  expect(await startUntilHeld(after)).toBe('held')
  await clock.advance(FULL_PAUSE_MS)
  expect(claimWrites()).toBe(1)
  await after.stop()
})

test('CM3 CM5 an agent and a copy of its disk: each start takes the claim with one write, and the other stops', async () => {
  const { clock, claimWrites, kit, startUntilHeld, copyOf } = site()
  const agent = kit()
  await startUntilHeld(agent)
  const copy = copyOf(agent, 2)
  claimWrites()
  const states = () => [agent.claims.at(-1)?.kind, copy.claims.at(-1)?.kind]
  await startUntilHeld(copy)
  await clock.advance(FULL_PAUSE_MS)
  expect({ states: states(), writes: claimWrites() }).toEqual({ states: ['superseded', 'held'], writes: 1 })
  await agent.stop()
  await startUntilHeld(agent)
  await clock.advance(FULL_PAUSE_MS)
  expect({ states: states(), writes: claimWrites() }).toEqual({ states: ['held', 'superseded'], writes: 1 })
  await copy.stop()
  await agent.stop()
  await startUntilHeld(copy)
  expect({ kind: copy.claims.at(-1)?.kind, writes: claimWrites() }).toEqual({ kind: 'held', writes: 1 })
  await copy.stop()
})

test('CM3 CM5 a cluster that is set back to before the claim is taken again, also after a start that wrote nothing', async () => {
  const { clock, cluster, kit, startUntilHeld, claimWrites } = site()
  const first = kit({ place: 'there' }, 2)
  await startUntilHeld(first)
  await first.stop()
  const before = cluster.object(CLAIM)?.['data']
  const agent = kit()
  await startUntilHeld(agent)
  await agent.stop()
  await startUntilHeld(agent)
  claimWrites()
  cluster.editAs('etcdctl', CLAIM, (object) => Object.assign(object, { data: before }))
  await clock.advance(10_000)
  expect({ kind: agent.claims.at(-1)?.kind, writes: claimWrites() }).toEqual({ kind: 'held', writes: 1 })
  await agent.stop()
})

describe('CM11 a cluster that is set back', () => {
  /** One disk that was moved from place to place, and the claim of each start. */
  async function moved(starts: number) {
    const parts = site()
    const claims: unknown[] = []
    let agent = parts.kit({ place: 'p-0' }, 1)
    for (let n = 0; ; n += 1) {
      await parts.startUntilHeld(agent)
      claims.push(parts.cluster.object(CLAIM)?.['data'])
      if (n === starts) break
      await agent.stop()
      const next = parts.kit({ place: `p-${n + 1}` }, n + 2)
      next.state.setWrittenClaim(agent.state.writtenClaim() as WrittenClaim)
      agent = next
    }
    const setBackTo = async (data: unknown) => {
      parts.claimWrites()
      parts.cluster.editAs('etcdctl', CLAIM, (object) => Object.assign(object, { data }))
      await parts.clock.advance(10_000)
      return { kind: agent.claims.at(-1)?.kind, writes: parts.claimWrites() }
    }
    return { ...parts, agent, claims, setBackTo }
  }

  test.each([
    ['two starts ago', 2],
    ['the oldest that is remembered', PAST_MAX],
  ])('to the claim of %s does not end enforcement', async (_, starts) => {
    const { agent, claims, setBackTo } = await moved(starts)
    expect(await setBackTo(claims[0])).toEqual({ kind: 'held', writes: 1 })
    await agent.stop()
  })

  test('also after a start that wrote nothing, and more than once', async () => {
    const { agent, claims, setBackTo, startUntilHeld } = await moved(2)
    await agent.stop()
    await startUntilHeld(agent)
    for (const data of [claims[0], claims[1], claims[0]]) expect(await setBackTo(data)).toEqual({ kind: 'held', writes: 1 })
    await agent.stop()
  })

  test('to a claim that this disk never wrote ends it', async () => {
    const { agent, claims, setBackTo } = await moved(1)
    expect(await setBackTo({ ...(claims[0] as object), instance: 'of a copy' })).toEqual({ kind: 'superseded', writes: 0 })
    await agent.stop()
  })

  test('the disk of an agent before this rule is read', () => {
    const { kit } = site()
    const { state } = kit()
    const claim = { agent: 'a-1', incarnation: 1, instance: 'x' }
    for (const [over, read] of [
      [claim, [claim]],
      [null, []],
    ]) {
      state.setWrittenClaim({ place: 'here', claim, over } as unknown as WrittenClaim)
      expect(state.writtenClaim()?.over).toEqual(read as WrittenClaim['over'])
    }
  })

  test('a copy that joined again asks before it takes the claim of the agent that it was copied from', async () => {
    const { kit, startUntilHeld, copyOf } = site()
    const agent = kit()
    await startUntilHeld(agent)
    const written = copyOf(agent, 2).state.writtenClaim() as WrittenClaim
    const joined = kit({ place: 'there', agentId: 'a-2', clusterId: 'c-00000000000000ff' }, 3)
    joined.state.setWrittenClaim(written)
    expect([await startUntilHeld(joined), agent.claims.at(-1)?.kind]).toEqual(['contested', 'held'])
    await joined.stop()
    await agent.stop()
  })
})

test('CM5 a claim that cannot be noted on the disk is written again at the next start', async () => {
  const { kit, startUntilHeld, claimWrites } = site()
  const agent = kit()
  agent.state.setWrittenClaim = () => {
    throw new Error('disk full')
  }
  expect(await startUntilHeld(agent)).toBe('held')
  await agent.stop()
  expect(claimWrites()).toBe(1 + 1) // the namespace is missing at first
  expect(await startUntilHeld(agent)).toBe('held')
  expect(claimWrites()).toBe(1)
  await agent.stop()
})

test('CM4 RP4 a full disk ends no agent that has to tell that another one is active', async () => {
  const { clock, kit, startUntilHeld } = site()
  const agent = kit()
  await startUntilHeld(agent)
  const full = () => {
    throw Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })
  }
  const other = kit({ agentId: 'a-2', watched: (state) => ({ ...state, report: full }) }, 2)
  other.start()
  await clock.advance(FULL_PAUSE_MS)
  expect(other.claims.at(-1)?.kind).toBe('contested')
  await agent.stop()
  await other.stop()
})
