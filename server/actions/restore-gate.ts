// RP2: while a server that was set back waits for a person, no agent gets a page from it. What shows that it was set
// back is its own word, signed by one of its own keys: an agent can repeat it and not invent it.

import { checkpointBytes, type HeadProof } from '../../shared/protocol/frames.ts'
import { followLinks, type KeyLink } from '../../shared/protocol/key-links.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { verifyBytes } from '../../shared/runtime/keys.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { ServerKeys } from '../access/server-keys.ts'
import type { Shards } from '../desired/shards.ts'
import { fleetEvent } from '../fleet/fleet-event.ts'
import type { RestoreProof, StatusWrite } from '../fleet/records.ts'
import { warning } from '../messages/event-messages.ts'
import type { Store } from '../store/store.ts'

export interface RestoreGate {
  /** Pulls are answered 503 `restore_pending`. Asked at every poll: no I/O. */
  pending(): boolean
  /**
   * Takes the proof that an agent which must refetch shows of this server's own past. A proof of this server that is
   * newer than the fleet store sets `pending`.
   */
  offer(clusterId: ClusterId, proof: HeadProof, keyLinks?: readonly KeyLink[]): Promise<void>
  /** Status rows that changed, after they are in the store. */
  onStatus(clusterId: ClusterId, changed: readonly StatusWrite[]): void
  /** This cluster's agent reported on its services while the restore is pending. */
  heard(clusterId: ClusterId): boolean
  /** Resolves when all proofs shown so far are in the store. */
  saved(): Promise<void>
  /** `forget` makes the store forget the matter; then pages are served again. */
  settle(forget: () => Promise<void>): Promise<void>
}

export interface RestoreGateDeps {
  store: Pick<Store, 'restoreFacts' | 'restoreProofs' | 'recordRestoreProofs' | 'appendEvents'>
  keys: Pick<ServerKeys, 'history'>
  shards: Pick<Shards, 'head' | 'refusal'>
  clock: Clock
  log: Logger
}

/** A shard file that is ahead of the store is as good as a proof. Before the gate is made, which then finds it
 *  recorded. */
export const recordAhead =
  (store: Pick<Store, 'recordRestoreProofs' | 'restoreProofs' | 'appendEvents'>, clock: Clock) =>
  async (ahead: ReadonlyMap<ClusterId, number>): Promise<void> => {
    const first = (await store.restoreProofs()).length === 0
    const atMs = clock.nowMs()
    await store.recordRestoreProofs([...ahead].map(([clusterId, ordinal]) => ({ clusterId, epoch: 1, ordinal, atMs })))
    if (first) await store.appendEvents([pendingEvent(clock.nowMs())])
  }

const pendingEvent = (atMs: number) => fleetEvent(atMs, warning('RestorePending'), {})

const SAVE_WAIT_MS = 100

/** Before anything is served. */
export async function createRestoreGate(deps: RestoreGateDeps): Promise<RestoreGate> {
  const { store, clock, log } = deps
  const recorded = new Map((await store.restoreProofs()).map((proof) => [proof.clusterId, proof]))
  let pending = recorded.size > 0
  const heard = new Set<ClusterId>()
  if (pending) log.warn('a restore is pending: agents receive no changes until `skerry restore confirm`', { clusters: recorded.size })

  let unsaved = new Map<ClusterId, RestoreProof>()
  let lastSave: Promise<void> = Promise.resolve()
  const save = (): Promise<void> => {
    lastSave = lastSave.catch(() => {}).then(write)
    return lastSave
  }
  async function write(): Promise<void> {
    const proofs = unsaved
    unsaved = new Map()
    if (proofs.size === 0) return
    await store.recordRestoreProofs([...proofs.values()]).catch((error: unknown) => {
      unsaved = new Map([...proofs, ...unsaved]) // else nobody could say yes to what is pending
      throw error
    })
  }
  // A whole fleet comes back at once, and each commit waits for the disk: those after the first share theirs. What a
  // crash loses is shown again.
  let saving = false
  const saveSoon = () => {
    if (saving) return
    saving = true
    void clock
      .sleep(SAVE_WAIT_MS)
      .then(() => {
        saving = false
        return save()
      })
      .catch((error: unknown) => log.warn('cannot write the proofs of a restore', { error: describeError(error) }))
  }

  let settling = false
  async function record(found: RestoreProof): Promise<void> {
    if (settling) return // its agent gets no page yet, and shows it again
    const held = recorded.get(found.clusterId)
    if (held !== undefined && held.epoch >= found.epoch && held.ordinal >= found.ordinal) return
    const first = !pending
    pending = true // at once: no other agent may get a page while this is written
    recorded.set(found.clusterId, found)
    unsaved.set(found.clusterId, found)
    if (!first) return saveSoon()
    await save()
    log.warn('this server was restored from a backup: agents receive no changes until `skerry restore confirm`', {
      cluster: found.clusterId,
    })
    await store.appendEvents([pendingEvent(found.atMs)])
  }

  return {
    pending: () => pending,
    async offer(clusterId, proof, keyLinks = []) {
      if (!isOwnWord(clusterId, proof, deps.keys, keyLinks))
        return log.debug('a proof of a head that this server never signed', { cluster: clusterId })
      const { epoch, ordinal } = proof.hello
      if (!(await isNewer(clusterId, proof, deps))) return
      await record({ clusterId, epoch, ordinal, atMs: clock.nowMs() })
    },
    onStatus(clusterId, changed) {
      if (pending && changed.some(({ kind }) => kind === 'service')) heard.add(clusterId)
    },
    heard: (clusterId) => heard.has(clusterId),
    saved: save,
    async settle(forget) {
      settling = true
      try {
        await save() // what is written after it is forgotten would be found at the next start
        await forget()
        pending = false
        recorded.clear()
        heard.clear()
      } finally {
        settling = false
      }
    },
  }
}

/** By any key that this server remembers and has not revoked, or that one of those vouched for in a time that is gone;
 *  for this cluster. */
function isOwnWord(
  clusterId: ClusterId,
  { hello, checkpoint }: HeadProof,
  { history }: Pick<ServerKeys, 'history'>,
  links: readonly KeyLink[],
): boolean {
  const signed = checkpointBytes(clusterId, hello, checkpoint)
  const isBy = (key: string) => verifyBytes(key, signed, checkpoint.signature)
  const known = history.flatMap(({ publicKey, isRevoked }) => (isRevoked ? [] : [publicKey])).reverse()
  return known.some(isBy) || (links.length > 0 && followLinks(known, links).slice(known.length).some(isBy))
}

/** Whether the server can have said this and still be what it was. */
async function isNewer(clusterId: ClusterId, { hello }: HeadProof, { store, shards }: RestoreGateDeps): Promise<boolean> {
  const facts = await store.restoreFacts(clusterId)
  if (facts === null || hello.epoch < facts.settledEpoch) return false
  if (hello.epoch > facts.epoch || hello.ordinal > facts.ordinal) return true
  // The store may have overtaken the time that is gone: then the numbers say nothing, and the log must know the page.
  if (hello.ordinal <= facts.adoptedOrdinal) return false
  return hello.to.dbId !== shards.head(clusterId).dbId || shards.refusal(clusterId, hello.to) !== null
}
