// Random lives of three agents of three registrations in one cluster: started, killed, chosen by a person, with claims
// deleted and API servers away. Two never enforce side by side, and nobody takes a cluster from an active agent but a
// person.
import { expect, test } from 'bun:test'
import { CLAIM_NAME, CLAIM_NAMESPACE } from '../../agent/reconcile/claim/claim.ts'
import { ANSWER_WITHIN_MS } from '../../agent/reconcile/claim/claim-keeper.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { FakeCluster } from '../support/fake-cluster.ts'
import { configMap, configMapRef, createReconcileKit } from '../support/reconcile-kit.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const CLAIM = configMapRef(CLAIM_NAME, CLAIM_NAMESPACE)
const LIVES = 40
const ACTS = 30
const SETTLED_MS = 5_000

async function live(seed: number) {
  const random = seededRandom(seed)
  const clock = createVirtualClock(1_700_000_000_000)
  const cluster = new FakeCluster({ clock })
  const agents = [1, 2, 3].map((n) => {
    const kit = createReconcileKit({
      cluster,
      clock,
      agentId: `a-${n}`,
      clusterId: `c-${n}`,
      incarnation: n,
      place: `p-${n}`,
      seed: seed * 10 + n,
    })
    kit.desire([configMap('a')])
    return { n, kit, isRunning: false }
  })
  const trace: string[] = []
  const counts = { decided: 0, contested: 0, changed: 0 }
  let isAway = false
  const holders = () => agents.filter(({ kit, isRunning }) => isRunning && kit.claims.at(-1)?.kind === 'held')
  const check = (before: typeof agents, mayChange: boolean) => {
    const now = holders()
    const story = `seed ${seed}: ${trace.join(', ')}`
    if (now.length > 1) throw new Error(`${now.length} enforce after ${story}`)
    const [was] = before.filter(({ isRunning }) => isRunning)
    if (was === undefined || now[0] === was) return
    counts.changed += 1
    if (!mayChange && now.length > 0) throw new Error(`agent ${now[0]?.n} took over from ${was.n} after ${story}`)
  }
  const pick = () => agents[Math.floor(random() * agents.length)] as (typeof agents)[number]
  for (let act = 0; act < ACTS; act += 1) {
    const before = holders()
    const one = pick()
    const dice = random()
    let isDecided = false
    if (dice < 0.45) {
      trace.push(`${one.isRunning ? 'stop' : 'start'} ${one.n}`)
      if (one.isRunning) await one.kit.stop()
      else {
        one.kit.claims.length = 0
        one.kit.start()
      }
      one.isRunning = !one.isRunning
    } else if (dice < 0.6 && one.isRunning) {
      isDecided = one.kit.reconciler.order({ kind: 'take_over', by: 'ola', why: 'sim' }).kind === 'done'
      if (isDecided) counts.decided += 1
      trace.push(`${isDecided ? 'choose' : 'cannot choose'} ${one.n}`)
    } else if (dice < 0.7 && !isAway && before.length > 0 && cluster.object(CLAIM) !== null) {
      trace.push('delete the claim')
      cluster.deleteAs('kubectl', CLAIM)
    } else if (dice < 0.85) {
      isAway = !isAway
      trace.push(isAway ? 'API away' : 'API back')
      cluster.fail(() => (isAway ? { kind: 'unreachable', status: 0, reason: '', message: 'connection refused' } : null))
      cluster.cutWatches()
    }
    const waitMs = SETTLED_MS + Math.floor(random() * 2 * ANSWER_WITHIN_MS)
    trace.push(`${Math.round(waitMs / 1_000)} s`)
    await clock.advance(waitMs)
    counts.contested += agents.filter(({ kit }) => kit.claims.at(-1)?.kind === 'contested').length
    // A decision while the API server is away takes effect when it is back.
    check(before, isDecided || isAway || trace.at(-2) === 'API back')
  }
  // What is left alone begins, whatever was before.
  cluster.fail(() => null)
  for (const { kit, isRunning } of agents) if (isRunning) await kit.stop()
  const [last] = agents
  last?.kit.start()
  await clock.advance(3 * ANSWER_WITHIN_MS)
  expect([
    seed,
    last?.kit.claims.at(-1)?.kind,
    last?.kit.object('/ConfigMap/default/a')?.message ?? '',
    last?.kit.service()?.sync,
    trace,
  ]).toEqual([seed, 'held', '', 'Synced', trace])
  await last?.kit.stop()
  return counts
}

test('CM2 CM6 CM7 of three registrations at most one enforces, and only a person takes the cluster from an active agent', async () => {
  const total = { decided: 0, contested: 0, changed: 0 }
  for (let seed = 1; seed <= LIVES; seed += 1) {
    const counts = await live(seed)
    for (const key of ['decided', 'contested', 'changed'] as const) total[key] += counts[key]
  }
  expect(Math.min(...Object.values(total))).toBeGreaterThan(0)
}, 120_000)
