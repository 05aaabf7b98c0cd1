// The importer of pino. JSON lines to standard error: no transport, because pino's transports are workers and die in a
// compiled binary.
import pino from 'pino'
import type { Logger } from '../runtime/logger.ts'

const REDACTED = ['token', 'secret', 'authorization', 'privateKey', 'joinToken', '*.token', '*.secret', '*.authorization', '*.privateKey']

export function createPinoLogger(level: 'debug' | 'info' | 'warn' | 'error'): Logger {
  const root = pino(
    { level, redact: { paths: REDACTED, censor: '***' }, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination(2),
  )
  return wrap(root)
}

function wrap(line: pino.Logger): Logger {
  return {
    debug: (message, fields) => line.debug(fields ?? {}, message),
    info: (message, fields) => line.info(fields ?? {}, message),
    warn: (message, fields) => line.warn(fields ?? {}, message),
    error: (message, fields) => line.error(fields ?? {}, message),
    with: (fields) => wrap(line.child(fields)),
  }
}
