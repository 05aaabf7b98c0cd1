// What fleet queries have to answer, worked out the long way: every row of a generated fleet in memory, one filter
// after the other, one sort.
import { type ClusterRows, FleetRows, type FleetShape } from '../../scripts/benchmarks/fleet-rows.ts'
import { imageTest } from '../../server/fleet/image-filter.ts'
import type { ObjectQuery, PlacementQuery } from '../../server/store/queries/fleet-queries.ts'
import { type Labels, matchesSelector } from '../../shared/model/labels.ts'
import { HEALTH_WORST } from '../../shared/model/status.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'

export interface NaiveObject {
  cluster: string
  labels: Labels
  key: string
  project: string
  service: string
  group: string
  kind: string
  namespace: string
  name: string
  sync: string
  health: string
  reason: string
  message: string
  images: string
  sinceMs: number
  drift: string | null
  /** Numbers, by which equal times are told apart. */
  place: [cluster: number, name: number]
}
export interface NaivePlacement {
  cluster: string
  labels: Labels
  project: string
  service: string
  sync: string
  health: string
  digest: string
  commit: string
}

export class NaiveFleet {
  readonly objects: NaiveObject[] = []
  readonly placements: NaivePlacement[] = []
  readonly clusters: Array<ClusterRows['cluster'] & { labels: Labels; revoked: boolean; versions: string[] }> = []
  readonly words: readonly string[]

  constructor(shape: FleetShape) {
    const fleet = new FleetRows(shape)
    for (let number = 0; number < shape.clusters; number++) {
      const { cluster, resource, statuses, desired } = fleet.cluster(number)
      const labels = JSON.parse(resource.labels) as Labels
      const drifts = new Map<string, string>()
      const versions: string[] = []
      for (const row of statuses) {
        const name = fleet.names[row.name_id - 1]
        if (name?.kind === 'drift') drifts.set(name.key, fleet.states[(row.state_id ?? 0) - 1]?.reason ?? '')
        if (name?.kind === 'cluster')
          versions.push(
            ...(Object.values(JSON.parse(row.doc ?? '{}')) as string[]).filter((value) => /^v?\d/.test(String(value))).map(String),
          )
      }
      this.clusters.push({ ...cluster, labels, revoked: JSON.parse(resource.spec).revoked, versions })
      for (const row of statuses) {
        const name = fleet.names[row.name_id - 1]
        const state = row.state_id === null ? undefined : fleet.states[row.state_id - 1]
        if (name?.kind !== 'object' || state === undefined) continue
        const { key, project, service, api_group: group, object_kind: kind, namespace } = name
        const { sync, health, reason, message } = state
        this.objects.push({
          ...{
            cluster: cluster.name,
            labels,
            key,
            project,
            service,
            group,
            kind,
            namespace,
            name: name.name,
            sync,
            health,
            reason,
            message,
          },
          images: state.images ?? '',
          sinceMs: row.since_ms ?? 0,
          drift: drifts.get(key) ?? null,
          place: [row.cluster_no, row.name_id],
        })
      }
      for (const row of desired) {
        const { project, service, digest } = row
        const commit = (JSON.parse(row.doc ?? '{}') as { commit: string }).commit
        this.placements.push({
          cluster: cluster.name,
          labels,
          project,
          service,
          sync: row.sync ?? '',
          health: row.health ?? '',
          digest: digest ?? '',
          commit,
        })
      }
    }
    this.words = [
      ...new Set(this.objects.flatMap(({ name, kind, reason, message, service }) => [name, kind, reason, service, ...message.split(' ')])),
    ]
  }

  /** A service that cannot be rendered for a cluster, which has nothing of it. */
  addUnrendered(cluster: string, id: ServiceId): void {
    const { labels } = this.clusters.find(({ name }) => name === cluster) ?? { labels: {} }
    this.placements.push({ ...id, cluster, labels, sync: 'OutOfSync', health: 'Missing', digest: '', commit: '' })
  }

