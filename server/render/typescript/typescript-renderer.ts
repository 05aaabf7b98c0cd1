// The renderer for manifests in TypeScript: the entry runs in the sandbox by this very binary and prints its objects,
// together with the inputs that it read.
import { createHash } from 'node:crypto'
import type { Problem } from '../../../shared/runtime/error.ts'
import { pathSegments } from '../../sources/source.ts'
import { allOfInputs, type Renderer, type RendererResult, type RenderJob } from '../renderer.ts'
import { bundled } from './bundle.ts' with { type: 'macro' }
import { importClosure, isScript } from './closure.ts'
import { type RunnerAnswer, type RunnerFault, type RunnerTask, runnerAnswerSchema } from './protocol.ts'

const RUNNER = bundled('typescript/runner.ts')
/** Below it lies the source's tree. */
const TREE = 'tree'
const STDERR_LINES = 5

export const renderTypescript: Renderer = async (job) => {
  const { tree, root } = job.source
  const folder = pathSegments(root).join('/')
  const entry = [...pathSegments(root), ...pathSegments(job.spec.typescript?.entry ?? 'main.ts')].join('/')
  const closure = await importClosure(tree, entry)
  if (closure.problems.length > 0) return { kind: 'failed', problems: closure.problems }
  const data = await tree.files(folder, (path) => !isScript(path) && !/(^|\/)(node_modules|\.git)\/$/.test(path))
  const files = new Map<string, Uint8Array>([['runner.js', new TextEncoder().encode(RUNNER)]])
  for (const [path, { bytes }] of data) files.set(`${TREE}/${path}`, bytes)
  for (const [path, bytes] of closure.files) files.set(`${TREE}/${path}`, bytes)
  return run(job, entry, files, [...closure.warnings, ...warningsOf(closure.scripts)])
}

async function run(job: RenderJob, entry: string, files: ReadonlyMap<string, Uint8Array>, warnings: Problem[]): Promise<RendererResult> {
  const inputs = job.plainInputs
  const frame = createHash('sha256')
    .update(JSON.stringify([entry, inputs]))
    .digest('hex')
  const stdin = new TextEncoder().encode(JSON.stringify({ entry: `${TREE}/${entry}`, frame, inputs } satisfies RunnerTask))
  const args = ['run', '--no-install', 'runner.js']
  const outcome = await job.sandbox.run({ program: 'bun', args, files, stdin }, job.signal)
  const answer = outcome.kind === 'done' ? readAnswer(outcome.stdout, frame) : null
  for (const path of answer?.reads ?? [[]]) job.recordInput(path) // who says nothing may have looked at anything
  if (answer?.objects !== undefined) return { kind: 'rendered', files: filesOf(entry, answer.objects), warnings, fileOf: () => entry }
  if (answer?.faults !== undefined) {
    const told = answer.faults.map((fault) => ({ problem: problemOf(fault, entry, files), isRead: fault.position === undefined }))
    return {
      kind: 'failed',
      problems: told.map(({ problem }) => problem),
      ofInputs: told.flatMap(({ problem, isRead }) => (isRead ? [problem] : [])),
    }
  }
  const message =
    outcome.kind === 'stopped' ? stoppedText(outcome.message) : `exited with code ${outcome.exitCode} before it printed its objects`
  return allOfInputs([{ path: entry, message: withStderr(message, outcome.stderr) }])
}

const stoppedText = (message: string): string => message.replace(/^bun /, 'the program ')

function withStderr(message: string, stderr: string): string {
  const lines = stderr.split('\n').filter((line) => line.trim() !== '')
  return lines.length === 0 ? message : `${message}:\n${inSource(lines.slice(0, STDERR_LINES).join('\n')).slice(0, 1_000)}`
}

/** Null if there is none, or it is not of the form that the runner writes. */
function readAnswer(stdout: Uint8Array, frame: string): RunnerAnswer | null {
  const text = new TextDecoder().decode(stdout)
  const mark = `\n${frame}\n`
  const end = text.lastIndexOf(mark)
  const start = end <= 0 ? -1 : text.lastIndexOf(mark, end - 1)
  if (start < 0) return null
  try {
    const read = runnerAnswerSchema.safeParse(JSON.parse(text.slice(start + mark.length, end)))
    return read.success ? (read.data as RunnerAnswer) : null
  } catch {
    return null
  }
}

/** A file for each object, so that what is wrong with one names it. */
function filesOf(entry: string, objects: readonly unknown[]): Map<string, Uint8Array> {
  const encoder = new TextEncoder()
  return new Map(
    objects.map((object, index) => {
      const { kind, metadata } = Object(object) as { kind?: unknown; metadata?: unknown }
      const name = [kind, Object(metadata).name].filter((part): part is string => typeof part === 'string').join('-')
      const label = `${String(index + 1).padStart(3, '0')}-${name.replace(/[^A-Za-z0-9.-]/g, '_').slice(0, 100)}`
      return [`${entry}/${label.replace(/-$/, '')}.json`, encoder.encode(JSON.stringify(object))] as const
    }),
  )
}

const inSource = (text: string): string => text.replaceAll(`/work/${TREE}/`, '').replaceAll(`${TREE}/`, '')

/** As Bun and Node have it: fetch, sockets and names of hosts. */
const WANTS_NETWORK =
  /unable to connect|\bfetch failed|typo in the url|failed to (connect|open socket)|connection ?refused|\b(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|ECONNRESET|DNS_\w+)\b|getaddrinfo|socket (is|was) closed|dns /i
const NO_NETWORK = '; renders have no network: use files of its source, config or a Config'

/** The problem of a thrown error: at the innermost place that is a file of the source. */
function problemOf({ message, position, stack }: RunnerFault, entry: string, files: ReadonlyMap<string, Uint8Array>): Problem {
  const place = position ?? firstPlace(stack ?? '')
  const told = `${inSource(message).slice(0, 2_000)}${WANTS_NETWORK.test(message) ? NO_NETWORK : ''}`
  if (place === null) return { path: entry, message: told }
  const file = inSource(place.file)
  const bytes = files.get(`${TREE}/${file}`)
  const line = bytes === undefined ? undefined : new TextDecoder().decode(bytes).split('\n')[place.line - 1]
  const excerpt = line === undefined ? {} : { excerpt: line.slice(0, 200) }
  return { path: `${file}:${place.line}:${place.column}`, message: told, ...excerpt }
}

function firstPlace(stack: string): NonNullable<RunnerFault['position']> | null {
  const found = /\/work\/tree\/([^\s()]+?):(\d+):(\d+)/.exec(stack)
  return found === null ? null : { file: found[1] ?? '', line: Number(found[2]), column: Number(found[3]) }
}

const NOT_THE_SAME_TWICE =
  /\b(Date\.now\(|new Date\(\)|Math\.random\(|crypto\.(randomUUID|randomBytes|getRandomValues)\(|performance\.now\(|randomUUID\()/

/** TS6: warns of texts whose result differs from render to render. */
function warningsOf(scripts: ReadonlyMap<string, string>): Problem[] {
  return [...scripts].flatMap(([path, text]) => {
    if (path.includes('node_modules/')) return []
    return text.split('\n').flatMap((line, index) => {
      const found = NOT_THE_SAME_TWICE.exec(line)
      if (found === null || /^\s*(\/\/|\*)/.test(line)) return []
      const message = `${found[1]}…) differs each time, so each render changes the fleet`
      return [{ path: `${path}:${index + 1}:${found.index + 1}`, message, excerpt: line.slice(0, 200) }]
    })
  })
}
