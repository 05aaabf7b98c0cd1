// As whom a service's writes are made: the agent, or the ServiceAccount that `sync.serviceAccount` names. Watches, looks and the claim stay the agent's own.
import { z } from 'zod'
import type { ServiceRow } from '../../../shared/model/desired.ts'
import type { ServiceId } from '../../../shared/model/ids.ts'
import type { SyncOptions } from '../../../shared/model/resources.ts'
import type { ApiFailure, ApiResource, Cluster } from '../../cluster/cluster.ts'
import type { AgentState } from '../../state/agent-state.ts'
import { type Closed, closed } from '../gates/gates.ts'

export interface Account {
  namespace: string
  name: string
}
export type ActingAs = { kind: 'agent' } | { kind: 'account'; account: Account } | { kind: 'unplaced'; name: string }

const AGENT: ActingAs = { kind: 'agent' }

/** IM1 */
export function actingAs({ serviceAccount }: Pick<SyncOptions, 'serviceAccount'>, namespace: string | undefined): ActingAs {
  if (serviceAccount === undefined) return AGENT
  const slash = serviceAccount.indexOf('/')
  if (slash >= 0) return { kind: 'account', account: { namespace: serviceAccount.slice(0, slash), name: serviceAccount.slice(slash + 1) } }
  return namespace === undefined
    ? { kind: 'unplaced', name: serviceAccount }
    : { kind: 'account', account: { namespace, name: serviceAccount } }
}

/** IM2: null: nothing is wrong with it. */
export function unplacedAccount(acting: ActingAs): Closed | null {
  if (acting.kind !== 'unplaced') return null
  const message = `sync.serviceAccount is ${acting.name}, and the service has no namespace to look for it in: write it as namespace/${acting.name}, or set spec.namespace`
  return closed('ServiceAccountUnplaced', message)
}

export const userOf = ({ namespace, name }: Account): string => `system:serviceaccount:${namespace}:${name}`

/** IM1, IM3: the same cluster, in which every write is the account's. `accounts`: the resource by which an account is looked for that may nothing; it is looked
 *  for once. */
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
  async function explained<R extends { kind: string }>(answer: R | { kind: 'failed'; failure: ApiFailure }) {
    if (!isFailed(answer) || answer.failure.kind !== 'forbidden') return answer
    return {
      ...answer,
      failure: { ...answer.failure, message: `${answer.failure.message}; ${advice(answer.failure, account, await isMissing())}` },
    }
  }
  return {
    info: () => cluster.info(),
    discover: () => cluster.discover(),
    get: (resource, ref) => cluster.get(resource, ref),
    watch: (resource, options) => cluster.watch(resource, options),
    apply: async (resource, object, options) => explained(await cluster.apply(resource, object, { ...options, as })),
    delete: async (resource, ref, uid, options) => explained(await cluster.delete(resource, ref, uid, { ...options, as })),
    mergePatch: async (resource, ref, body) => explained(await cluster.mergePatch(resource, ref, body, { as })),
  }
}

const isFailed = (answer: { kind: string }): answer is { kind: 'failed'; failure: ApiFailure } => answer.kind === 'failed'

/** Quota and admission say 403 as well: then the account is not the cause. */
function advice({ message }: ApiFailure, { namespace, name }: Account, isMissing: boolean): string {
  const account = `the ServiceAccount ${namespace}/${name} of sync.serviceAccount`
  if (message.includes('cannot impersonate'))
    return `let the agent act as it (verb impersonate on serviceaccounts), or leave out sync.serviceAccount`
  if (isMissing) return `${account} does not exist: make it, with its rights, in another service or by hand`
  return message.includes(userOf({ namespace, name })) ? `give ${account} that right` : `this was asked as ${account}`
}

/** IM2: also for whoever did not ask a gate. */
function refusing(cluster: Cluster, acting: ActingAs): Cluster {
  const message = unplacedAccount(acting)?.message ?? ''
  const refused = async () =>
    ({ kind: 'failed', failure: { kind: 'forbidden', status: 0, reason: 'ServiceAccountUnplaced', message } }) as const
  return {
    info: () => cluster.info(),
    discover: () => cluster.discover(),
    get: (resource, ref) => cluster.get(resource, ref),
    watch: (resource, options) => cluster.watch(resource, options),
    apply: refused,
    delete: refused,
    mergePatch: refused,
  }
}

const FACT = 'acting/account'
const factSchema = z.object({ serviceAccount: z.string(), namespace: z.string().optional() })

interface Acted {
  readonly id: ServiceId
  readonly row: ServiceRow | null
  /** As the last complete revision said, for the time before one is read. */
  actedAs: ActingAs | null
}

export const actingOf = ({ row, actedAs }: Pick<Acted, 'row' | 'actedAs'>): ActingAs =>
  row === null ? (actedAs ?? AGENT) : actingAs(row.sync, row.namespace)

/** IM1: what was applied is healed as the same account, also after a restart before any revision can be read. */
export function recallActing(model: Acted, state: AgentState): void {
  const parsed = factSchema.safeParse(state.facts(model.id, FACT).get(FACT))
  model.actedAs = parsed.success ? actingAs(parsed.data, parsed.data.namespace) : AGENT
}

export function rememberActing(model: Acted, state: AgentState): void {
  if (model.row === null) return
  const acting = actingOf(model)
  if (JSON.stringify(acting) === JSON.stringify(model.actedAs)) return
  const { serviceAccount } = model.row.sync
  const { namespace } = model.row
  const fact = serviceAccount === undefined ? null : { serviceAccount, ...(namespace === undefined ? {} : { namespace }) }
  state.setFacts(model.id, new Map([[FACT, fact]]))
  model.actedAs = acting
}
