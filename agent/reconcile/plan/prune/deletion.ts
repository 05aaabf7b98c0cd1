// The one authority over deletions of managed objects. The prune of a revision, a removal order, a recreation, and the
// run of a hook ask here, and a DELETE is sent only with the returned permit. Objects that Git cannot restore (volumes,
// objects of others) wait until a person confirmed them by name. Pure.

import { sha256Hex } from '../../../../shared/kube/canonical.ts'
import { CLAIMS_LOST, deletionName, lossKind, lossText } from '../../../../shared/kube/data-loss.ts'
import { type ObjectRef, refKey } from '../../../../shared/kube/object.ts'
import { comparePrune } from '../../../../shared/kube/order.ts'
import type { PruneRefusal } from '../../../../shared/model/status.ts'
import { serviceText } from '../../../../shared/runtime/ids.ts'
import { andMore } from '../../../../shared/runtime/messages.ts'
import { deletionText } from '../../../messages/deletion-messages.ts'
import { isStillToCome, type NotAgain, type Problem } from '../../snapshot/situation.ts'
import type { LiveObject } from '../../snapshot/watch/live-object.ts'
import { type DeletionHold, type GuardCounts, whyGuarded } from './prune-guard.ts'

declare const permit: unique symbol
/** Proves that a deletion was decided here. */
export interface Permit {
  readonly cause: 'prune' | 'removal' | 'recreate' | 'hook'
  readonly [permit]: true
}
type Kept = Extract<Problem, { kind: 'kept' }>
const permitFor = (cause: Permit['cause']): Permit => ({ cause }) as Permit

/** The objects that a search of a Namespace or CRD found. */
export type Contents =
  | { kind: 'own' }
  /** Objects that are not of the service; `names` are the first of them. */
  | { kind: 'others'; count: number; names: readonly string[]; more: boolean }
  /** Objects of services that are being removed, too: they will be gone in a moment. */
  | { kind: 'leaving'; services: readonly string[] }
  | { kind: 'unread'; why: string }

/** The loss that the deletion of an object causes, as far as it is known. */
export type Holding =
  | { kind: 'nothing' }
  | { kind: 'lost' | 'unrecorded'; what: string }
  | { kind: 'leaving'; what: string }
  | { kind: 'unseen' }
const NOTHING: Holding = { kind: 'nothing' }

/**
 * PR13: if the disks of an agent and its server both returned to an older state, they know no revision that ever named
 * the object; or a person restored it from a backup, with its label.
 */
const UNRECORDED: Holding = { kind: 'unrecorded', what: deletionText('unrecorded') }

/** `contents`: of a Namespace or CRD, once it was searched. `isRecorded`: this agent applied it, or tried to. */
export function holdingOf(
  cause: 'prune' | 'removal',
  ref: ObjectRef,
  live: Pick<LiveObject, 'takes'>,
  contents: Contents | null,
  isRecorded = true,
): Holding {
  const holding = ownHoldingOf(cause, ref, live, contents)
  return holding.kind === 'nothing' && cause === 'prune' && !isRecorded ? UNRECORDED : holding
}

function ownHoldingOf(cause: 'prune' | 'removal', ref: ObjectRef, live: Pick<LiveObject, 'takes'>, contents: Contents | null): Holding {
  if (live.takes === 'claims') return { kind: 'lost', what: CLAIMS_LOST }
  const kind = lossKind(ref)
  const lost: Holding = { kind: 'lost', what: lossText(ref) ?? '' }
  if (kind === null) return NOTHING
  // PR3: a revision that drops one of these needs a confirmation, whatever its content.
  if (cause === 'prune') return lost
  if (kind === 'class' || live.takes === 'nothing') return NOTHING
  return kind === 'data' ? lost : contents === null ? { kind: 'unseen' } : holdingOfContents(contents)
}

function holdingOfContents(contents: Contents): Holding {
  switch (contents.kind) {
    case 'own':
      return NOTHING
    case 'others': {
      const { count, names, more } = contents
      return { kind: 'lost', what: deletionText('others_inside', { count, isMore: more, names: names.join(', ') }) }
    }
    case 'leaving':
      return { kind: 'leaving', what: deletionText('leaving_inside', { services: contents.services.map(serviceText).join(', ') }) }
    case 'unread':
      return { kind: 'lost', what: deletionText('contents_unread', { why: contents.why }) }
  }
}

