// The account of a service's writes: the agent, or the ServiceAccount that `sync.serviceAccount` names. Pure.
import { z } from 'zod'
import type { ServiceRow } from '../../../shared/model/desired.ts'
import type { SyncOptions } from '../../../shared/model/resources.ts'
import { objectStatus } from '../../messages/object-messages.ts'
import { type Permitted, refusedService } from './permits.ts'
import { type Closed, closedBy } from './situation.ts'

export interface Account {
  namespace: string
  name: string
}
export type ActingAs = { kind: 'agent' } | { kind: 'account'; account: Account } | { kind: 'unplaced'; name: string }

const AGENT: ActingAs = { kind: 'agent' }

/** IM1: the account that makes the writes of a service. */
export function actingAs({ serviceAccount }: Pick<SyncOptions, 'serviceAccount'>, namespace: string | undefined): ActingAs {
  if (serviceAccount === undefined) return AGENT
  const slash = serviceAccount.indexOf('/')
  if (slash >= 0) return { kind: 'account', account: { namespace: serviceAccount.slice(0, slash), name: serviceAccount.slice(slash + 1) } }
  return namespace === undefined
    ? { kind: 'unplaced', name: serviceAccount }
    : { kind: 'account', account: { namespace, name: serviceAccount } }
}

/** IM2. Null means that it is valid. */
export function unplacedAccount(acting: ActingAs): Closed | null {
  if (acting.kind !== 'unplaced') return null
  return closedBy(objectStatus('ServiceAccountUnplaced', { name: acting.name }))
}

const FACT = 'acting/account'
const factSchema = z.object({ serviceAccount: z.string(), namespace: z.string().optional() })

export interface Acted {
  readonly row: ServiceRow | null
  /** The account of the last complete revision, until a revision is read. */
  readonly actedAs: ActingAs | null
}

export const actingOf = ({ row, actedAs }: Acted): ActingAs => (row === null ? (actedAs ?? AGENT) : actingAs(row.sync, row.namespace))

/** IM1: applied documents are healed as the same account, also after a restart before any revision can be read. */
export function recallActing(facts: ReadonlyMap<string, unknown>): ActingAs {
  const parsed = factSchema.safeParse(facts.get(FACT))
  return parsed.success ? actingAs(parsed.data, parsed.data.namespace) : AGENT
}

/** The account that the row names, as a fact. Null means that it is kept already. */
export function actingFacts({ row, actedAs }: Acted): ReadonlyMap<string, unknown> | null {
  if (row === null || JSON.stringify(actingOf({ row, actedAs })) === JSON.stringify(actedAs)) return null
  const { serviceAccount } = row.sync
  const { namespace } = row
  return new Map([[FACT, serviceAccount === undefined ? null : { serviceAccount, ...(namespace === undefined ? {} : { namespace }) }]])
}

/** Null if the agent writes as itself, or cannot. */
export function accountOf(model: Acted): Account | null {
  const acting = actingOf(model)
  return acting.kind === 'account' ? acting.account : null
}

/** IM2, PJ12, LX2: why nothing of the service is written. */
export const accountTrouble = (model: Acted & Permitted): Closed | null => refusedService(model) ?? unplacedAccount(actingOf(model))
