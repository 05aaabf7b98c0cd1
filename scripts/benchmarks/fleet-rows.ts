// A fleet as a store of schema 3 would hold it, from a number of clusters and nothing else: services that not every
// cluster has, names that all share and some that are one cluster's own, rollouts under way, faults with many different
// messages, drifts. The same numbers give the same rows.
import {
  nameParts,
  type RowKind,
  type StateParts,
  stateDigest,
  stateText,
  statusColumns,
} from '../../server/store/status/status-columns.ts'
import type { Tables } from '../../server/store/tables.ts'
import { canonicalJson, sha256Hex } from '../../shared/kube/canonical.ts'
import type { HealthWord } from '../../shared/kube/health-object.ts'
import type { ServiceRow } from '../../shared/model/desired.ts'
import type { Labels } from '../../shared/model/labels.ts'
import { placementWords } from '../../shared/model/placement-words.ts'
import { FLEET, syncOptionsSchema } from '../../shared/model/resources.ts'
import type { DriftStatus, ObjectStatus, ServiceStatus } from '../../shared/model/status.ts'
import { REV_INCARNATION } from '../../shared/protocol/status.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { seededRandom } from '../../shared/runtime/random.ts'

export interface FleetShape {
  clusters: number
  /** Objects of each. */
  objects: number
  nowMs: number
  /** Another fleet of the same size. */
  seed?: number
  /** Times are multiples of it, so that many are equal. */
  tickMs?: number
  /** Default 24. More of them are in the first hundred clusters alone, one object each: two million placements would
   *  take minutes to fill. */
  services?: number
  /** How many of the clusters, from the first, have all services. Default 100. */
  fullClusters?: number
}

export type NameRow = Omit<Tables['names'], 'id'> & { id: number }
export type StateRow = Omit<Tables['states'], 'id'> & { id: number }
export interface ClusterRows {
  cluster: Tables['clusters']
  agent: Tables['agents']
  resource: Tables['resources']
  desired: Tables['desired'][]
  statuses: Tables['status_rows'][]
}

const DAY_MS = 86_400_000
const ENVIRONMENTS = ['prod', 'prod', 'prod', 'prod', 'staging', 'dev']
export const REGIONS = ['eu-north', 'eu-south', 'us-east', 'us-west', 'sa-east', 'ap-south', 'ap-east', 'af-south']
const RINGS = ['0', '1', '1', '2', '2', '2', '2', '3']
const TENANTS = 25
const KINDS_OF_CLUSTER = ['store', 'store', 'store', 'store', 'store', 'store', 'ship', 'plant', 'depot', 'kiosk']
const PROJECTS = ['shop', 'plant', 'edge', 'ops']
/** Each cluster has twenty of these: sixteen that all have, and four of its region. */
const EVERYWHERE = [
  'web', 'checkout', 'inventory', 'pricing', 'gateway', 'metrics', 'logging', 'ingress-nginx',
  'cert-manager', 'backup', 'printer', 'signage', 'camera', 'scanner', 'loyalty', 'mqtt',
] // biome-ignore format: a list of words
const REGIONAL = ['tax', 'payments', 'language', 'weather', 'customs', 'fuel', 'lottery', 'pharmacy']

const USUAL_SERVICES = EVERYWHERE.length + REGIONAL.length
const FULL_CLUSTERS = 100

const OBJECT_KINDS: ReadonlyArray<readonly [groupKind: string, name: string, images: number]> = [
  ['apps/Deployment', '', 2],
  ['/Service', '', 0],
  ['/ConfigMap', '-settings', 0],
  ['/Secret', '-credentials', 0],
  ['/ServiceAccount', '-runner', 0],
  ['networking.k8s.io/Ingress', '', 0],
  ['apps/StatefulSet', '-cache', 1],
  ['autoscaling/HorizontalPodAutoscaler', '', 0],
  ['policy/PodDisruptionBudget', '', 0],
  ['batch/CronJob', '-report', 1],
]

const FAULTS: ReadonlyArray<readonly [reason: string, message: (a: string, b: string) => string]> = [
  ['CrashLoopBackOff', (pod, node) => `container main of pod ${pod} on node ${node} exits with code 137 again and again`],
  ['ImagePullBackOff', (pod, node) => `node ${node} cannot pull the image of pod ${pod}: connection refused`],
  ['ProgressDeadlineExceeded', (pod) => `ReplicaSet ${pod} has timed out progressing`],
  ['FailedMount', (pod, node) => `volume credentials of pod ${pod} cannot be mounted on ${node}: Zeitüberschreitung`],
  ['Unschedulable', () => '0/3 nodes are available: insufficient memory'],
]

