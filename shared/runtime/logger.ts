// The logging interface of the product. Only shared/adapters/pino-logger.ts imports the library behind it.
export type LogFields = Record<string, unknown>

/** A line is a constant lower-case message plus fields: one line for a change of state, none for a tick. Secrets never
 *  enter fields. */
export interface Logger {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  /** A logger whose lines all carry `fields`. */
  with(fields: LogFields): Logger
}

export const silentLogger: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  with: () => silentLogger,
}
