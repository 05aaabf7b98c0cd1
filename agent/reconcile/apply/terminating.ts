// Why a namespace takes nothing: it is being deleted, and something holds it. The refusal of a write does not say what; the namespace does. Namespaces of others are not
// watched, so one is read when a write was refused for it, once for all objects of a round.
import { deletionText, stuckAdvice } from '../../../shared/kube/deletion.ts'
import type { ApiFailure, ApiResource, Cluster } from '../../cluster/cluster.ts'
import type { StepResult } from '../step.ts'

/** Served by every Kubernetes. */
const NAMESPACES: ApiResource = { group: '', version: 'v1', kind: 'Namespace', plural: 'namespaces', namespaced: false, verbs: [] }

export class TerminatingNamespaces {
  readonly #cluster: Cluster
  readonly #asked = new Map<string, Promise<string>>()

  constructor(cluster: Cluster) {
    this.#cluster = cluster
  }

  /** RC23 */
  async explain(result: StepResult): Promise<StepResult> {
    if (result.kind !== 'failed' || result.failure.kind !== 'namespace_terminating') return result
    const { namespace } = result.step.ref
    const asked = this.#asked.get(namespace) ?? this.#ask(namespace)
    this.#asked.set(namespace, asked)
    const held = await asked
    if (held === '') return result
    const failure: ApiFailure = { ...result.failure, message: `${result.failure.message}; of the namespace: ${held}` }
    return { ...result, failure }
  }

  /** '': it cannot be read, or is no longer being deleted. */
  async #ask(name: string): Promise<string> {
    const answer = await this.#cluster.get(NAMESPACES, { group: '', kind: 'Namespace', namespace: '', name })
    const text = answer.kind === 'found' ? deletionText(answer.object) : null
    if (text === null) return ''
    return text.includes(';') ? `${text}; ${stuckAdvice('Namespace', text)}` : text
  }
}
