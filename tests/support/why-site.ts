// Runs the real part of the corpus of `skerry why`: one agent on one real API server with its controllers and
// scheduler, a namespace and a service for each broken deployment, all beside each other. Nodes and kubelets are
// played: their statuses and Events are written as a kubelet writes them, and everything else happens.
import { objectPath } from '../../agent/cluster/discovery.ts'
import { explain, type WhyObject } from '../../server/fleet/why/explain.ts'
import { type K8sObject, type ObjectRef, refKey, refOf, refText } from '../../shared/kube/object.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { eventually } from './kube-cluster.ts'
import { type PodScript, startKubelets } from './kubelet-player.ts'
import { APPLY_PATCH, MERGE_PATCH, type RealCluster, resourceNamed, type Somebody, somebodyElse, startRealAgent } from './real-cluster.ts'
import type { ReconcileKit, RowOptions } from './reconcile-kit.ts'

export interface RealWhyCase {
  /** Also the namespace and the service. */
  name: string
  cause: string
  objects: readonly K8sObject[]
  row?: RowOptions
  pod?: PodScript
  /** What is in the cluster before the service comes. */
  before?(site: WhySite): Promise<void>
  /** The next revision, when the first one is applied. */
  next?: readonly K8sObject[]
  /** What somebody does again and again. */
  meanwhile?(site: WhySite): Promise<void>
}

export interface WhySite {
  kit: ReconcileKit
  /** Creates or changes an object as an administrator. */
  put(object: K8sObject): Promise<void>
  patch(ref: ObjectRef, json: unknown): Promise<void>
  remove(ref: ObjectRef): Promise<void>
  /** Until the API server refuses such an object: webhooks and policies are in force a moment after their creation. */
  untilRefused(object: K8sObject): Promise<void>
  run(cases: readonly RealWhyCase[], timeoutMs: number): Promise<WhyResult[]>
  stop(): Promise<void>
}

export interface WhyResult {
  name: string
  expected: string
  /** The first cause; '': none. */
  found: string
  /** What the agent reported, for people. */
  reported: string
}

export async function startWhySite(): Promise<WhySite> {
  const real = await startRealAgent({ name: 'why', controllers: true, kwok: false, userAgent: 'why-agent' })
  const others = somebodyElse(real.credentials, real.resources)
  const scripts = new Map<string, PodScript>()
  const kubelets = await startKubelets(others, real.resources, (namespace) => scripts.get(namespace)).catch(async (error) => {
    await real.stop()
    throw error
  })
  const site: WhySite = {
    ...writes(real, others),
    kit: real.kit,
    async run(cases, timeoutMs) {
      for (const { name, pod } of cases) if (pod !== undefined) scripts.set(name, pod)
      for (const one of cases) await one.before?.(site)
      const firsts = cases.map(({ name, objects, row }) => real.kit.desire(objects, { namespace: name, ...row }, idOf(name)))
      const over = new AbortController()
      const begun = cases.map((one, index) => goOn(site, one, firsts[index] ?? '', over.signal))
      const results = () => cases.map((one) => resultOf(real.kit, one))
      const isRight = ({ expected, found }: WhyResult) => expected === found
      await eventually('every cause', async () => results().every(isRight), timeoutMs).catch(() => {})
      const last = results()
      over.abort()
      await Promise.all(begun)
      return last
    },
    async stop() {
      await kubelets.stop()
      await real.stop()
    },
  }
  return site
}

const idOf = (service: string): ServiceId => ({ project: 'web', service })

function writes({ resources }: RealCluster, { http, patch }: Somebody): Pick<WhySite, 'put' | 'patch' | 'remove' | 'untilRefused'> {
  const resourceOf = ({ kind, group }: ObjectRef) => resourceNamed(resources, kind, group)
  return {
    put: (object) => patch('admin', refOf(object), APPLY_PATCH, object),
    patch: (ref, json) => patch('somebody', ref, MERGE_PATCH, json),
    async remove(ref) {
      const resource = resourceOf(ref)
      const path = objectPath(resource, ref.namespace, ref.name)
      const answer = await http.request({ method: 'DELETE', path, plural: resource.plural })
      if (answer.kind === 'failed') throw new Error(answer.failure.message)
    },
    async untilRefused(object) {
      const ref = refOf(object)
      const resource = resourceOf(ref)
      const path = `${objectPath(resource, ref.namespace, ref.name)}?fieldManager=admin&dryRun=All`
      const body = { type: APPLY_PATCH, json: object }
      const isRefused = async () => (await http.request({ method: 'PATCH', path, plural: resource.plural, body })).kind === 'failed'
      await eventually(`refusal of ${refText(ref)}`, isRefused)
    },
  }
}

/** `first`: digest of the first revision. */
async function goOn(
  { kit, ...site }: WhySite,
  { name, row, next, meanwhile }: RealWhyCase,
  first: string,
  signal: AbortSignal,
): Promise<void> {
  const id = idOf(name)
  // An object that waits for its namespace is Synced and Missing, so the objects do not tell.
  const isApplied = () => kit.service(id)?.applied?.digest === first
  let isNext = next === undefined
  while (!signal.aborted && (!isNext || meanwhile !== undefined)) {
    if (!isNext && isApplied()) {
      kit.desire(next ?? [], { namespace: name, ...row }, id)
      isNext = true
    }
    // The object may not be there yet.
    await meanwhile?.({ kit, ...site }).catch(() => {})
    await Bun.sleep(250)
  }
}

function keyIn(namespace: string, object: K8sObject): string {
  const ref = refOf(object)
  return refKey({ ...ref, namespace: ref.namespace || namespace })
}

/** Also of a kind that the cluster does not serve, whose scope nobody knows, and of the namespace that the agent
 *  creates. */
const keysOf = (namespace: string, objects: readonly K8sObject[]): ReadonlySet<string> =>
  new Set([...objects.flatMap((object) => [keyIn(namespace, object), refKey(refOf(object))]), `/Namespace//${namespace}`])

/** As the server explains what the agent reports of one cluster. */
function resultOf(kit: ReconcileKit, { name, cause, objects, next = [] }: RealWhyCase): WhyResult {
  const seen = [...keysOf(name, [...objects, ...next])].flatMap((key): WhyObject[] => {
    const { sync, health, reason, message } = kit.object(key, idOf(name)) ?? { sync: 'Synced', health: 'Healthy', reason: '', message: '' }
    if (sync === 'Synced' && health === 'Healthy') return []
    return [{ cluster: 'here', name: key, sync, health, reason, message, sinceMs: null, driftBy: null }]
  })
  const status = kit.service(idOf(name))
  const { sync, health, reason, message } = status ?? { sync: 'OutOfSync', health: 'Unknown', reason: 'NotReceived', message: '' }
  const told = { sync, health, reason, message, next: '', sinceMs: null }
  const [first] = explain({
    service: told,
    placements: [{ ...told, cluster: 'here', liveness: 'Online' }],
    objects: seen,
    clusterCount: 1,
    dependencies: [],
  })
  const read = kit.replica.read(idOf(name))
  const wanted = read.kind === 'complete' ? read.revision.row.commit : read.kind
  const at = `wanted ${wanted}, received ${status?.received?.commit}, applied ${status?.applied?.commit}`
  const reported = [
    `${reason}: ${message} (${at})`,
    ...seen.map((one) => `${one.name} ${one.sync} ${one.health} ${one.reason}: ${one.message}`),
  ]
  return { name, expected: cause, found: first?.cause ?? '', reported: reported.join('\n  ') }
}
