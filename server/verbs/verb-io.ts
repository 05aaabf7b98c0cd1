// The parts of their process that the verbs on the server's own machine (backup, doctor) may use, and how they end.

import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { type OptionTable, type OptionValues, readOptions } from '../../shared/runtime/options.ts'

export interface VerbIo {
  env: Record<string, string | undefined>
  out(text: string): void
  err(text: string): void
  /** Whether a person sees what goes to `err`. */
  errIsTty: boolean
  onStop(listener: (signal: string) => void): void
  clock: Clock
}

export type Flags = Record<string, string | boolean | undefined>

/** 0 or what the work answers; 1: it failed, said why and what to do; 2: what was typed makes no sense. */
export async function runVerb<const T extends OptionTable>(
  name: string,
  table: T,
  flags: Flags,
  io: VerbIo,
  work: (options: OptionValues<T>) => Promise<number>,
): Promise<number> {
  const read = readOptions(table, flags, io.env)
  if (read.kind === 'problems') {
    for (const { path, message } of read.problems) io.err(`error: ${path} ${message}\n`)
    return 2
  }
  try {
    return await work(read.options)
  } catch (error) {
    io.err(`skerry ${name}: ${describeError(error)}\n${error instanceof AppError ? `${error.remedy}\n` : ''}`)
    return error instanceof AppError && error.code === 'bad_options' ? 2 : 1
  }
}
