// A fleet to torment: a Git server, a real Skerry server and sync-only agents as processes, fed with commits in which
// every object carries its round, and the one question at the end: does every replica hold what the server says, and
// the server what every agent said?
import { expect } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGitServer, type GitServer } from '../../scripts/local-cluster/git-http-server.ts'
import { createLocalFleet, type LocalFleet, type Programs } from '../../scripts/local-cluster/local-fleet.ts'
import { decodeRenderedSet } from '../../server/desired/rendered-set.ts'
import { createFileContentStore } from '../../server/store/content/file-content-store.ts'
import { parsePostgresUrl } from '../../server/store/engines/postgres-url.ts'
import { openPostgresStore, openSqliteStore } from '../../server/store/kysely-store.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { serviceRowId } from '../../shared/model/desired.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { type ClusterId, clusterIdSchema } from '../../shared/runtime/ids.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { eventually } from './kube-cluster.ts'
import { joinToken, repositoryYaml, serviceYaml } from './scenario.ts'
import { createSyncSite, type SyncAgentOptions, type SyncDump, type SyncSite } from './sync-site.ts'

/** Services for all sites, with their numbers of objects; each site has one of its own besides. */
export interface ChaosOptions {
  sites: readonly string[]
  services?: Record<string, number>
  /** Bytes of ballast in each object, incompressible. */
  ballast?: number
  agent?: Partial<SyncAgentOptions>
  /** Default: as SKERRY_PROGRAMS says. */
  programs?: Programs
  /** Of the server. */
  dataDir?: string
  /** Where the agents' folders are. */
  sitesDir?: string
}

export interface ChaosFleet {
  fleet: LocalFleet
  sites: SyncSite[]
  site(name: string): SyncSite
  /** The next round for these services, or for all; tells the server if it can be told. */
  commit(services?: readonly string[]): Promise<number>
  services(): string[]
  /** Waits until every agent (or that of the site) is at the newest round of every service and has nothing more to say.
   */
  settled(timeoutMs?: number, site?: string): Promise<void>
  /** When all is settled: kills the server to read its truth, compares everything, and starts it again. */
  verify(options?: VerifyOptions): Promise<Verified>
  git: GitServer
  stop(): Promise<void>
}

export interface VerifyOptions {
  /** False where a server was set back: events that it had acknowledged are not told again. */
  events?: boolean
  /** True where a write failed: its staged file waits for the next one of its name. */
  staged?: boolean
}
interface Verified {
  rows: number
  statuses: number
  events: number
}

const OWN_OBJECTS = 3
const random = seededRandom(4)
const ballastOf = (bytes: number) => randomBytes((bytes * 3) / 4).toString('base64url')

/** The number of objects changes from round to round, so that rows go and come back. */
const manifests = (service: string, objects: number, round: number, ballast: number): string =>
  Array.from(
    { length: objects + (round % 4) },
    (_, n) => `---
apiVersion: v1
kind: ConfigMap
metadata: {name: ${service}-${n}}
data: {round: "${round}", ballast: "${ballastOf(ballast)}"}
`,
  ).join('')

