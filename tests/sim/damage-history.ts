// One history of damage: a data folder at some moment of its life, a damage drawn from the seed, and two starts of its
// program. The program serves what it should, or it refuses with a code and a remedy; it never dies, and it never does
// at the second start what it had to do at the first.
import { cpSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SHARD_COUNT } from '../../server/desired/shard-files.ts'
import { examine } from '../../server/doctor/examine.ts'
import { startServer } from '../../server/server.ts'
import { openDataFolder } from '../../shared/adapters/data-folder.ts'
import { createNativeGuard } from '../../shared/adapters/native-guard.ts'
import { openRunRecord } from '../../shared/adapters/run-record.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { type Random, seededRandom } from '../../shared/runtime/random.ts'
import { configMapRef } from '../support/reconcile-kit.ts'
import { MOMENTS, type Moment, OBJECTS, openSite, readImage, shardName, writeImage } from './damage-folders.ts'
import { damage } from './damage-kinds.ts'

export const TARGETS = ['shard', 'replica', 'agent state', 'fleet store'] as const
export type Target = (typeof TARGETS)[number]

export interface Plan {
  seed: number
  target: Target
  moment: Moment
  what: string
}

export type Outcome =
  | { kind: 'serves'; told: string[]; wrong: string[] }
  | { kind: 'refuses'; code: string; detail: string }
  /** An error that tells nobody what to do. */
  | { kind: 'fails'; error: string }

export interface Templates {
  dir: string
  clusters: ClusterId[]
}

/** Copies the folder of the drawn moment to `dir` and damages one file of it. */
export function prepare(seed: number, templates: Templates, dir: string): Plan {
  const random = seededRandom(seed)
  const target = TARGETS[seed % TARGETS.length] ?? 'shard'
  const isServer = target === 'shard' || target === 'fleet store'
  const root = join(templates.dir, isServer ? 'server' : 'agent')
  const file = fileOf(target, pick(templates.clusters, random))
  const moments = MOMENTS.filter((moment) => (statSync(join(root, moment, file), { throwIfNoEntry: false })?.size ?? 0) > 0)
  const moment = pick(moments, random)
  const past = moments[Math.max(0, moments.indexOf(moment) - 1)] ?? moment
  cpSync(join(root, moment), join(dir, 'data'), { recursive: true })
  if (!isServer) cpSync(join(root, 'server'), join(dir, 'server'), { recursive: true })
  const { what, kind, ...image } = damage(readImage(join(root, moment, file)), readImage(join(root, past, file)), random)
  writeImage(join(dir, 'data', file), image)
  return { seed, target, moment, what: `${file}: ${kind}: ${what}` }
}

const pick = <T>(items: readonly T[], random: Random): T => items[Math.floor(random() * items.length)] as T

const fileOf = (target: Target, clusterId: ClusterId): string =>
  ({
    shard: join('shards', shardName(clusterId, SHARD_COUNT)),
    'fleet store': 'fleet.sqlite',
    replica: 'replica.sqlite',
    'agent state': 'agent.sqlite',
  })[target]

/** The program on the folder, once. */
export const startOnce = ({ target }: Plan, dir: string): Promise<Outcome> =>
  target === 'shard' || target === 'fleet store' ? startTheServer(join(dir, 'data'), target) : startTheAgent(dir)

/** What is wrong with two starts in a row; the second one is null when the first was enough. */
export function judge({ target }: Plan, first: Outcome, second: Outcome): string[] {
  const wrong: string[] = []
  for (const [index, outcome] of [first, second].entries()) {
    const start = `start ${index + 1}`
    if (outcome.kind === 'fails') wrong.push(`${start} fails without a remedy: ${outcome.error}`)
    if (outcome.kind === 'serves') wrong.push(...outcome.wrong.map((what) => `${start}: ${what}`))
    if (outcome.kind === 'refuses' && !MAY_REFUSE[target].includes(outcome.code))
      wrong.push(`${start} refuses: ${outcome.code}: ${outcome.detail}`)
  }
  if (second.kind === 'serves') wrong.push(...second.told.map((what) => `start 2 does again: ${what}`))
  return wrong
}

