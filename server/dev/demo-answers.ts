// The answers of a simulated site to questions of people: the objects of its services as if they ran there, with
// made-up Pods, events and logs.
import { createHash } from 'node:crypto'
import type { DriftStatus, ObjectStatus } from '../../shared/model/status.ts'
import { type AnswerLine, ASK_REFUSALS, type AskedRef, type Question } from '../../shared/protocol/ask.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { systemRandom } from '../../shared/runtime/random.ts'

/** The facts of a site about an object; null if it has no such object. */
export interface DemoObject {
  manifest: Record<string, unknown>
  status: ObjectStatus | null
  drift: DriftStatus | null
  /** Key of its service. */
  service: string
}

export interface DemoWorldOfSite {
  cluster: string
  find(ref: AskedRef): DemoObject | null
  restart(service: string): void
}

const PODS_EACH = 2
const HOUR_MS = 3_600_000
const LOG_LINES = 120
const digest = (words: string): string => createHash('sha256').update(words).digest('hex')

interface DemoPod {
  ref: AskedRef
  uid: string
  isBad: boolean
}

const replicaSetOf = ({ name }: AskedRef, cluster: string): string => `${name}-${digest(`${cluster}${name}`).slice(0, 9)}`

function podsOf(site: DemoWorldOfSite, of: AskedRef): DemoPod[] {
  const found = site.find(of)
  if (found === null || of.group !== 'apps') return []
  return Array.from({ length: PODS_EACH }, (_, index) => {
    const uid = digest(`${site.cluster}${of.namespace}${of.name}${index}`)
    const name = `${replicaSetOf(of, site.cluster)}-${uid.slice(0, 5)}`
    return {
      ref: { group: '', kind: 'Pod', namespace: of.namespace, name },
      uid,
      isBad: index === 0 && found.status?.health === 'Degraded',
    }
  })
}

/** Name of the Pod of a Deployment that fails when it is degraded. */
export function failingPod(cluster: string, namespace: string, name: string): string {
  const of = { group: 'apps', kind: 'Deployment', namespace, name }
  return `${replicaSetOf(of, cluster)}-${digest(`${cluster}${namespace}${name}0`).slice(0, 5)}`
}

/** `demo-web-4b2c…-9f3d1` belongs to the Deployment demo-web. */
function ownerOf(site: DemoWorldOfSite, { kind, namespace, name }: AskedRef): AskedRef | null {
  if (kind !== 'Pod' && kind !== 'ReplicaSet') return null
  const owner = {
    group: 'apps',
    kind: 'Deployment',
    namespace,
    name: name
      .split('-')
      .slice(0, kind === 'Pod' ? -2 : -1)
      .join('-'),
  }
  return site.find(owner) === null ? null : owner
}

const failed = (code: string, message: string, remedy?: string): AnswerLine => ({
  ...{ t: 'failed', code, message },
  ...(remedy === undefined ? {} : { remedy }),
})

/** Lines of the answer; the last one is `end` or `failed`. */
export async function* demoAnswer(site: DemoWorldOfSite, question: Question, signal: AbortSignal): AsyncGenerator<AnswerLine> {
  if (!('ref' in question) || question.ref === undefined) {
    yield failed(ASK_REFUSALS.unknown, `a simulated cluster does not answer the question ${question.kind}`)
    return
  }
  const { ref } = question
  const owner = ownerOf(site, ref)
  const object = site.find(owner ?? ref)
  if (object === null) {
    yield failed(ASK_REFUSALS.notFound, `${ref.kind} ${ref.namespace}/${ref.name} does not exist in ${site.cluster}`)
    return
  }
  if (question.kind === 'logs')
    yield* logs(site, owner === null || ref.kind !== 'Pod' ? podsOf(site, owner ?? ref) : [podNamed(site, owner, ref)], question, signal)
  else yield* linesOf(site, question, ref, owner, object)
  yield { t: 'end' }
}

const podNamed = (site: DemoWorldOfSite, owner: AskedRef, ref: AskedRef): DemoPod =>
  podsOf(site, owner).find((pod) => pod.ref.name === ref.name) ?? { ref, uid: digest(ref.name), isBad: false }

function* linesOf(
  site: DemoWorldOfSite,
  { kind }: Question,
  ref: AskedRef,
  owner: AskedRef | null,
  object: DemoObject,
): Generator<AnswerLine> {
  if (kind === 'object')
    yield { t: 'object', object: owner === null ? liveObject(site, ref, object) : livePod(site, ref, owner, object), masked: [] }
  else if (kind === 'tree') yield* tree(site, ref, object)
  else if (kind === 'events') yield* events(ref, object)
  else if (kind === 'diff') yield { t: 'diff', ref, ...difference(object) }
  else if (kind === 'restart') {
    site.restart(object.service)
    yield { t: 'restarted', ref, at: new Date(systemClock.nowMs()).toISOString() }
  }
}

function* tree(site: DemoWorldOfSite, ref: AskedRef, { status }: DemoObject): Generator<AnswerLine> {
  const root = digest(`${site.cluster}${ref.kind}${ref.name}`)
  const fine = { health: 'Healthy', reason: '', message: '' }
  yield {
    t: 'child',
    ref,
    uid: root,
    parent: null,
    health: status?.health ?? 'Healthy',
    reason: status?.reason ?? '',
    message: status?.message ?? '',
  }
  if (ref.group !== 'apps') return
  const set = digest(`${root}set`)
  yield { t: 'child', ref: { ...ref, kind: 'ReplicaSet', name: replicaSetOf(ref, site.cluster) }, uid: set, parent: root, ...fine }
  for (const { ref: pod, uid, isBad } of podsOf(site, ref)) {
    const words = isBad
      ? { health: 'Degraded', reason: 'CrashLoopBackOff', message: 'container main exits with code 137, 6 restarts' }
      : fine
    yield { t: 'child', ref: pod, uid, parent: set, ...words }
  }
}

