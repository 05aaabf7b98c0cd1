// wait: until resources are as a person wants them. The change feed says when to look again; nothing is polled.
import type { z } from 'zod'
import { durationMs, durationSchema } from '../../shared/model/resources.ts'
import {
  clusterViewSchema,
  objectViewSchema,
  placementViewSchema,
  repositoryViewSchema,
  serviceViewSchema,
} from '../../shared/model/views.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { type Client, path } from './client.ts'
import { countText, plainText } from './columns.ts'
import { type Context, usesColour } from './context.ts'
import { type FilterOptions, filterQuery, isFiltered } from './fleet-filters.ts'
import { follow, gathered, patiently } from './follow.ts'
import { UsageError } from './io.ts'
import { type Kind, parseTarget, singular } from './kinds.ts'
import type { Output } from './outputs.ts'
import { documentText } from './printing/documents.ts'
import { type Condition, parseCondition, type Waited } from './wait-conditions.ts'
import { WATCHING } from './watch-kinds.ts'

/** Changes in quick succession are read together. */
const GATHER_MS = 250
/** Time alone changes some words, such as the liveness of a cluster. */
const LOOK_AGAIN_MS = 30_000
const REASONS_MAX = 20

export interface WaitOptions extends FilterOptions {
  project: string
  for: readonly string[]
  timeout: string
  allProjects?: true | undefined
  cluster?: string | undefined
  service?: string | undefined
  all?: true | undefined
  output?: Output
}

const WAITED = ['services', 'clusters', 'repositories', 'placements', 'objects'] as const
type WaitedKind = (typeof WAITED)[number]
const SCHEMAS: Record<WaitedKind, z.ZodType> = {
  services: serviceViewSchema,
  clusters: clusterViewSchema,
  repositories: repositoryViewSchema,
  placements: placementViewSchema,
  objects: objectViewSchema,
}

export async function wait(context: Context, kindText: string, nameText: string | undefined, options: WaitOptions): Promise<void> {
  const { kind: parsed, name } = parseTarget(kindText, nameText, WAITED)
  const kind = WAITED.find((one) => one === parsed) ?? 'services'
  const conditions = options.for.map((text) => parseCondition(text, kind))
  if (conditions.length === 0) throw new UsageError('--for is missing; for example --for=healthy')
  const timeoutMs = timeoutOf(options.timeout)
  const filter = filterQuery(kind, options)
  const narrowed = isFiltered(filter) || options.cluster !== undefined || options.service !== undefined
  if (name === undefined && !narrowed && options.all !== true)
    throw new UsageError(`name ${singular(kind)} to wait for, narrow with -l, --cluster or --service, or use --all`)
  const read = readerOf(context.client(), kind, name, options)
  await until(context, { kind, name, conditions, timeoutMs, read, options })
}

function timeoutOf(text: string): number {
  if (text === '0' || text === '0s') return 0
  if (!durationSchema.safeParse(text).success) throw new UsageError(`expected a duration such as 30s or 10m in --timeout, not "${text}"`)
  return durationMs(text)
}

function readerOf(client: Client, kind: WaitedKind, name: string | undefined, options: WaitOptions): () => Promise<Waited[]> {
  const { project, cluster, service } = options
  const schema = SCHEMAS[kind]
  const none = (error: unknown): Waited[] => {
    if (error instanceof AppError && error.code === 'not_found') return []
    throw error
  }
  if (name !== undefined) {
    const address = oneAddress(kind, name, project)
    return async () => [(await client.get(address, schema)) as Waited]
  }
  const inProject = options.allProjects === true || (kind === 'placements' && service === undefined) ? undefined : project
  const query = { ...(kind === 'clusters' ? {} : { project: inProject }), cluster, service, ...filterQuery(kind, options) }
  return async () => (await client.list(`/${kind}`, schema, query).catch(none)) as Waited[]
}

function oneAddress(kind: WaitedKind, name: string, project: string): string {
  switch (kind) {
    case 'clusters':
      return path`/clusters/${name}`
    case 'services':
      return path`/projects/${project}/services/${name}`
    case 'repositories':
      return path`/projects/${project}/repositories/${name}`
    default:
      throw new UsageError(`${kind} have no names; narrow them with --service and --cluster`)
  }
}

interface Wanted {
  kind: WaitedKind
  conditions: readonly Condition[]
  timeoutMs: number
  name: string | undefined
  read(): Promise<Waited[]>
  options: WaitOptions
}