export async function startChaosFleet(options: ChaosOptions): Promise<ChaosFleet> {
  const { sites: names, services: shared = { 'all-small': 4, 'all-large': 40 }, ballast = 200 } = options
  const undo: Array<() => unknown> = []
  const stop = async () => {
    for (const step of undo.splice(0).reverse()) await step()
  }
  try {
    const dir = mkdtempSync(join(tmpdir(), 'skerry-chaos-'))
    undo.push(() => rmSync(dir, { recursive: true, force: true }))
    const git = await createGitServer({ dir: join(dir, 'git') })
    undo.push(() => git.stop())
    const sizes = new Map([...Object.entries(shared), ...names.map((name) => [`only-${name}`, OWN_OBJECTS] as const)])
    const rounds = new Map<string, number>()
    let round = 0
    const write = async (services: Iterable<string>): Promise<number> => {
      const mine = ++round
      const files: Record<string, string> = {}
      for (const service of services) {
        rounds.set(service, mine)
        files[`${service}/objects.yaml`] = manifests(service, sizes.get(service) ?? 0, mine, ballast)
      }
      await git.commit(files, `round ${mine}`)
      return mine
    }
    await write(sizes.keys())
    const { programs, dataDir } = options
    const fleet = await createLocalFleet({ ...(programs === undefined ? {} : { programs }), ...(dataDir === undefined ? {} : { dataDir }) })
    undo.push(() => fleet.stop())
    await fleet.startServer()
    const yaml = [...sizes.keys()].map((name) =>
      serviceYaml({ name, namespace: 'chaos', labels: name.startsWith('only-') ? { site: name.slice('only-'.length) } : {} }),
    )
    await fleet.run(['apply', '-f', '-'], { stdin: repositoryYaml('apps', git.url, '1m') + yaml.join('') })
    const sites: SyncSite[] = []
    for (const name of names) {
      const token = await joinToken(fleet, { site: name })
      const site = createSyncSite({
        dataDir: join(options.sitesDir ?? dir, name),
        serverUrl: fleet.serverUrl,
        name,
        joinToken: token,
        ...options.agent,
      })
      undo.push(() => site.kill())
      sites.push(site)
      site.start()
    }
    const settled = async (timeoutMs = 60_000, only?: string) => {
      const concerned = sites.filter((site) => only === undefined || site.name === only)
      await Promise.all(concerned.map((site) => siteSettled(site, rounds, timeoutMs))).catch((error: Error) => {
        throw new Error(`${error.message}\nserver:\n${fleet.serverLog().split('\n').slice(-20).join('\n')}`)
      })
    }
    let turn: Promise<unknown> = Promise.resolve() // there is one working tree
    const commit = async (services: Iterable<string> = sizes.keys()) => {
      const written = turn.then(() => write(services))
      turn = written.catch(() => {})
      const mine = await written
      await fleet.webhook('apps').catch(() => {}) // it reads its repositories when it starts
      return mine
    }
    return {
      fleet,
      sites,
      site: (name) => {
        const found = sites.find((site) => site.name === name)
        if (found === undefined) throw new Error(`no site ${name}`)
        return found
      },
      commit,
      services: () => [...sizes.keys()],
      settled,
      git,
      verify: async (what = {}) => {
        await settled()
        return verify(fleet, sites, what)
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Services that are meant for the site, with the round that they are at. */
const meantFor = (site: string, rounds: ReadonlyMap<string, number>): Record<string, number> =>
  Object.fromEntries([...rounds].filter(([service]) => !service.startsWith('only-') || service === `only-${site}`).sort())

async function siteSettled(site: SyncSite, rounds: ReadonlyMap<string, number>, timeoutMs: number): Promise<void> {
  let last: unknown
  const check = async () => {
    const report = await site.report()
    last = report
    const expected = JSON.stringify(meantFor(site.name, rounds))
    const at = JSON.stringify(Object.fromEntries(Object.entries(report?.rounds ?? {}).sort()))
    return report?.state === 'following' && report.outboxDepth === 0 && at === expected
  }
  await eventually(`${site.name} is where the server is`, check, timeoutMs).catch((error) => {
    const tail = site.log().split('\n').slice(-12).join('\n')
    throw new Error(`${error.message}\nmeant: ${JSON.stringify(meantFor(site.name, rounds))}\nlast: ${JSON.stringify(last)}\n${tail}`)
  })
}

interface Truth {
  rows: Array<[id: string, doc: string]>
  statuses: Array<{ kind: string; key: string; doc: unknown }>
}

/** From the files of a server that does not run. */
async function readTruth(
  { dataDir, database }: LocalFleet,
  clusterIds: readonly ClusterId[],
): Promise<{ of: Map<string, Truth>; events: string[] }> {
  const options = { clock: systemClock, random }
  const store =
    database === null
      ? await openSqliteStore(join(dataDir, 'fleet.sqlite'), options)
      : await openPostgresStore({ target: parsePostgresUrl(database.url) }, options)
  const content = createFileContentStore(join(dataDir, 'content'), systemClock)
  const of = new Map<string, Truth>()
  const events: string[] = []
  try {
    for (const clusterId of clusterIds) {
      const rows: Truth['rows'] = []
      for (const { doc, setSha, ...id } of await store.desiredInCluster(clusterId)) {
        if (doc !== null) rows.push([serviceRowId(id), canonicalJson(doc)])
        const bytes = setSha === null ? null : await content.get(setSha)
        if (bytes !== null) rows.push(...decodeRenderedSet(bytes))
      }
      const kinds = ['service', 'object'] as const
      const statuses = (await Promise.all(kinds.map((kind) => store.listStatus({ clusterId, kind })))).flat()
      of.set(clusterId, { rows: sorted(rows), statuses: sortedStatuses(statuses) })
    }
    for (let after = 0; ; ) {
      const batch = await store.listEvents({ after, limit: 1000 })
      events.push(...batch.map(({ message }) => message))
      const last = batch.at(-1)
      if (last === undefined) return { of, events }
      after = last.id
    }
  } finally {
    await store.close()
  }
}

const sorted = (rows: Truth['rows']): Truth['rows'] => rows.toSorted(([a], [b]) => (a < b ? -1 : 1))
const sortedStatuses = (statuses: Truth['statuses']): Truth['statuses'] =>
  statuses
    .map(({ kind, key, doc }) => ({ kind, key, doc }))
    .filter(({ kind }) => kind !== 'event')
    .toSorted((a, b) => (`${a.kind}/${a.key}` < `${b.kind}/${b.key}` ? -1 : 1))

async function verify(fleet: LocalFleet, sites: readonly SyncSite[], { events = true, staged = false }: VerifyOptions): Promise<Verified> {
  const asked = await Promise.all(sites.map(async (site) => ({ site, report: await site.report(), dump: await site.dump() })))
  await fleet.killServer()
  const clusterIds = asked.map(({ report }) => clusterIdSchema.parse(report?.clusterId))
  const truth = await readTruth(fleet, clusterIds)
  const happened = new Map<string, number>()
  for (const message of truth.events) happened.set(message, (happened.get(message) ?? 0) + 1)
  const counts = { rows: 0, statuses: 0, events: 0 }
  for (const [index, { site, dump }] of asked.entries()) {
    const of = truth.of.get(clusterIds[index] ?? '')
    expectSame(site, dump, of)
    const journal = site.journal()
    expect({ site: site.name, violations: journal.filter(({ kind }) => kind === 'violation') }).toEqual({ site: site.name, violations: [] })
    const told = journal.flatMap((line) => (line.kind === 'event' && events ? [line.message] : []))
    const wrong = told.filter((message) => happened.get(message) !== 1)
    expect({ site: site.name, lostOrDoubled: wrong }).toEqual({ site: site.name, lostOrDoubled: [] })
    if (!staged) expectNoLeftovers(site.dataDir)
    counts.rows += dump.rows.length
    counts.statuses += dump.statuses.length
    counts.events += told.length
  }
  if (!staged) expectNoLeftovers(fleet.dataDir)
  await fleet.startServer()
  return counts
}

function expectSame(site: SyncSite, dump: SyncDump, of: Truth | undefined): void {
  const rows = sorted(dump.rows)
  // Ids first: a failed test shall be readable.
  expect([site.name, rows.map(([id]) => id)]).toEqual([site.name, of?.rows.map(([id]) => id) ?? []])
  expect([site.name, rows]).toEqual([site.name, of?.rows ?? []])
  expect([site.name, sortedStatuses(dump.statuses)]).toEqual([site.name, of?.statuses ?? []])
}

const LEFTOVER = /(\.new|\.tmp|\.part|\.old|(?<!^lock\.sqlite)-journal)$|(^|\/)(spool|staging|parts?)\/./
/** Of writes that were cut short: they may be there while a process lives, not after the next one has looked. */
function expectNoLeftovers(dir: string): void {
  const names = existsSync(dir) ? readdirSync(dir, { recursive: true, encoding: 'utf8' }) : []
  const left = names.filter((name) => LEFTOVER.test(name) && !name.startsWith('git/'))
  expect({ dir, left }).toEqual({ dir, left: [] })
}

export interface ProcessSize {
  rssMb: number
  fds: number
}

/** Null when it is gone. */
export function processSize(pid: number): ProcessSize | null {
  try {
    const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1])
    return { rssMb: Math.round((pages * 4096) / 1e6), fds: readdirSync(`/proc/${pid}/fd`).length }
  } catch {
    return null
  }
}
