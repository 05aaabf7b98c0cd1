// Random lives of three services with everything that holds work back: yeses, holds, windows, dependencies, drift
// policies, namespaces, autoscalers, finalizers, refusals, a claim that goes and comes, events and answers in any
// order. When all of it is over, everything that was held back is done, and nothing had to be found again.
import type { ApiFailure } from '../../agent/cluster/cluster.ts'
import { CLAIM_NAME, CLAIM_NAMESPACE, claimObject } from '../../agent/reconcile/claim/claim.ts'
import type { ServiceWindows } from '../../agent/reconcile/plan/gates/time-gates.ts'
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import { type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { createFakeCluster, type FakeCluster, lagAnswers, lagWatches } from '../support/fake-cluster.ts'
import { annotated, deployment, ready, waved } from '../support/hook-fixtures.ts'
import { namespace, namespaceRef } from '../support/reconcile-fixtures.ts'
import { configMap, configMapRef, createReconcileKit, errorsInto, type ReconcileKit } from '../support/reconcile-kit.ts'
import { createTracedClock, type Trace } from '../support/trace.ts'
import type { VirtualClock } from '../support/virtual-clock.ts'

const [ONE, TWO, TEAM] = ['one', 'two', 'team'].map((service) => ({ project: 'web', service })) as [ServiceId, ServiceId, ServiceId]
const SERVICES = [ONE, TWO, TEAM]
const NAMES: Readonly<Record<string, readonly string[]>> = {
  one: ['m0', 'm1', 'm2', 'm3', 'm4', 'm5'],
  two: ['m4', 'm5', 'm6', 'm7', 'm8'],
  team: ['n0', 'n1', 'n2', 'n3'],
}
/** Made again when it is to change. */
const FROZEN = new Set(['m1', 'm6', 'n1'])
const FAILURES: ReadonlyArray<ApiFailure['kind']> = ['unreachable', 'throttled', 'server_error', 'forbidden', 'conflict', 'webhook']
const POLICIES = ['correct', 'report', 'pause'] as const
const CLAIM: ObjectRef = { group: '', kind: 'ConfigMap', namespace: CLAIM_NAMESPACE, name: CLAIM_NAME }
const HPA: ObjectRef = { group: 'autoscaling', kind: 'HorizontalPodAutoscaler', namespace: 'default', name: 'auto' }
const OPEN_HALF = { windows: [{ kind: 'allow', schedule: '*/10 * * * *', duration: '5m', timeZone: 'UTC' }] } as const

interface Service {
  id: ServiceId
  values: Map<string, string>
  byHand: boolean
  drift: (typeof POLICIES)[number]
  depends: boolean
  /** Its manifests name the namespace, else it is made by `createNamespace`. */
  namesNamespace: boolean
  inWaves: boolean
  windows: ServiceWindows
}
interface Life {
  clock: VirtualClock
  cluster: FakeCluster
  kit: ReconcileKit
  random: Random
  services: Service[]
}
const pick = <T>(random: Random, items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
const placeOf = (name: string): ObjectRef => configMapRef(name, name.startsWith('n') ? 'team' : 'default')
const dataOf = (cluster: FakeCluster, name: string) => cluster.object(placeOf(name))?.['data'] as Record<string, string> | undefined

function objectOf(name: string, v: string): K8sObject {
  const plain = configMap(name, { v }, placeOf(name).namespace)
  return FROZEN.has(name) ? ({ ...annotated(plain, { 'skerry.dev/sync-options': 'Force' }), immutable: true } as K8sObject) : plain
}

function desire({ kit }: Life, service: Service, yes: boolean): string {
  const { id, values, byHand, drift, depends, namesNamespace, inWaves } = service
  const objects = [...values].map(([name, v], i) => {
    const object = name === 'web' ? deployment('web', `a:${v}`) : objectOf(name, v)
    return inWaves ? waved(object, i % 2) : object
  })
  const isTeam = id === TEAM
  if (isTeam && namesNamespace) objects.push(annotated(namespace('team'), { 'skerry.dev/prune': 'allowed' }))
  const sync = { maxPrunePercent: 100, drift, mode: byHand ? 'manual' : 'auto', createNamespace: isTeam && !namesNamespace } as const
  const options = {
    sync,
    ...(isTeam ? { namespace: 'team' } : {}),
    ...(depends ? { dependsOn: [{ name: 'one' }] } : {}),
  }
  const before = kit.replica.reads.get(serviceKey(id))
  const synced = before?.kind === 'complete' ? before.revision.row.synced : undefined
  const digest = kit.desire(objects, options, id)
  const allowed = yes ? digest : synced
  kit.desire(objects, { ...options, pruneConfirmed: digest, ...(allowed === undefined ? {} : { synced: allowed }) }, id)
  return digest
}

type Act = (life: Life, service: Service) => unknown
const someValues = (random: Random, { id }: Service): Map<string, string> =>
  new Map(
    [...(NAMES[id.service] ?? []), ...(id === TWO ? ['web'] : [])]
      .filter(() => random() < 0.6)
      .map((name) => [name, String(Math.floor(random() * 4))]),
  )
const edited = (act: (life: Life, ref: ObjectRef, name: string) => unknown): Act => {
  return (life, { id }) => {
    const name = pick(life.random, NAMES[id.service] ?? [])
    if (dataOf(life.cluster, name)) act(life, placeOf(name), name)
  }
}

const ACTS: ReadonlyArray<readonly [share: number, name: string, act: Act]> = [
  [
    6,
    'revise',
    (life, service) => {
      service.values = someValues(life.random, service)
      desire(life, service, false)
    },
  ],
  [
    2,
    'change one',
    (life, service) => {
      const name = pick(life.random, NAMES[service.id.service] ?? [])
      if (service.values.has(name)) service.values.set(name, String(Math.floor(life.random() * 4)))
      desire(life, service, false)
    },
  ],
  [3, 'say yes', (life, service) => service.byHand && desire(life, service, true)],
  [1, 'by hand', (life, service) => desire(life, Object.assign(service, { byHand: !service.byHand }), false)],
  [1, 'policy', (life, service) => desire(life, Object.assign(service, { drift: pick(life.random, POLICIES) }), false)],
  [1, 'depend', (life, service) => service.id !== ONE && desire(life, Object.assign(service, { depends: !service.depends }), false)],
  [0.5, 'name the namespace', (life, service) => desire(life, Object.assign(service, { namesNamespace: !service.namesNamespace }), false)],
  [0.7, 'waves', (life, service) => desire(life, Object.assign(service, { inWaves: !service.inWaves }), false)],
  [1, 'incomplete', ({ kit }, { id }) => lose(kit, id)],
  [1, 'repair', (life, service) => desire(life, service, false)],
  [1, 'window', (_, service) => Object.assign(service, { windows: service.windows.windows.length === 0 ? OPEN_HALF : { windows: [] } })],
  [1.5, 'hold', ({ kit, random, clock }, { id }) => hold(kit, random, clock, id)],
  [2, 'unhold', ({ kit }, { id }) => release(kit, id)],
  [
    4,
    'edit',
    edited(({ cluster, random }, ref) =>
      cluster.editAs('kubectl-edit', ref, (object) => change(object, { v: `edited${Math.floor(random() * 3)}` })),
    ),
  ],
  [
    2,
    'helm',
    edited(({ cluster }, ref, name) => cluster.editAs('helm', ref, (object) => change(object, { ...dataOf(cluster, name), theirs: 'x' }))),
  ],
  [3, 'delete', edited(({ cluster }, ref) => cluster.deleteAs('kubectl', ref))],
  [1, 'finalizer', edited(({ cluster }, ref) => toggleFinalizer(cluster, ref))],
  [0.5, 'delete the namespace', ({ cluster }) => cluster.object(namespaceRef('team')) && cluster.deleteAs('kubectl', namespaceRef('team'))],
  [0.5, 'make the namespace', ({ cluster }) => cluster.object(namespaceRef('team')) ?? cluster.applyAs('kubectl', namespace('team'))],
  [1, 'autoscale', ({ cluster }) => toggleAutoscaler(cluster)],
  [2, 'scale', ({ cluster, random }) => scale(cluster, random)],
  [2, 'control', ({ cluster }) => cluster.objects().some(({ kind }) => kind === 'Deployment') && ready(cluster, 'web')],
  [1, 'cut', ({ cluster, random }) => cluster.cutWatches({ forget: random() < 0.5 })],
  [2, 'lag', ({ cluster, random }) => lagWatches(random, cluster)],
  [2, 'slow answers', ({ cluster, random }) => lagAnswers(random, cluster)],
  [0.5, 'another claim', (life) => takeClaim(life, 'other')],
  [1, 'the claim back', ({ cluster }) => giveClaimBack(cluster)],
  [1, 'restart', restart],
  [3, 'wait', ({ clock, random }) => clock.advance(random() * 60_000)],
  [0.5, 'wait long', ({ clock, random }) => clock.advance(random() * 700_000)],
]

const change = (object: K8sObject, data: Record<string, string>): void => {
  if (object['immutable'] !== true) Object.assign(object, { data })
}

function lose(kit: ReconcileKit, id: ServiceId): void {
  kit.replica.reads.set(serviceKey(id), { kind: 'incomplete', why: 'a row is missing' })
  kit.reconciler.revisionsChanged([id])
}

function hold(kit: ReconcileKit, random: Random, clock: VirtualClock, id: ServiceId): void {
  const untilMs = random() < 0.5 ? { untilMs: clock.nowMs() + 1_000 + Math.floor(random() * 300_000) } : {}
  kit.reconciler.order({ kind: 'hold', service: random() < 0.3 ? null : serviceKey(id), by: 'ann', why: 'sim', ...untilMs })
}

function release(kit: ReconcileKit, id: ServiceId): void {
  for (const service of [null, serviceKey(id)]) kit.reconciler.order({ kind: 'unhold', service, by: 'ann' })
}

function toggleFinalizer(cluster: FakeCluster, ref: ObjectRef): void {
  cluster.editAs('controller', ref, ({ metadata }) => {
    if (metadata.finalizers === undefined && metadata.deletionTimestamp === undefined)
      Object.assign(metadata, { finalizers: ['example.com/hold'] })
    else Reflect.deleteProperty(metadata, 'finalizers')
  })
}

function toggleAutoscaler(cluster: FakeCluster): void {
  if (cluster.object(HPA)) cluster.deleteAs('somebody', HPA)
  else
    cluster.editAs('somebody', HPA, (object) =>
      Object.assign(object, { spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' } } }),
    )
}

function scale(cluster: FakeCluster, random: Random): void {
  const web = cluster.objects().find(({ kind }) => kind === 'Deployment')
  if (web === undefined) return
  const manager = cluster.object(HPA) ? 'kube-controller-manager' : 'kubectl'
  const spec = { ...(web['spec'] as object), replicas: 2 + Math.floor(random() * 3) }
  cluster.editAs(
    manager,
    { group: 'apps', kind: 'Deployment', namespace: 'default', name: 'web' },
    (object) => Object.assign(object, { spec }),
    {
      subresource: 'scale',
    },
  )
}

let ours: K8sObject | null = null
function takeClaim({ cluster, kit }: Life, agent: string): void {
  const claim = cluster.object(CLAIM)
  if (claim === null || kit.claims.at(-1)?.kind !== 'held' || JSON.stringify(claim).includes('"other"')) return
  ours = claim
  cluster.editAs('other', CLAIM, (object) =>
    Object.assign(object, { data: (claimObject({ agent, incarnation: 9, instance: 'x' }) as K8sObject)['data'] }),
  )
}

/** As out of a backup of the cluster. */
function giveClaimBack(cluster: FakeCluster): void {
  const before = ours
  if (before === null || cluster.object(CLAIM) === null) return
  cluster.editAs('backup', CLAIM, (object) => Object.assign(object, { data: before['data'] }))
  ours = null
}

async function restart({ kit, cluster }: Life): Promise<void> {
  // A claim of an earlier life is not its own (CM3).
  if (ours !== null) return
  cluster.lagAnswers(() => 0)
  await kit.stop()
  kit.claims.length = 0
  kit.start()
}

function weighted(random: Random): (typeof ACTS)[number] {
  let at = random() * ACTS.reduce((sum, [share]) => sum + share, 0)
  for (const act of ACTS) {
    at -= act[0]
    if (at < 0) return act
  }
  return ACTS[0] as (typeof ACTS)[number]
}

export async function gatesLife(seed: number): Promise<{ trace: Trace; problems: string[]; done: Map<string, number> }> {
  ours = null
  const { clock, trace, random } = createTracedClock(seed)
  const cluster = createFakeCluster({ clock })
  const problems: string[] = []
  const services = SERVICES.map(
    (id): Service => ({
      id,
      values: new Map(),
      byHand: false,
      drift: 'correct',
      depends: false,
      namesNamespace: false,
      inWaves: false,
      windows: { windows: [] },
    }),
  )
  const windowsOf = (id: ServiceId) => services.find((one) => serviceKey(one.id) === serviceKey(id))?.windows ?? { windows: [] }
  const kit = createReconcileKit({ cluster, clock, log: errorsInto(problems), windowsOf, trace })
  const life: Life = { clock, cluster, kit, random, services }
  let failing = 0.1
  cluster.fail(({ verb }) => {
    if (failing === 0 || random() >= failing || verb === 'info') return null
    return { kind: pick(random, FAILURES), status: 500, reason: 'Sim', message: 'sim' }
  })
  kit.start()
  for (let i = 0; i < 60; i += 1) {
    const [, name, act] = weighted(random)
    const service = pick(random, services)
    trace.note(`${name}(${service.id.service})`)
    await act(life, service)
    if (random() < 0.5) await clock.advance(random() * 500)
    if (random() < 0.1) failing = failing === 0 ? 0.1 : 0
  }
  failing = 0
  const digests = await calm(life)
  problems.push(...judge(life, digests))
  const done = new Map<string, number>()
  for (const { reason } of kit.events()) done.set(reason, (done.get(reason) ?? 0) + 1)
  await kit.stop()
  return { trace, problems, done }
}

/** Nothing is held any more; nobody fights. */
async function calm(life: Life): Promise<Map<string, string>> {
  const { clock, cluster, kit, services } = life
  cluster.lagWatches(() => 0)
  cluster.lagAnswers(() => 0)
  giveClaimBack(cluster)
  // Who has just started takes no orders yet.
  await clock.advance(5_000)
  for (const service of services) release(kit, service.id)
  const unfinalized = () => {
    for (const { kind, metadata } of cluster.objects())
      if (kind === 'ConfigMap' && metadata.finalizers !== undefined)
        toggleFinalizer(cluster, configMapRef(metadata.name ?? '', metadata.namespace))
  }
  unfinalized()
  if (cluster.object(HPA)) cluster.deleteAs('somebody', HPA)
  const taken = new Set<string>()
  const digests = new Map<string, string>()
  for (const service of services) {
    service.windows = { windows: [] }
    for (const name of [...service.values.keys()]) if (taken.has(name)) service.values.delete(name)
    for (const name of service.values.keys()) taken.add(name)
    service.drift = 'correct'
    digests.set(service.id.service, desire(life, service, true))
  }
  for (let i = 0; i < 6; i += 1) {
    await clock.advance(400_000)
    if (cluster.objects().some(({ kind }) => kind === 'Deployment')) ready(cluster, 'web')
  }
  await clock.advance(400_000)
  return digests
}

function judge({ cluster, kit, services }: Life, digests: ReadonlyMap<string, string>): string[] {
  const problems: string[] = []
  const wanted = new Map(services.flatMap(({ values }) => [...values]))
  for (const name of new Set(Object.values(NAMES).flat())) {
    const v = wanted.get(name)
    const found = JSON.stringify(dataOf(cluster, name))
    if (found !== (v === undefined ? undefined : JSON.stringify({ v }))) problems.push(`${name}: ${found} is not ${v}`)
  }
  const web = cluster.objects().find(({ kind }) => kind === 'Deployment')
  if ((web !== undefined) !== wanted.has('web')) problems.push(`web is ${web === undefined ? 'not ' : ''}there`)
  const replicas = (web?.['spec'] as { replicas?: number } | undefined)?.replicas ?? 1
  if (replicas !== 1) problems.push(`web has ${replicas} replicas`)
  for (const { id } of services) {
    const status = kit.service(id)
    const isDone = status?.sync === 'Synced' && status.health === 'Healthy' && status.applied?.digest === digests.get(id.service)
    if (!isDone) problems.push(`${id.service}: ${JSON.stringify(status)}`)
  }
  return problems
}
