// Ten thousand clusters that joined long ago: their keys, their services in store and shard files, and what their
// agents said then. Made by the server's own code in this process, because joining by the front door is not what is
// measured.
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { loadServerKeys } from '../../server/access/server-keys.ts'
import { type Publication, publishRevisions } from '../../server/desired/publisher.ts'
import { createShards, SHARD_COUNT } from '../../server/desired/shard-files.ts'
import { createFileContentStore } from '../../server/store/content/file-content-store.ts'
import { openSqliteStore } from '../../server/store/kysely-store.ts'
import type { Store } from '../../server/store/store.ts'
import { cursorText } from '../../shared/crdt/position.ts'
import { setDigest } from '../../shared/kube/canonical.ts'
import { objectRowId, type ServiceRow } from '../../shared/model/desired.ts'
import type { Labels } from '../../shared/model/labels.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import { joinTokenHash } from '../../shared/protocol/join.ts'
import { REV_INCARNATION } from '../../shared/protocol/status.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { type AgentId, agentIdSchema, type ClusterId, clusterIdSchema, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { generateKey, type SigningKey } from '../../shared/runtime/keys.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { systemRandom } from '../../shared/runtime/random.ts'
import { type ReportedRow, SERVICES_EACH, serviceOf } from './store-rows.ts'

export interface Site {
  number: number
  clusterId: ClusterId
  agentId: AgentId
  signing: SigningKey
}

const SECRET = 'a-secret-of-the-benchmark'
const LABELS: readonly Labels[] = ['prod', 'prod', 'prod', 'staging', 'dev'].map((env) => ({ env }))

/** By the store's own method, one transaction each, as it happens over the years. They have these labels in turn. */
export async function joinSites(store: Store, count: number, labelsInTurn: readonly Labels[] = LABELS): Promise<Site[]> {
  const nowMs = systemClock.nowMs()
  for (const [n, labels] of labelsInTurn.entries()) {
    const token = { id: `jt-${n}`, tokenHash: joinTokenHash(SECRET + n), uses: count, usesLeft: count, labels, createdBy: 'bench' }
    await store.createJoinToken({ ...token, createdMs: nowMs, expiresMs: nowMs + 3_600_000 })
  }
  const sites: Site[] = []
  for (let number = 0; number < count; number++) {
    const site = {
      number,
      clusterId: clusterIdSchema.parse(`c-${idOf(number)}`),
      agentId: agentIdSchema.parse(`a-${idOf(number)}`),
      signing: generateKey('ed25519'),
    }
    const { clusterId, agentId, signing } = site
    const names = { clusterName: `site-${number}`, clusterUid: `uid-${number}`, publicKey: signing.publicKey, recipient: signing.publicKey }
    const tokenHash = joinTokenHash(SECRET + (number % labelsInTurn.length))
    const joined = await store.join({ tokenHash, ...names, nowMs, clusterId, agentId })
    if (joined.kind !== 'joined') throw new Error(`site ${number}: ${joined.kind}`)
    sites.push(site)
  }
  return sites
}

const idOf = (number: number): string => (number + 1).toString(16).padStart(16, '0')

/** A push, which is repeated when the store is behind. */
export async function report(store: Store, site: Site, rows: readonly ReportedRow[]): Promise<void> {
  for (;;) {
    try {
      await store.upsertStatus(site.clusterId, rows, { complete: false, olderThan: REV_INCARNATION, nowMs: systemClock.nowMs() })
      return
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'too_many_requests') throw error
      await Bun.sleep(error.retryAfterMs ?? 0)
    }
  }
}

/** As many at once as a server of ten thousand agents has when all of them have news. */
const IN_FLIGHT = 256
export async function atOnce<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async () => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) await work(item)
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker))
}

/** A service of a site, with its content. */
type Placed = ServiceId & Pick<Publication, 'doc' | 'objects'>

/** A server's data folder with these sites, each with its four services unless others are given; and where each agent's
 *  replica stands. */
export async function placeServices(
  dataDir: string,
  store: Store,
  sites: readonly Site[],
  placed: (site: Site) => readonly Placed[] = fourServices(),
): Promise<Map<ClusterId, string>> {
  const keys = loadServerKeys(join(dataDir, 'keys'))
  const content = createFileContentStore(join(dataDir, 'content'), systemClock)
  const opened = createShards({
    dir: join(dataDir, 'shards'),
    shardCount: SHARD_COUNT,
    sign: keys.sign,
    epochOf: () => 1,
    newId: () => randomBytes(16).toString('hex'),
    libraryDir: join(dataDir, 'lib'),
    clock: systemClock,
    log: silentLogger,
  })
  await store.adoptShards(opened.dbIds.map((dbId, index) => ({ index, dbId, clusterIds: [] })))
  const publications: Publication[] = sites.flatMap((site) =>
    placed(site).map((service) => ({ clusterId: site.clusterId, ...service, placedBy: '{}' })),
  )
  await publishRevisions({ store, content, shards: opened.shards }, publications)
  const cursors = new Map(sites.map(({ clusterId }) => [clusterId, cursorText(opened.shards.head(clusterId))]))
  opened.shards.close()
  return cursors
}

function fourServices(): (site: Site) => readonly Placed[] {
  const revisions = new Map<string, ReturnType<typeof revisionOf>>()
  return ({ number }) =>
    Array.from({ length: SERVICES_EACH }, (_, n) => {
      const id = serviceOf(number, n)
      const known = revisions.get(serviceKey(id)) ?? revisionOf(id)
      revisions.set(serviceKey(id), known)
      return { ...id, ...known }
    })
}

function revisionOf(id: { project: string; service: string }): { doc: ServiceRow; objects: Map<string, string> } {
  const objects = new Map(
    Array.from({ length: 12 }, (_, n) => {
      const ref = { group: '', kind: 'ConfigMap', namespace: id.service, name: `settings-${n}` }
      const doc = {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: ref.name, namespace: id.service },
        data: { value: 'x'.repeat(200) },
      }
      return [objectRowId(id, ref), JSON.stringify(doc)] as const
    }),
  )
  const doc: ServiceRow = {
    commit: 'c0ffee0',
    digest: setDigest(objects),
    count: objects.size,
    sync: syncOptionsSchema.parse({}),
    protect: false,
  }
  return { doc, objects }
}

export const openStore = (path: string): Promise<Store> => openSqliteStore(path, { random: systemRandom, clock: systemClock })
