// The names of data that a request confirms (RM1): what it may say, and what of it counts. A request that names nothing
// reads nothing.
import { z } from 'zod'
import { confirmDataSchema } from '../../shared/model/removal-views.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { confirmedData, type PlannedRemoval } from '../actions/removal-plans.ts'
import type { ConfirmedData } from '../fleet/removal-effect.ts'

/** The body of a deletion or a confirmation; it may be left out. */
export const confirmDataBody = z.strictObject({ confirmData: confirmDataSchema })

/**
 * Undefined if the body names nothing. Throws `bad_request` for a body of another form, and for a name that `removals`
 * do not show.
 */
export async function readConfirmedData(
  body: unknown,
  removals: () => Promise<readonly PlannedRemoval[]>,
): Promise<ConfirmedData | undefined> {
  if (body === undefined || body === null || body === '') return undefined
  const parsed = confirmDataBody.safeParse(body)
  if (!parsed.success) throw new AppError('bad_request', { detail: 'expected {confirmData: [exact names of objects]}' })
  const { confirmData } = parsed.data
  return confirmData.length === 0 ? undefined : confirmedData(await removals(), confirmData)
}
