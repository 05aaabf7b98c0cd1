// The port as the account of a service (account.ts): every write is made as its ServiceAccount, and a refusal names the
// missing right. Watches, reads and the claim stay the agent's own.

import { type ObjectRef, refKey, refOf, refText } from '../../../shared/kube/object.ts'
import type { ApiFailure, ApiResource, Cluster } from '../../cluster/cluster.ts'
import { objectPart } from '../../messages/object-messages.ts'
import type { Site } from '../ports.ts'
import { type Account, type Acted, type ActingAs, actingOf, unplacedAccount } from '../snapshot/account.ts'
import type { HookBook } from '../snapshot/hooks.ts'
import { type Permitted, POLICY_REFUSED, refusedDeletion, refusedObject, refusedService } from '../snapshot/permits.ts'
import type { ServiceSnapshot } from '../snapshot/service-model.ts'

export const userOf = ({ namespace, name }: Account): string => `system:serviceaccount:${namespace}:${name}`

/** IM1, IM3: the same cluster, with every write as the account. `accounts`: the resource to search the account if it
 *  has no rights; searched once. */
export function clusterAs(cluster: Cluster, acting: ActingAs, accounts: ApiResource | null): Cluster {
  if (acting.kind === 'agent') return cluster
  if (acting.kind === 'unplaced') return refusing(cluster, acting)
  const { account } = acting
  const as = userOf(account)
  let looked: Promise<boolean> | null = null
  const isMissing = (): Promise<boolean> => {
    looked ??=
      accounts === null
        ? Promise.resolve(false)
        : cluster.get(accounts, { group: '', kind: 'ServiceAccount', ...account }).then(({ kind }) => kind === 'absent')
    return looked
  }
  /** `deleted`: the object that a person may delete instead. */
  async function explained<R extends { kind: string }>(
    answer: R | { kind: 'failed'; failure: ApiFailure },
    deleted: ObjectRef | null = null,
  ) {
    if (!isFailed(answer) || answer.failure.kind !== 'forbidden') return answer
    const advised = advice(answer.failure, account, await isMissing())
    const message = deleted === null ? advised : objectPart('or_delete_by_hand', { advice: advised, object: refText(deleted) })
    return { ...answer, failure: { ...answer.failure, message } }
  }
  return {
    info: () => cluster.info(),
    discover: () => cluster.discover(),
    get: (resource, ref, options) => cluster.get(resource, ref, options),
    watch: (resource, options) => cluster.watch(resource, options),
    apply: async (resource, object, options) => explained(await cluster.apply(resource, object, { ...options, as })),
    delete: async (resource, ref, uid, options) => explained(await cluster.delete(resource, ref, uid, { ...options, as }), ref),
    mergePatch: async (resource, ref, body) => explained(await cluster.mergePatch(resource, ref, body, { as })),
  }
}

const isFailed = (answer: { kind: string }): answer is { kind: 'failed'; failure: ApiFailure } => answer.kind === 'failed'

/** Quota and admission say 403 as well: then the account is not the cause. */
function advice({ message: failure }: ApiFailure, { namespace, name }: Account, isMissing: boolean): string {
  if (failure.includes('cannot impersonate')) return objectPart('may_not_impersonate', { failure })
  const account = `${namespace}/${name}`
  if (isMissing) return objectPart('account_missing', { failure, account })
  const isRefused = failure.includes(userOf({ namespace, name }))
  return objectPart(isRefused ? 'account_without_right' : 'asked_as_account', { failure, account })
}

/** IM2: also for callers that did not ask a gate. */
function refusing(cluster: Cluster, acting: ActingAs): Cluster {
  const message = unplacedAccount(acting)?.message ?? ''
  const refused = async () =>
    ({ kind: 'failed', failure: { kind: 'forbidden', status: 0, reason: 'ServiceAccountUnplaced', message } }) as const
  return {
    info: () => cluster.info(),
    discover: () => cluster.discover(),
    get: (resource, ref, options) => cluster.get(resource, ref, options),
    watch: (resource, options) => cluster.watch(resource, options),
    apply: refused,
    delete: refused,
    mergePatch: refused,
  }
}