function* events({ name }: AskedRef, { status }: DemoObject): Generator<AnswerLine> {
  const now = systemClock.nowMs()
  const event = (agoMs: number, type: string, reason: string, message: string, count: number, source: string): AnswerLine => ({
    ...{ t: 'event', type, reason, message, count, source },
    at: new Date(now - agoMs).toISOString(),
  })
  yield event(0.9 * HOUR_MS, 'Normal', 'ScalingReplicaSet', `Scaled up replica set ${name} to ${PODS_EACH}`, 1, 'deployment-controller')
  yield event(
    0.8 * HOUR_MS,
    'Normal',
    'Pulled',
    `Container image "registry.example/${name}" already present on machine`,
    PODS_EACH,
    'kubelet',
  )
  if (status?.health !== 'Degraded') return
  yield event(600_000, 'Warning', 'OOMKilling', 'Memory cgroup out of memory: killed process 4117 (main)', 6, 'kubelet')
  yield event(40_000, 'Warning', 'BackOff', 'Back-off restarting failed container main', 23, 'kubelet')
}

function difference({ drift, manifest }: DemoObject): Pick<Extract<AnswerLine, { t: 'diff' }>, 'state' | 'fields'> {
  if (drift === null || drift.action === 'healed') return { state: 'same', fields: [] }
  const image = JSON.stringify(manifest).match(/"image":"([^"]+)"/)?.[1] ?? 'registry.example/main:1.1.0'
  return {
    state: 'changed',
    fields: drift.paths.map((path) => ({
      path,
      ...(path.endsWith('image') ? { desired: image, live: `${image}-debug` } : { desired: PODS_EACH, live: 5 }),
      managers: [drift.manager],
      writtenMs: drift.detectedMs,
    })),
  }
}

function liveObject({ cluster }: DemoWorldOfSite, ref: AskedRef, { manifest, status }: DemoObject): Record<string, unknown> {
  const uid = digest(`${cluster}${ref.kind}${ref.name}`)
  const metadata = {
    ...(manifest['metadata'] as object),
    uid: `${uid.slice(0, 8)}-${uid.slice(8, 12)}-${uid.slice(12, 16)}`,
    generation: 3,
  }
  const replicas = {
    observedGeneration: 3,
    replicas: PODS_EACH,
    updatedReplicas: PODS_EACH,
    readyReplicas: status?.health === 'Degraded' ? 1 : PODS_EACH,
  }
  return { ...manifest, metadata, ...(ref.group === 'apps' ? { status: replicas } : {}) }
}

function livePod(site: DemoWorldOfSite, ref: AskedRef, owner: AskedRef, { manifest }: DemoObject): Record<string, unknown> {
  const template = (manifest['spec'] as { template?: { spec?: object } } | undefined)?.template?.spec ?? {}
  const { isBad } = podNamed(site, owner, ref)
  const state = isBad ? { waiting: { reason: 'CrashLoopBackOff' } } : { running: {} }
  return {
    ...{ apiVersion: 'v1', kind: ref.kind, metadata: { name: ref.name, namespace: ref.namespace, labels: { app: owner.name } } },
    spec: { nodeName: `${site.cluster}-node-1`, ...template },
    status: { phase: 'Running', containerStatuses: [{ name: 'main', ready: !isBad, restartCount: isBad ? 6 : 0, state }] },
  }
}

const PATHS = ['/', '/healthz', '/api/orders', '/api/stock?sku=4711', '/metrics', '/api/prices']

function logLine(isBad: boolean, atMs: number): string {
  const at = new Date(atMs).toISOString()
  if (isBad && systemRandom() < 0.3) return `${at} level=error msg="cannot allocate 64 MiB for the cache" rss=498MiB limit=512MiB`
  const path = PATHS[Math.floor(systemRandom() * PATHS.length)]
  return `${at} level=info msg="request" method=GET path=${path} status=200 duration=${(1 + systemRandom() * 40).toFixed(1)}ms`
}

async function* logs(
  { cluster }: DemoWorldOfSite,
  pods: readonly DemoPod[],
  { follow = false, previous = false, tailLines = LOG_LINES }: Extract<Question, { kind: 'logs' }>,
  signal: AbortSignal,
): AsyncGenerator<AnswerLine> {
  if (pods.length === 0) return
  const now = systemClock.nowMs()
  const lines = Math.min(tailLines, LOG_LINES)
  for (const { ref, isBad } of pods) {
    if (previous && !isBad) {
      yield { t: 'note', message: `Pod ${ref.name} in ${cluster} has no previous run` }
      continue
    }
    const text = Array.from({ length: lines }, (_, index) => logLine(isBad, now - (lines - index) * 1_300)).join('\n')
    yield { t: 'log', pod: ref.name, container: 'main', text: `${text}\n` }
  }
  while (follow && !previous && !signal.aborted) {
    await systemClock.sleep(200 + systemRandom() * 1_200, signal)
    const pod = pods[Math.floor(systemRandom() * pods.length)]
    if (pod !== undefined && !signal.aborted)
      yield { t: 'log', pod: pod.ref.name, container: 'main', text: `${logLine(pod.isBad, systemClock.nowMs())}\n` }
  }
}
