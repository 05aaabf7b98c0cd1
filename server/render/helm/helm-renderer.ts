// Charts by the real `helm template`: values in their order, capabilities of the target cluster, everything else as
// helm does it.
import { canonicalJson, sha256Hex } from '../../../shared/kube/canonical.ts'
import { AppError, type Problem } from '../../../shared/runtime/error.ts'
import { SizedCache } from '../../sources/sized-cache.ts'
import { excerptsOf } from '../excerpts.ts'
import { askProgram } from '../program-answer.ts'
import { allOfInputs, type Renderer, type RendererResult, type RenderJob } from '../renderer.ts'
import { apiVersionArguments, capabilitiesOf, withoutServed } from './capabilities.ts'
import { type Chart, type ChartNode, chartPath, readChart } from './chart.ts'
import { gatherValues, type ValuesLayer } from './layers.ts'
import { splitHelmOutput } from './output.ts'
import { type HelmCall, type HelmNote, originOf, runHelm, textOfFile } from './run.ts'
import { type ChartScan, type ScannedFile, scanChart } from './scan.ts'
import { hasValueAt } from './values.ts'
import { useWarnings } from './warnings.ts'

/** Scans of charts that are kept, in bytes of their text; what one finds is far less. */
const SCANNED_BYTES_MAX = 64 * 1024 * 1024
/** Beside the chart in the sandbox. */
const VALUES_FILE = 'values.json'

export function createHelmRenderer(): Renderer {
  const scans = new SizedCache<{ scan: ChartScan; bytes: number }>(SCANNED_BYTES_MAX, ({ bytes }) => bytes)
  const scanOf = (chart: Chart, values: string): ChartScan => {
    if (values.includes('{{')) return scanChart([...scannedFiles(chart), { path: VALUES_FILE, text: values, kind: 'values' }])
    const held = scans.get(chart.id)
    const files = held === undefined ? scannedFiles(chart) : []
    const found = held ?? { scan: scanChart(files), bytes: files.reduce((sum, { text }) => sum + text.length, 1_024) }
    scans.set(chart.id, found)
    return found.scan
  }
  return async (job) => {
    const [chart, values] = [await readChart(job), await gatherValues(job)]
    const problems = [chart, values].flatMap((part) => (part.kind === 'refused' ? part.problems : []))
    if (chart.kind === 'refused' || values.kind === 'refused') return { kind: 'failed', problems }
    const valuesText = canonicalJson(values.merged)
    return render(job, chart.chart, valuesText, values.layers, scanOf(chart.chart, valuesText))
  }
}

async function render(
  job: RenderJob,
  chart: Chart,
  values: string,
  layers: readonly ValuesLayer[],
  scan: ChartScan,
): Promise<RendererResult> {
  const options = job.spec.helm ?? {}
  const origin = (path: string) => originOf(chart, path)
  const capabilities = capabilitiesOf(scan, chart.node.kubeVersion, job.inputs, origin)
  const apis = apiVersionArguments(capabilities.served)
  const refused = (path: string, message: string): RendererResult => ({ kind: 'failed', problems: [{ path, message }] })
  if (apis === null)
    return refused(
      origin('Chart.yaml'),
      'the names of all API versions of the cluster are too long for helm; list those that the chart needs',
    )
  const release = options.releaseName ?? job.id.service
  if (release.length > 53)
    return refused('render.helm.releaseName', `${release}: a release name has at most 53 characters; set a shorter one`)
  const program = options.helm === '3' ? 'helm3' : 'helm'
  const version = await job.sandbox.version(program)
  if (version === null) throw new AppError('renderer_missing', { detail: `${program} is not on this server` })
  const args = ['template', release, 'chart', `--values=${VALUES_FILE}`, '--skip-tests']
  if (options.skipCrds !== true) args.push('--include-crds')
  if (options.skipSchemaValidation === true) args.push('--skip-schema-validation')
  if (job.namespace !== undefined) args.push(`--namespace=${job.namespace}`)
  if (capabilities.kubeVersion !== null) args.push(`--kube-version=${capabilities.kubeVersion}`)
  args.push(...apis)
  const notServed = [...new Set(capabilities.notServed.map(({ api }) => api))].sort()
  // Warnings and problems, which are kept with it, name files: by where this chart lies.
  const parts = [program, version, chart.id, origin('Chart.yaml'), sha256Hex(values), canonicalJson(args), canonicalJson(notServed)]
  const call = (): HelmCall => {
    const files = new Map([...chart.files].map(([path, { bytes }]) => [`chart/${path}`, bytes]))
    for (const [path, literals] of Map.groupBy(capabilities.notServed, ({ file }) => file)) {
      if (chart.files.has(path)) files.set(`chart/${path}`, new TextEncoder().encode(withoutServed(textOfFile(chart, path), literals)))
    }
    files.set(VALUES_FILE, new TextEncoder().encode(values))
    return { program, args, files, chart, valuePlace: (name, names) => valuePlace(chart, layers, name, names) }
  }
  const answer = await askProgram(job, parts, () => runHelm(job, call()))
  if ('kind' in answer) return allOfInputs([{ path: origin('Chart.yaml'), message: answer.message }])
  if (answer.failed) return failed(answer.notes)
  const warnings = [...answer.notes, ...capabilities.warnings, ...chartWarnings(job, chart, scan)]
  const fileOf = (rendered: string) => {
    const path = chartPath(chart, rendered)
    return path === null ? null : origin(path)
  }
  return { kind: 'rendered', files: splitHelmOutput(new TextDecoder().decode(answer.output)), warnings, fileOf }
}

