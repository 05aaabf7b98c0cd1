// A server without its HTTP: a real Git server, a real store, real shard files, and the ingest loop between them.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createGitServer, type FileChanges } from '../../scripts/local-cluster/git-http-server.ts'
import { createFleetActions } from '../../server/actions/fleet-actions.ts'
import type { ResourceKey } from '../../server/fleet/records.ts'
import { createIngest } from '../../server/ingest/ingest-loop.ts'
import { createSources } from '../../server/sources/sources.ts'
import { createFileContentStore } from '../../server/store/content/file-content-store.ts'
import { openSqliteStore } from '../../server/store/kysely-store.ts'
import type { Store } from '../../server/store/store.ts'
import { currentJob } from '../../server/worker/current-job.ts'
import type { Position } from '../../shared/crdt/position.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { SignedCommit } from '../../shared/model/commits.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import type { Labels } from '../../shared/model/labels.ts'
import { repositorySpecSchema, serviceSpecSchema } from '../../shared/model/resources.ts'
import type { ServiceStatus } from '../../shared/model/status.ts'
import { type Clock, systemClock } from '../../shared/runtime/clock.ts'
import type { ClusterId, ServiceId } from '../../shared/runtime/ids.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { contentOf } from './local-workers.ts'
import { IDENTITY, parsePage, wholePage } from './page-kit.ts'
import { memoryRendering } from './render-kit.ts'
import { loopbackGuard } from './source-guard.ts'
import { joinCluster } from './store-fixtures.ts'
import { openTestShards } from './sync-kit.ts'
import { tempDir } from './temp-dir.ts'

export const SHOP = { project: 'default', service: 'shop' }

type Rendering = ReturnType<typeof memoryRendering>
export type IngestKit = Awaited<ReturnType<typeof createIngestKit>>

