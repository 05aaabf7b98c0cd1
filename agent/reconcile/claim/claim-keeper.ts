// Holds the claim of this cluster for as long as the agent runs, and reports at once when another agent took it. It
// writes only when necessary, and otherwise watches.
import type { K8sObject } from '../../../shared/kube/object.ts'
import { backoffMs } from '../../../shared/runtime/backoff.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import type { Random } from '../../../shared/runtime/random.ts'
import type { ApiFailure, ApiResource, Cluster } from '../../cluster/cluster.ts'
import { enforcementText, refusedOrder, takeoverText } from '../../messages/site-messages.ts'
import type { Claim, PastClaim, WrittenClaim } from '../../state/claims.ts'
import type { EdgeAnswer } from '../edge-orders.ts'
import {
  CLAIM_NAME,
  CLAIM_NAMESPACE,
  CLAIM_REF,
  CLAIM_TEXT,
  type ClaimVerdict,
  claimantText,
  claimNamespace,
  claimObject,
  DELETE_CLAIM,
  formerOf,
  isSameClaim,
  judgeClaim,
  type LiveClaim,
  pastClaims,
  readClaim,
  unclearText,
} from './claim.ts'

/** Both are served by every Kubernetes: the claim is asked for before discovery is. */
const CONFIG_MAPS: ApiResource = { group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true, verbs: [] }
const NAMESPACES: ApiResource = { group: '', version: 'v1', kind: 'Namespace', plural: 'namespaces', namespaced: false, verbs: [] }
const WRITE_BACKOFF = { baseMs: 1_000, capMs: 60_000 }
/** The time in which an active agent answers (CM6): milliseconds, or a minute when its watch was just cut. */
export const ANSWER_WITHIN_MS = 60_000
/** Waits before an agent that does not enforce asks again (CM12): each doubles, less a random part of up to a half. */
export const ASK_AGAIN_MS = { first: 60_000, longest: 600_000 }

export type ClaimState =
  | { kind: 'asking'; message: string | null } // not known yet; the message says what keeps it from being known
  | { kind: 'held' }
  | { kind: 'superseded'; by: Claim; asks: boolean } // asks: it goes on by itself when the other agent is gone (CM12)
  | { kind: 'contested'; by: Claim } // another agent is active (CM6); asks again, too
  | { kind: 'unclear'; message: string } // waits for a person, who finds in the message what to do (CM13)
  | { kind: 'removed' } // the server said that this cluster was removed from it (CM9)

/** The reason why the claim is not known. */
type Trouble = 'waiting.claim_unchecked' | 'waiting.claim_unwritable'

export interface ClaimKeeperDeps {
  cluster: Cluster
  own: { agent: string; incarnation: number; cluster: string; server: string }
  /** Registrations of this cluster that the server knows to be former ones. */
  formerByServer: readonly string[]
  /** The place of this process. Null means unknown. */
  place: string | null
  state: ClaimMemory
  clock: Clock
  random: Random
  log: Logger
  signal: AbortSignal
  onChange(state: ClaimState): void
  /** Registrations with marks to take over; before the first `held`. */
  onFormer(clusters: readonly string[]): void
  /** Another agent asks whether this one is active; called once for each agent that asks. */
  onChallenge(challenger: string): void
  /** The reason why the API server does not answer; null when it does. This watch is always open and notices first. */
  onUnreachable(message: string | null): void
}

/** The part of AgentState that is needed here. */
export interface ClaimMemory {
  writtenClaim(): WrittenClaim | null
  setWrittenClaim(written: WrittenClaim): void
}

/** Maximum number of reported agents that ask for the claim; further ones are answered too. */
const CHALLENGERS_MAX = 16
/** An agent whose activity is in question. `isOut`: the question is written, and a new answer proves it active. */
interface Asked {
  claim: Claim
  answer: string
  isOut: boolean
}

const NO_CONTACT: ReadonlySet<ApiFailure['kind']> = new Set(['unreachable', 'unauthorized', 'server_error'])

