// Errors of PostgreSQL and of the connection to it, in our words. Texts of the database itself may quote rows, so they
// go into the cause and not to people.
import { AppError } from '../../../shared/runtime/error.ts'

/** How soon it is worth to ask again. */
const RETRY_AFTER_MS = 2_000

const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '')

/** SQLSTATE: a connection that is gone or was not made (08), a server that stops, starts or has no room for us, one
 *  that only reads (a standby). */
const UNREACHABLE_STATE = /^(08...|57P0[1-5]|53300|25006)$/
/** Codes of the system, of sockets and of TLS: no SQLSTATE begins so. */
const UNREACHABLE_CODE = /^(E[A-Z_]{4,}|CERT_|UNABLE_TO|SELF_SIGNED|DEPTH_ZERO|HOSTNAME_MISMATCH)/
const UNREACHABLE_TEXT =
  /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed|Query read timeout|The server does not support SSL|Cannot use a pool after)/
/** Wrong user, password or database. */
const REFUSED_STATE = /^(28...|3D000|42501)$/

/** An error of a failed connect, for any reason. */
export function namedConnectError(error: unknown, at: string): unknown {
  const named = namedPostgresError(error, at)
  return named instanceof AppError ? named : unreachable(error, at)
}

/** `at`: the place, without its secret. It is for the log: agents and people need not know it. */
export function namedPostgresError(error: unknown, at: string): unknown {
  if (error instanceof AppError || !(error instanceof Error)) return error
  const code = codeOf(error)
  if (code === '53100' || /^could not write init file/.test(error.message)) {
    const remedy =
      'Free some space on the disk of PostgreSQL; the server then continues automatically. Applied objects stay in the clusters.'
    const detail = 'the disk of PostgreSQL has no space left'
    return new AppError('disk_full', { doing: 'write the fleet store', detail, remedy }, { cause: placed(error, at) })
  }
  if (code === '57014') {
    const data = { doing: 'read the fleet store', detail: 'timeout', retryAfterMs: RETRY_AFTER_MS }
    return new AppError('unavailable', data, { cause: placed(error, at) })
  }
  if (REFUSED_STATE.test(code)) return unreachable(error, at, 'Check user, password and database, and that the user owns the database.')
  if (UNREACHABLE_STATE.test(code) || UNREACHABLE_CODE.test(code) || UNREACHABLE_TEXT.test(error.message)) return unreachable(error, at)
  return error
}

const placed = (cause: unknown, at: string): Error => new Error(at, { cause })

function unreachable(error: unknown, at: string, remedy?: string): AppError {
  const data = { doing: 'use the fleet store', retryAfterMs: RETRY_AFTER_MS }
  return new AppError('store_unreachable', remedy === undefined ? data : { ...data, remedy }, { cause: placed(error, at) })
}