interface Placed {
  project: string
  service: string
  /** Place among all services. */
  number: number
}

/** Rows with numbers that begin at 1, as a store gives them. Clusters are to be asked for in their order, each once. */
export class FleetRows {
  readonly shape: FleetShape
  readonly names: NameRow[] = []
  readonly states: StateRow[] = []
  readonly services: Placed[]
  readonly #nameIds = new Map<string, number>()
  readonly #stateIds = new Map<string, number>()
  readonly #known = new Map<string, number>()
  readonly #docs = new Map<string, { doc: string; row: ServiceRow }>()

  constructor(shape: FleetShape) {
    this.shape = shape
    const usual = [...EVERYWHERE, ...REGIONAL]
    const more = Array.from({ length: Math.max(0, (shape.services ?? 0) - usual.length) }, (_, n) => `service-${n}`)
    this.services = [...usual, ...more].map((service, number) => ({ project: PROJECTS[number % PROJECTS.length] ?? '', service, number }))
  }

  labelsOf(number: number): Labels {
    const random = seededRandom(number + (this.shape.seed ?? 0) * 1_000_003)
    return {
      env: pick(random, ENVIRONMENTS),
      region: pick(random, REGIONS),
      ring: pick(random, RINGS),
      tenant: `t${Math.floor(random() * TENANTS)}`,
      site: clusterName(number),
    }
  }

  servicesOf(labels: Labels): Placed[] {
    const region = REGIONS.indexOf(labels['region'] ?? '')
    return this.services
      .slice(0, USUAL_SERVICES)
      .filter(({ number }) => number < EVERYWHERE.length || (number - EVERYWHERE.length - region + 16) % REGIONAL.length < 4)
  }

