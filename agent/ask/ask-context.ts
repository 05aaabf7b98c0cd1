// The dependencies of answers to questions.
import type { ObjectRef } from '../../shared/kube/object.ts'
import { allowsNamespace } from '../../shared/model/bounds.ts'
import type { AskFrame } from '../../shared/protocol/ask.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Cluster, Discovery } from '../cluster/cluster.ts'
import type { LogStreams } from '../cluster/pod-logs.ts'
import { questionRefusal } from '../messages/question-messages.ts'
import type { SitePolicy } from '../reconcile/snapshot/permits.ts'
import type { Replica } from '../replica/replica.ts'
import type { AgentState } from '../state/agent-state.ts'
import type { AskReads } from './ask-reads.ts'

export interface SiteAnswererDeps {
  cluster: Cluster
  /** Absent means that this agent reads no logs. */
  logs?: LogStreams | undefined
  state: Pick<AgentState, 'ownerOf' | 'inventory' | 'facts'>
  replica(): Pick<Replica, 'read' | 'unlock' | 'open' | 'position'> | null
  discovery(): Discovery | null
  policy(): SitePolicy | null
  /** In the audit log of the site; throws when it cannot be written. `refusal`: why the site does not answer. */
  record(frame: AskFrame, refusal?: string): void
  /** The option `--asking` allows restarts. */
  restarts: boolean
  clock: Clock
}

export interface AnswerContext extends SiteAnswererDeps {
  reads: AskReads
  /** AK3: the asker has a right on the service alone, and not on the cluster. */
  isConfined: boolean
}

/** AK5: why the site tells nothing of an object. Null means that it may. */
export function refusedNamespace(policy: SitePolicy | null, { namespace }: Pick<ObjectRef, 'namespace'>): string | null {
  const namespaces = policy?.ask?.namespaces
  if (namespaces === undefined) return null
  if (namespace === '') return questionRefusal('local_policy.cluster_scope').message
  return allowsNamespace({ namespaces }, namespace) ? null : questionRefusal('local_policy.namespace', { namespace }).message
}
