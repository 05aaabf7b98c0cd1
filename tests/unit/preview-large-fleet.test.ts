// Removal previews in a fleet of 10,000 clusters: what is equal is evaluated once, and other work has its turn in
// between.
import { expect, test } from 'bun:test'
import { createRemovalPlans } from '../../server/actions/removal-plans.ts'
import { encodeRenderedSet } from '../../server/desired/rendered-set.ts'
import type { ClusterRecord, DesiredService, StoredResource } from '../../server/fleet/records.ts'
import { removalEffect } from '../../server/fleet/removal-effect.ts'
import { isTarget, placedByText } from '../../server/fleet/targeting.ts'
import { readMoves } from '../../server/http/apply-moves.ts'
import type { Store } from '../../server/store/store.ts'
import { refOf } from '../../shared/kube/object.ts'
import { objectRowId, type ServiceRow, serviceRowSchema } from '../../shared/model/desired.ts'
import type { Labels } from '../../shared/model/labels.ts'
import { type Applicable, serviceSpecSchema, syncOptionsSchema } from '../../shared/model/resources.ts'
import { agentIdSchema, type ClusterId, clusterIdSchema, serviceKey } from '../../shared/runtime/ids.ts'

const WEB = { project: 'shop', service: 'web' }
const CLUSTERS = 10_000
const REGIONS = 8
const SLICE_MS_MAX = 20

/** Each look at the clock costs a millisecond, as if each step did; `longestMs` is the longest time without a turn for
 *  others. */
function steppedClock() {
  let nowMs = 0
  let [turnMs, longestMs, done] = [0, 0, false]
  const turn = () => {
    longestMs = Math.max(longestMs, nowMs - turnMs)
    turnMs = nowMs
    if (!done) setImmediate(turn)
  }
  setImmediate(turn)
  return {
    clock: { nowMs: () => nowMs++, monotonicMs: () => nowMs, sleep: async () => {} },
    end: () => {
      done = true
      return { longestMs: Math.max(longestMs, nowMs - turnMs), steps: nowMs }
    },
  }
}

const LABELS: Labels[] = Array.from({ length: REGIONS }, (_, region) => ({ env: 'prod', region: `r${region}` }))
const clusters: ClusterRecord[] = Array.from({ length: CLUSTERS }, (_, n) => ({
  clusterId: clusterIdSchema.parse(`c-${n.toString(16).padStart(16, '0')}`),
  agentId: agentIdSchema.parse(`a-${n.toString(16).padStart(16, '0')}`),
  name: `site-${String(n).padStart(5, '0')}`,
  labels: LABELS[n % REGIONS] ?? {},
  revoked: false,
  joinedMs: 1,
  lastSeenMs: 1,
  waitSeconds: 0,
}))
const doc: ServiceRow = serviceRowSchema.parse({ commit: 'c', digest: 'one', count: 2, sync: syncOptionsSchema.parse({}) })
const targets = (matchLabels: Labels) => ({ selector: { matchLabels }, exclude: [] })
const specOf = (matchLabels: Labels) =>
  serviceSpecSchema.parse({ source: { repository: 'apps', path: 'web' }, targets: targets(matchLabels) })