  cluster(number: number): ClusterRows {
    const { nowMs, objects } = this.shape
    const random = seededRandom(number * 7_919 + 1 + (this.shape.seed ?? 0) * 15_485_863)
    const labels = this.labelsOf(number)
    const name = clusterName(number)
    const cluster_id = clusterIdOf(number)
    const joined_ms = nowMs - 200 * DAY_MS + number * 1_000
    const usual = this.servicesOf(labels)
    const services = number < (this.shape.fullClusters ?? FULL_CLUSTERS) ? [...usual, ...this.services.slice(USUAL_SERVICES)] : usual
    const statuses: Tables['status_rows'][] = []
    const desired: Tables['desired'][] = []
    const add = (kind: RowKind, key: string, state_id: number | null, since_ms: number | null, doc: string | null) => {
      const name_id = this.#nameId(kind, key)
      const name = this.names[name_id - 1]
      if (name !== undefined) name.refs += 1
      const state = state_id === null ? undefined : this.states[state_id - 1]
      if (state !== undefined) state.refs += 1
      statuses.push({
        cluster_no: number + 1,
        name_id,
        rev: REV_INCARNATION + statuses.length + 1,
        state_id,
        doc,
        since_ms,
        received_ms: nowMs,
      })
    }
    for (const [index, placed] of services.entries()) {
      // The remainder goes to the first ones.
      const isUsual = index < usual.length
      const count = isUsual ? Math.floor(objects / usual.length) + (index < objects % usual.length ? 1 : 0) : 1
      const version = random() < 0.9 ? 0 : 1 + Math.floor(random() * 3)
      let worst: HealthWord = 'Healthy'
      for (let n = 0; n < count; n++) {
        const health = this.#object(add, random, { placed, n, number, version })
        if (health === 'Degraded' || (health === 'Progressing' && worst === 'Healthy')) worst = health
      }
      desired.push(this.#placement(add, random, { placed, number, version, worst, count }))
    }
    const versions = { agentVersion: random() < 0.9 ? '0.5.0' : '0.4.2', kubernetesVersion: `v1.${33 + Math.floor(random() * 4)}.2` }
    add('cluster', 'cluster', null, null, canonicalJson({ ...versions, clusterUid: `uid-${number}`, nodeCount: 3, problems: [] }))
    statuses.sort((a, b) => a.name_id - b.name_id)
    return {
      cluster: {
        cluster_id,
        no: number + 1,
        row_count: statuses.length,
        name,
        cluster_uid: `uid-${number}`,
        epoch: 1,
        ordinal: 0, // nothing is lacking in shard files: a server can start on it
        status_rev: REV_INCARNATION + statuses.length,
        status_floor: 0,
        sweep_from: null,
        sweep_floor: 0,
        event_rev: 0,
        adopted_ordinal: 0,
        settled_epoch: 0,
        joined_ms,
        last_seen_ms: random() < 0.01 ? null : nowMs - Math.floor(random() ** 20 * 3 * DAY_MS),
        wait_s: 0,
      },
      agent: {
        agent_id: clusterIdOf(number).replace('c-', 'a-') as Tables['agents']['agent_id'],
        cluster_id,
        public_key: `key-${number}`,
        recipient: `recipient-${number}`,
        rotate_ms: 0,
        join_token_hash: 'none',
        incarnation: 1,
        joined_ms,
      },
      resource: {
        kind: 'Cluster',
        project: FLEET,
        name,
        uid: cluster_id,
        generation: 1,
        version: number + 1,
        labels: canonicalJson(labels),
        spec: canonicalJson({ revoked: random() < 0.002 }),
        created_ms: joined_ms,
        updated_ms: joined_ms,
        deleting_ms: null,
        deleting_by: null,
      },
      desired,
      statuses,
    }
  }

  #object(add: Add, random: () => number, at: { placed: Placed; n: number; number: number; version: number }): HealthWord {
    const { placed, n, number, version } = at
    const own = n === 2 && placed.number < 3 // one cluster's own name
    const [groupKind, ending, images] = OBJECT_KINDS[n] ?? ['/ConfigMap', `-more-${n}`, 0]
    const name = own ? `${clusterName(number)}-config` : `${placed.service}${ending}`
    const key = `${placed.project}/${placed.service}/${groupKind}/${placed.service}/${name}`
    const chance = random()
    const kind = chance < 0.005 ? 'fault' : chance < 0.025 ? 'progress' : chance < 0.03 ? 'outOfSync' : 'fine'
    const detail = kind === 'fault' ? Math.floor(random() * FAULTS.length * 80) : kind === 'progress' ? Math.floor(random() * 3) : 0
    const known = `${kind} ${detail} ${images} ${images === 0 ? '' : `${placed.number} ${n} ${version}`}`
    const sinceMs = this.#past(random)
    const stateId =
      this.#known.get(known) ?? this.#stateId('object', objectDoc(kind, detail, imagesOf(placed.service, n, images, version), sinceMs))
    this.#known.set(known, stateId)
    add('object', key, stateId, sinceMs, null)
    if (random() < 0.01) {
      const action = random() < 0.7 ? 'healed' : random() < 0.5 ? 'reported' : random() < 0.8 ? 'contested' : 'failed'
      const drift: DriftStatus = {
        paths: ['.spec.replicas'],
        manager: 'kubectl-edit',
        action,
        detectedMs: this.#past(random),
        count: 1,
      }
      add('drift', key, this.#stateId('drift', drift), drift.detectedMs, canonicalJson(drift))
    }
    return kind === 'fault' ? 'Degraded' : kind === 'progress' ? 'Progressing' : 'Healthy'
  }

  #placement(add: Add, random: () => number, at: { placed: Placed; number: number; version: number; worst: HealthWord; count: number }) {
    const { placed, number, version, worst, count } = at
    const { project, service } = placed
    const { doc, row } = this.#revision(placed, version === 0 ? 0 : random() < 0.9 ? version : 0, count)
    const sinceMs = this.#past(random)
    const point = { commit: commitOf(placed, version), digest: digestOf(placed, version), atMs: sinceMs }
    const status: ServiceStatus = {
      sync: worst === 'Progressing' ? 'OutOfSync' : 'Synced',
      health: worst,
      reason: worst === 'Degraded' ? 'CrashLoopBackOff' : worst === 'Progressing' ? 'RollingOut' : 'Healthy',
      message: worst === 'Healthy' ? '' : `Deployment ${service}/${service}: ${worst === 'Degraded' ? 'not ready' : 'rolling out'}`,
      sinceMs,
      received: point,
      applied: point,
      objectCount: count,
      healthyCount: worst === 'Healthy' ? count : count - 1,
    }
    const reported = number % 500 !== 499 // a few have not said anything yet
    if (reported) add('service', `${project}/${service}`, this.#stateId('service', status), sinceMs, canonicalJson(status))
    const words = placementWords(row, reported ? status : null)
    const set_sha = sha256Hex(`set ${row.digest}`)
    const desired: Tables['desired'] = {
      cluster_id: clusterIdOf(number),
      project,
      service,
      ordinal: placed.number + 1,
      doc,
      set_sha,
      facts_key: null,
      rendered_from: null,
      cleanup: 0,
      proof: null,
      placed_by: '{"exclude":[],"selector":{}}',
      digest: row.digest,
      sync: words?.sync ?? null,
      health: words?.health ?? null,
    }
    return desired
  }

  #revision(placed: Placed, version: number, count: number): { doc: string; row: ServiceRow } {
    const key = `${placed.number} ${version} ${count}`
    const held = this.#docs.get(key)
    if (held !== undefined) return held
    const row: ServiceRow = {
      commit: commitOf(placed, version),
      digest: digestOf(placed, version),
      count,
      namespace: placed.service,
      sync: syncOptionsSchema.parse({}),
      protect: false,
    }
    const made = { doc: canonicalJson(row), row }
    this.#docs.set(key, made)
    return made
  }

