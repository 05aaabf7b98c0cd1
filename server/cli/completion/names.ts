// Names for completion: asked of the server at most every ten seconds, kept in the cache folder, silent and fast when nothing answers.
import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { z } from 'zod'
import { createClient } from '../client.ts'
import { type Connection, contextsOf } from '../contexts/connection.ts'
import type { CliIo } from '../io.ts'
import type { Kind } from '../kinds.ts'
import type { Names } from './candidates.ts'

const FRESH_MS = 10_000
const WAIT_MS = 1_000
/** Names may reach a shell: anything else is left out. */
const HARMLESS = /^[A-Za-z0-9][A-Za-z0-9._-]*$/

const named = z.object({ id: z.string().optional(), metadata: z.object({ name: z.string() }).optional() })
const cacheSchema = z.object({ atMs: z.number(), names: z.array(z.string()) })

export function createNames(io: CliIo, connection: () => Connection): Names {
  return {
    contexts: () => {
      try {
        return Object.keys(contextsOf(io.env).contexts)
      } catch {
        return []
      }
    },
    ofKind: async (kind) => {
      try {
        return await namesOf(io, connection(), kind)
      } catch {
        return []
      }
    },
  }
}

async function namesOf(io: CliIo, connection: Connection, kind: Kind): Promise<readonly string[]> {
  const { server, token, ca, project } = connection
  if (token === undefined) return []
  const place = cachePath(io.env, [server, token, project ?? '', kind])
  const held = place === null ? null : readCache(place)
  const nowMs = io.clock.nowMs()
  if (held !== null && Math.abs(nowMs - held.atMs) < FRESH_MS) return held.names
  const fetchSoon: CliIo['fetch'] = (url, init) => io.fetch(url, { ...init, signal: AbortSignal.timeout(WAIT_MS) })
  const client = createClient({ fetch: fetchSoon, clock: io.clock }, { server, token, ca })
  const isOfProject = ['services', 'repositories', 'configs'].includes(kind)
  const wanted = io.env['SKERRY_PROJECT'] || (project ?? 'default')
  const found = await client
    .list(`/${kind}`, named, isOfProject ? { project: wanted } : {}, { limit: 500 })
    .then((items) => items.flatMap(({ metadata, id }) => metadata?.name ?? id ?? []).filter((name) => HARMLESS.test(name)))
    // Old names are better than none, and a server that does not answer is asked again only later.
    .catch(() => held?.names ?? [])
  if (place !== null) writeCache(place, { atMs: nowMs, names: found })
  return found
}

/** One file for each server, credential and kind: what one person may see is not shown to another. */
function cachePath(env: CliIo['env'], key: readonly string[]): string | null {
  const xdg = env['XDG_CACHE_HOME'] ?? ''
  const home = env['HOME'] ?? ''
  const root = isAbsolute(xdg) ? xdg : isAbsolute(home) ? join(home, '.cache') : null
  const digest = createHash('sha256').update(key.join('\0')).digest('hex').slice(0, 32)
  return root === null ? null : join(root, 'skerry', 'names', `${digest}.json`)
}

function readCache(path: string): z.infer<typeof cacheSchema> | null {
  try {
    return cacheSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch {
    return null
  }
}

function writeCache(path: string, value: z.infer<typeof cacheSchema>): void {
  try {
    mkdirSync(join(path, '..'), { recursive: true, mode: 0o700 })
    const next = `${path}.${process.pid}.new`
    writeFileSync(next, JSON.stringify(value), { mode: 0o600 })
    chmodSync(next, 0o600)
    renameSync(next, path)
  } catch {
    // A cache that cannot be written is none.
  }
}
