// What rendering costs, and how seldom it happens: `scripts/bench render`.

import { mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSandbox } from '../../server/render/sandbox/runs.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { type Part, runParts, type Say } from './parts.ts'
import { renderIdentical, renderMonoRepo } from './render-fleet.ts'
import { benchGitFetch } from './render-git.ts'
import { measureHelm } from './render-helm.ts'
import { measureKustomize } from './render-kustomize.ts'
import { programFolders, RENDER_PROGRAMS } from './render-programs.ts'

const helm: Part = (say) =>
  withSandbox(async (sandbox, folder) => {
    const { helm_ratio, ours_ms, bare_ms } = await measureHelm(sandbox, join(RENDER_PROGRAMS, 'helm'), folder, () => performance.now())
    say(`ours ${ours_ms} ms, helm alone ${bare_ms} ms`)
    return { helm_ratio }
  })

const kustomize: Part = (say) =>
  withSandbox(async (sandbox, folder) => {
    const { kustomize_ratio, ours_ms, bare_ms } = await measureKustomize(sandbox, join(RENDER_PROGRAMS, 'kustomize'), folder, () =>
      performance.now(),
    )
    say(`ours ${ours_ms} ms, kustomize alone ${bare_ms} ms`)
    return { kustomize_ratio }
  })

const PARTS: Record<string, Part> = { identical: renderIdentical, monorepo: renderMonoRepo, git: benchGitFetch, helm, kustomize }

export const benchRender = (say: Say, only: string | null): Promise<Record<string, number>> => runParts(PARTS, say, only)

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
    return await work(sandbox, folder)
  } finally {
    await sandbox.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
