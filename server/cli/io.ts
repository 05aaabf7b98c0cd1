// What the command line may touch of its process; main hands it in, tests hand in their own.
import type { Clock } from '../../shared/runtime/clock.ts'

export interface CliIo {
  /** Without program and script. */
  argv: readonly string[]
  env: Record<string, string | undefined>
  /** Read only by `-f -` and by questions. */
  stdin: AsyncIterable<Uint8Array>
  stdout: { write(text: string): unknown }
  stderr: { write(text: string): unknown }
  fetch(url: string, init: RequestInit): Promise<Response>
  /** Whether a person sees stdout and answers on stdin: colour and questions. */
  isTty: boolean
  clock: Clock
  /** Ends `get --watch` and `events --follow`; without it, the end of the process does. */
  signal?: AbortSignal
}

/** What was typed makes no sense: exit code 2. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UsageError'
  }
}

/** Asks on stderr, so that a pipe of stdout stays clean. Anything but y or yes is no. */
export async function askYes(io: CliIo, question: string): Promise<boolean> {
  io.stderr.write(`${question} [y/N] `)
  for await (const chunk of io.stdin) return /^y(es)?\s*$/i.test(new TextDecoder().decode(chunk).split('\n')[0] ?? '')
  return false
}

export async function readAll(io: CliIo): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of io.stdin) text += decoder.decode(chunk, { stream: true })
  return text + decoder.decode()
}
