// Which failures may be over because an object changed that this agent watches: they are tried at once, without waiting
// for their backoff. Pure.
import { type ObjectRef, parseRefKey } from '../../../../shared/kube/object.ts'
import type { ApiFailure } from '../../../cluster/cluster.ts'
import type { Account } from '../account.ts'

type Lack = ApiFailure['kind']

/** Failures that some object of the cluster is the cause of. */
const CAUSED: ReadonlySet<Lack> = new Set(['forbidden', 'namespace_missing', 'namespace_terminating', 'webhook', 'taken'])
const isCaused = (kind: Lack): boolean => CAUSED.has(kind)

/** The failure: its answer, the object, and the account. */
export interface Lacking {
  kind: Lack
  message: string
  ref: ObjectRef
  account: Account | null
}

const RBAC = 'rbac.authorization.k8s.io'
const ADMISSION = 'admissionregistration.k8s.io'
const WORKLOADS: ReadonlySet<string> = new Set(['Deployment', 'StatefulSet', 'DaemonSet'])

/** The address of a webhook inside the cluster names its backend; for one outside the backend is unknown. */
function isServedFrom(namespace: string, message: string): boolean {
  const named = /"https:\/\/[a-z0-9-]+\.([a-z0-9-]+)\.svc[:./?]/.exec(message)
  return named === null || named[1] === namespace
}

/** The failures that a change of an object may have ended. */
export interface Ending {
  kinds: readonly Lack[]
  ends(lacking: Lacking): boolean
}

/** RC22. Null means that nothing waits for objects of this kind. `isHealthy`: it exists and is healthy. */
export function endedBy(key: string, isHealthy: boolean): Ending | null {
  const cause = parseRefKey(key)
  if (cause === null) return null
  const { group, kind, namespace, name } = cause
  const inside = ({ ref }: Lacking) => namespace === '' || ref.namespace === namespace
  if (group === RBAC) return ending(['forbidden'], (lacking) => lacking.account !== null && inside(lacking))
  if (group === ADMISSION) return ending(['forbidden', 'webhook'])
  if (group === 'apps' && WORKLOADS.has(kind) && isHealthy) return ending(['webhook'], ({ message }) => isServedFrom(namespace, message))
  if (group !== '') return null
  switch (kind) {
    case 'Namespace':
      return ending(['namespace_missing', 'namespace_terminating'], ({ ref }) => ref.namespace === name)
    case 'Service':
      return ending(['taken'])
    case 'ServiceAccount':
      return ending(['forbidden'], ({ account }) => account?.namespace === namespace && account.name === name)
    case 'ResourceQuota':
    case 'LimitRange':
      return ending(['forbidden'], inside)
    default:
      return null
  }
}

const ending = (kinds: readonly Lack[], concerns: (lacking: Lacking) => boolean = () => true): Ending => ({
  kinds,
  ends: (lacking) => kinds.includes(lacking.kind) && concerns(lacking),
})

/** The objects of all services that failed for a missing thing, by the answer: a change visits only those that it
 *  may help. */
export class LackingObjects {
  readonly #keys = new Map<Lack, Map<string, Set<string>>>()

  add(kind: Lack, service: string, key: string): void {
    if (!isCaused(kind)) return
    const services = this.#keys.get(kind) ?? new Map<string, Set<string>>()
    const keys = services.get(service) ?? new Set<string>()
    this.#keys.set(kind, services.set(service, keys.add(key)))
  }

  of(kind: Lack): ReadonlyMap<string, ReadonlySet<string>> {
    return this.#keys.get(kind) ?? new Map()
  }

  /** The object lacks this no more. */
  drop(kind: Lack, service: string, key: string): void {
    const services = this.#keys.get(kind)
    const keys = services?.get(service)
    keys?.delete(key)
    if (keys?.size === 0) services?.delete(service)
  }

  forget(service: string): void {
    for (const services of this.#keys.values()) services.delete(service)
  }
}