type Documented = Pick<ServiceSnapshot, 'wanted' | 'inventory'> & { hooks: Pick<HookBook, 'specs' | 'removalSpecs' | 'runs'> }

/** KA51: the documents of an object, as far as the service has them. */
function* documentsOf({ wanted, inventory, hooks }: Documented, key: string): Generator<unknown> {
  const texts = new Set([wanted.get(key)?.sent, inventory.get(key)?.appliedDoc])
  for (const { key: name, run } of hooks.runs())
    if (refKey(run.ref) === key) texts.add((hooks.specs.get(name) ?? hooks.removalSpecs.get(name))?.doc)
  for (const text of texts) if (text != null) yield JSON.parse(text)
}

/** The same cluster, which knows of what each delete and patch is. */
function documented(cluster: Cluster, model: Documented): Cluster {
  const about = (ref: ObjectRef) => ({ about: () => [...documentsOf(model, refKey(ref))] })
  return {
    info: () => cluster.info(),
    discover: () => cluster.discover(),
    get: (resource, ref, options) => cluster.get(resource, ref, options),
    watch: (resource, options) => cluster.watch(resource, options),
    apply: (resource, object, options) => cluster.apply(resource, object, options),
    delete: (resource, ref, uid, options) => cluster.delete(resource, ref, uid, { ...options, ...about(ref) }),
    mergePatch: (resource, ref, body, options) => cluster.mergePatch(resource, ref, body, { ...options, ...about(ref) }),
  }
}

/** PJ12, LX1: whatever a plan asks for, nothing is sent that the Project or the site refuses. Applied objects may be
 *  deleted even if the Project no longer allows them. */
export function permittedCluster(cluster: Cluster, permitted: Permitted): Cluster {
  const failed = ({ reason, message }: { reason: string; message: string }) =>
    ({ kind: 'failed', failure: { kind: 'forbidden', status: 0, reason, message } }) as const
  const refusedApply = (ref: ObjectRef) => {
    const { row } = permitted
    const isOwn = ref.group === '' && ref.kind === 'Namespace' && row?.sync.createNamespace === true && row.namespace === ref.name
    return refusedService(permitted) ?? refusedObject(permitted, ref, isOwn)
  }
  const refusedBySite = (ref: ObjectRef) => {
    const ofSite = { id: permitted.id, row: null, policy: permitted.policy }
    return refusedService(ofSite) ?? refusedObject(ofSite, ref, true)
  }
  const refusedDelete = (ref: ObjectRef) => {
    const denied = refusedDeletion(permitted, false)
    return denied === null ? refusedBySite(ref) : { reason: POLICY_REFUSED, message: denied }
  }
  return {
    info: () => cluster.info(),
    discover: () => cluster.discover(),
    get: (resource, ref, options) => cluster.get(resource, ref, options),
    watch: (resource, options) => cluster.watch(resource, options),
    apply: async (resource, object, options) => {
      const refused = refusedApply(refOf(object))
      return refused === null ? cluster.apply(resource, object, options) : failed(refused)
    },
    delete: async (resource, ref, uid, options) => {
      const refused = refusedDelete(ref)
      return refused === null ? cluster.delete(resource, ref, uid, options) : failed(refused)
    },
    mergePatch: async (resource, ref, body, options) => {
      const refused = refusedBySite(ref)
      return refused === null ? cluster.mergePatch(resource, ref, body, options) : failed(refused)
    },
  }
}

/** IM1: the cluster as the service may change it. */
export function serviceCluster(model: Acted & Documented & Permitted, { cluster, kinds }: Pick<Site, 'cluster' | 'kinds'>): Cluster {
  const lookup = kinds.find('', 'v1', 'ServiceAccount')
  const acting = clusterAs(documented(cluster, model), actingOf(model), lookup.kind === 'served' ? lookup.resource : null)
  return permittedCluster(acting, model)
}
