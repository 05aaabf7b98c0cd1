// The sandbox with the programs of `scripts/setup --render --sandbox`, as a server would have it.
import { afterAll } from 'bun:test'
import { join } from 'node:path'
import type { ExecEntry } from '../../server/render/exec/list.ts'
import { createSandbox, type RunningSandbox, type SandboxMode } from '../../server/render/sandbox/runs.ts'
import { type Clock, systemClock } from '../../shared/runtime/clock.ts'
import { renderProgram, searchPath } from './render-programs.ts'
import { tempDir } from './temp-dir.ts'

export interface RealSandboxOptions {
  mode?: SandboxMode
  renderers?: ReadonlyMap<string, ExecEntry>
  folder?: string
  slots?: number
  clock?: Clock
}

const open: RunningSandbox[] = []
afterAll(async () => {
  await Promise.all(open.splice(0).map((sandbox) => sandbox.close()))
})

export function realSandbox({
  mode = 'bubblewrap',
  renderers = new Map(),
  folder,
  slots = 2,
  clock = systemClock,
}: RealSandboxOptions = {}): RunningSandbox {
  const programs = {
    helm: renderProgram('helm'),
    helm3: renderProgram('helm3'),
    kustomize: renderProgram('kustomize'),
    renderers,
    searchPath: searchPath(),
  }
  const options = {
    mode,
    programs,
    ownBinary: process.execPath,
    bunVersion: Bun.version,
    folder: folder ?? join(tempDir(), 'render'),
    slots,
  }
  const sandbox = createSandbox(options, clock)
  open.push(sandbox)
  return sandbox
}