/** What nothing else can rebuild. */
const MAY_REFUSE: Readonly<Record<Target, readonly string[]>> = {
  shard: [],
  replica: [],
  'agent state': ['data_unusable'],
  'fleet store': ['store_damaged'],
}

/** Lines of the log that say that something was lost and made again. */
function repairLog(): { log: Logger; told: string[] } {
  const told: string[] = []
  const note = (message: string, fields?: Record<string, unknown>) => {
    if (REPAIRS.some((repair) => message.startsWith(repair))) told.push(`${message} ${JSON.stringify(fields ?? {})}`)
  }
  const log: Logger = { debug: () => {}, info: note, warn: note, error: note, with: () => log }
  return { log, told }
}
const REPAIRS = ['shard file', 'a shard file', 'replica ', 'epochs raised']

/** CU5: after a stop in order the rows of a shard file are trusted until the hourly look. Here the next start looks
 *  instead. */
async function startTheServer(data: string, target: Target): Promise<Outcome> {
  const first = await serveOnce(data, target)
  if (first.kind !== 'serves' || !first.wrong.some((what) => what.includes('shard_damaged'))) return first
  writeFileSync(join(data, 'shards', 'in-use'), '')
  return serveOnce(data, target)
}

async function serveOnce(data: string, target: Target): Promise<Outcome> {
  const { log, told } = repairLog()
  const folder = openDataFolder(data)
  const run = openRunRecord(folder.path, { clock: systemClock, log })
  const guard = createNativeGuard({ run, libraryDir: join(data, 'lib'), deathsMax: 1 })
  try {
    const options = { dataDir: folder.path, hostname: '127.0.0.1', port: 0 }
    const isStore = target === 'fleet store'
    const server = await startServer(options, { clock: systemClock, random: Math.random, log, guard })
    await server.stop()
    return { kind: 'serves', told, wrong: await doctorsErrors(folder.path, isStore) }
  } catch (error) {
    return failureOf(error)
  } finally {
    run.end()
    folder.unlock()
  }
}

function failureOf(error: unknown): Outcome {
  if (!(error instanceof AppError) || error.code === 'internal') return { kind: 'fails', error: describeError(error) }
  return { kind: 'refuses', code: error.code, detail: describeError(error) }
}

/** Of a store that came back older, or lacks a write in a row, there is no other copy: the doctor and the agents notice
 *  (RP2), and it is served. */
async function doctorsErrors(dataDir: string, isStore: boolean): Promise<string[]> {
  const report = await examine({ dataDir, store: null }, { clock: systemClock, progress: () => {} })
  return report.findings
    .filter(({ severity, code }) => (isStore ? code === 'store_damaged' : severity !== 'note' && code !== 'disk_low'))
    .map(({ code, where }) => `the doctor finds ${code}: ${where[0] ?? ''}`)
}

/** Long enough for a session, a page and its objects. */
const SETTLED_MS = 120_000

async function startTheAgent(dir: string): Promise<Outcome> {
  const { log, told } = repairLog()
  const data = join(dir, 'data')
  const folder = openDataFolder(data)
  const run = openRunRecord(folder.path, { clock: systemClock, log })
  const guard = createNativeGuard({ run, libraryDir: join(data, 'lib'), deathsMax: 2 })
  const site = await openSite(join(dir, 'server'), false)
  try {
    const { agent, ended, stop } = site.start(data, guard, log)
    await site.clock.advance(SETTLED_MS)
    const wrong: string[] = []
    if (ended.length === 0) {
      const { replica, services } = agent.report()
      if (replica?.verified !== true) wrong.push('the replica does not verify')
      if (services.length !== 2) wrong.push(`${services.length} services`)
      for (const [name, value] of Object.entries({ ...OBJECTS, d: '1' })) {
        const held = (site.cluster.object(configMapRef(name))?.['data'] as { value?: string } | undefined)?.value
        if (held !== value) wrong.push(`object ${name} is ${held}`)
      }
    }
    await stop()
    return ended.length > 0 ? failureOf(ended[0]) : { kind: 'serves', told, wrong: wrong.slice(0, 3) }
  } catch (error) {
    return failureOf(error)
  } finally {
    await site.server.kill()
    run.end()
    folder.unlock()
  }
}
