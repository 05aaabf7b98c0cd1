// The cost of one render besides the bare program. The two take turns on the same files: the whole way from a commit to
// rows, with every dependency recorded as the server does it, and the program alone. No result is kept between runs;
// the server's clone and its folder of extracted files are kept, as in the server.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type PipelineDeps, runPipeline } from '../../server/render/pipeline.ts'
import { createRenderers } from '../../server/render/renderers.ts'
import type { Sandbox } from '../../server/render/sandbox.ts'
import type { OpenedSource } from '../../server/sources/source.ts'
import type { RenderSpec } from '../../shared/model/render.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { createGitServer } from '../local-cluster/git-http-server.ts'
import { percentile, rounded } from './figures.ts'
import { openBenchGit } from './render-git.ts'

const ROUNDS = 20
const WARM_UPS = 3

export interface CostJob {
  files: ReadonlyMap<string, string>
  /** The folder, within the files, that is rendered. */
  root: string
  spec: RenderSpec
  /** The number of objects that both must give. */
  objects: number
  /** The program that the sandbox has too. */
  program: string
  args: readonly string[]
  /** Where it runs, below the files. */
  cwd: string
}

export interface RenderCost {
  /** `oursMs` ÷ `bareMs`: the lower quartile of both, which others on the machine disturb least. */
  ratio: number
  oursMs: number
  bareMs: number
}

/** `folder`: an empty one; `nowMs`: of a clock that does not jump. */
export async function measureCost(sandbox: Sandbox, folder: string, job: CostJob, nowMs: () => number): Promise<RenderCost> {
  const files = join(folder, 'files')
  for (const [path, text] of job.files) {
    mkdirSync(dirname(join(files, path)), { recursive: true })
    writeFileSync(join(files, path), text)
  }
  const git = await createGitServer({ dir: join(folder, 'remote') })
  try {
    const commit = await git.commit(Object.fromEntries(job.files), 'all of it')
    const source = openBenchGit(git.url, join(folder, 'clone'))
    await source.fetch()
    const renderers = createRenderers()
    const ours = async () => render({ sandbox, renderers }, await source.open(commit, { path: job.root }), job)
    return await compared(ours, () => runBare(files, job), nowMs)
  } finally {
    await git.stop()
  }
}

async function compared(render: () => Promise<void>, runBare: () => Promise<void>, nowMs: () => number): Promise<RenderCost> {
  const [ours, bare]: [number[], number[]] = [[], []]
  for (let round = -WARM_UPS; round < ROUNDS; round++)
    for (const [samples, run] of [
      [ours, render],
      [bare, runBare],
    ] as const) {
      const startMs = nowMs()
      await run()
      if (round >= 0) samples.push(nowMs() - startMs)
    }
  const [oursMs, bareMs] = [percentile(ours, 25), percentile(bare, 25)]
  return { ratio: rounded(oursMs / bareMs, 2), oursMs: rounded(oursMs), bareMs: rounded(bareMs) }
}

/** As a person runs it, with the settings of Go as they come. */
async function runBare(files: string, { program, args, cwd }: CostJob): Promise<void> {
  const child = Bun.spawn([program, ...args], { cwd: join(files, cwd), env: {}, stdout: 'pipe', stderr: 'ignore' })
  await new Response(child.stdout).bytes()
  if ((await child.exited) !== 0) throw new Error(`${program} failed by itself`)
}

async function render(deps: Pick<PipelineDeps, 'sandbox' | 'renderers'>, opened: OpenedSource, { spec, objects }: CostJob): Promise<void> {
  const apiVersions = { v1: true, 'apps/v1': true } as const
  const { result } = await runPipeline(
    { ...deps, once: (_, run) => run(), signal: new AbortController().signal },
    {
      id: { project: 'default', service: 'web' },
      namespace: 'web',
      render: spec,
      sources: [{ name: undefined, label: 'apps', opened, render: undefined, filesOnly: false }],
      cluster: { name: 'edge-1', labels: {}, facts: { kubernetesVersion: 'v1.36.3', apiVersions } },
      settings: { config: { values: {}, secrets: new Set() }, helmValues: [], patches: [] },
      configs: new Map(),
    },
  )
  if (result instanceof AppError) throw result
  if (result.kind === 'failed' || result.count !== objects) throw new Error(`not what should be rendered: ${JSON.stringify(result)}`)
}
