// Clusters that are relabelled and clusters that join, in a fleet of ten thousand clusters and two hundred services of
// which each is in some of them: how long until what follows from it is served, and how long the polls of others take
// meanwhile. The server is the program itself, on a data folder that was prepared by its own code.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { loadServerKeys } from '../../server/access/server-keys.ts'
import type { Store } from '../../server/store/store.ts'
import { cursorText } from '../../shared/crdt/position.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { Labels } from '../../shared/model/labels.ts'
import { repositorySpecSchema, serviceSpecSchema } from '../../shared/model/resources.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { createDataFolder } from '../local-cluster/child-process.ts'
import { createGitServer, type GitServer } from '../local-cluster/git-http-server.ts'
import type { LocalFleet } from '../local-cluster/local-fleet.ts'
import { startAgents } from './agents-process.ts'
import { percentile, rounded } from './figures.ts'
import { openSession } from './open-session.ts'
import type { Say } from './parts.ts'
import { machineMs, PollingAgent, readBody } from './polling-agent.ts'
import { RawConnection } from './raw-http.ts'
import { createProbedFleet, type Lag, processorMs } from './server-process.ts'
import { joinSites, openStore, type Site } from './store-sites.ts'

const SITES = Number(process.env['SKERRY_BENCH_AGENTS'] ?? 10_000)
const JOINS = 1_000
const REGIONS = 20
const OF_A_REGION = 9
const BY_ENV = { prod: 12, staging: 4, dev: 4 } as const
type Env = keyof typeof BY_ENV
const ENVS: readonly Env[] = ['prod', 'prod', 'prod', 'staging', 'dev']
const RELABELS = 20
/** Row of the service, and its only object. */
const ROWS_OF_A_SERVICE = 2
const PROBES = 16
const PROBE_EVERY_MS = 100
const SETTLED_MS_MAX = 900_000

const LABELS: readonly Labels[] = ENVS.flatMap((env) => Array.from({ length: REGIONS }, (_, region) => ({ env, region: `r${region}` })))
const labelsOf = (number: number): Labels => LABELS[number % LABELS.length] ?? {}
const placementsOf = ({ env }: Labels): number => OF_A_REGION + BY_ENV[env as Env]
const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0)

const SERVICES: ReadonlyArray<{ name: string; labels: Labels }> = [
  ...Array.from({ length: REGIONS * OF_A_REGION }, (_, n) => ({ name: `of-region-${n}`, labels: { region: `r${n % REGIONS}` } })),
  ...Object.entries(BY_ENV).flatMap(([env, count]) =>
    Array.from({ length: count }, (_, n) => ({ name: `of-${env}-${n}`, labels: { env } })),
  ),
]

interface Parts {
  say: Say
  fleet: LocalFleet
  measureLag(): { stop(): Promise<Lag> }
  sites: readonly Site[]
  serverKeys: readonly string[]
}

export const benchRelabel = (say: Say): Promise<Record<string, number>> => withFleet(say, relabel)
export const benchJoins = (say: Say): Promise<Record<string, number>> => withFleet(say, joinStorm)

async function withFleet(say: Say, measure: (parts: Parts) => Promise<Record<string, number>>): Promise<Record<string, number>> {
  const folder = createDataFolder('skerry-targets')
  const git = await createGitServer({ dir: join(folder.path, 'git') })
  const dataDir = join(folder.path, 'server')
  mkdirSync(dataDir)
  await git.commit(
    Object.fromEntries(SERVICES.map(({ name }) => [`${name}/a.yaml`, `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n`])),
    'all services',
  )
  const store = await openStore(join(dataDir, 'fleet.sqlite'))
  const sites = await joinSites(store, SITES, LABELS)
  await applyAll(store, git)
  await store.close()
  const { fleet, measureLag } = await createProbedFleet({ dataDir })
  try {
    const startMs = performance.now()
    const expected = sum(sites.map(({ number }) => placementsOf(labelsOf(number))))
    await settled(fleet, expected)
    say(
      `${expected} placements of ${SERVICES.length} services in ${SITES} clusters after ${rounded((performance.now() - startMs) / 1_000)} s`,
    )
    const { publicKeys } = loadServerKeys(join(dataDir, 'keys'))
    return await measure({ say, fleet, measureLag, sites, serverKeys: publicKeys })
  } catch (error) {
    say(`the server's last words:\n${fleet.serverLog().split('\n').slice(-5).join('\n')}`)
    throw error
  } finally {
    await fleet.stop()
    await git.stop()
    await folder.remove()
  }
}

