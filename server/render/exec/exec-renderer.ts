// The renderer for everything else: a program of the operator's allow-list, in the service's folder, which gets the
// inputs that the service names and writes YAML.
import { canonicalJson } from '../../../shared/kube/canonical.ts'
import type { Problem } from '../../../shared/runtime/error.ts'
import { pathSegments, type SourceFile } from '../../sources/source.ts'
import { askProgram, type ProgramAnswer, ProgramStopped } from '../program-answer.ts'
import { allOfInputs, type Renderer, type RendererResult, type RenderJob } from '../renderer.ts'
import type { SandboxOutcome } from '../sandbox.ts'
import { decodeUtf8 } from '../utf8.ts'

/** Lines of standard error that are shown to people. */
const TOLD_LINES = 10
const TOLD_LENGTH = 2_000

export const renderExec: Renderer = async (job) => {
  const options = job.spec.exec
  if (options === undefined) return failed('render.exec', 'type exec needs `render.exec.command`: a program that the server allows')
  const name = options.command
  const root = pathSegments(job.source.root).join('/')
  const inputs = inputsOf(job, options.inputs)
  const found = await job.source.tree.files(root, () => true)
  if (found.size === 0) return failed(root || '.', 'the folder has no files')
  const files = new Map([...found].map(([path, file]) => [path.slice(root === '' ? 0 : root.length + 1), file.bytes]))
  const stdin = new TextEncoder().encode(`${canonicalJson(inputs)}\n`)
  const program = { exec: name }
  const version = (await job.sandbox.version(program)) ?? ''
  const parts = ['exec', name, version, canonicalJson(options.args), canonicalJson(inputs), ...fileParts(found)]
  const answer = await askProgram(job, parts, async () =>
    answerOf(name, await job.sandbox.run({ program, args: options.args, files, stdin }, job.signal)),
  )
  if ('kind' in answer) return refused(name, `${answer.message}${tell(answer.stderr)}`)
  if (answer.failed) return refused(name, answer.notes)
  return { kind: 'rendered', files: new Map([[`${name}.yaml`, answer.output]]), warnings: [], fileOf: () => null }
}

const failed = (path: string, message: string): { kind: 'failed'; problems: Problem[] } => ({
  kind: 'failed',
  problems: [{ path, message }],
})

const refused = (name: string, message: string): RendererResult => allOfInputs([{ path: `render.exec: ${name}`, message }])

const fileParts = (files: ReadonlyMap<string, SourceFile>): string[] => [...files].flatMap(([path, { oid }]) => [path, oid])

function answerOf(name: string, outcome: SandboxOutcome): ProgramAnswer<string> {
  if (outcome.kind === 'stopped') throw new ProgramStopped(outcome)
  const refused = (what: string) => ({ failed: true, notes: `${name} ${what}${tell(outcome.stderr)}`, output: new Uint8Array() })
  if (outcome.exitCode !== 0) return refused(`ended with ${outcome.exitCode}`)
  if (decodeUtf8(outcome.stdout) === null) return refused('wrote output that is not UTF-8 text')
  return { failed: false, notes: '', output: outcome.stdout }
}

function tell(stderr: string): string {
  const lines = stderr.split('\n').filter((line) => line.trim() !== '')
  return lines.length === 0 ? '' : `:\n${lines.slice(0, TOLD_LINES).join('\n').slice(0, TOLD_LENGTH)}`
}

/** A document with only what is named: `cluster.labels` is `{cluster: {labels: …}}`. What is not there is left out. */
function inputsOf({ inputs }: RenderJob, names: readonly string[]): Record<string, unknown> {
  const document: Record<string, unknown> = Object.create(null)
  for (const name of [...names].sort()) {
    const path = name.split('.')
    const value = path.reduce<unknown>(memberOf, inputs)
    if (value !== undefined) place(document, path, JSON.parse(canonicalJson(value)))
  }
  return document
}

/** Its own only: every object has a `constructor`. */
const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined

function place(document: Record<string, unknown>, path: readonly string[], value: unknown): void {
  let at = document
  for (const part of path.slice(0, -1)) {
    const held = at[part]
    const next: Record<string, unknown> =
      typeof held === 'object' && held !== null && !Array.isArray(held) ? (held as Record<string, unknown>) : Object.create(null)
    at[part] = next
    at = next
  }
  at[path.at(-1) ?? ''] = value
}
