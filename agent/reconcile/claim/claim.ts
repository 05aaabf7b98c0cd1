// Who may enforce this cluster. Two agents (a surge, two joins, a copied disk) would fight over every object; a ConfigMap in the cluster itself
// says which one it is, so no server is needed to know. A copied disk has agent and incarnation in common: the instance tells them apart.
import type { K8sObject } from '../../../shared/kube/object.ts'

export const CLAIM_NAMESPACE = 'skerry-system'
export const CLAIM_NAME = 'skerry-claim'

export interface Claim {
  agent: string
  incarnation: number
  /** Drawn before each first write of a start, and kept with the place where that was. */
  instance: string
}

/** The claim that was written last, kept on the disk (CM5). */
export interface WrittenClaim {
  /** Where the process ran that wrote it: at one place there is never a second one (shared/adapters/data-folder.ts). */
  place: string
  claim: Claim
  /** What it was written over. */
  over: Claim | null
}

/** Null: there is none, or it cannot be read and is as good as none. */
export function readClaim(object: K8sObject | null): Claim | null {
  const data = object?.['data']
  if (data === null || typeof data !== 'object') return null
  const { agent, incarnation, instance } = data as Record<string, unknown>
  const number = Number(incarnation)
  return typeof agent === 'string' && agent !== '' && Number.isSafeInteger(number)
    ? { agent, incarnation: number, instance: String(instance ?? '') }
    : null
}

export type ClaimVerdict = 'write' | 'held' | 'superseded'

/** CM1–CM3. `first`: this process has not judged a claim before. Among agents of equal incarnation, copies of one agent too, the one that came later wins: the
 *  earlier one sees the claim change and stops until it is started again, so never do both enforce. */
export function judgeClaim(live: Claim | null, own: Claim, first: boolean): ClaimVerdict {
  if (live === null) return 'write'
  if (live.incarnation > own.incarnation) return 'superseded'
  if (live.incarnation < own.incarnation) return 'write'
  if (live.agent === own.agent && live.instance === own.instance) return 'held'
  return first ? 'write' : 'superseded'
}

export const isSameClaim = (a: Claim | null, b: Claim | null): boolean =>
  a?.agent === b?.agent && a?.incarnation === b?.incarnation && a?.instance === b?.instance

export const claimObject = (own: Claim): K8sObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: CLAIM_NAME, namespace: CLAIM_NAMESPACE },
  data: { agent: own.agent, incarnation: String(own.incarnation), instance: own.instance },
})

export const claimNamespace: K8sObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: CLAIM_NAMESPACE } }
