// One run of `helm template` in the sandbox, and after a failure further ones without the template that failed, so that
// all errors are reported at once.
import { parseYamlDocuments } from '../../../shared/adapters/yaml.ts'
import type { Problem } from '../../../shared/runtime/error.ts'
import { excerptsOf } from '../excerpts.ts'
import { type ProgramAnswer, ProgramStopped } from '../program-answer.ts'
import type { RenderJob } from '../renderer.ts'
import type { SandboxLimits } from '../sandbox.ts'
import { type Chart, chartPath } from './chart.ts'
import { type HelmError, helmErrors } from './errors.ts'
import { lineText } from './lexer.ts'
import { splitHelmOutput } from './output.ts'

/** Runs after the first one that fails. */
const MORE_RUNS_MAX = 10
const MORE_RUNS_LIMITS: Partial<SandboxLimits> = { timeoutMs: 5_000 }
/** A short life with little garbage: collecting it less often saves a tenth of the time. */
const ENVIRONMENT = { GOGC: '400' }

export interface HelmCall {
  program: 'helm' | 'helm3'
  args: readonly string[]
  /** As the sandbox gets them; the chart's are in `chart/`. */
  files: ReadonlyMap<string, Uint8Array>
  chart: Chart
  /** For errors of values: where the value comes from. */
  valuePlace(chart: string, names: readonly string[]): string
}

/** A note on a chart that fails; `always` marks what would fail with any values and capabilities. */
export interface HelmNote extends Problem {
  always?: true
}

/** With warnings, or what is wrong. Throws ProgramStopped. */
export async function runHelm(job: RenderJob, call: HelmCall): Promise<ProgramAnswer<HelmNote[]>> {
  const run = async (files: ReadonlyMap<string, Uint8Array>, more: readonly string[], limits: Partial<SandboxLimits>) => {
    const outcome = await job.sandbox.run(
      { program: call.program, args: [...call.args, ...more], files, env: ENVIRONMENT, limits },
      job.signal,
    )
    if (outcome.kind === 'stopped') throw new ProgramStopped(outcome)
    return outcome
  }
  const first = await run(call.files, [], {})
  if (first.exitCode === 0) {
    const warnings = [...droppedHooks(first.stderr, call.chart), ...otherShapes(first.stderr, call)]
    return { failed: false, notes: warnings, output: first.stdout }
  }
  const problems: HelmNote[] = []
  const files = new Map(call.files)
  let { stderr } = first
  let lostPartial = false
  for (let runs = 0; runs <= MORE_RUNS_MAX; runs++) {
    const errors = helmErrors(stderr)
    const [error] = errors
    if (error === undefined) break
    if (error.kind === 'yaml') {
      const debugged = await run(files, ['--debug'], MORE_RUNS_LIMITS).catch(unlessStopped)
      problems.push(...yamlProblems(call.chart, debugged?.stdout, error))
      break
    }
    // Without a file of definitions others fail for lack of them.
    if (!lostPartial || error.kind === 'parse') problems.push(...errors.map((one) => problemOf(one, call)))
    const path = error.template === null ? null : chartPath(call.chart, error.template)
    const blanked = path === null ? undefined : files.get(`chart/${path}`)
    if (path === null || blanked === undefined || blanked.length === 0) break
    lostPartial ||= /(^|\/)_[^/]*$/.test(path)
    files.set(`chart/${path}`, new Uint8Array())
    const next = await run(files, [], MORE_RUNS_LIMITS).catch(unlessStopped)
    if (next === null || next.exitCode === 0) break
    stderr = next.stderr
  }
  if (problems.length === 0)
    problems.push({ path: originOf(call.chart, 'Chart.yaml'), message: `helm failed with exit code ${first.exitCode}` })
  return { failed: true, notes: problems, output: new Uint8Array() }
}

/** Known errors are reported; only further ones cannot be found. */
function unlessStopped(error: unknown): null {
  if (error instanceof ProgramStopped) return null
  throw error
}

/** Where a file of the chart comes from, for messages. */
export const originOf = (chart: Chart, path: string): string => chart.files.get(path)?.origin ?? path
/** '' for a file that the chart does not have. */
export const textOfFile = (chart: Chart, path: string): string => new TextDecoder().decode(chart.files.get(path)?.bytes)

function problemOf(error: HelmError, call: HelmCall): HelmNote {
  const problem = placedProblem(error, call)
  const isOfChart = error.kind === 'other' && error.message.startsWith('validation: ')
  return isOfChart || error.kind === 'parse' ? { ...problem, always: true } : problem
}

