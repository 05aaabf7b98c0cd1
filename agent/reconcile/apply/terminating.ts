// Why a namespace refuses writes: it is being deleted, and has an obstacle. The refusal of a write does not name it;
// the namespace does. Namespaces of others are not watched, so one is read after a refusal, once for all objects of a
// round.
import { stuckAdvice } from '../../../shared/kube/deletion.ts'
import type { ApiFailure, ApiResource, Cluster } from '../../cluster/cluster.ts'
import { objectPart } from '../../messages/object-messages.ts'
import type { Step, StepResult } from '../plan/step.ts'
import { safeDeletion } from '../snapshot/watch/live-object.ts'

/** Served by every Kubernetes. */
const NAMESPACES: ApiResource = { group: '', version: 'v1', kind: 'Namespace', plural: 'namespaces', namespaced: false, verbs: [] }

export class TerminatingNamespaces {
  readonly #asked = new Map<string, Promise<string>>()
  readonly #refused = new Map<string, ApiFailure>()
  readonly #wasRefused: (key: string) => boolean

  /** `wasRefused`: the last attempt of this object was refused for its namespace. */
  constructor(wasRefused: (key: string) => boolean) {
    this.#wasRefused = wasRefused
  }

  /** RC36: the namespace in which this object is tried alone first. Null means that it is sent with all others. */
  triedFirst(step: Step): string | null {
    return step.kind === 'apply' && this.#wasRefused(step.key) ? step.ref.namespace : null
  }

  /** RC36: the expected answer of a request. Null means that it has to be sent; an existing object can be changed. */
  foresee(step: Step): StepResult | null {
    if (step.kind !== 'apply' || (step.why !== 'new' && !this.#wasRefused(step.key))) return null
    const failure = this.#refused.get(step.ref.namespace)
    return failure === undefined ? null : { kind: 'failed', step, failure }
  }

  /** RC23: adds what keeps a namespace that is being deleted. */
  async explain(result: StepResult, cluster: Pick<Cluster, 'get'>): Promise<StepResult> {
    if (result.kind !== 'failed' || result.failure.kind !== 'namespace_terminating') return result
    const { namespace } = result.step.ref
    const asked = this.#asked.get(namespace) ?? ask(cluster, namespace)
    this.#asked.set(namespace, asked)
    const held = await asked
    if (held === '') return result
    const message = objectPart('namespace_closed', { namespace, deleting: held })
    this.#refused.set(namespace, { ...result.failure, message })
    const failure: ApiFailure = {
      ...result.failure,
      message: objectPart('namespace_held', { failure: result.failure.message, deleting: held }),
    }
    return { ...result, failure }
  }
}

/** '': it cannot be read, or is no longer being deleted. */
async function ask(cluster: Pick<Cluster, 'get'>, name: string): Promise<string> {
  const answer = await cluster.get(NAMESPACES, { group: '', kind: 'Namespace', namespace: '', name })
  const text = answer.kind === 'found' ? safeDeletion(answer.object) : null
  if (text === null) return ''
  return text.includes(';') ? objectPart('advised', { text, advice: stuckAdvice('Namespace', text) }) : text
}
