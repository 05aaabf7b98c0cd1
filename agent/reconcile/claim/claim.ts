// Decides which agent enforces this cluster. Two agents (a surge, two joins, a copied disk) would fight over every
// object. A ConfigMap in the cluster names the one, so that no server is needed. A copied disk has the same agent and
// incarnation; the instance distinguishes them. Agents of two registrations are unrelated: the later one asks whether
// the other is active, and a person decides between them.
import type { K8sObject, ObjectRef } from '../../../shared/kube/object.ts'
import { INCARNATION_LEAD_MAX } from '../../../shared/protocol/session.ts'
import { enforcementText, sitePart } from '../../messages/site-messages.ts'
import type { Claim, ClaimName, PastClaim } from '../../state/claims.ts'

export const CLAIM_NAMESPACE = 'skerry-system'
export const CLAIM_NAME = 'skerry-claim'
export const CLAIM_REF: ObjectRef = { group: '', kind: 'ConfigMap', namespace: CLAIM_NAMESPACE, name: CLAIM_NAME }
/** For people. */
export const CLAIM_TEXT = `${CLAIM_NAMESPACE}/${CLAIM_NAME}`
const NOBODY = ''
export const DELETE_CLAIM = `kubectl -n ${CLAIM_NAMESPACE} delete configmap ${CLAIM_NAME}`
/** Maximum number of stored former registrations; the newest come first. */
const FORMER_MAX = 16
/** Claims of this agent that are remembered (CM11). */
export const PAST_MAX = 16

/** The claim in the cluster. */
export interface LiveClaim extends Claim {
  objectUid: string
  resourceVersion: string
  /** A question to the holder: it answers with this very text while it is active. '' is none. */
  challenge: string
  /** For people: the agent that asks. */
  challenger: string
  answer: string
}

/**
 * Returns null if the object does not exist. An object without a valid claim is read as a claim without holder (CM13),
 * a different one for each resourceVersion.
 */
export function readClaim(object: K8sObject | null): LiveClaim | null {
  if (object === null) return null
  const data: Record<string, unknown> = object['data'] !== null && typeof object['data'] === 'object' ? { ...object['data'] } : {}
  const text = (key: string): string => {
    const value = data[key]
    return typeof value === 'string' ? value : ''
  }
  const isReadable = text('agent') !== '' && /^\d{1,15}$/.test(text('incarnation'))
  return {
    agent: isReadable ? text('agent') : NOBODY,
    incarnation: isReadable ? Number(text('incarnation')) : 0,
    instance: isReadable ? text('instance') : (object.metadata.resourceVersion ?? ''),
    cluster: text('cluster'),
    server: text('server'),
    uid: text('uid'),
    former: text('former').split(' ').filter(Boolean).slice(0, FORMER_MAX),
    objectUid: object.metadata.uid ?? '',
    resourceVersion: object.metadata.resourceVersion ?? '',
    challenge: text('challenge'),
    challenger: text('challenger'),
    answer: text('answer'),
  }
}

export type ClaimVerdict = 'write' | 'held' | 'superseded' | 'challenge' | 'unclear'

/** The rights of an agent without a question. `mayTake`: it may overwrite this very claim. `hasHeld`: this process
 *  held the claim before. `isHolder`: it did when the claim was last seen. */
export interface Standing {
  mayTake: boolean
  hasHeld: boolean
  isHolder: boolean
}

/** CM1–CM3, CM6, CM13. Among copies of one agent the later one wins: the earlier one sees the claim change and
 *  stops, so both never enforce. */
export function judgeClaim(live: Claim | null, own: Claim, { mayTake, hasHeld, isHolder }: Standing): ClaimVerdict {
  if (live === null) return 'write'
  // No agent makes it unreadable, so the enforcing agent writes it again.
  if (live.agent === NOBODY) return mayTake || isHolder ? 'write' : 'unclear'
  if (live.agent !== own.agent) return mayTake ? 'write' : hasHeld ? 'superseded' : 'challenge'
  if (live.incarnation > own.incarnation) return isPlausible(live, own) ? 'superseded' : mayTake ? 'write' : 'unclear'
  if (live.incarnation < own.incarnation) return 'write'
  if (live.instance === own.instance) return 'held'
  return mayTake ? 'write' : 'superseded'
}

/** SE5: a server gives an agent no incarnation that is further ahead of the one it has. */
const isPlausible = (live: Claim, own: Claim): boolean => live.incarnation <= own.incarnation + INCARNATION_LEAD_MAX

/** CM13: for people, with the remedies for an `unclear` claim. */
export function unclearText(live: Claim, own: Claim): string {
  const names = { claim: CLAIM_TEXT, deleteClaim: DELETE_CLAIM }
  return live.agent === NOBODY
    ? enforcementText('unclear.unreadable', names)
    : enforcementText('unclear.incarnation', { ...names, named: live.incarnation, own: own.incarnation })
}

export const isSameClaim = (a: ClaimName | null, b: ClaimName | null): boolean =>
  a?.agent === b?.agent && a?.incarnation === b?.incarnation && a?.instance === b?.instance

/** CM11: the newest of `claims`, without `own`. A claim without an instance is left out: the agents of old versions
 *  wrote it more than once. */
export function pastClaims(own: ClaimName, claims: ReadonlyArray<PastClaim | null>): PastClaim[] {
  const past: PastClaim[] = []
  for (const claim of claims) {
    if (claim === null || claim.agent === NOBODY || claim.instance === '') continue
    if (isSameClaim(claim, own) || past.some((known) => isSameClaim(known, claim))) continue
    const { agent, incarnation, instance, cluster = '', uid = '' } = claim
    past.push({ agent, incarnation, instance, cluster, uid })
    if (past.length === PAST_MAX) break
  }
  return past
}

/** CM8: registrations that claims of this very cluster name, without the own one. Claims of another or an unknown
 *  cluster name none. */
export function formerOf(own: Pick<Claim, 'cluster' | 'uid'>, claims: ReadonlyArray<Claim | null>, told: readonly string[] = []): string[] {
  const named = claims.flatMap((claim) =>
    claim === null || !claim.uid || claim.uid !== own.uid ? [] : [claim.cluster ?? '', ...(claim.former ?? [])],
  )
  return [...new Set([...named, ...told])].filter((id) => id !== '' && id !== own.cluster).slice(0, FORMER_MAX)
}

/** For people. */
export const claimantText = ({ agent, cluster = '', server = '' }: Claim): string => sitePart('claimant', { agent, cluster, server })

/** An empty challenge, so that no question to the former claim is answered. */
export const claimObject = ({ agent, incarnation, instance, cluster = '', server = '', uid = '', former = [] }: Claim): K8sObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: CLAIM_NAME, namespace: CLAIM_NAMESPACE },
  data: { agent, incarnation: String(incarnation), instance, cluster, server, uid, former: former.join(' '), challenge: '' },
})

export const claimNamespace: K8sObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: CLAIM_NAMESPACE } }