function placedProblem(error: HelmError, call: HelmCall): Problem {
  const { chart } = call
  if (error.kind === 'schema' && error.values !== undefined)
    return { path: call.valuePlace(error.values.chart, error.values.at), message: error.message }
  const path = pathOf(chart, error.file)
  if (path === null) return { path: error.file ?? originOf(chart, 'Chart.yaml'), message: error.message }
  return at(chart, path, error.line, error.column, error.message)
}

function pathOf(chart: Chart, named: string | null): string | null {
  if (named === null) return null
  return named.startsWith('/') ? (chart.files.has(named.slice(1)) ? named.slice(1) : null) : chartPath(chart, named)
}

function at(chart: Chart, path: string, line: number | null, column: number | null, message: string): Problem {
  const whole = line === null ? '' : textOfFile(chart, path)
  const text = line === null ? '' : (whole.split('\n')[line - 1] ?? '')
  // helm counts bytes, from 0.
  const characters = column === null ? null : Buffer.from(text).subarray(0, column).toString().length + 1
  const excerpt = line === null ? '' : excerptsOf(whole)(line, characters ?? 1)
  const place = [originOf(chart, path), line, characters].filter((part) => part !== null).join(':')
  return { path: place, message, ...(excerpt === '' ? {} : { excerpt }) }
}

/** `stdout` of a run with --debug has what could not be read. */
function yamlProblems(chart: Chart, stdout: Uint8Array | undefined, error: HelmError): Problem[] {
  const texts = stdout === undefined ? [] : [...splitHelmOutput(new TextDecoder().decode(stdout))]
  const found = texts.flatMap(([file, bytes]): Problem[] => {
    const text = new TextDecoder().decode(bytes)
    const [problem] = parseYamlDocuments(text, { file }).problems
    const path = chartPath(chart, file)
    if (problem === undefined) return []
    const line = Number(/:(\d+)(?::\d+)?$/.exec(problem.path)?.[1] ?? 1)
    const message = `line ${line} of its output is not YAML: ${problem.message}`
    if (path === null) return [{ path: file, message }]
    return [at(chart, path, templateLine(textOfFile(chart, path), lineText(text, line)), null, message)]
  })
  if (found.length > 0) return found
  const path = pathOf(chart, error.file)
  return [path === null ? { path: error.file ?? '', message: error.message } : at(chart, path, null, null, error.message)]
}

/** The one line of the template that begins, up to its first action, as the rendered one does. Null means that there is
 *  none, or more. */
function templateLine(template: string, rendered: string): number | null {
  if (rendered === '') return null
  const lines = template.split('\n').map((line) => line.trim())
  const fits = lines.flatMap((line, index) => {
    const literal = line.split('{{', 1)[0]?.trimEnd() ?? ''
    const isWhole = !line.includes('{{')
    return literal !== '' && (isWhole ? rendered === literal : rendered.startsWith(literal))
      ? [{ line: index + 1, length: literal.length }]
      : []
  })
  const longest = fits.reduce((most, { length }) => Math.max(most, length), 0)
  const best = fits.filter(({ length }) => length === longest)
  return best.length === 1 ? (best[0]?.line ?? null) : null
}

const HOOKS_TOLD_MAX = 20

/** Hooks of helm 2, or misspelt ones: helm leaves the whole object out and reports it only here. */
function droppedHooks(stderr: string, chart: Chart): Problem[] {
  // Each is looked for in the text of all templates.
  const words = [...stderr.matchAll(/skipping unknown hooks?(?:: "([^"]*)"|" hookTypes="?([^"\n]*)"?)/g)].map(([, three, four]) =>
    (three ?? four ?? '').trim(),
  )
  return [...new Set(words)]
    .sort()
    .slice(0, HOOKS_TOLD_MAX)
    .map((word) => {
      const message = `an object with the hook ${word}, which helm does not know, is ignored by helm; correct its helm.sh/hook annotation`
      const file = [...chart.files.keys()].sort().find((path) => path.includes('templates/') && textOfFile(chart, path).includes(word))
      return { path: originOf(chart, file ?? 'Chart.yaml'), message }
    })
}

/** helm says it with the value, which may be a secret. */
function otherShapes(stderr: string, call: HelmCall): Problem[] {
  const places = [...stderr.matchAll(/(?:cannot overwrite table with non table for|destination for) (\S+)/g)].map(([, place = '']) => place)
  return [...new Set(places)].sort().map((place) => {
    const message = `${place}: chart and values have different types here (one is a mapping); the value from values is used`
    return { path: call.valuePlace(call.chart.node.name, place.split('.').slice(1)), message }
  })
}