export class ClaimKeeper {
  readonly #deps: ClaimKeeperDeps
  #own: Claim
  #isRemembered = false
  #live: LiveClaim | null = null
  #isJudging = false
  /** The claim that may be overwritten: the first one (CM3); a stranger's only without an answer or by order (CM6). */
  #mine: Claim | null = null
  #isMineTaken = false
  /** Claims that this agent wrote before its present one, or took over: none of them is ever written again (CM11). */
  #past: readonly PastClaim[] = []
  #hasHeld = false
  /** It held the claim when the claim was last seen. */
  #isHolder = false
  #isRemoved = false
  /** Claim of the agent that is active in place of this one, or was when its claim was last seen. */
  #rival: Claim | null = null
  #asked: Asked | null = null
  /** Number of waits before a question since this agent held the claim. */
  #waits = 0
  readonly #challengers = new Set<string>()
  /** The API server gave no answer since the last check. */
  #wasBlind = false
  #attempt = 0
  #worker: AbortController | null = null
  #working = Promise.resolve()

  constructor(deps: ClaimKeeperDeps) {
    this.#deps = deps
    this.#own = { ...deps.own, instance: draw(deps.random), uid: '', former: [] }
  }

  /** Runs until the signal aborts. */
  async run(): Promise<void> {
    const { cluster, signal, onChange, onUnreachable } = this.#deps
    await this.#learnUid()
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
          // CM4: an unknown claim is not a lost one: the holder continues, an agent that has not begun waits.
          if (!this.#isJudging && !this.#isRemoved) onChange({ kind: 'asking', message: event.failure.message })
          if (NO_CONTACT.has(event.failure.kind)) {
            this.#wasBlind = true
            onUnreachable(event.failure.message)
          }
          continue
      }
      onUnreachable(null)
      if (!listing) this.#take(readClaim(found))
    }
    await this.#working
  }

  /** CM9: the server stated that this cluster was removed from it, or that it knows it again. */
  setRemoved(isRemoved: boolean): void {
    if (this.#isRemoved === isRemoved) return
    this.#isRemoved = isRemoved
    this.#isHolder = false
    this.#stopWork()
    if (this.#isJudging) this.#take(this.#live)
  }

  /** CM7: a person at the site decides between two agents. */
  takeOver(by: string): EdgeAnswer {
    const live = this.#live
    if (this.#isRemoved) return refusedOrder('cluster_removed')
    if (live === null || !this.#isJudging) return refusedOrder('no_other_agent')
    const verdict = this.#verdict(live)
    if (verdict === 'held' || verdict === 'write') return refusedOrder('enforces_already')
    const isUnclear = verdict === 'unclear'
    if (!isUnclear && this.#isLaterSelf(live)) return refusedOrder('later_self', { other: claimantText(live), deleteClaim: DELETE_CLAIM })
    this.#deps.log.warn('a person decided that this agent enforces', { by, over: live.agent })
    this.#mayTake(live)
    this.#take(live)
    const message = isUnclear ? takeoverText('claim_replaced', { by }) : takeoverText('taken_over', { other: claimantText(live), by })
    return { kind: 'done', message }
  }

  /** UID of the ConfigMap, for Events about it; null if there is none. */
  objectUid(): string | null {
    return this.#live?.objectUid ?? null
  }

  async #learnUid(): Promise<void> {
    const { cluster, state, log, formerByServer, onFormer } = this.#deps
    try {
      this.#own.uid = (await cluster.info()).uid
    } catch (error) {
      this.#own.uid = state.writtenClaim()?.claim.uid ?? ''
      log.info('the identity of the cluster cannot be read', { error: describeError(error) })
    }
    onFormer(formerOf(this.#own, [], formerByServer))
  }

  #stopWork(): void {
    this.#worker?.abort()
    this.#worker = null
    this.#asked = null
  }

  #work(run: (stopped: AbortSignal) => Promise<void>): void {
    // Beside the events: an attempt may wait long, and a newer claim ends enforcement at once.
    const worker = new AbortController()
    this.#worker = worker
    const stopped = AbortSignal.any([this.#deps.signal, worker.signal])
    this.#working = this.#working.then(() => run(stopped))
  }

  #take(live: LiveClaim | null): void {
    this.#live = live
    if (!this.#isJudging) this.#meet(live)
    if (this.#isRemoved) this.#deps.onChange({ kind: 'removed' })
    else if (this.#asked !== null && live !== null && isSameClaim(live, this.#asked.claim)) {
      if (this.#asked.isOut && live.answer !== this.#asked.answer) this.#contest(live)
    }
    // An agent that wrote a claim since the question, or was active before, is active.
    else if (this.#hasRival() && live !== null && this.#verdict(live) === 'challenge') this.#contest(live)
    else this.#act(live)
  }

  #hasRival(): boolean {
    return this.#rival !== null || this.#asked !== null
  }

  #act(live: LiveClaim | null): void {
    const hasRival = this.#hasRival()
    // The pending write was decided about another claim.
    this.#stopWork()
    const verdict = this.#judge(live)
    if (verdict === 'write') {
      this.#work((stopped) => (live === null && hasRival ? this.#waitThenWrite(stopped) : this.#write(stopped)))
    } else if (verdict === 'challenge' && live !== null) {
      const asked = { claim: live, answer: live.answer, isOut: false }
      this.#asked = asked
      this.#deps.onChange({ kind: 'asking', message: enforcementText('waiting.check', { other: claimantText(live) }) })
      this.#work((stopped) => this.#challenge(asked, 'waiting.claim_unchecked', stopped))
    } else if (verdict === 'superseded' && live !== null) {
      this.#askAgain(live)
    } else if (verdict === 'held' && live !== null && live.challenge !== '' && live.challenge !== live.answer) {
      this.#work((stopped) => this.#answer(live, stopped))
    }
  }

  #verdict(live: Claim | null): ClaimVerdict {
    const isMine = !this.#isMineTaken && isSameClaim(live, this.#mine)
    return judgeClaim(live, this.#own, { mayTake: isMine || this.#isPast(live), hasHeld: this.#hasHeld, isHolder: this.#isHolder })
  }

  /** A stranger is asked first: a copy of this disk that joined again may know the claim of an active agent. */
  #isPast(live: Claim | null): boolean {
    if (live === null || this.#isLaterSelf(live) || (live.agent !== this.#own.agent && !this.#hasHeld)) return false
    return this.#past.some((past) => isSameClaim(past, live))
  }

  #judge(live: LiveClaim | null): ClaimVerdict {
    const { log, onChange } = this.#deps
    const verdict = this.#verdict(live)
    if (verdict === 'held' || verdict === 'superseded') {
      this.#isMineTaken = true
      this.#attempt = 0
      this.#rival = verdict === 'superseded' ? live : null
    }
    if (verdict !== 'write') this.#isHolder = verdict === 'held'
    if (verdict === 'held') {
      this.#hasHeld = true
      this.#waits = 0
      onChange({ kind: 'held' })
    } else if (verdict === 'superseded' && live !== null) {
      log.warn('another agent holds the claim of this cluster', { agent: live.agent, incarnation: live.incarnation })
      onChange({ kind: 'superseded', by: live, asks: !this.#isLaterSelf(live) })
    } else if (verdict === 'unclear' && live !== null) {
      const message = unclearText(live, this.#own)
      log.warn('the claim of this cluster is ambiguous: a decision is needed', { why: message })
      onChange({ kind: 'unclear', message })
    }
    return verdict
  }

  /**
   * CM5: a claim that this place wrote is still its own. Every write draws a new instance, so that an instance that was
   * seen once never returns.
   */
  #meet(live: LiveClaim | null): void {
    const { place, state, formerByServer, onFormer } = this.#deps
    this.#isJudging = true
    const own = this.#own
    const written = state.writtenClaim()
    const isWrittenHere = written !== null && place !== null && written.place === place && isSameClaim(written.claim, live)
    if (written !== null) this.#past = pastClaims(own, [written.claim, ...written.over])
    if (isWrittenHere || (live?.agent === own.agent && !this.#isLaterSelf(live))) this.#mine = live
    this.#own.former = formerOf(own, [this.#mine, written?.claim ?? null, ...(written?.over ?? [])], formerByServer)
    onFormer(this.#own.former)
    if (!isWrittenHere || live === null || live.agent !== own.agent || live.incarnation !== own.incarnation) return
    // The claim of an older agent does not say so much.
    if (live.cluster !== own.cluster || live.uid !== own.uid) return
    this.#own = { ...live, former: this.#own.former }
    this.#isRemembered = true
    this.#past = pastClaims(live, written.over)
    this.#isMineTaken = true
    this.#hasHeld = true
  }

  /** CM8: the right to a claim includes the registrations that it names. */
  #mayTake(claim: Claim): void {
    const { formerByServer, onFormer } = this.#deps
    this.#asked = null
    this.#mine = claim
    this.#isMineTaken = false
    this.#isRemembered = false
    const before = this.#own
    this.#own = { ...before, instance: draw(this.#deps.random), former: formerOf(before, [claim, before], formerByServer) }
    this.#past = pastClaims(this.#own, [claim, before, ...this.#past])
    onFormer(this.#own.former ?? [])
  }

  /** The other agent is active. An agent that lost the claim to it stays superseded. */
  #contest(live: LiveClaim): void {
    const { log, onChange } = this.#deps
    this.#stopWork()
    const isNews = this.#rival === null
    this.#rival = live
    if (isNews) log.warn('another agent is active in this cluster', { agent: live.agent })
    if (this.#verdict(live) !== 'superseded') onChange({ kind: 'contested', by: live })
    this.#askAgain(live)
  }

  /** The server knows this agent by a later incarnation: this one does not ask for its claim. */
  #isLaterSelf(live: Claim): boolean {
    return live.agent === this.#own.agent && live.incarnation > this.#own.incarnation
  }

  /** CM12: the other agent may be gone by then. */
  #askAgain(live: LiveClaim): void {
    if (this.#isLaterSelf(live)) return
    const { clock, random } = this.#deps
    const asked = { claim: live, answer: live.answer, isOut: false }
    this.#asked = asked
    const waitMs = Math.min(ASK_AGAIN_MS.longest, ASK_AGAIN_MS.first * 2 ** this.#waits) * (1 - random() / 2)
    this.#waits += 1
    this.#work(async (stopped) => {
      await clock.sleep(waitMs, stopped)
      await this.#challenge(asked, null, stopped)
    })
  }

  /** CM6: a missing claim proves as little as a silent one. */
  async #waitThenWrite(stopped: AbortSignal): Promise<void> {
    await this.#silence(stopped)
    if (stopped.aborted) return
    if (this.#rival !== null) this.#mayTake(this.#rival)
    await this.#write(stopped)
  }

  /** Time in which the API server gives no answer does not count as silence of the other agent. */
  async #silence(stopped: AbortSignal): Promise<void> {
    do {
      this.#wasBlind = false
      await this.#deps.clock.sleep(ANSWER_WITHIN_MS, stopped)
    } while (this.#wasBlind && !stopped.aborted)
  }

  /** `trouble`: as in #untilDone. */
  async #challenge(asked: Asked, trouble: Trouble | null, stopped: AbortSignal): Promise<void> {
    const question = { challenge: draw(this.#deps.random), challenger: claimantText(this.#own) }
    await this.#untilDone(stopped, trouble, () =>
      this.#ofClaim(asked.claim, stopped, (live) => {
        Object.assign(asked, { answer: live.answer, isOut: true })
        // Any other change refuses it, and it is written again: otherwise the silence after it would prove nothing.
        return this.#patch({ metadata: { resourceVersion: live.resourceVersion }, data: question })
      }),
    )
    if (!asked.isOut || stopped.aborted) return
    await this.#silence(stopped)
    await this.#untilDone(stopped, trouble, () =>
      this.#ofClaim(asked.claim, stopped, (live) => {
        // An agent that wrote its claim again, without the question, is active.
        if (live.answer !== asked.answer || live.challenge === '') this.#contest(live)
        else {
          this.#deps.log.warn('the agent that held the claim does not answer: taking over', { agent: live.agent })
          this.#mayTake(live)
          this.#take(live)
        }
        return null
      }),
    )
  }

  /** For another claim, an event gives the details. */
  async #ofClaim(
    claim: Claim,
    stopped: AbortSignal,
    act: (live: LiveClaim) => Promise<ApiFailure | null> | null,
  ): Promise<ApiFailure | null> {
    const now = await this.#deps.cluster.get(CONFIG_MAPS, CLAIM_REF)
    if (now.kind === 'failed') return now.failure
    const live = now.kind === 'found' ? readClaim(now.object) : null
    return stopped.aborted || live === null || !isSameClaim(live, claim) ? null : act(live)
  }

  async #answer(live: LiveClaim, stopped: AbortSignal): Promise<void> {
    const { log, onChallenge } = this.#deps
    if (!this.#challengers.has(live.challenger) && this.#challengers.size < CHALLENGERS_MAX) {
      this.#challengers.add(live.challenger)
      log.warn('another agent requests the claim of this cluster', { challenger: live.challenger })
      onChallenge(live.challenger)
    }
    const body = { metadata: { resourceVersion: live.resourceVersion }, data: { answer: live.challenge } }
    await this.#untilDone(stopped, null, async () => {
      const failure = await this.#patch(body)
      // The claim is another one by now, and an event brings it.
      return failure?.kind === 'conflict' ? null : failure
    })
  }

  /** A missing claim needs no patch: an event reports it. */
  async #patch(body: Record<string, unknown>): Promise<ApiFailure | null> {
    const answer = await this.#deps.cluster.mergePatch(CONFIG_MAPS, CLAIM_REF, body)
    return answer.kind === 'applied' || answer.failure.kind === 'not_found' ? null : answer.failure
  }

  /** Before the write: a process that dies in between draws again. On a full disk the next start writes it again. */
  #remember(): void {
    const { place, state, log } = this.#deps
    if (this.#isRemembered) return
    this.#past = pastClaims(this.#own, [this.#mine, ...this.#past])
    try {
      state.setWrittenClaim({ place, claim: this.#own, over: this.#past })
      this.#isRemembered = true
    } catch (error) {
      log.warn('cannot save the claim; the next start writes it again', { error: describeError(error) })
    }
  }

  /** The write is forced, so each attempt first reads the claim that it would overwrite. Its event reports success. */
  async #write(stopped: AbortSignal): Promise<void> {
    const { cluster } = this.#deps
    await this.#untilDone(stopped, 'waiting.claim_unwritable', async () => {
      const now = await cluster.get(CONFIG_MAPS, CLAIM_REF)
      if (stopped.aborted) return null
      if (now.kind === 'failed') return now.failure
      const live = now.kind === 'found' ? readClaim(now.object) : null
      if (this.#judge(live) !== 'write') return null
      this.#remember()
      return tryWrite(cluster, this.#own)
    })
  }

  /** Also ends when it is stopped. `trouble` null: a failure does not change the agent, and is not reported. */
  async #untilDone(stopped: AbortSignal, trouble: Trouble | null, attempt: () => Promise<ApiFailure | null>): Promise<void> {
    const { clock, random, onChange } = this.#deps
    while (!stopped.aborted) {
      const failure = await attempt()
      if (stopped.aborted || failure === null) return
      if (trouble !== null) onChange({ kind: 'asking', message: enforcementText(trouble, { claim: CLAIM_TEXT, failure: failure.message }) })
      await clock.sleep(backoffMs(this.#attempt, WRITE_BACKOFF, random, failure.retryAfterMs), stopped)
      this.#attempt += 1
    }
  }
}

const draw = (random: Random): string => Math.floor(random() * 2 ** 48).toString(16)

/** The namespace is created only if it is missing: a person creates it for an agent without that right. */
async function tryWrite(cluster: Cluster, own: Claim): Promise<ApiFailure | null> {
  const claim = await cluster.apply(CONFIG_MAPS, claimObject(own), { force: true })
  if (claim.kind === 'applied') return null
  if (claim.failure.kind !== 'namespace_missing' && claim.failure.kind !== 'not_found') return claim.failure
  const namespace = await cluster.apply(NAMESPACES, claimNamespace, { force: true })
  if (namespace.kind === 'failed') return namespace.failure
  const again = await cluster.apply(CONFIG_MAPS, claimObject(own), { force: true })
  return again.kind === 'applied' ? null : again.failure
}