async function applyAll(store: Store, git: GitServer): Promise<void> {
  const nowMs = systemClock.nowMs()
  const repository = canonicalJson(repositorySpecSchema.parse({ git: { url: git.url }, poll: '1h' }))
  await store.applyResource({ kind: 'Repository', project: 'default', name: 'apps' }, { labels: {}, spec: repository, nowMs })
  for (const { name, labels } of SERVICES) {
    const source = { repository: 'apps', path: name }
    const spec = canonicalJson(serviceSpecSchema.parse({ source, targets: { selector: { matchLabels: labels } }, namespace: name }))
    await store.applyResource({ kind: 'Service', project: 'default', name }, { labels: {}, spec, nowMs })
  }
}

/** Until the fleet has so many services in clusters. */
async function settled(fleet: LocalFleet, placements: number, everyMs = 250): Promise<void> {
  for (const endMs = performance.now() + SETTLED_MS_MAX; ; await Bun.sleep(everyMs)) {
    const { items } = await fleet.api<{ items: Array<{ count: number }> }>('/counts?by=state')
    const count = sum(items.map((item) => item.count))
    if (count === placements) return
    if (performance.now() > endMs) throw new Error(`${count} of ${placements} placements`)
  }
}

/** Clusters get the labels of the next region, one after the other; their agents wait for it. */
async function relabel({ say, fleet, measureLag, sites, serverKeys }: Parts): Promise<Record<string, number>> {
  const port = Number(new URL(fleet.serverUrl).port)
  const tookMs: Record<'put' | 'apply', number[]> = { put: [], apply: [] }
  const lagging = measureLag()
  for (const [turn, site] of sites.slice(0, 2 * RELABELS).entries()) {
    const labels = labelsOf(site.number)
    const moved = { ...labels, region: `r${(site.number + 1) % REGIONS}` }
    const metadata = { name: `site-${site.number}`, labels: moved }
    const cluster = { apiVersion: 'skerry.dev/v1', kind: 'Cluster', metadata, spec: {} }
    let [rows, atMs] = [0, 0]
    let failure: string | null = null
    const agent = new PollingAgent({
      ...{ port, clusterId: site.clusterId, serverKeys },
      token: await openSession(fleet.serverUrl, { agentId: site.agentId, incarnation: 1, privateKey: site.signing.privateKey }),
      onPage: (pageMs, count) => {
        atMs = pageMs
        rows += count
      },
      onFailure: (why) => {
        failure = why
      },
    })
    const until = async (isSo: () => boolean) => {
      for (const endMs = machineMs() + 60_000; !isSo(); await Bun.sleep(1)) {
        if (failure !== null || machineMs() > endMs) throw new Error(`site-${site.number}: ${failure ?? `${rows} rows`}`)
      }
    }
    await agent.start()
    await until(() => rows >= placementsOf(labels) * ROWS_OF_A_SERVICE && agent.waiting)
    rows = 0
    const how = turn % 2 === 0 ? 'put' : 'apply'
    const startMs = machineMs()
    const asked =
      how === 'put'
        ? fleet.api(`/clusters/site-${site.number}`, { method: 'PUT', body: cluster })
        : fleet.api('/apply', { method: 'POST', body: { resources: [cluster] } })
    await until(() => rows >= 2 * OF_A_REGION * ROWS_OF_A_SERVICE)
    tookMs[how].push(atMs - startMs)
    await asked
    agent.stop()
  }
  const lag = await lagging.stop()
  const figures = {
    relabel_ms: rounded(percentile([...tookMs.put, ...tookMs.apply], 50)),
    relabel_put_ms: rounded(percentile(tookMs.put, 50)),
    relabel_apply_ms: rounded(percentile(tookMs.apply, 50)),
    relabel_max_ms: rounded(Math.max(...tookMs.put, ...tookMs.apply)),
    relabel_lag_p99_ms: lag.p99Ms,
    relabel_clusters: SITES,
    relabel_services: SERVICES.length,
    relabel_services_moved: 2 * OF_A_REGION,
  }
  say(`a relabelled cluster has lost ${OF_A_REGION} services and got ${OF_A_REGION} after ${figures.relabel_ms} ms`)
  return figures
}