  /** Keys of the whole answer, in order. */
  objectsOf(query: Omit<ObjectQuery, 'limit' | 'after'>): string[] {
    const { cluster, labels, project, service, kind, group, namespace, name, sync, health, reason, image, drift, words = [], sort } = query
    const found = this.objects.filter(
      (one) =>
        (cluster === undefined || one.cluster === cluster) &&
        (labels === undefined || matchesSelector(one.labels, labels)) &&
        (project === undefined || one.project === project) &&
        (service === undefined || one.service === service) &&
        (kind === undefined || one.kind.toLowerCase() === kind.toLowerCase()) &&
        (group === undefined || one.group === group) &&
        (namespace === undefined || one.namespace === namespace) &&
        (name === undefined || one.name === name) &&
        (sync === undefined || (sync as readonly string[]).includes(one.sync)) &&
        (health === undefined || (health as readonly string[]).includes(one.health)) &&
        (reason === undefined || one.reason.toLowerCase() === reason.toLowerCase()) &&
        (image === undefined || imageTest(image)?.(one.images) === true) &&
        (drift === undefined || (one.drift !== null && one.drift !== 'healed')) &&
        words.every((word) =>
          [one.cluster, one.name, one.namespace, one.kind, one.service, one.project, one.reason, one.message].some((text) =>
            text.toLowerCase().includes(word),
          ),
        ),
    )
    const byCluster = (a: NaiveObject, b: NaiveObject) => order(a.cluster, b.cluster) || order(a.key, b.key)
    const byTime = (a: NaiveObject, b: NaiveObject) => a.sinceMs - b.sinceMs || a.place[0] - b.place[0] || a.place[1] - b.place[1]
    const bad = ({ health }: NaiveObject) => (HEALTH_WORST as readonly string[]).indexOf(health)
    const sorts = {
      cluster: byCluster,
      name: (a, b) => order(a.name, b.name) || order(a.key, b.key) || order(a.cluster, b.cluster),
      newest: (a, b) => -byTime(a, b),
      oldest: byTime,
      health: (a, b) => bad(a) - bad(b) || byCluster(a, b),
    } satisfies Record<ObjectQuery['sort'], (a: NaiveObject, b: NaiveObject) => number>
    return found.sort(sorts[sort]).map(({ cluster, key }) => `${cluster} ${key}`)
  }

  placementsOf(query: Omit<PlacementQuery, 'limit' | 'after'>): string[] {
    const { cluster, labels, project, service, sync, health, revision, words = [], sort } = query
    const found = this.placements.filter(
      (one) =>
        (cluster === undefined || one.cluster === cluster) &&
        (labels === undefined || matchesSelector(one.labels, labels)) &&
        (project === undefined || one.project === project) &&
        (service === undefined || one.service === service) &&
        (sync === undefined || (sync as readonly string[]).includes(one.sync)) &&
        (health === undefined || (health as readonly string[]).includes(one.health)) &&
        (revision === undefined || one.digest.startsWith(revision)) &&
        words.every((word) => [one.cluster, one.project, one.service].some((text) => text.includes(word))),
    )
    const byCluster = (a: NaivePlacement, b: NaivePlacement) =>
      order(a.cluster, b.cluster) || order(`${a.project}/${a.service}`, `${b.project}/${b.service}`)
    const bad = ({ health }: NaivePlacement) => (HEALTH_WORST as readonly string[]).indexOf(health)
    const sorts = {
      cluster: byCluster,
      name: (a, b) => order(a.service, b.service) || order(a.project, b.project) || order(a.cluster, b.cluster),
      health: (a, b) => bad(a) - bad(b) || byCluster(a, b),
    } satisfies Record<PlacementQuery['sort'], (a: NaivePlacement, b: NaivePlacement) => number>
    return found.sort(sorts[sort]).map(({ cluster, project, service }) => `${cluster} ${project}/${service}`)
  }
}

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
