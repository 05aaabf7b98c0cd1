// The sandbox with the programs of `scripts/setup --render --sandbox`, as a server would have it.
import { afterAll } from 'bun:test'
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { ExecEntry } from '../../server/render/exec/list.ts'
import { createSandbox, type RunningSandbox, type SandboxMode } from '../../server/render/sandbox/runs.ts'
import { type Clock, systemClock } from '../../shared/runtime/clock.ts'
import { tempDir } from './temp-dir.ts'

const RENDER = join(import.meta.dir, '../../build/render')

/** PATH, and where setup puts bubblewrap. */
export function searchPath(): string[] {
  const cache = process.env['SKERRY_CACHE'] ?? join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'skerry')
  return [...(process.env['PATH'] ?? '').split(':'), join(cache, 'bubblewrap')]
}

/** The programs of setup; throws where they are not there: a test that passes without them shows nothing. */
export function renderProgram(name: 'helm' | 'helm3' | 'jsonnet' | 'kustomize' | 'registry' | 'sops'): string {
  const path = join(RENDER, name)
  if (!existsSync(path)) throw new Error(`${path} is missing; run scripts/setup --render`)
  return path
}

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
