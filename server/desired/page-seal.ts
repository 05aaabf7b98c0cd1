// The keys of the sealed rows of a page, wrapped for the agent of one cluster. The rows themselves are the same for all
// clusters that share them; only these keys differ. One HPKE encapsulation a cluster and process is enough: each
// further key is one AES-GCM.
import { exportTo } from '../../shared/adapters/hpke.ts'
import { sha256Hex } from '../../shared/kube/canonical.ts'
import { parseRowId } from '../../shared/model/desired.ts'
import { objectKeyOf } from '../../shared/model/sealed-object.ts'
import { boundSecret, SEAL_INFO, type SealHead, sealContext, wrapKey } from '../../shared/protocol/sealed-keys.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { fingerprint } from '../../shared/runtime/keys.ts'
import type { Sealing } from '../access/sealing.ts'
import type { SealedRow } from './row-lines.ts'

export interface PageKeys {
  head: SealHead
  /** Wrapped keys in the order of the rows, without a line feed. */
  line: string
}

export interface PageSeal {
  /** `binding`: `pageBinding` of the page; '' for an agent that does not know it. */
  wrap(clusterId: ClusterId, rows: readonly SealedRow[], binding: string): Promise<PageKeys>
}

export interface PageSealDeps {
  sealing: Pick<Sealing, 'keysOf'>
  /** X25519 public key of the cluster's agent. Null means that the cluster has none. */
  recipientOf(clusterId: ClusterId): string | null
}

/** Clusters whose encapsulation is kept. */
const CONTEXTS_MAX = 20_000

export function createPageSeal({ sealing, recipientOf }: PageSealDeps): PageSeal {
  const contexts = new Map<string, ReturnType<typeof exportTo>>()
  /** Clusters that share rows share the list of them. */
  const keysOfRows = new WeakMap<readonly SealedRow[], readonly Uint8Array[]>()
  const contextOf = (clusterId: ClusterId, recipient: string) => {
    const name = `${clusterId}/${recipient}`
    const known = contexts.get(name)
    if (known !== undefined) return known
    for (const oldest of contexts.keys()) {
      if (contexts.size < CONTEXTS_MAX) break
      contexts.delete(oldest)
    }
    const made = exportTo(recipient, SEAL_INFO, sealContext(clusterId))
    contexts.set(name, made)
    made.catch(() => contexts.delete(name))
    return made
  }
  const keysOf = (rows: readonly SealedRow[]): readonly Uint8Array[] => {
    const known = keysOfRows.get(rows)
    if (known !== undefined) return known
    const made = rows.map(({ id, mark }) => {
      const row = parseRowId(id)
      const keys = row.kind === 'object' ? sealing.keysOf(mark.key, row.id) : null
      if (keys === null) throw missingKey(mark.key)
      return objectKeyOf(keys, mark.mac)
    })
    keysOfRows.set(rows, made)
    return made
  }
  return {
    async wrap(clusterId, rows, binding) {
      const recipient = recipientOf(clusterId)
      if (recipient === null) throw noRecipient(clusterId)
      const keys = keysOf(rows)
      const { enc, secret } = await contextOf(clusterId, recipient).catch(() => {
        throw noRecipient(clusterId)
      })
      const own = boundSecret(secret, binding)
      const wrapped = rows.map(({ id, mark }, index) => wrapKey(own, clusterId, id, mark, keys[index] ?? new Uint8Array()))
      const line = wrapped.join('')
      const bound = binding === '' ? {} : ({ bound: true } as const)
      return { head: { enc, to: fingerprint(recipient), keys: sha256Hex(line), ...bound }, line }
    },
  }
}

const missingKey = (key: string): AppError =>
  new AppError('credential_missing', {
    doing: 'seal a page',
    detail: `rows are sealed under the key ${key}, which this server does not have`,
    remedy: 'Bring back keys/sealing.json of the server that sealed them.',
  })
const noRecipient = (clusterId: ClusterId): AppError =>
  new AppError('credential_missing', {
    doing: 'seal a page',
    detail: `the agent of ${clusterId} has no recipient key that can be used`,
    remedy: 'Join the cluster again.',
  })
