// Statuses of the agents of a large fleet, computed from a site's number alone: forty services, of which each site has
// four. Names are the same everywhere; images and states are those of a few versions that are rolled out in waves.
import type { ServiceStatus } from '../../shared/model/status.ts'
import { REV_INCARNATION } from '../../shared/protocol/status.ts'
import { seededRandom } from '../../shared/runtime/random.ts'

export interface ReportedRow {
  kind: 'object' | 'service' | 'cluster' | 'drift' | 'event'
  key: string
  rev: number
  doc: object
}

export const SERVICES = 40
export const SERVICES_EACH = 4
const PROJECTS = ['shop', 'plant', 'edge', 'ops']
const VERSIONS = 3
const INCARNATION = 1
export const BEGAN_MS = 1_790_000_000_000
const HOUR_MS = 3_600_000
const SETTLED_MS = 60 * 24 * HOUR_MS

/** `<group>/<kind>`, and whether it runs images. */
const OBJECTS: ReadonlyArray<readonly [kind: string, name: string, images: number]> = [
  ['/ConfigMap', 'settings', 0],
  ['/ConfigMap', 'dashboards', 0],
  ['/Secret', 'credentials', 0],
  ['/Service', 'web', 0],
  ['/Service', 'worker', 0],
  ['/ServiceAccount', 'runner', 0],
  ['apps/Deployment', 'web', 2],
  ['apps/Deployment', 'worker', 1],
  ['apps/StatefulSet', 'cache', 1],
  ['apps/DaemonSet', 'collector', 1],
  ['batch/CronJob', 'report', 1],
  ['networking.k8s.io/Ingress', 'web', 0],
]
type Object = (typeof OBJECTS)[number]
const WORKLOADS = OBJECTS.filter(([kind, , images]) => images > 0 && kind !== 'batch/CronJob')

export const serviceOf = (site: number, n: number): { project: string; service: string } => {
  const number = (site + n * 7) % SERVICES
  return { project: PROJECTS[number % PROJECTS.length] ?? '', service: `service-${number}` }
}

/** All there is at the first contact: 52 objects and services, and the cluster. */
export function firstRows(site: number): ReportedRow[] {
  const rows = new Rows(site, 0)
  for (let n = 0; n < SERVICES_EACH; n++) {
    for (const object of OBJECTS) rows.object(n, object, 0, true)
    rows.service(n, { sync: 'Synced', health: 'Healthy', reason: 'Synced', message: '' }, 0)
  }
  rows.add('cluster', 'cluster', {
    agentVersion: '0.5.0',
    kubernetesVersion: `v1.${33 + (site % 4)}.2`,
    clusterUid: `uid-${site}`,
    problems: [],
  })
  return rows.rows
}

/**
 * The changes while a new version of all four is rolled out: 20 rows. Odd rounds end in the middle of it, even ones
 * after it. `atMs`: the time of the change; without it, some time within an hour in which there was no server.
 */
export function changedRows(site: number, round: number, atMs?: number): ReportedRow[] {
  const rows = new Rows(site, round, atMs)
  const done = round % 2 === 0
  for (let n = 0; n < SERVICES_EACH; n++) {
    for (const object of WORKLOADS.slice(0, n < 2 ? 4 : 3)) rows.object(n, object, round, done)
    const state = done
      ? ({ sync: 'Synced', health: 'Healthy', reason: 'Synced', message: '' } as const)
      : ({
          sync: 'Synced',
          health: 'Progressing',
          reason: 'LessUpdated',
          message: `Deployment ${rows.namespace(n)}/web: 1 of 3 replicas are updated`,
        } as const)
    rows.service(n, state, round)
  }
  rows.add('event', `${rows.atMs}-${round}`, {
    atMs: rows.atMs,
    type: 'Normal',
    reason: 'Applied',
    message: `revision ${rows.version(round)} is applied`,
    service: rows.key(0),
  })
  const drift = {
    paths: ['.spec.replicas'],
    manager: 'kubectl-scale',
    action: 'healed',
    detectedMs: rows.atMs,
    healedMs: rows.atMs + 40,
    count: round,
  }
  rows.add('drift', `${rows.key(0)}/apps/Deployment/${rows.namespace(0)}/web`, drift)
  return rows.rows
}

class Rows {
  readonly rows: ReportedRow[] = []
  readonly atMs: number
  private readonly site: number
  private readonly random: () => number
  private rev: number

  constructor(site: number, round: number, atMs?: number) {
    this.site = site
    this.random = seededRandom(site * 64 + round)
    this.atMs = atMs ?? BEGAN_MS + round * HOUR_MS + Math.floor(this.random() * HOUR_MS)
    this.rev = INCARNATION * REV_INCARNATION + round * 1_000
  }

  add(kind: ReportedRow['kind'], key: string, doc: object): void {
    this.rev += 1
    this.rows.push({ kind, key, rev: this.rev, doc })
  }

  object(n: number, object: Object, round: number, healthy: boolean): void {
    const [kind, name] = object
    // Rows that last came into their state at any time; rows that change report it within a minute.
    const sinceMs = this.atMs - Math.floor(this.random() * (round === 0 ? SETTLED_MS : 60_000))
    const replicas = 1 + Math.floor(this.random() * 2)
    const state = healthy
      ? { health: 'Healthy', reason: 'Healthy', message: '' }
      : { health: 'Progressing', reason: 'LessUpdated', message: `${replicas} of 3 replicas are updated` }
    const key = `${this.key(n)}/${kind}/${this.namespace(n)}/${name}`
    this.add('object', key, { sync: 'Synced', ...state, sinceMs, ...this.images(object, n, round) })
  }

  service(n: number, state: Pick<ServiceStatus, 'sync' | 'health' | 'reason' | 'message'>, round: number): void {
    const point = { commit: `c0ffee${this.version(round)}`, digest: `d1ge57${this.version(round)}`, atMs: this.atMs }
    const progress = { received: point, applied: point, ...(state.health === 'Healthy' ? { healthy: point } : {}) }
    const healthyCount = state.health === 'Healthy' ? OBJECTS.length : OBJECTS.length - 3
    this.add('service', this.key(n), { ...state, sinceMs: this.atMs, ...progress, objectCount: OBJECTS.length, healthyCount })
  }

  key(n: number): string {
    const { project, service } = serviceOf(this.site, n)
    return `${project}/${service}`
  }
  namespace = (n: number): string => serviceOf(this.site, n).service

  images([, name, count]: Object, n: number, round: number): { images?: string[] } {
    const version = this.version(round)
    const own = `registry.example/${this.namespace(n)}/${name}:1.${version}.0`
    if (count === 0) return {}
    return { images: count === 1 ? [own] : [`registry.example/mesh/proxy:2.${version}.1`, own] }
  }

  /** A wave of the fleet is one version ahead of the next. */
  version = (round: number): number => Math.ceil(round / 2) + (this.site % VERSIONS)
}
