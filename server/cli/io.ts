// The parts of its process that the command line may use; main passes the real ones, tests pass their own.
import type { Clock } from '../../shared/runtime/clock.ts'

/** Bun's members: the certificate authorities to trust, and the path of a Unix socket. */
export type FetchInit = RequestInit & { tls?: { ca: string }; unix?: string }

export interface CliIo {
  /** Without program and script. */
  argv: readonly string[]
  env: Record<string, string | undefined>
  /** Read only by `-f -` and by questions. */
  stdin: AsyncIterable<Uint8Array>
  stdout: { write(text: string): unknown }
  stderr: { write(text: string): unknown }
  fetch(url: string, init: FetchInit): Promise<Response>
  /** Whether a person sees stdout and answers on stdin: colour and questions. */
  isTty: boolean
  /** Columns of the terminal; absent where stdout is none. */
  columns?: number | undefined
  clock: Clock
  /** Starts a browser; absent where there is none. */
  openBrowser?(url: string): void
  /** Starts another program and waits for its end. Null means that there is no such program. Absent where none may be
   *  started. */
  run?(command: readonly string[], stdin: string): Promise<{ code: number; out: string; err: string } | null>
  /** Ends `get --watch` and `events --follow`; without it, the end of the process does. */
  signal?: AbortSignal
}

/** Invalid arguments: exit code 2. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UsageError'
  }
}

/** Asks on stderr, so that a pipe of stdout stays clean. Anything but y or yes is no. */
export const askYes = async (io: CliIo, question: string): Promise<boolean> => (await askEach(io, [question]))[0] === true

/** One after the other; after a no nothing more is asked. A question without an answer is missing. */
export async function askEach(io: CliIo, questions: readonly string[]): Promise<boolean[]> {
  const answers: boolean[] = []
  const ask = () => io.stderr.write(`${questions[answers.length]} [y/N] `)
  const decoder = new TextDecoder()
  let text = ''
  ask()
  const isOver = () => answers.length === questions.length || answers.at(-1) === false
  for await (const chunk of io.stdin) {
    text += decoder.decode(chunk, { stream: true })
    const lines = text.split('\n')
    text = lines.pop() ?? ''
    for (const line of lines) {
      if (isOver()) break
      answers.push(/^y(es)?\s*$/i.test(line))
      if (!isOver()) ask()
    }
    if (isOver()) break
  }
  // The end of the input ends a line, too.
  if (!isOver() && text !== '') answers.push(/^y(es)?\s*$/i.test(text))
  return answers
}

export async function readAll(io: CliIo): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of io.stdin) text += decoder.decode(chunk, { stream: true })
  return text + decoder.decode()
}
