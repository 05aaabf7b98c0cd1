// PL11: chooses the protocol version. Pure: a 426 answer names the server's range, and the highest common version is
// used from then on.
import { z } from 'zod'
import { MIN_SUPPORTED_PROTOCOL_VERSION, PROTOCOL_VERSION } from '../../shared/protocol/version.ts'
import { AppError } from '../../shared/runtime/error.ts'

const rangeSchema = z.object({ min: z.number().int().positive(), max: z.number().int().positive() })
export type VersionRange = z.infer<typeof rangeSchema>

export const OWN_VERSIONS: VersionRange = { min: MIN_SUPPORTED_PROTOCOL_VERSION, max: PROTOCOL_VERSION }

/** Null when the error is another one, names no range, or the ranges do not meet: then a person must upgrade the older
 *  side. */
export function commonVersion(error: unknown, own: VersionRange): number | null {
  if (!(error instanceof AppError && error.code === 'protocol_unsupported')) return null
  const { extra } = error.data
  const server = rangeSchema.safeParse(extra).data ?? rangeSchema.safeParse(extra?.['server']).data
  if (server === undefined) return null
  const version = Math.min(own.max, server.max)
  return version >= Math.max(own.min, server.min) ? version : null
}
