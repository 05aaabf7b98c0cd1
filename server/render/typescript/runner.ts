// Runs inside the sandbox, beside the tree: imports the entry, calls it with inputs that record their reads, and writes
// one framed answer. Bundled into one text by bundle.ts; it contains nothing of the server except its imports.
import { writeSync } from 'node:fs'
import { recordedInputs } from '../record/inputs.ts'
import { collectObjects, NotPlainError } from './objects.ts'
import type { RunnerAnswer, RunnerFault, RunnerTask } from './protocol.ts'

/** More different reads than this count as reading all. */
const READS_MAX = 10_000

const task = (await Bun.stdin.json()) as RunnerTask
quietStdout()
const reads = new Map<string, readonly string[]>()
const note = (path: readonly string[]) => {
  if (reads.size <= READS_MAX) reads.set(path.join('\0'), [...path])
}
let answer: Omit<RunnerAnswer, 'reads'>
try {
  const { default: exported } = (await import(`/work/${task.entry}`)) as { default?: unknown }
  const made: unknown = typeof exported === 'function' ? await exported(recordedInputs(task.inputs, note)) : await exported
  answer = { objects: collectObjects(made) }
} catch (error) {
  answer = { faults: faultsOf(error) }
}
const text = JSON.stringify({ ...answer, reads: reads.size > READS_MAX ? [[]] : [...reads.values()] } satisfies RunnerAnswer)
write(`\n${task.frame}\n${text}\n${task.frame}\n`)
process.exit(0) // a timer or a server that the manifests left behind keeps nobody waiting

/** Output that the manifests print is for their author, and must not appear between the frames. */
function quietStdout(): void {
  const { console: shown } = globalThis
  for (const name of ['log', 'info', 'debug', 'dir', 'table', 'group', 'count', 'timeEnd', 'timeLog'] as const)
    shown[name] = shown.error.bind(shown)
  process.stdout.write = process.stderr.write.bind(process.stderr)
}

function write(whole: string): void {
  const bytes = Buffer.from(whole)
  for (let at = 0; at < bytes.length; ) at += writeSome(bytes, at)
}

function writeSome(bytes: Buffer, at: number): number {
  try {
    return writeSync(1, bytes, at)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return 0 // the pipe is full
    throw error
  }
}

function faultsOf(error: unknown): RunnerFault[] {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.flatMap(faultsOf)
  const { message, position, stack } = Object(error) as { message?: unknown; position?: RunnerFault['position']; stack?: unknown }
  const said = typeof message === 'string' ? message : String(error)
  if (error instanceof NotPlainError) return [{ message: said }]
  if (position != null) return [{ message: said, position: { file: position.file, line: position.line, column: position.column } }]
  const name = error instanceof Error && error.name !== 'Error' ? `${error.name}: ` : ''
  return [{ message: `${name}${said}`, stack: typeof stack === 'string' ? stack : '' }]
}