function failed(notes: readonly HelmNote[]): RendererResult {
  const told = notes.map(({ always = false, ...problem }) => ({ problem, always }))
  const ofInputs = told.flatMap(({ problem, always }) => (always ? [] : [problem]))
  return { kind: 'failed', problems: told.map(({ problem }) => problem), ofInputs }
}

/** Where the value that a schema refuses was given: the highest place that names it. */
function valuePlace(chart: Chart, layers: readonly ValuesLayer[], name: string, names: readonly string[]): string {
  const [node, path] = nodeOf(chart.node, name, []) ?? [chart.node, []]
  const whole = [...path, ...names]
  const layer = layers.findLast(({ values }) => whole.length > 0 && hasValueAt(values, whole))
  const folder = node.folder === '' ? '' : `${node.folder}/`
  const own = chart.files.has(`${folder}values.yaml`) ? `${folder}values.yaml` : `${folder}values.schema.json`
  return layer?.place ?? originOf(chart, own)
}

function nodeOf(node: ChartNode, name: string, path: readonly string[]): [ChartNode, readonly string[]] | null {
  if (node.name === name) return [node, path]
  for (const [key, child] of node.children) {
    const found = key === name ? ([child, [...path, key]] as [ChartNode, readonly string[]]) : nodeOf(child, name, [...path, key])
    if (found !== null) return found
  }
  return null
}

function chartWarnings(job: RenderJob, chart: Chart, scan: ChartScan): Problem[] {
  const warnings = useWarnings(scan, (file) => ({
    path: originOf(chart, file),
    lineText: (line) => (chart.files.has(file) ? excerptsOf(textOfFile(chart, file))(line, 1).trim() : ''),
  }))
  if (job.namespace !== undefined || scan.releaseNamespace === null) return warnings
  const { file, line, column } = scan.releaseNamespace
  const message = '.Release.Namespace is `default`, because the service has no namespace; set spec.namespace'
  return [...warnings, { path: `${originOf(chart, file)}:${line}:${column}`, message }]
}

const IN_TEMPLATES = /^(?:charts\/[^/]+\/)*templates\//

function scannedFiles(chart: Chart): ScannedFile[] {
  const found: ScannedFile[] = []
  for (const path of chart.files.keys()) {
    const name = path.slice(path.lastIndexOf('/') + 1)
    const text = textOfFile(chart, path)
    if (!text.includes('{{')) continue
    if (!IN_TEMPLATES.test(path)) found.push({ path, text, kind: 'values' })
    else found.push({ path, text, kind: name.startsWith('_') ? 'partial' : name === 'NOTES.txt' ? 'notes' : 'template' })
  }
  return found.sort((a, b) => (a.path < b.path ? -1 : 1))
}
