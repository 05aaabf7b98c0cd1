// A shard folder with sealing, recipients of two clusters, and replicas that open what is wrapped for them.
import { join } from 'node:path'
import { type CheckedReplica, createCrdtReplica } from '../../agent/replica/crdt-replica.ts'
import { loadSealing } from '../../server/access/sealing.ts'
import { createPageSeal } from '../../server/desired/page-seal.ts'
import type { ServiceRevision } from '../../server/desired/shards.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { objectRowPrefix } from '../../shared/model/desired.ts'
import { sealObject } from '../../shared/model/sealed-object.ts'
import type { ClusterId, ServiceId } from '../../shared/runtime/ids.ts'
import { fingerprint, generateKey } from '../../shared/runtime/keys.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { pullPage } from './page-kit.ts'
import { CLUSTER, NEIGHBOUR, openTestShards, SERVER_KEY, serviceDoc, WEB } from './sync-kit.ts'
import { tempDir } from './temp-dir.ts'

export const rowId = (name: string, service: ServiceId = WEB): string => `${objectRowPrefix(service)}/Secret/default/${name}`
export const secretDoc = (name: string, value: string): string =>
  canonicalJson({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'default' }, stringData: { value } })
export const ACCEPT = { zstd: false, seal: true, bound: true, sops: true }

export function sealedWorld() {
  const dir = tempDir()
  const sealing = loadSealing(join(dir, 'keys'))
  sealing.begin()
  const recipients = new Map<ClusterId, ReturnType<typeof generateKey>>([
    [CLUSTER, generateKey('x25519')],
    [NEIGHBOUR, generateKey('x25519')],
  ])
  const former: Array<ReturnType<typeof generateKey>> = []
  const pageSeal = createPageSeal({ sealing, recipientOf: (cluster) => recipients.get(cluster)?.publicKey ?? null })
  const { shards } = openTestShards(join(dir, 'shards'), { shardCount: 1, seal: pageSeal })
  const keys = sealing.keysFor(WEB)
  if (keys === null) throw new Error('no keys')
  let ordinal = 0
  const seal = (id: string, object: K8sObject) => sealObject(keys, id, object, canonicalJson(object))
  const write = (cluster: ClusterId, secrets: Record<string, string>) => {
    const objects = new Map(
      Object.entries(secrets).map(([name, value]) => {
        const doc = secretDoc(name, value)
        return [rowId(name), seal(rowId(name), JSON.parse(doc))]
      }),
    )
    writeRows(cluster, WEB, objects)
  }
  const writeRows = (cluster: ClusterId, service: ServiceId, objects: ReadonlyMap<string, string>) => {
    const revision: ServiceRevision = { clusterId: cluster, ...service, ordinal: ++ordinal, serviceDoc: serviceDoc(objects), objects }
    shards.writeRevisions([revision])
  }
  const replicaOf = (name: string, cluster: ClusterId = CLUSTER, holder: ClusterId = cluster) =>
    createCrdtReplica({
      path: join(dir, `${name}.db`),
      clusterId: cluster,
      serverKeys: () => [SERVER_KEY.publicKey],
      recipients: {
        privateKey: (of) => [recipients.get(holder), ...former].find((key) => key && fingerprint(key.publicKey) === of)?.privateKey ?? null,
        isCurrent: (of) => fingerprint(recipients.get(holder)?.publicKey ?? '') === of,
        forget: (isNeeded) => void former.splice(0, 9, ...former.filter(({ publicKey }) => isNeeded(fingerprint(publicKey)))),
      },
      log: silentLogger,
    })
  const pull = async (replica: CheckedReplica, cluster: ClusterId = CLUSTER) =>
    (await pullPage(shards, cluster, replica.position(), ACCEPT)).frames
  return { dir, shards, seal, write, writeRows, replicaOf, pull, recipients, former }
}

export async function opened(replica: CheckedReplica, name: string): Promise<string | null> {
  await replica.unlock(WEB)
  const row = replica.dump().find(([id]) => id === rowId(name))
  return row === undefined ? null : replica.open(...row)
}