  #past(random: () => number): number {
    const { nowMs, tickMs = 1 } = this.shape
    return Math.floor((nowMs - Math.floor(random() * 60 * DAY_MS)) / tickMs) * tickMs
  }

  #nameId(kind: RowKind, key: string): number {
    const text = `${kind} ${key}`
    const held = this.#nameIds.get(text)
    if (held !== undefined) return held
    const id = this.names.length + 1
    this.names.push({ id, ...nameParts(kind, key), refs: 0 })
    this.#nameIds.set(text, id)
    return id
  }

  #stateId(kind: RowKind, doc: object): number {
    const state = statusColumns(kind, doc).state as StateParts
    const text = stateText(state)
    const held = this.#stateIds.get(text)
    if (held !== undefined) return held
    const id = this.states.length + 1
    this.states.push({ id, digest: stateDigest(text), ...state, refs: 0 })
    this.#stateIds.set(text, id)
    return id
  }
}

type Add = (kind: RowKind, key: string, stateId: number | null, sinceMs: number | null, doc: string | null) => void

function objectDoc(kind: 'fine' | 'progress' | 'outOfSync' | 'fault', detail: number, images: string[], sinceMs: number): ObjectStatus {
  const base = { sinceMs, ...(images.length === 0 ? {} : { images }) }
  switch (kind) {
    case 'fine':
      return { sync: 'Synced', health: 'Healthy', reason: 'Healthy', message: '', ...base }
    case 'progress':
      return { sync: 'Synced', health: 'Progressing', reason: 'RollingOut', message: `${detail} of 3 replicas are updated`, ...base }
    case 'outOfSync':
      return {
        sync: 'OutOfSync',
        health: 'Healthy',
        reason: 'Conflict',
        message: 'field .spec.replicas is owned by keda-operator',
        ...base,
      }
    case 'fault': {
      const [reason, message] = FAULTS[detail % FAULTS.length] ?? ['Degraded', () => '']
      return { sync: 'Synced', health: 'Degraded', reason, message: message(`pod-${detail.toString(36)}`, `node-${detail % 7}`), ...base }
    }
  }
}

const imagesOf = (service: string, n: number, count: number, version: number): string[] =>
  Array.from(
    { length: count },
    (_, i) => `registry.example/${service}/part-${i}:1.${version}.${n}@sha256:${sha256Hex(`${service} ${i} ${version}`)}`,
  )
const commitOf = ({ service }: Placed, version: number): string => sha256Hex(`commit ${service} ${version}`).slice(0, 40)
const digestOf = ({ service }: Placed, version: number): string => sha256Hex(`digest ${service} ${version}`).slice(0, 32)

const pick = (random: () => number, words: readonly string[]): string => words[Math.floor(random() * words.length)] ?? ''
export const clusterIdOf = (number: number): ClusterId => `c-${(number + 1).toString(16).padStart(16, '0')}` as ClusterId
/** In no order of joining: the names of a fleet grow at many places. */
export function clusterName(number: number): string {
  const mixed = Math.imul(number + 1, 0x9e37_79b1) >>> 0
  return `${KINDS_OF_CLUSTER[mixed % KINDS_OF_CLUSTER.length]}-${String(number).padStart(4, '0')}`
}