/** Names that a person confirmed; `all`: everything of the revision, as agents and servers before this rule had it. */
export type ConfirmedNames = ReadonlySet<string> | 'all'
const isIn = (confirmed: ConfirmedNames, ref: ObjectRef): boolean => confirmed === 'all' || confirmed.has(deletionName(ref))

/** IV9: by name only; a confirmation from before this rule does not cover objects that cannot be read. */
export const isGivenUp = (ref: ObjectRef, confirmed: ConfirmedNames): boolean => confirmed !== 'all' && confirmed.has(deletionName(ref))

export interface Candidate {
  ref: ObjectRef
  holding: Holding
  /** PR3: `skerry.dev/prune: allowed`. */
  allowed: boolean
}

export interface DeletionRequest {
  cause: 'prune' | 'removal'
  /** Objects that are there and would be deleted. */
  candidates: readonly Candidate[]
  /** All leaving objects, `candidates` among them: the guard counts and names them. */
  doomed: readonly ObjectRef[]
  /** Objects that leave, cannot be judged yet, and that no annotation allows to be deleted. */
  undecided: readonly ObjectRef[]
  /** Objects that leave and of whose kind no API is known. */
  unreachable: readonly ObjectRef[]
  /** Null if there is no guard, because the server's own guard was passed before this order. */
  guard: Omit<GuardCounts, 'prune' | 'precious'> | null
  /** The revision or the order that a confirmation is for. */
  token: string
  ownedCount: number
  /** PR4: a person confirmed this very revision or order, despite its size. */
  isConfirmed: boolean
  confirmed: ConfirmedNames
  /** The known problem of an object that waits. */
  before(key: string): Problem | undefined
  nowMs: number
}

export interface Decision {
  /** The open confirmation; null if there is none. */
  refusal: PruneRefusal | null
  /** Nothing is deleted until that is answered. */
  isShut: boolean
  permits: ReadonlyMap<string, Permit>
  /** Why single objects wait, by key. */
  kept: ReadonlyMap<string, Kept>
  /** To be searched before they can be judged. */
  unseen: readonly ObjectRef[]
}

/** In one confirmation; a person can confirm only shown names. */
const NAMES_MAX = 200

/** PR1–PR5, RM1–RM3. */
export function decideDeletions(request: DeletionRequest): Decision {
  const { cause, candidates, confirmed, isConfirmed, guard, doomed } = request
  const isOpen = ({ ref, allowed }: Candidate) => allowed || isIn(confirmed, ref)
  const asked: Array<{ ref: ObjectRef; what: string }> = []
  const permits = new Map<string, Permit>()
  const kept = new Map<string, Kept>()
  const unseen: ObjectRef[] = []
  for (const candidate of candidates) {
    const { ref, holding } = candidate
    const key = refKey(ref)
    const before = request.before(key)
    if (holding.kind === 'nothing' || isOpen(candidate)) permits.set(key, permitFor(cause))
    else if (holding.kind === 'unseen') {
      if (!isKeptStill(before, request.nowMs)) unseen.push(ref)
      else {
        kept.set(key, before)
        if (before.asks) asked.push({ ref, what: before.what })
      }
    } else {
      const asks = holding.kind !== 'leaving'
      kept.set(key, keptFor(request, before, ref, asks, holding.what))
      if (asks) asked.push({ ref, what: holding.what })
    }
  }
  for (const ref of request.unreachable) if (!isIn(confirmed, ref)) asked.push({ ref, what: deletionText('unreachable') })
  const precious = [
    ...candidates.filter(({ holding, allowed }) => holding.kind === 'lost' && !allowed).map(({ ref }) => ref),
    ...request.undecided.filter((ref) => lossKind(ref) !== null),
  ]
  const why = guard === null || isConfirmed ? null : whyGuarded({ ...guard, prune: doomed, precious })
  if (why !== null)
    return { refusal: refusalOf(request, doomed, why, false), isShut: true, permits: new Map(), kept: new Map(), unseen: [] }
  const names = asked.map(({ ref }) => ref)
  const refusal = asked.length === 0 ? null : refusalOf(request, names, askedText(asked), true)
  return { refusal, isShut: false, permits, kept, unseen }
}

const isKeptStill = (before: Problem | undefined, nowMs: number): before is Kept =>
  before?.kind === 'kept' && before.retryAtMs !== null && isStillToCome(before.retryAtMs, nowMs)

/**
 * A search is repeated, because no event tells when the objects of others are gone; a volume waits for the person
 * alone. `retryAtMs` 0: the caller has the clock.
 */