/** A thousand clusters join at once, of all regions. */
async function joinStorm({ say, fleet, measureLag, sites, serverKeys }: Parts): Promise<Record<string, number>> {
  const joinTokens: string[] = []
  for (const labels of LABELS) {
    const flags = Object.entries(labels).flatMap(([key, value]) => ['--label', `${key}=${value}`])
    const made = await fleet.run(['join-token', 'create', '--uses', String(JOINS), ...flags, '-o', 'json'])
    joinTokens.push((JSON.parse(made) as { token: string }).token)
  }
  const before = sum(sites.map(({ number }) => placementsOf(labelsOf(number))))
  const names = Array.from({ length: JOINS }, (_, n) => `new-${n}`)
  const joining = startAgents()
  const probing = await startProbes(fleet, sites.slice(0, PROBES), serverKeys)
  try {
    const lagging = measureLag()
    const startMs = performance.now()
    const usedMs = processorMs(fleet.serverPid())
    let joinedMs = 0
    const order = joining.order({ do: 'join', serverUrl: fleet.serverUrl, joinTokens, names })
    const joined = order.then(() => {
      joinedMs = performance.now() - startMs
    })
    await settled(fleet, before + sum(names.map((_, n) => placementsOf(labelsOf(n)))), 50)
    const tookMs = performance.now() - startMs
    const cpuMs = processorMs(fleet.serverPid()) - usedMs
    await joined
    const lag = await lagging.stop()
    const latenciesMs = probing.stop()
    const figures = {
      join_storm_1000_ms: rounded(tookMs, 0),
      join_storm_joined_ms: rounded(joinedMs, 0),
      join_storm_cpu_ms: cpuMs,
      join_storm_poll_p50_ms: rounded(percentile(latenciesMs, 50)),
      join_storm_poll_p99_ms: rounded(percentile(latenciesMs, 99)),
      join_storm_lag_p99_ms: lag.p99Ms,
      join_storm_placements: sum(names.map((_, n) => placementsOf(labelsOf(n)))),
    }
    say(`${JOINS} clusters joined and have ${figures.join_storm_placements} placements after ${figures.join_storm_1000_ms} ms`)
    return figures
  } finally {
    probing.stop()
    joining.end()
  }
}

/** Agents that ask whether there is news, each again and again; how long each answer took, ms. */
async function startProbes(fleet: LocalFleet, sites: readonly Site[], serverKeys: readonly string[]) {
  const latenciesMs: number[] = []
  let isOn = true
  const probe = async ({ agentId, clusterId, signing }: Site) => {
    const token = await openSession(fleet.serverUrl, { agentId, incarnation: 1, privateKey: signing.privateKey })
    const connection = new RawConnection(Number(new URL(fleet.serverUrl).port))
    const headers = { authorization: `Bearer ${token}`, 'accept-encoding': 'zstd' }
    const first = await connection.ask('GET', ROUTES.desired, headers, null, 30_000)
    const read = readBody(first.body, clusterId, serverKeys)
    if (read.kind === 'refused') throw new Error(read.why)
    const path = `${ROUTES.desired}?cursor=${cursorText(read.page.hello.to)}&wait=0`
    const poll = async () => {
      await Bun.sleep(Math.random() * PROBE_EVERY_MS)
      while (isOn) {
        const startMs = performance.now()
        await connection.ask('GET', path, headers, null, 30_000)
        latenciesMs.push(performance.now() - startMs)
        await Bun.sleep(PROBE_EVERY_MS)
      }
      connection.close()
    }
    void poll()
  }
  for (const site of sites) await probe(site)
  return {
    stop: () => {
      isOn = false
      return latenciesMs
    },
  }
}
