// Holds the claim of this cluster for as long as the agent runs, and says at once when another agent took it. It writes when something has to be
// written, and else only watches.
import type { K8sObject, ObjectRef } from '../../../shared/kube/object.ts'
import { backoffMs } from '../../../shared/runtime/backoff.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import type { Random } from '../../../shared/runtime/random.ts'
import type { ApiFailure, ApiResource, Cluster } from '../../cluster/cluster.ts'
import {
  CLAIM_NAME,
  CLAIM_NAMESPACE,
  type Claim,
  type ClaimVerdict,
  claimNamespace,
  claimObject,
  isSameClaim,
  judgeClaim,
  readClaim,
  type WrittenClaim,
} from './claim.ts'

/** Both are served by every Kubernetes: the claim is asked for before discovery is. */
const CONFIG_MAPS: ApiResource = { group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true, verbs: [] }
const NAMESPACES: ApiResource = { group: '', version: 'v1', kind: 'Namespace', plural: 'namespaces', namespaced: false, verbs: [] }
const CLAIM_REF: ObjectRef = { group: '', kind: 'ConfigMap', namespace: CLAIM_NAMESPACE, name: CLAIM_NAME }
const WRITE_BACKOFF = { baseMs: 1_000, capMs: 60_000 }

export type ClaimState =
  | { kind: 'asking'; message: string | null } // not known yet; the message says what keeps it from being known
  | { kind: 'held' }
  | { kind: 'superseded'; by: Claim }

export interface ClaimKeeperDeps {
  cluster: Cluster
  own: { agent: string; incarnation: number }
  /** Where this process runs; null: that cannot be told. */
  place: string | null
  state: ClaimMemory
  clock: Clock
  random: Random
  log: Logger
  signal: AbortSignal
  onChange(state: ClaimState): void
  /** Why the API server gives no answer; null when it does again. This watch is always open, so it is the one that notices. */
  onUnreachable(message: string | null): void
}

/** The part of AgentState that is needed here. */
export interface ClaimMemory {
  writtenClaim(): WrittenClaim | null
  setWrittenClaim(written: WrittenClaim): void
}

const NO_CONTACT: ReadonlySet<ApiFailure['kind']> = new Set(['unreachable', 'unauthorized', 'server_error'])

/** Runs until the signal aborts. */
export async function keepClaim(deps: ClaimKeeperDeps): Promise<void> {
  const { cluster, signal } = deps
  const keeper = new ClaimKeeper(deps)
  const options = { namespace: CLAIM_NAMESPACE, fieldSelector: `metadata.name=${CLAIM_NAME}`, signal }
  let found: K8sObject | null = null
  let listing = true
  for await (const event of cluster.watch(CONFIG_MAPS, options)) {
    switch (event.kind) {
      case 'reset':
        listing = true
        found = null
        continue
      case 'present':
      case 'changed':
        found = event.object
        break
      case 'removed':
        found = null
        break
      case 'synced':
        listing = false
        break
      case 'failed':
        // CM4: not known is not lost: who held it goes on, who did not begin waits.
        if (keeper.isFirst()) deps.onChange({ kind: 'asking', message: event.failure.message })
        if (NO_CONTACT.has(event.failure.kind)) deps.onUnreachable(event.failure.message)
        continue
    }
    deps.onUnreachable(null)
    if (!listing) keeper.take(readClaim(found))
  }
  await keeper.idle()
}

class ClaimKeeper {
  readonly #deps: ClaimKeeperDeps
  #own: Claim
  #isRemembered = false
  /** The claim that was there at the start, which is ours to take (CM3); one that says no start, until the first write succeeded. Undefined: none was judged yet. */
  #met: Claim | null | undefined
  #isMetTaken = false
  #attempt = 0
  #writer: AbortController | null = null
  #writing = Promise.resolve()

  constructor(deps: ClaimKeeperDeps) {
    this.#deps = deps
    this.#own = { ...deps.own, instance: drawInstance(deps.random) }
  }

  isFirst(): boolean {
    return this.#met === undefined
  }

  async idle(): Promise<void> {
    await this.#writing
  }