function keptFor({ cause, nowMs }: DeletionRequest, before: Problem | undefined, ref: ObjectRef, asks: boolean, what: string): Kept {
  if (isKeptStill(before, nowMs) && before.what === what) return before
  const attempt = before?.kind === 'kept' && before.asks === asks ? before.attempt + 1 : 0
  return { kind: 'kept', what, asks, attempt, retryAtMs: cause === 'removal' && lossKind(ref) === 'contents' ? 0 : null }
}

/** Objects that hold data come first, so that a list that is cut still shows them; then in the order of deletion. */
const compareAsked = (a: ObjectRef, b: ObjectRef): number =>
  Number(lossKind(a) === null) - Number(lossKind(b) === null) || comparePrune(a, b)

const SHOWN_MAX = 5

function askedText(asked: ReadonlyArray<{ ref: ObjectRef; what: string }>): string {
  const sorted = [...asked].sort((a, b) => compareAsked(a.ref, b.ref))
  const shown = sorted.slice(0, SHOWN_MAX).map(({ ref, what }) => `${deletionName(ref)} (${what})`)
  return andMore(shown, asked.length)
}

function refusalOf(
  { token, ownedCount }: Pick<DeletionRequest, 'token' | 'ownedCount'>,
  refs: readonly ObjectRef[],
  why: string,
  only: boolean,
): PruneRefusal {
  const names = [...refs].sort(compareAsked).map(deletionName).slice(0, NAMES_MAX)
  return { digest: token, names, count: refs.length, ownedCount, why, list: listDigest(token, names), ...(only ? { only } : {}) }
}

/** EC1: names exactly the list that was shown. */
export const listDigest = (token: string, names: readonly string[]): string => sha256Hex([token, ...names].join('\n')).slice(0, 16)

/**
 * Adds objects that wait to be recreated, or to make way for a hook, to the confirmation of a prune, if there is one.
 */
export function withHeld(
  refusal: PruneRefusal | null,
  held: ReadonlyArray<{ ref: ObjectRef; what: string }>,
  request: Pick<DeletionRequest, 'token' | 'ownedCount'>,
): PruneRefusal | null {
  const refs = held.map(({ ref }) => ref)
  const asked = refusalOf(request, refs, askedText(held), true)
  if (refusal === null) return asked
  const names = [...new Set([...asked.names, ...refusal.names])].slice(0, NAMES_MAX)
  const { count, why } = refusal
  return { ...refusal, names, count: count + refs.length, why: `${why}; ${asked.why}`, list: listDigest(request.token, names) }
}

export interface RecreateRequest {
  ref: ObjectRef
  live: Pick<LiveObject, 'takes'>
  /** Our own annotation on its manifest asks for it. */
  ownWord: boolean
  /** PR3: `skerry.dev/prune: allowed`. */
  allowed: boolean
  hold: DeletionHold | null
  confirmed: ConfirmedNames
}

/** AO5, PR14: a permit: it may be deleted in order to be recreated. */
export function permitRecreate({ ref, live, ownWord, allowed, hold, confirmed }: RecreateRequest): Permit | NotAgain {
  const isStateful = ref.group === 'apps' && ref.kind === 'StatefulSet'
  if (!ownWord && (lossKind(ref) !== null || isStateful)) return { why: deletionText('not_by_other_option', { kind: ref.kind }) }
  const lost = lostWith(ref, live)
  if (hold !== null) return hold.asks ? { why: hold.why, asks: lost ?? hold.why } : { why: hold.why }
  if (lost !== null && !allowed && !isGivenUp(ref, confirmed))
    return { why: deletionText('recreated_after_confirmation', { lost }), asks: lost }
  return permitFor('recreate')
}

/** Names the data that is lost with the object. Null if Git can restore everything that is deleted with it. */
function lostWith(ref: ObjectRef, live: Pick<LiveObject, 'takes'>): string | null {
  if (live.takes === 'claims') return CLAIMS_LOST
  const kind = lossKind(ref)
  return live.takes === 'nothing' || (kind !== 'data' && kind !== 'contents') ? null : lossText(ref)
}

/** HK6: null means that the object of a hook holds data or other objects, and is never deleted by a policy. */
export const permitHook = (ref: ObjectRef, live: Pick<LiveObject, 'takes'>): Permit | null =>
  lossKind(ref) === null && live.takes === undefined ? permitFor('hook') : null