const rowIn = (clusterId: ClusterId, set: string): DesiredService => ({
  ...{ clusterId, ...WEB, ordinal: 1, doc, setSha: set, placedBy: placedByText(targets({ env: 'prod' })) },
})
const rows = clusters.map(({ clusterId }, n) => rowIn(clusterId, n % 2 === 0 ? 'even' : 'odd'))
const resource: StoredResource = {
  ...{ kind: 'Service', project: WEB.project, name: WEB.service, uid: 'u', generation: 1, version: 1, labels: {} },
  ...{ spec: JSON.stringify(specOf({ env: 'prod' })), createdMs: 1, updatedMs: 1, deletingMs: null },
}
const store = {
  getResource: async ({ kind }: { kind: string }) => (kind === 'Project' ? null : resource),
  listResources: async () => ({ items: [resource], next: null }),
  listClusters: async () => clusters,
  findClusters: async (by: { names: string[] } | { ids: ClusterId[] }) => {
    const wanted = new Set<string>('names' in by ? by.names : by.ids)
    return clusters.filter(({ clusterId, name }) => wanted.has(clusterId) || wanted.has(name))
  },
  placementTotals: async () => ({ holders: rows.length, orders: [] }),
  listStatus: async () => [],
  desiredOfService: async () => rows,
  desiredInCluster: async (clusterId: ClusterId) => rows.filter((row) => row.clusterId === clusterId),
  confirmationFor: async () => null,
} as unknown as Store
const objects = ['a', 'b'].map((name) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'shop' } }))
const content = {
  get: async () => encodeRenderedSet(new Map(objects.map((one) => [objectRowId(WEB, refOf(one)), JSON.stringify(one)]))),
}

const NOBODY = new Map()
const owners = { takersOfAll: async () => () => NOBODY }

function plansWith(clock: { nowMs(): number }) {
  let effects = 0
  const effectOf: typeof removalEffect = (held) => {
    effects += 1
    return removalEffect(held)
  }
  return { removals: createRemovalPlans({ store, content, owners, clock, effectOf }), effects: () => effects }
}

test('CL5 a deletion preview evaluates each revision once, in slices', async () => {
  const { clock, end } = steppedClock()
  const { removals, effects } = plansWith(clock)
  const planned = await removals.ofService(WEB, () => true)
  const { longestMs, steps } = end()
  expect([planned?.map(({ view }) => [view.clusters.count, view.deletes.count]), effects()]).toEqual([[[CLUSTERS, 2]], 2])
  expect(longestMs).toBeLessThanOrEqual(SLICE_MS_MAX)
  expect(steps).toBeGreaterThanOrEqual(CLUSTERS)
})

const retargeted = (): Array<{ resource: Applicable; held: StoredResource }> => [
  {
    held: resource,
    resource: {
      ...{ apiVersion: 'skerry.dev/v1', kind: 'Service', metadata: { project: WEB.project, name: WEB.service, labels: {} } },
      spec: specOf({ env: 'prod', region: 'r0' }),
    },
  },
]
const relabelled = (): Array<{ resource: Applicable; held: StoredResource }> =>
  clusters.slice(0, 400).map(({ name, labels }) => ({
    held: { ...resource, kind: 'Cluster', project: '', name, labels, spec: '{}' },
    resource: {
      ...{ apiVersion: 'skerry.dev/v1', kind: 'Cluster', metadata: { name, labels: { env: 'dev' } }, spec: { revoked: false } },
    },
  }))

test.each([
  // Targets before and after for the labels of each region, and the targets that placed the rows.
  ['a service with other targets', retargeted, (CLUSTERS / REGIONS) * (REGIONS - 1), 3 * REGIONS],
  ['400 clusters that are relabelled alike', relabelled, 400, 2 + 3 * REGIONS],
] as const)(
  'TG18 %s: labels are evaluated once for each selector, effects once for each revision, in slices',
  async (_, planned, leave, most) => {
    const { clock, end } = steppedClock()
    const { removals, effects } = plansWith(clock)
    let evaluations = 0
    const evaluate: typeof isTarget = (labels, of) => {
      evaluations += 1
      return isTarget(labels, of)
    }
    const told = await readMoves({ store, removals, clock }, planned(), evaluate)
    const { longestMs } = end()
    expect(told.moves.reduce((sum, { leaves }) => sum + leaves.count, 0)).toBe(leave)
    expect(told.removals.map(({ view }) => serviceKey(view))).toContain(serviceKey(WEB))
    expect(evaluations).toBeLessThanOrEqual(most)
    expect(effects()).toBe(2)
    expect(longestMs).toBeLessThanOrEqual(SLICE_MS_MAX)
  },
)
