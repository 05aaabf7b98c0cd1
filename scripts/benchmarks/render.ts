// The cost of rendering, and how rarely it happens: `scripts/bench render`.

import { mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSandbox } from '../../server/render/sandbox/runs.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { type Part, runParts, type Say } from './parts.ts'
import { renderIdentical, renderMonoRepo } from './render-fleet.ts'
import { benchGitFetch } from './render-git.ts'
import { measureHelm } from './render-helm.ts'
import { benchHostile } from './render-hostile.ts'
import { measureKustomize } from './render-kustomize.ts'
import { programFolders, RENDER_PROGRAMS } from './render-programs.ts'

const ratioOf =
  (program: 'helm' | 'kustomize', measure: typeof measureHelm): Part =>
  (say) =>
    withSandbox(async (sandbox, folder) => {
      const { ratio, oursMs, bareMs } = await measure(sandbox, join(RENDER_PROGRAMS, program), folder, () => performance.now())
      say(`ours ${oursMs} ms, ${program} alone ${bareMs} ms`)
      return { [`${program}_ratio`]: ratio }
    })

const PARTS = {
  identical: renderIdentical,
  monorepo: renderMonoRepo,
  hostile: benchHostile,
  git: benchGitFetch,
  helm: ratioOf('helm', measureHelm),
  kustomize: ratioOf('kustomize', measureKustomize),
}

export const benchRender = (say: Say, only: string | null): Promise<Record<string, number>> => runParts('render', PARTS, say, only)

async function withSandbox<T>(work: (sandbox: ReturnType<typeof createSandbox>, folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'skerry-bench-'))
  const programs = {
    helm: join(RENDER_PROGRAMS, 'helm'),
    helm3: join(RENDER_PROGRAMS, 'helm3'),
    kustomize: join(RENDER_PROGRAMS, 'kustomize'),
  }
  const sandbox = createSandbox(
    {
      ...{ mode: 'bubblewrap' as const, ownBinary: process.execPath, bunVersion: Bun.version, slots: availableParallelism() },
      programs: { ...programs, renderers: new Map(), searchPath: programFolders() },
      folder: join(folder, 'sandbox'),
    },
    systemClock,
  )
  try {
    return await work(sandbox, join(folder, 'work'))
  } finally {
    await sandbox.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
