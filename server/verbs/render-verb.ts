// `skerry render -f`, on this machine: files in, objects on stdout; what is wrong, with file, line and a caret, on
// stderr.
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { problemText, RENDER_OUTPUTS, type RenderOutput, renderText } from '../../shared/adapters/render-text.ts'
import { AppError, type Problem } from '../../shared/runtime/error.ts'
import type { OptionTable } from '../../shared/runtime/options.ts'
import type { ResourceFile } from '../cli/resource-files.ts'
import { readRenderPlace } from '../control/render-place.ts'
import { chooseService, clusterOf, readResources } from '../local-render/read-job.ts'
import { type LocalRenderDeps, renderLocally } from '../local-render/render-local.ts'
import { mayNeedCluster } from '../render/for-nobody.ts'
import { markBy } from '../render/for-people.ts'
import { createRenderers } from '../render/renderers.ts'
import { createSandbox } from '../render/sandbox/runs.ts'
import { createProgressLine } from './progress-line.ts'
import { RENDER_OPTIONS } from './server-options.ts'
import { type Flags, runVerb, type VerbIo } from './verb-io.ts'

export const LOCAL_RENDER_OPTIONS = {
  dir: {
    type: 'text',
    placeholder: 'PATH',
    help: 'Content of the repositories: one folder, or REPOSITORY=PATH,….',
    default: '.',
  },
  config: { type: 'text', placeholder: 'FILE', help: 'File with more Configs and Clusters; secrets in plain text.' },
  clusterName: { type: 'text', placeholder: 'NAME', help: 'Name of the cluster to render for.' },
  clusterLabels: { type: 'text', placeholder: 'K=V,…', help: 'Labels of the cluster.' },
  kubeVersion: { type: 'text', placeholder: 'VERSION', help: 'Kubernetes version of the cluster, such as v1.36.3.' },
  apiVersions: {
    type: 'text',
    placeholder: 'LIST',
    help: 'APIs that the cluster serves, such as monitoring.coreos.com/v1,apps/v1/Deployment.',
  },
  sourceVersion: { type: 'text', placeholder: 'TEXT', help: 'Value of source.version in templates.', default: 'local' },
  ...RENDER_OPTIONS,
} as const satisfies OptionTable

/** Resolves with the exit code (RH4). `wanted`: as `chooseService` has it. */
export const runLocalRender = (flags: Flags, io: VerbIo, wanted: string): Promise<number> =>
  runVerb('render', LOCAL_RENDER_OPTIONS, flags, io, async (options) => {
    for (const server of ['cluster', 'allClusters'])
      if (flags[server] !== undefined)
        throw new AppError('bad_options', {
          detail: '--cluster and --all-clusters ask the server; with -f, name a cluster with --cluster-name',
        })
    const output = RENDER_OUTPUTS.find((one) => one === flags['output']) ?? 'yaml'
    const { clusterName, clusterLabels, kubeVersion, apiVersions } = options
    const names = [String(flags['filename']), ...(options.config === undefined ? [] : [options.config])]
    const { resources, problems } = await readResources(names.map(readInput))
    if (problems.length > 0) return told(io, 'invalid resources', problems)
    const job = {
      service: chooseService(resources, wanted),
      cluster: clusterOf(resources, { clusterName, clusterLabels, kubeVersion, apiVersions }),
      ...{ resources, dirs: options.dir, version: options.sourceVersion },
    }
    const line = createProgressLine(io.errIsTty ? io.err : null, io.clock)
    const stopping = new AbortController()
    io.onStop(() => stopping.abort())
    const folder = mkdtempSync(join(tmpdir(), 'skerry-render-'))
    const place = readRenderPlace(options, io.env)
    const sandbox = createSandbox({ ...place, ownBinary: process.execPath, bunVersion: Bun.version, folder, slots: 2 }, io.clock)
    try {
      line.show('rendering', 0, 0)
      const deps: LocalRenderDeps = { sandbox, renderers: createRenderers(), signal: stopping.signal, mark: createMarks() }
      const view = await renderLocally(deps, job)
      line.clear()
      for (const warning of view.warnings) io.err(`warning: ${problemText(warning)}`)
      io.out(renderText(view, output satisfies RenderOutput))
      if (view.error === null) return 0
      told(io, view.error, view.problems)
      if (view.problems.some(mayNeedCluster)) io.err('hint: Name the cluster: --cluster-name NAME, --cluster-labels K=V,…\n')
      return 1
    } finally {
      line.clear()
      await sandbox.close()
      rmSync(folder, { recursive: true, force: true })
    }
  })

function readInput(path: string): ResourceFile {
  try {
    return { name: path, text: readFileSync(path === '-' ? 0 : resolve(path), 'utf8') }
  } catch (error) {
    throw new AppError('bad_options', { detail: `${path} cannot be read: ${error instanceof Error ? error.message : String(error)}` })
  }
}

function told({ err }: VerbIo, error: string, problems: readonly Problem[]): number {
  err(`error: ${error}\n${problems.map(problemText).join('')}`)
  return 1
}

/** Marks of this run only: equal texts have equal marks, and a mark reveals nothing. */
const createMarks = (): ((text: string) => string) => markBy(randomBytes(32).toString('hex'))
