// Where a server of a benchmark finds helm, kustomize and bubblewrap.
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'

export const RENDER_PROGRAMS = resolve(import.meta.dir, '../../build/render')

/** PATH, and where scripts/setup puts them. */
export function programFolders(): string[] {
  const cache = process.env['SKERRY_CACHE'] ?? join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'skerry')
  return [RENDER_PROGRAMS, ...(process.env['PATH'] ?? '').split(':'), join(cache, 'bubblewrap')]
}