/** `rendering`: asked for once for each server; the folder is the kit's own. */
export async function createIngestKit({
  rendering = () => memoryRendering(),
  clock = systemClock,
  dir = tempDir(),
}: {
  rendering?: (dir: string) => Rendering
  clock?: Clock
  /** As another process left it; the Git server is a new one. */
  dir?: string
} = {}) {
  const git = await createGitServer({ dir: join(dir, existsSync(join(dir, 'remote')) ? 'remote-again' : 'remote') })
  const store = await openSqliteStore(join(dir, 'fleet.db'), { clock: systemClock, random: seededRandom(1) })
  const { shards } = openTestShards(join(dir, 'shards'))
  const content = createFileContentStore(join(dir, 'content'), systemClock)
  const planned: Array<{ service: string; clusters: number }> = []
  const onPlanned = ({ service }: ServiceId, clusters: number) => void planned.push({ service, clusters })
  const parts = { store, content, shards, clock, random: seededRandom(2), log: silentLogger, onPlanned }
  const sourceDeps = {
    addresses: loopbackGuard(),
    credentials: async () => ({}),
    clock: systemClock,
    stopping: new AbortController().signal,
    raiseWatermark: async (signed: SignedCommit) => (await currentJob().ask('verified', signed)).value.newer,
  }
  const openSources = () => createSources({ root: join(dir, 'git'), ...sourceDeps })
  const contentParts = () => contentOf({ ...rendering(dir), sources: openSources(), store })
  const start = (stopping: AbortSignal) => createIngest({ ...parts, ...contentParts(), stopping })
  const ingest = start(new AbortController().signal)
  const actions = createFleetActions({ ...parts, ingest, onClusterDeleted: async () => {} })
  const positions = new Map<ClusterId, Position>()
  let rev = 0

  const apply = async (key: ResourceKey, spec: unknown, labels: Labels = {}) => {
    await store.applyResource(key, { labels, spec: canonicalJson(spec), nowMs: systemClock.nowMs() })
  }
  return {
    dir,
    git,
    store,
    content,
    shards,
    ingest,
    actions,
    /** As for people. */
    otherRenders: () => contentParts().rendering.renders,
    /** Passes that planned a service, and for how many clusters. */
    planned,
    /** A second server process over the same data, as after a restart. */
    restarted: (stopping: AbortSignal = new AbortController().signal) => start(stopping),
    join: (digit: string, labels: Labels = { env: 'prod' }) => joinCluster(store, digit, labels),
    async relabel(name: string, labels: Labels, spec: Record<string, unknown> = {}) {
      const key = { kind: 'Cluster', project: '', name } as const
      const before = await store.getResource(key)
      await apply(key, { revoked: false, ...spec }, labels)
      const labelsOnly = before?.generation === (await store.getResource(key))?.generation
      await ingest.clustersChanged([{ name, labelsOnly }])
    },
    async repository(ref = 'main', url = git.url) {
      await apply({ kind: 'Repository', project: 'default', name: 'apps' }, repositorySpecSchema.parse({ git: { url, ref } }))
      await ingest.repositoryChanged('default', 'apps')
    },
    async service(change: Record<string, unknown> = {}, name = 'shop') {
      const spec = { source: { repository: 'apps', path: name }, targets: { selector: { matchLabels: { env: 'prod' } } }, namespace: name }
      await apply({ kind: 'Service', project: 'default', name }, serviceSpecSchema.parse({ ...spec, ...change }))
      await ingest.serviceChanged({ project: 'default', service: name })
    },
    /** Commits, and waits as a webhook's sender cannot. */
    async push(files: FileChanges): Promise<string> {
      const commit = await git.commit(files, 'change')
      await ingest.repositoryChanged('default', 'apps')
      return commit
    },
    /** Row ids that the cluster's next pull brings; `-` before those that are gone. */
    async pull(clusterId: ClusterId): Promise<string[]> {
      const pulled = await shards.pull(clusterId, positions.get(clusterId) ?? null, IDENTITY)
      if (pulled.kind !== 'page') return []
      positions.set(clusterId, pulled.to)
      const { rows } = parsePage(wholePage(shards, clusterId, pulled))
      return rows.map(({ id, doc }) => (doc === null ? `-${id}` : id)).sort()
    },
    /** The service's row in a cluster, as the store holds it; null for none and for a tombstone. */
    async row(clusterId: ClusterId, service = 'shop') {
      const rows = await store.desiredInCluster(clusterId)
      const doc = rows.find((candidate) => candidate.service === service)?.doc
      return doc === null || doc === undefined ? null : serviceRowSchema.parse(doc)
    },
    /** As an agent that has carried out the removal order which its cluster has. */
    async reportRemoved(clusterId: ClusterId) {
      const atMs = (await this.row(clusterId))?.removal?.atMs
      await this.report(clusterId, { removed: true, ...(atMs === undefined ? {} : { removedOrderMs: atMs }) })
    },
    async report(clusterId: ClusterId, status: Partial<ServiceStatus>, service = 'shop') {
      const doc = { sync: 'Synced', health: 'Healthy', reason: '', message: '', sinceMs: 1, objectCount: 1, healthyCount: 1, ...status }
      const row = { kind: 'service' as const, key: `default/${service}`, rev: ++rev, doc }
      const { changed } = await store.upsertStatus(clusterId, [row], { complete: false, nowMs: 1 })
      const clusterName = (await store.listClusters()).find((cluster) => cluster.clusterId === clusterId)?.name ?? '?'
      actions.onStatus({ clusterId, clusterName }, changed)
      await Bun.sleep(0)
      await ingest.serviceChanged({ project: 'default', service })
    },
    events: async () => (await store.listEvents({ limit: 1000 })).map(({ reason, message }) => `${reason}: ${message}`),
    async close() {
      await git.stop()
      shards.close()
      await store.close()
    },
  }
}

export const configMap = (name: string, value: string): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\ndata:\n  value: ${JSON.stringify(value)}\n`

export const confirmationId = async (store: Store): Promise<string> => (await store.listConfirmations())[0]?.id ?? 'none'
