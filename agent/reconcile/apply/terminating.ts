// Why a namespace takes nothing: it is being deleted, and something holds it. The refusal of a write does not say what; the namespace does. Namespaces of others are not
// watched, so one is read when a write was refused for it, once for all objects of a round.
import { stuckAdvice } from '../../../shared/kube/deletion.ts'
import type { ApiFailure, ApiResource, Cluster } from '../../cluster/cluster.ts'
import type { StepResult } from '../plan/step.ts'
import { safeDeletion } from '../snapshot/watch/live-object.ts'

/** Served by every Kubernetes. */
const NAMESPACES: ApiResource = { group: '', version: 'v1', kind: 'Namespace', plural: 'namespaces', namespaced: false, verbs: [] }

export class TerminatingNamespaces {
  readonly #asked = new Map<string, Promise<string>>()

  /** RC23 */
  async explain(result: StepResult, cluster: Pick<Cluster, 'get'>): Promise<StepResult> {
    if (result.kind !== 'failed' || result.failure.kind !== 'namespace_terminating') return result
    const { namespace } = result.step.ref
    const asked = this.#asked.get(namespace) ?? ask(cluster, namespace)
    this.#asked.set(namespace, asked)
    const held = await asked
    if (held === '') return result
    const failure: ApiFailure = { ...result.failure, message: `${result.failure.message}; of the namespace: ${held}` }
    return { ...result, failure }
  }
}

/** '': it cannot be read, or is no longer being deleted. */
async function ask(cluster: Pick<Cluster, 'get'>, name: string): Promise<string> {
  const answer = await cluster.get(NAMESPACES, { group: '', kind: 'Namespace', namespace: '', name })
  const text = answer.kind === 'found' ? safeDeletion(answer.object) : null
  if (text === null) return ''
  return text.includes(';') ? `${text}; ${stuckAdvice('Namespace', text)}` : text
}
