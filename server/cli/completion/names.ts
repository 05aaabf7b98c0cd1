// Names for completion: asked of the server at most every ten seconds, kept in the cache folder, silent and fast when
// nothing answers.
import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { z } from 'zod'
import { type Client, createClient } from '../client.ts'
import { type Connection, contextsOf } from '../contexts/connection.ts'
import type { CliIo } from '../io.ts'
import { createRenewal } from '../sign-in/saved-login.ts'
import type { NamedList, Names } from './candidates.ts'

const FRESH_MS = 10_000
const WAIT_MS = 1_000
/** Names may reach a shell: anything else is left out. */
const HARMLESS = /^[A-Za-z0-9][A-Za-z0-9._-]*(\/[A-Za-z0-9][A-Za-z0-9._-]*)*$/

const named = z.object({
  id: z.string().optional(),
  name: z.string().optional(),
  metadata: z.object({ name: z.string() }).optional(),
})
const placed = z.object({ kind: z.string(), namespace: z.string(), name: z.string() })
const cacheSchema = z.object({ atMs: z.number(), names: z.array(z.string()) })

/** Lists that are read for one project. */
const OF_PROJECT: readonly NamedList[] = ['services', 'repositories', 'configs']

export function createNames(io: CliIo, connection: () => Connection): Names {
  const quietly = async (find: () => Promise<readonly string[]>): Promise<readonly string[]> => {
    try {
      return await find()
    } catch {
      return []
    }
  }
  return {
    contexts: () => {
      try {
        return Object.keys(contextsOf(io.env).contexts)
      } catch {
        return []
      }
    },
    ofList: (list, within) =>
      quietly(() => {
        const held = connection()
        const project = within.project ?? (io.env['SKERRY_PROJECT'] || (held.project ?? 'default'))
        const query = OF_PROJECT.includes(list) ? { project } : {}
        const key = [list, OF_PROJECT.includes(list) ? project : '']
        return kept(io, held, key, async (client) =>
          (await client.list(`/${list}`, named, query, LIMIT)).flatMap(({ metadata, name, id }) => metadata?.name ?? name ?? id ?? []),
        )
      }),
    objects: (cluster) =>
      quietly(() =>
        kept(io, connection(), ['objects', cluster], async (client) => {
          const found = await client.list('/objects', placed, { cluster }, LIMIT)
          return found.map(({ kind, namespace, name }) => [kind.toLowerCase(), ...(namespace === '' ? [] : [namespace]), name].join('/'))
        }),
      ),
  }
}

const LIMIT = { limit: 500 }

/** Names of the cache, or new ones. */
async function kept(
  io: CliIo,
  connection: Connection,
  key: readonly string[],
  read: (client: Client) => Promise<string[]>,
): Promise<readonly string[]> {
  const { server, token, ca, context, isLogin } = connection
  if (token === undefined) return []
  // The token of a login is another one every 15 minutes.
  const whose = isLogin === true ? `login ${context}` : token
  const place = cachePath(io.env, [server, whose, ...key])
  const held = place === null ? null : readCache(place)
  const nowMs = io.clock.nowMs()
  if (held !== null && Math.abs(nowMs - held.atMs) < FRESH_MS) return held.names
  const soon = { ...io, fetch: (url: string, init: RequestInit) => io.fetch(url, { ...init, signal: AbortSignal.timeout(WAIT_MS) }) }
  const stranger = createClient(soon, { server, token: undefined, ca })
  const renewed = isLogin === true && context !== null ? createRenewal({ io, context, client: stranger, waitMs: WAIT_MS }) : undefined
  const found = await read(createClient(soon, { server, token, renewed, ca }))
    .then((names) => names.filter((name) => HARMLESS.test(name)))
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
