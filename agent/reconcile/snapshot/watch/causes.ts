// Which failures may be over because an object changed that this agent watches: they are tried at once, without waiting for their backoff. Pure.
import { type ObjectRef, parseRefKey } from '../../../../shared/kube/object.ts'
import type { ApiFailure } from '../../../cluster/cluster.ts'
import type { Account } from '../account.ts'

type Lack = ApiFailure['kind']

/** Failures that some object of the cluster is the cause of. */
const CAUSED: ReadonlySet<Lack> = new Set(['forbidden', 'namespace_missing', 'namespace_terminating', 'webhook', 'taken'])
export const isCaused = (kind: Lack): boolean => CAUSED.has(kind)

/** What failed: with which answer, about which object, asked as whom. */
export interface Lacking {
  kind: Lack
  message: string
  ref: ObjectRef
  account: Account | null
}

const RBAC = 'rbac.authorization.k8s.io'
const ADMISSION = 'admissionregistration.k8s.io'
const WORKLOADS: ReadonlySet<string> = new Set(['Deployment', 'StatefulSet', 'DaemonSet'])

/** Who serves a webhook inside the cluster is named by its address; of one elsewhere nobody here can say. */
function isServedFrom(namespace: string, message: string): boolean {
  const named = /"https:\/\/[a-z0-9-]+\.([a-z0-9-]+)\.svc[:./?]/.exec(message)
  return named === null || named[1] === namespace
}

/** RC22: null: nothing waits for objects of this kind. `isHealthy`: it is there and well. */
export function endedBy(key: string, isHealthy: boolean): ((lacking: Lacking) => boolean) | null {
  const cause = parseRefKey(key)
  if (cause === null) return null
  const { group, kind, namespace, name } = cause
  const inside = ({ ref }: Lacking) => namespace === '' || ref.namespace === namespace
  if (group === RBAC) return (lacking) => lacking.kind === 'forbidden' && lacking.account !== null && inside(lacking)
  if (group === ADMISSION) return ({ kind: lack }) => lack === 'forbidden' || lack === 'webhook'
  if (group === 'apps' && WORKLOADS.has(kind) && isHealthy)
    return ({ kind: lack, message }) => lack === 'webhook' && isServedFrom(namespace, message)
  if (group !== '') return null
  switch (kind) {
    case 'Namespace':
      return ({ kind: lack, ref }) => (lack === 'namespace_missing' || lack === 'namespace_terminating') && ref.namespace === name
    case 'Service':
      return ({ kind: lack }) => lack === 'taken'
    case 'ServiceAccount':
      return ({ kind: lack, account }) => lack === 'forbidden' && account?.namespace === namespace && account.name === name
    case 'ResourceQuota':
    case 'LimitRange':
      return (lacking) => lacking.kind === 'forbidden' && inside(lacking)
    default:
      return null
  }
}
