// Circles of `dependsOn`, looked for in the transaction that writes the service: of two writes that would close one
// together, the second sees the first.
import { z } from 'zod'
import { cycleThrough, dependencyKey } from '../../shared/model/dependencies.ts'
import { dependencySchema } from '../../shared/model/resources.ts'
import { parseServiceKey, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import type { DependencyCycle, ResourceKey } from '../fleet/records.ts'
import type { Store } from './store.ts'
import type { ReadDb } from './store-db.ts'

const dependsOnSchema = z.object({ dependsOn: z.array(dependencySchema).default([]) })
/** In the order of the spec. */
const keysOf = (project: string, spec: string): string[] =>
  (dependsOnSchema.safeParse(JSON.parse(spec)).data?.dependsOn ?? []).map((dependency) => dependencyKey(project, dependency))

/** Services that are asked for at once. */
const KEYS_A_TIME = 200

/**
 * Null if there is none. Reads only the services that can be reached. A service that does not exist (yet) depends on
 * nothing.
 */
export async function findDependencyCycle(trx: ReadDb, { project, name }: ResourceKey, spec: string): Promise<DependencyCycle | null> {
  const own = serviceKey({ project, service: name })
  const entries = keysOf(project, spec)
  if (entries.length === 0) return null
  const known = new Map<string, readonly string[]>([[own, entries]])
  let open = entries.filter((key) => !known.has(key))
  while (open.length > 0) {
    for (let start = 0; start < open.length; start += KEYS_A_TIME)
      for (const [key, dependencies] of await readDependencies(trx, open.slice(start, start + KEYS_A_TIME))) known.set(key, dependencies)
    open = [...new Set(open.flatMap((key) => known.get(key) ?? []))].filter((key) => !known.has(key))
  }
  const cycle = cycleThrough(own, (key) => known.get(key) ?? [])
  return cycle === null ? null : { cycle, entry: entries.indexOf(cycle[1] ?? own) }
}

/** The dependencies of each key. A key that does not exist has none. */
async function readDependencies(trx: ReadDb, keys: readonly string[]): Promise<Map<string, readonly string[]>> {
  const found = new Map<string, readonly string[]>(keys.map((key) => [key, []]))
  const ids = keys.map(parseServiceKey)
  const rows = await trx
    .selectFrom('resources')
    .select(['project', 'name', 'spec'])
    .where('kind', '=', 'Service')
    .where('project', 'in', [...new Set(ids.map(({ project }) => project))])
    .where('name', 'in', [...new Set(ids.map(({ service }) => service))])
    .execute()
  for (const { project, name, spec } of rows) {
    const key = serviceKey({ project, service: name })
    if (found.has(key)) found.set(key, keysOf(project, spec))
  }
  return found
}

const PAGE_ROWS = 500

/** Services whose `dependsOn` names this one, sorted; those that are being deleted too: they are still there. */
export async function readDependents(store: Pick<Store, 'listResources'>, id: ServiceId): Promise<ServiceId[]> {
  const own = serviceKey(id)
  const found: ServiceId[] = []
  let after: string | undefined
  do {
    const page = await store.listResources('Service', { limit: PAGE_ROWS, ...(after === undefined ? {} : { after }) })
    for (const { project, name, spec } of page.items) {
      if (!spec.includes('"dependsOn"')) continue // most name none: parsing all of them would be the whole cost
      if (keysOf(project, spec).includes(own)) found.push({ project, service: name })
    }
    after = page.next ?? undefined
  } while (after !== undefined)
  return found
}
