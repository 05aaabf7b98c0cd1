// The confirmation of a service's deletions: on the server, whose answer comes with the row, or at the site, without a
// network. A confirmation is for one revision or removal order, and for the names that were shown.
import { confirmationToken, type ServiceRow } from '../../../../shared/model/desired.ts'
import type { SiteConfirmation } from '../../snapshot/kept-notes.ts'
import type { ServiceSnapshot } from '../../snapshot/service-model.ts'
import type { ConfirmedNames } from '../prune/deletion.ts'

/** Names of earlier confirmations of the same revision or order stay confirmed. */
export function joinConfirmations(
  before: SiteConfirmation | null,
  { names, ...confirmation }: SiteConfirmation & { names: readonly string[] },
): SiteConfirmation {
  const kept = before?.digest === confirmation.digest ? (before.names ?? []) : []
  return { ...confirmation, names: [...new Set([...kept, ...names])].sort() }
}

/** EC1: of the shown list. The same revision may return later with another list. */
export const isOutdated = (confirmation: SiteConfirmation | null, row: ServiceRow): boolean =>
  confirmation !== null && confirmation.digest !== confirmationToken(row)

/** `isConfirmed`: the revision or order as a whole, past the guard (PR4). */
export function confirmationOf(
  { pruning }: Pick<ServiceSnapshot, 'pruning'>,
  row: ServiceRow,
): { isConfirmed: boolean; names: ConfirmedNames } {
  const site = pruning.confirmation
  const isHere = site?.digest === confirmationToken(row)
  const isInRow = row.pruneConfirmed === row.digest
  if ((isInRow && row.confirmed === undefined) || (isHere && site.names === undefined)) return { isConfirmed: true, names: 'all' }
  const ofRow = isInRow || row.removal !== undefined ? (row.confirmed ?? []) : []
  return { isConfirmed: isInRow || isHere, names: new Set([...ofRow, ...(isHere ? (site.names ?? []) : [])]) }
}

/** Confirmed in this process of the agent: the person saw the present objects. */
export const isConfirmedHere = ({ row, pruning }: ServiceSnapshot): boolean =>
  row !== null && pruning.confirmedHere === confirmationToken(row)
