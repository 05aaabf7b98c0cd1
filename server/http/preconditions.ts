// Preconditions of a write: a version of the resource (If-Match), no resource (If-None-Match: *), or no change
// (`dryRun`).
import { z } from 'zod'
import { AppError } from '../../shared/runtime/error.ts'
import type { ResourceKey, StoredResource } from '../fleet/records.ts'
import { versionConflict } from '../store/store-resources.ts'
import { type HeaderParameter, takesHeaders } from './declared.ts'

/** A number: exactly this version. Null means that the resource must not exist. Undefined: any state. */
export type IfVersion = number | null | undefined

export const writeQuery = z.object({
  dryRun: z.enum(['true', 'false']).optional().describe('true: validate and show the effects of the write; changes nothing'),
})

export const isDryRun = ({ dryRun }: z.infer<typeof writeQuery>): boolean => dryRun === 'true'

export const etagOf = (version: number): string => `"${version}"`

/** Throws `bad_request` for a header in another form. */
export function readPreconditions({ headers }: Request): IfVersion {
  const match = headers.get('if-match')
  const none = headers.get('if-none-match')
  if (none !== null && none.trim() !== '*')
    throw new AppError('bad_request', { detail: 'If-None-Match takes * on a write: create the resource, or fail if it exists' })
  if (match === null) return none === null ? undefined : null
  if (none !== null) throw new AppError('bad_request', { detail: 'If-Match and If-None-Match exclude each other' })
  const version = /^"(\d{1,15})"$/.exec(match.trim())?.[1]
  if (version === undefined) throw new AppError('bad_request', { detail: 'If-Match takes the ETag of the resource, such as "12"' })
  return Number(version)
}

/** AP25: before anything else is checked, so that the answer is about the version. The store checks again when it
 *  writes. */
export function checkPrecondition(key: ResourceKey, held: StoredResource | null, expected: IfVersion): void {
  if (expected === undefined || (held?.version ?? null) === expected) return
  throw versionConflict(key, expected, held?.version ?? null)
}

const header = (name: string, description: string): HeaderParameter => ({ name, description, schema: { type: 'string' } })
const IF_MATCH = header('If-Match', 'ETag from a read: the write is refused (412) if the resource changed since then')
const IF_NONE_MATCH = header('If-None-Match', '`*`: create the resource; refused (412) if it exists')

export const PUT_HEADERS = takesHeaders(IF_MATCH, IF_NONE_MATCH)
export const DELETE_HEADERS = takesHeaders(IF_MATCH)
