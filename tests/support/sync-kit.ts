// What tests of sync share: shards with a test key, and revisions with a right digest.
import { randomBytes } from 'node:crypto'
import { type CheckedReplica, createCrdtReplica } from '../../agent/replica/crdt-replica.ts'
import { createShards, type OpenedShards, type ShardsOptions } from '../../server/desired/shard-files.ts'
import type { ServiceRevision } from '../../server/desired/shards.ts'
import { canonicalJson, setDigest } from '../../shared/kube/canonical.ts'
import { objectRowPrefix } from '../../shared/model/desired.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { type ClusterId, clusterIdSchema, type ServiceId } from '../../shared/runtime/ids.ts'
import { generateKey, signBytes } from '../../shared/runtime/keys.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'

export const SERVER_KEY = generateKey('ed25519')
export const OTHER_KEY = generateKey('ed25519')
export const sign = (bytes: Uint8Array): string => signBytes(SERVER_KEY.privateKey, bytes)
export const newId = (): string => randomBytes(16).toString('hex')

export const clusterNumber = (n: number): ClusterId => clusterIdSchema.parse(`c-${n.toString(16).padStart(16, '0')}`)
export const CLUSTER = clusterNumber(1)
export const NEIGHBOUR = clusterNumber(2)
export const WEB: ServiceId = { project: 'shop', service: 'web' }
export const DB: ServiceId = { project: 'shop', service: 'db' }

export function openTestShards(dir: string, options: Partial<ShardsOptions> = {}): OpenedShards {
  return createShards({ dir, shardCount: 2, sign, epochOf: () => 1, newId, clock: systemClock, log: silentLogger, ...options })
}

export function openTestReplica(path: string, clusterId: string = CLUSTER): CheckedReplica {
  return createCrdtReplica({ path, clusterId, serverKeys: () => [SERVER_KEY.publicKey], log: silentLogger })
}

/** Objects by name → a value that stands for the manifest. */
export function objectRows(service: ServiceId, objects: Record<string, string>): Map<string, string> {
  return new Map(
    Object.entries(objects).map(([name, value]) => [
      `${objectRowPrefix(service)}/ConfigMap/default/${name}`,
      canonicalJson({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data: { value } }),
    ]),
  )
}

export function serviceDoc(objects: ReadonlyMap<string, string>, commit = 'c0ffee'): string {
  return canonicalJson({ commit, digest: setDigest(objects), count: objects.size, sync: syncOptionsSchema.parse({}), protect: false })
}

export function revision(
  clusterId: ClusterId,
  service: ServiceId,
  ordinal: number,
  objects: Record<string, string> | null,
  commit?: string,
): ServiceRevision {
  const rows = objectRows(service, objects ?? {})
  return { clusterId, ...service, ordinal, serviceDoc: objects === null ? null : serviceDoc(rows, commit), objects: rows }
}
