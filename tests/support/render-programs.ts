// The programs of `scripts/setup --render --sandbox`, also for what runs outside of the test runner.
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

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