  /** Whatever was about to be written was decided about another claim. */
  take(live: Claim | null): void {
    this.#writer?.abort()
    this.#writer = null
    if (this.#judge(live) !== 'write') return
    // Beside the events: an attempt may wait long, and a newer claim ends enforcement at once.
    const writer = new AbortController()
    this.#writer = writer
    const stopped = AbortSignal.any([this.#deps.signal, writer.signal])
    this.#writing = this.#writing.then(() => this.#write(stopped))
  }

  #judge(live: Claim | null): ClaimVerdict {
    const { log, onChange } = this.#deps
    if (this.#met === undefined) this.#meet(live)
    const own = this.#own
    // Whoever wrote that very claim never writes it again: if it comes back later, then with the whole cluster, out of a backup.
    const mayMeet = !this.#isMetTaken || (live !== null && live.instance !== '')
    const isMet = mayMeet && isSameClaim(live, this.#met ?? null)
    const verdict = judgeClaim(live, own, isMet)
    if (verdict !== 'write') {
      this.#isMetTaken = true
      this.#attempt = 0
    }
    if (verdict === 'held') onChange({ kind: 'held' })
    else if (verdict === 'superseded' && live !== null) {
      log.warn('another agent holds the claim of this cluster', { agent: live.agent, incarnation: live.incarnation })
      onChange({ kind: 'superseded', by: live })
    }
    return verdict
  }

  /** CM5: a claim that this place wrote is still its own. Whatever is written is drawn anew: who met an instance once may trust that it does not come again. */
  #meet(live: Claim | null): void {
    const { place, state } = this.#deps
    this.#met = live
    if (live === null || place === null) return
    const written = state.writtenClaim()
    if (written === null || written.place !== place || !isSameClaim(written.claim, live)) return
    if (live.agent !== this.#own.agent || live.incarnation !== this.#own.incarnation) return
    this.#own = live
    this.#isRemembered = true
    this.#met = written.over
    this.#isMetTaken = true
  }

  /** Before the write: a process that dies in between draws again. On a disk that is full it is only forgotten, which is one write more at the next start. */
  #remember(): void {
    const { place, state, log } = this.#deps
    if (this.#isRemembered || place === null) return
    try {
      state.setWrittenClaim({ place, claim: this.#own, over: this.#met ?? null })
      this.#isRemembered = true
    } catch (error) {
      log.warn('the claim cannot be noted, so the next start writes it again', { error: describeError(error) })
    }
  }

  /** The write is forced, so each attempt looks first at what it would write over. That it succeeded is said by its event. */
  async #write(stopped: AbortSignal): Promise<void> {
    const { cluster, clock, random, onChange } = this.#deps
    while (!stopped.aborted) {
      const live = await cluster.get(CONFIG_MAPS, CLAIM_REF)
      if (stopped.aborted) return
      if (live.kind !== 'failed' && this.#judge(live.kind === 'found' ? readClaim(live.object) : null) !== 'write') return
      if (live.kind !== 'failed') this.#remember()
      const failure = live.kind === 'failed' ? live.failure : await tryWrite(cluster, this.#own)
      if (failure === null || stopped.aborted) return
      onChange({ kind: 'asking', message: `the claim ${CLAIM_NAMESPACE}/${CLAIM_NAME} cannot be written: ${failure.message}` })
      await clock.sleep(backoffMs(this.#attempt, WRITE_BACKOFF, random, failure.retryAfterMs), stopped)
      this.#attempt += 1
    }
  }
}

const drawInstance = (random: Random): string => Math.floor(random() * 2 ** 48).toString(16)

/** The namespace is made only if it is missing: an agent that may not make namespaces gets one made for it. */
async function tryWrite(cluster: Cluster, own: Claim): Promise<ApiFailure | null> {
  const claim = await cluster.apply(CONFIG_MAPS, claimObject(own), { force: true })
  if (claim.kind === 'applied') return null
  if (claim.failure.kind !== 'namespace_missing' && claim.failure.kind !== 'not_found') return claim.failure
  const namespace = await cluster.apply(NAMESPACES, claimNamespace, { force: true })
  if (namespace.kind === 'failed') return namespace.failure
  const again = await cluster.apply(CONFIG_MAPS, claimObject(own), { force: true })
  return again.kind === 'applied' ? null : again.failure
}
