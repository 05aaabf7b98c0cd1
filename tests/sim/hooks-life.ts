// Random lives of a service with waves and hooks: revisions, refused requests, cut watches, restarts, other people's
// hands. No run has two objects, nothing of a later wave is sent before its turn, and when the faults stop the newest
// revision is whole.
import type { ApiFailure } from '../../agent/cluster/cluster.ts'
import { HOOK_RUN_ANNOTATION } from '../../shared/kube/waves.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { createFakeCluster, lagAnswers, lagWatches } from '../support/fake-cluster.ts'
import { deployment, deploymentRef, fail, hook, jobRef, POLICY, ready, succeed, waved } from '../support/hook-fixtures.ts'
import { configMap, configMapRef, createReconcileKit, errorsInto } from '../support/reconcile-kit.ts'
import { createTracedClock, type Trace } from '../support/trace.ts'

const FAILURES: ReadonlyArray<ApiFailure['kind']> = ['unreachable', 'throttled', 'server_error', 'forbidden', 'webhook']
const POLICIES = [
  'before-hook-creation',
  'hook-succeeded',
  'hook-failed',
  'hook-succeeded,hook-failed',
  'before-hook-creation,hook-succeeded',
]
const PHASES = ['pre-sync', 'sync', 'post-sync', 'sync-fail', 'pre-sync,post-sync']
const pick = <T>(random: Random, items: readonly T[]): T => items[Math.floor(random() * items.length)] as T

export async function hooksLife(seed: number): Promise<{ trace: Trace; problems: string[]; runs: number }> {
  const { clock, trace, random } = createTracedClock(seed)
  const cluster = createFakeCluster({ clock })
  const problems: string[] = []
  const kit = createReconcileKit({ cluster, clock, log: errorsInto(problems), trace })
  const runs = new Map<string, Set<string>>()
  let revision = 0
  let failing = true
  cluster.fail(({ verb }) => {
    if (!failing || verb === 'info' || random() >= 0.12) return null
    return { kind: pick(random, FAILURES), status: 500, reason: 'Sim', message: 'sim' }
  })
  const revise = () => {
    revision += 1
    const hooks = ['h0', 'h1', 'h2'].filter(() => random() < 0.6)
    const objects = [
      ...hooks.map((name) => waved(hook(name, pick(random, PHASES), { [POLICY]: pick(random, POLICIES) }), Math.floor(random() * 3) - 1)),
      configMap('first', { v: String(revision) }),
      waved(deployment('web', `a:${Math.floor(random() * 2)}`), 1),
      waved(configMap('last', { v: String(revision) }), 2),
    ]
    kit.desire(objects, { sync: { maxPrunePercent: 100 } })
  }
  /** What controllers do. `well`: nothing fails any more. */
  const control = (well: boolean) => {
    for (const { kind, metadata, ...rest } of cluster.objects()) {
      const name = metadata.name ?? ''
      if (kind === 'Job') {
        const run = metadata.annotations?.[HOOK_RUN_ANNOTATION] ?? ''
        runs.set(run, (runs.get(run) ?? new Set()).add(metadata.uid ?? ''))
        if (!('status' in rest)) (well || random() < 0.7 ? succeed : fail)(cluster, name)
        else if (random() < 0.2) cluster.deleteAs('ttl', jobRef(name))
      } else if (kind === 'Deployment') ready(cluster, name)
    }
    const [first, last] = ['first', 'last'].map((name) =>
      Number((cluster.object(configMapRef(name))?.['data'] as { v?: string } | undefined)?.v ?? 0),
    )
    if (last !== undefined && first !== undefined && last > first) problems.push(`last is at ${last} before first, at ${first}`)
  }
  const acts: ReadonlyArray<readonly [string, () => unknown]> = [
    ['revise', revise],
    ['control', () => control(false)],
    ['control', () => control(false)],
    ['cut', () => cluster.cutWatches({ forget: random() < 0.5 })],
    ['lag', () => lagWatches(random, cluster)],
    ['slow answers', () => lagAnswers(random, cluster)],
    ['edit', () => cluster.object(deploymentRef('web')) && cluster.patchAs('kubectl', deploymentRef('web'), { spec: { replicas: 1 } })],
    // While `last` waits for its wave it is healed to what is applied.
    ['edit last', () => cluster.object(configMapRef('last')) && cluster.patchAs('kubectl', configMapRef('last'), { data: { v: '0' } })],
    [
      'restart',
      () => {
        cluster.lagAnswers(() => 0)
        return kit.stop().then(() => kit.start())
      },
    ],
    ['wait', () => clock.advance(random() * 30_000)],
  ]
  revise()
  kit.start()
  for (let i = 0; i < 40; i += 1) {
    const [name, act] = pick(random, acts)
    trace.note(name)
    await act()
    if (random() < 0.6) await clock.advance(random() * 500)
  }
  failing = false
  // Hooks that failed wait for another revision, which comes now.
  await clock.advance(400_000)
  revise()
  for (let i = 0; i < 30; i += 1) {
    await clock.advance(20_000)
    control(true)
  }
  await clock.advance(400_000)
  for (const [run, uids] of runs) if (uids.size > 1) problems.push(`run ${run} had ${uids.size} objects`)
  const status = kit.service()
  if (status?.sync !== 'Synced' || status.health !== 'Healthy') problems.push(JSON.stringify(status))
  if ((cluster.object(configMapRef('last'))?.['data'] as { v?: string } | undefined)?.v !== String(revision))
    problems.push('last is not the newest')
  cluster.lagAnswers(() => 0)
  await kit.stop()
  return { problems, trace, runs: runs.size }
}
