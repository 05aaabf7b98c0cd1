// Random lives of one cluster: revisions, other people's hands, refused requests, cut watches, restarts. When the
// faults stop, the cluster is what the rows say, what is not ours is untouched, and the run has really done something.
import type { ApiFailure } from '../../agent/cluster/cluster.ts'
import { SERVICE_LABEL } from '../../shared/kube/marks.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { createFakeCluster, type FakeCluster, lagAnswers, lagWatches } from '../support/fake-cluster.ts'
import { configMap, configMapRef, createReconcileKit, errorsInto, type ReconcileKit } from '../support/reconcile-kit.ts'
import { createTracedClock, type Trace } from '../support/trace.ts'
import type { VirtualClock } from '../support/virtual-clock.ts'

const NAMES = Array.from({ length: 12 }, (_, i) => `m${i}`)
const SERVICES = [
  { project: 'web', service: 'one' },
  { project: 'web', service: 'two' },
]
const FAILURES: ReadonlyArray<ApiFailure['kind']> = ['unreachable', 'throttled', 'server_error', 'forbidden', 'conflict', 'webhook']

interface Life {
  clock: VirtualClock
  cluster: FakeCluster
  kit: ReconcileKit
  random: Random
  /** Service → name → value. */
  wanted: Map<string, Map<string, string>>
  /** Services that are synced by hand, of which each revision waits for a yes. */
  byHand: Set<string>
}
const pick = <T>(random: Random, items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
const live = (cluster: FakeCluster, name: string) =>
  cluster.object(configMapRef(name)) as (K8sObject & { data?: Record<string, string> }) | null

export const ACTS: ReadonlyArray<readonly [name: string, act: (life: Life) => void | Promise<void>]> = [
  [
    'revise',
    ({ random, kit, wanted, byHand }) => {
      const id = pick(random, SERVICES)
      // Each service has its own half, and the middle is fought over.
      const pool = id === SERVICES[0] ? NAMES.slice(0, 8) : NAMES.slice(4)
      const values = new Map(pool.filter(() => random() < 0.6).map((name) => [name, String(Math.floor(random() * 5))]))
      wanted.set(id.service, values)
      desire(kit, id, values, byHand.has(id.service) ? 'waits' : 'auto')
    },
  ],
  [
    'by hand',
    ({ random, byHand }) => {
      const { service } = pick(random, SERVICES)
      if (!byHand.delete(service)) byHand.add(service)
    },
  ],
  [
    'say yes',
    ({ random, kit, wanted, byHand }) => {
      const id = pick(random, SERVICES)
      const values = wanted.get(id.service)
      if (values !== undefined && byHand.has(id.service)) desire(kit, id, values, 'allowed')
    },
  ],
  [
    'edit',
    ({ random, cluster }) => {
      const name = pick(random, NAMES)
      if (live(cluster, name))
        cluster.editAs('kubectl-edit', configMapRef(name), (object) => Object.assign(object, { data: { v: 'edited' } }))
    },
  ],
  [
    'unlabel',
    ({ random, cluster }) => {
      const name = pick(random, NAMES)
      if (live(cluster, name))
        cluster.editAs('kubectl-label', configMapRef(name), (object) => Reflect.deleteProperty(object.metadata.labels ?? {}, SERVICE_LABEL))
    },
  ],
  [
    'delete',
    ({ random, cluster }) => {
      const name = pick(random, NAMES)
      if (live(cluster, name)) cluster.deleteAs('kubectl', configMapRef(name))
    },
  ],
  ['cut', ({ random, cluster }) => cluster.cutWatches({ forget: random() < 0.5 })],
  ['lag', ({ random, cluster }) => lagWatches(random, cluster)],
  ['slow answers', ({ random, cluster }) => lagAnswers(random, cluster)],
  [
    'restart',
    async ({ kit, cluster }) => {
      cluster.lagAnswers(() => 0)
      await kit.stop()
      kit.start()
    },
  ],
  ['wait', ({ clock, random }) => clock.advance(random() * 30_000)],
]

const without = (values: ReadonlyMap<string, string> | undefined, names: readonly string[]): Map<string, string> =>
  new Map([...(values ?? [])].filter(([name]) => !names.includes(name)))

type Gate = 'auto' | 'waits' | 'allowed'
function desire(kit: ReconcileKit, id: (typeof SERVICES)[number], values: ReadonlyMap<string, string>, gate: Gate): void {
  const objects = [...values].map(([name, v]) => configMap(name, { v }))
  const sync = { maxPrunePercent: 100, mode: gate === 'auto' ? ('auto' as const) : ('manual' as const) }
  const digest = kit.desire(objects, { sync }, id)
  kit.desire(objects, { sync, pruneConfirmed: digest, ...(gate === 'allowed' ? { synced: digest } : {}) }, id)
}

export async function reconcileLife(
  seed: number,
  acts = ACTS,
): Promise<{ trace: Trace; problems: string[]; healed: number; pruned: number }> {
  const { clock, trace, random } = createTracedClock(seed)
  const cluster = createFakeCluster({ clock })
  const problems: string[] = []
  const kit = createReconcileKit({ cluster, clock, log: errorsInto(problems), trace })
  const life: Life = { clock, cluster, kit, random, wanted: new Map(), byHand: new Set() }
  cluster.applyAs('kubectl', configMap('foreign', { theirs: 'x' }))
  const before = JSON.stringify(live(cluster, 'foreign'))
  cluster.fail(({ verb }) => {
    if (random() >= 0.15) return null
    const kind = pick(random, FAILURES)
    return verb === 'info' ? null : { kind, status: 500, reason: 'Sim', message: 'sim' }
  })
  kit.start()
  for (let i = 0; i < 40; i += 1) {
    const [name, act] = pick(random, acts)
    trace.note(name)
    await act(life)
    if (random() < 0.5) await clock.advance(random() * 500)
  }
  cluster.fail(() => null)
  // While two services want one object the second waits with all its prunes; in the end nobody fights.
  for (const id of SERVICES) {
    const others = [...life.wanted].flatMap(([service, values]) => (service === id.service ? [] : [...values.keys()]))
    const mine = id === SERVICES[0] ? (life.wanted.get(id.service) ?? new Map()) : without(life.wanted.get(id.service), others)
    life.wanted.set(id.service, mine)
    // As it was synced before: whose options change is looked at as a whole anyway.
    desire(kit, id, mine, life.byHand.has(id.service) ? 'allowed' : 'auto')
  }
  // The longest wait of a retry or a fight is 5 minutes; two objects may wait for each other.
  await clock.advance(1_500_000)

  for (const name of NAMES) {
    const [value] = SERVICES.map(({ service }) => life.wanted.get(service)?.get(name)).filter((wanted) => wanted !== undefined)
    const found = live(cluster, name)?.data?.['v']
    if (found !== value) problems.push(`${name}: ${found} is not ${value}`)
  }
  for (const id of SERVICES) if (kit.service(id)?.sync !== 'Synced') problems.push(`${id.service}: ${JSON.stringify(kit.service(id))}`)
  if (JSON.stringify(live(cluster, 'foreign')) !== before) problems.push('a foreign object was touched')
  const events = kit.events()
  cluster.lagAnswers(() => 0)
  await kit.stop()
  const count = (wanted: string) => events.filter(({ reason }) => reason === wanted).length
  return { trace, problems, healed: count('DriftHealed') + count('Restored'), pruned: count('Pruned') }
}