async function until(context: Context, { kind, name, conditions, timeoutMs, read, options }: Wanted): Promise<void> {
  const { io } = context
  const over = new AbortController()
  const signal = io.signal === undefined ? over.signal : AbortSignal.any([io.signal, over.signal])
  const forDeletion = conditions.some(({ deletion }) => deletion)
  const look = async (): Promise<Missing> => {
    const items = await read().catch((error: unknown) => {
      if (forDeletion && error instanceof AppError && error.code === 'not_found') return []
      throw error
    })
    return missingOf(kind, items, conditions)
  }
  // Before any wait, a failure is reported as by any other command.
  let missing = await look()
  if (missing.reasons.length > 0 && timeoutMs > 0) {
    const startedMs = io.clock.nowMs()
    const progress = progressLine(context, () => progressText(kind, missing, io.clock.nowMs() - startedMs))
    void io.clock.sleep(timeoutMs, over.signal).then(() => over.abort())
    try {
      for await (const _ of lookTimes(context, kind, signal)) {
        missing = await patiently(context, signal, look).catch((error: unknown) => {
          if (signal.aborted) return missing
          throw error
        })
        progress.show()
        if (missing.reasons.length === 0 || signal.aborted) break
      }
    } finally {
      over.abort()
      progress.clear()
    }
  }
  if (missing.reasons.length === 0) return print(context, kind, missing, conditions, name, options)
  const shown = missing.reasons.slice(0, REASONS_MAX).map((reason) => `  ${plainText(reason)}\n`)
  const more = missing.reasons.length - shown.length
  const when = timeoutMs === 0 ? '' : `timed out after ${options.timeout}: `
  const who = missing.count === 0 ? `no ${kind} match` : `${missing.reasons.length} of ${countText(missing.count, singular(kind))}`
  io.stderr.write(`error: ${when}${who}: ${conditions.map(({ unmet }) => unmet).join(' or ')}\n`)
  io.stderr.write(`${shown.join('')}${more > 0 ? `  and ${more} more\n` : ''}`)
  context.exit(1)
}

/** At the start of the feed, after changes that concern the kind, and now and then. */
async function* lookTimes(context: Context, kind: WaitedKind, signal: AbortSignal): AsyncGenerator<void> {
  const { clock } = context.io
  const batches = gathered(follow(context, WATCHING[kind].topics, signal), GATHER_MS, clock)
  let next = batches.next()
  while (!signal.aborted) {
    const waking = new AbortController()
    const first = await Promise.race([next, clock.sleep(LOOK_AGAIN_MS, AbortSignal.any([signal, waking.signal])).then(() => null)])
    waking.abort()
    if (first?.done === true) return
    if (first !== null) next = batches.next()
    yield
  }
}

interface Missing {
  items: Waited[]
  count: number
  /** Unmet conditions, one line for each. */
  reasons: string[]
}

function missingOf(kind: WaitedKind, items: Waited[], conditions: readonly Condition[]): Missing {
  const forDeletion = conditions.some(({ deletion }) => deletion)
  if (items.length === 0) return { items, count: 0, reasons: forDeletion ? [] : ['nothing was found'] }
  const reasons = items.flatMap((item) => {
    const lacking = conditions.filter((condition) => !condition.holds(item))
    return lacking.length === 0 ? [] : [`${nameOf(kind, item)}: ${lacking.map((condition) => condition.why(item)).join('; ')}`]
  })
  return { items, count: items.length, reasons }
}

function nameOf(kind: Kind, item: Waited): string {
  if (item.metadata !== undefined) return `${singular(kind)}/${item.metadata.name}`
  const { cluster, service, kind: objectKind, namespace, name } = item
  if (objectKind === undefined) return `${singular(kind)}/${cluster}/${service}`
  return `${objectKind} ${namespace === '' ? '' : `${namespace}/`}${name} in ${cluster}`
}

const metText = (conditions: readonly Condition[]): string => conditions.map(({ met }) => met).join(' and ')

function print(
  { io }: Context,
  kind: WaitedKind,
  { items }: Missing,
  conditions: readonly Condition[],
  name: string | undefined,
  { output }: WaitOptions,
): void {
  const [only] = items
  const document = documentText(items.length === 1 ? only : { items }, output)
  if (document !== null) io.stdout.write(document)
  else if (items.length === 0) io.stdout.write(name === undefined ? `all ${kind} are deleted\n` : `${singular(kind)}/${name} is deleted\n`)
  else
    for (const item of items)
      io.stdout.write(output === 'name' ? `${nameOf(kind, item)}\n` : `${nameOf(kind, item)} ${metText(conditions)}\n`)
}

const progressText = (kind: WaitedKind, { count, reasons }: Missing, waitedMs: number): string =>
  `waiting for ${countText(reasons.length, 'condition')} of ${count} ${kind} (${Math.round(waitedMs / 1_000)}s): ${reasons[0] ?? ''}`

const CLEAR = '\r\u001b[2K'
const LINE_MAX = 100
/** One overwritten line on a terminal; elsewhere nothing. */
function progressLine({ io }: Context, text: () => string): { show(): void; clear(): void } {
  const isShown = io.isTty && usesColour(io)
  return {
    show: () => {
      if (isShown) io.stderr.write(`${CLEAR}${plainText(text()).slice(0, LINE_MAX)}`)
    },
    clear: () => {
      if (isShown) io.stderr.write(CLEAR)
    },
  }
}
