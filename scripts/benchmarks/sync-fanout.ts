// Ten thousand agents on one server: how fast one commit reaches all of them, what they cost while nothing happens, and
// how late the server answers others meanwhile. The agents are simulated in processes of their own; join, session,
// polls, pages and their checks are real.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WAIT_SECONDS_DEFAULT } from '../../shared/protocol/routes.ts'
import { createGitServer, type GitServer } from '../local-cluster/git-http-server.ts'
import type { LocalFleet } from '../local-cluster/local-fleet.ts'
import { type AgentsProcess, linesOf, startAgents } from './agents-process.ts'
import type { BareServerHead } from './bare-server.ts'
import { percentile, residentMb, rounded } from './figures.ts'
import { machineMs } from './polling-agent.ts'
import { createProbedFleet, type Lag, type ProbedFleet, peakResidentMb, processorMs } from './server-process.ts'

/** 10,000, but a person in a hurry may take fewer: the names of the figures stay. */
const AGENTS = Number(process.env['SKERRY_BENCH_AGENTS'] ?? 10_000)
const PROCESSES = 4
const WAKE_AGENTS = 2_000
const WAKES = 100
const COMMITS = 3
const HOUR_MS = 3_600_000
const OBJECTS = 5

type Say = (text: string) => void

/** One change for one of many that wait, and one commit that wakes them all. */
export function benchWake(say: Say): Promise<Record<string, number>> {
  return withCrowd(say, WAKE_AGENTS, async (parts) => {
    const wakes = await wakeOne(parts)
    const together = await commitToAll(parts, 'one commit')
    return {
      wake_p50_ms: rounded(percentile(wakes, 50)),
      wake_p99_ms: rounded(percentile(wakes, 99)),
      wake_all_2000_p99_ms: rounded(together.p99Ms),
    }
  })
}

export function benchFanout(say: Say): Promise<Record<string, number>> {
  return withCrowd(say, AGENTS, async (parts) => {
    const idle = await idleCost(parts)
    const runs: Fanout[] = []
    for (let n = 0; n < COMMITS; n++) runs.push(await commitToAll(parts, `commit ${n}`))
    runs.sort((a, b) => a.p99Ms - b.p99Ms)
    const median = runs[Math.floor(runs.length / 2)]
    if (median === undefined) throw new Error('no commit')
    const pid = parts.fleet.serverPid()
    return {
      fanout_10000_p50_ms: rounded(median.p50Ms, 0),
      fanout_10000_p99_ms: rounded(median.p99Ms, 0),
      fanout_10000_last_ms: rounded(median.lastMs, 0),
      fanout_server_cpu_ms: median.serverCpuMs,
      fanout_agents_cpu_ms: median.agentsCpuMs,
      server_rss_mb: residentMb(pid),
      server_rss_peak_mb: peakResidentMb(pid),
      ...idle,
      event_loop_lag_p99_ms: median.lag.p99Ms,
      event_loop_lag_max_ms: median.lag.maxMs,
    }
  })
}

/** The same agents and checks on a server that does nothing but answer: what no server of ours can be faster than, on
 *  this machine. */
export async function benchFloor(say: Say): Promise<Record<string, number>> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'bare-server.ts')], { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' })
  const crowd = Array.from({ length: PROCESSES }, startAgents)
  try {
    const lines = linesOf(child.stdout)
    const head = JSON.parse((await lines.next()).value ?? '') as BareServerHead
    await Promise.all(crowd.map((process) => process.order({ do: 'connect bare', count: AGENTS / PROCESSES, ...head })))
    await until(async () => (await waitingIn(crowd)) >= AGENTS, `${AGENTS} agents to wait`, 60_000)
    await Bun.sleep(2_000)
    await Promise.all(crowd.map((process) => process.order({ do: 'reset' })))
    const waitingMb = residentMb(child.pid)
    child.stdin.write('now\n')
    await child.stdin.flush()
    const sentMs = Number((await lines.next()).value)
    const taken = await received(crowd, AGENTS, sentMs, 'the bare answer')
    say(`${AGENTS} polls on a bare server: p99 ${rounded(percentile(taken, 99), 0)} ms, ${waitingMb} MB`)
    return { floor_10000_p99_ms: rounded(percentile(taken, 99), 0), floor_10000_rss_mb: waitingMb }
  } finally {
    for (const process of crowd) process.end()
    child.kill()
  }
}

interface Parts {
  say: Say
  agents: number
  git: GitServer
  probed: ProbedFleet
  fleet: LocalFleet
  crowd: AgentsProcess[]
}

export async function withCrowd<T>(say: Say, agents: number, work: (parts: Parts) => Promise<T>): Promise<T> {
  const open = Number(/Max open files\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1])
  if (open < agents + 1_000) throw new Error(`${agents} agents need more than ${open} open files: ulimit -n ${agents + 1_000}`)
  const gitDir = mkdtempSync(join(tmpdir(), 'skerry-bench-'))
  const git = await createGitServer({ dir: gitDir })
  const probed = await createProbedFleet()
  const { fleet } = probed
  const crowd = Array.from({ length: PROCESSES }, startAgents)
  const parts: Parts = { say, agents, git, probed, fleet, crowd }
  try {
    await signUp(parts)
    await connect(crowd, agents)
    say(`${agents} agents wait, server ${residentMb(fleet.serverPid())} MB`)
    return await work(parts)
  } finally {
    for (const process of crowd) process.end()
    await fleet.stop()
    await git.stop()
    rmSync(gitDir, { recursive: true, force: true })
  }
}

/** Everybody joins by the front door, then the service is placed everywhere in one publication. */
async function signUp({ say, agents, git, fleet, crowd }: Parts): Promise<void> {
  await git.commit(manifests('start'), 'start')
  const apps = `apiVersion: skerry.dev/v1\nkind: Repository\nmetadata: {name: apps}\nspec: {git: {url: "${git.url}"}, poll: 1h}\n`
  await fleet.run(['apply', '-f', '-'], { stdin: apps })
  const token = async (...flags: string[]) =>
    (JSON.parse(await fleet.run(['join-token', 'create', ...flags, '-o', 'json'])) as { token: string }).token
  const startMs = performance.now()
  await crowd[0]?.order({ do: 'join', serverUrl: fleet.serverUrl, joinTokens: [await token('--label', 'wake=yes')], names: ['site-0'] })
  const joinToken = await token('--uses', String(agents))
  const names = Array.from({ length: agents - 1 }, (_, n) => `site-${n + 1}`)
  await Promise.all(
    crowd.map((process, part) =>
      process.order({
        do: 'join',
        serverUrl: fleet.serverUrl,
        joinTokens: [joinToken],
        names: names.filter((_, n) => n % PROCESSES === (part + 3) % PROCESSES),
      }),
    ),
  )
  say(`${agents} agents joined in ${rounded(performance.now() - startMs, 0)} ms`)
  const placedMs = performance.now()
  await fleet.run(['apply', '-f', '-'], { stdin: service('app', '{}') + service('wake', '{matchLabels: {wake: "yes"}}') })
  await until(async () => fleet.serverLog().includes(`"clusters":${agents}`), 'the service to be placed everywhere', 300_000)
  say(`placed everywhere in ${rounded(performance.now() - placedMs, 0)} ms, server ${residentMb(fleet.serverPid())} MB`)
}

/** They open a session, fetch what there is and wait. */
async function connect(crowd: readonly AgentsProcess[], count: number): Promise<void> {
  await Promise.all(crowd.map((process) => process.order({ do: 'connect' })))
  await until(async () => (await waitingIn(crowd)) >= count, `${count} agents to wait`, 120_000)
  await Bun.sleep(2_000)
}

/** A change for one agent among all that wait, by the admin API: from the request to the page, checked. Store, plan and
 *  publication are in it. */
async function wakeOne({ say, fleet, crowd }: Parts): Promise<number[]> {
  const [process] = crowd
  if (process === undefined) return []
  const path = '/projects/default/services/wake'
  const resource = await fleet.api<{ spec: { sync: Record<string, unknown> } }>(path)
  const taken: number[] = []
  await process.order({ do: 'reset' })
  for (let n = 0; n < WAKES; n++) {
    const sync = { ...resource.spec.sync, healthDeadline: `${n + 20}m` }
    const sentMs = machineMs()
    await fleet.api(path, { method: 'PUT', body: { ...resource, spec: { ...resource.spec, sync } } })
    let report = await process.order({ do: 'report' })
    for (const tooLateMs = sentMs + 10_000; report.pagesAtMs.length <= n; report = await process.order({ do: 'report' })) {
      if (machineMs() > tooLateMs) throw new Error(`wake ${n} did not arrive`)
      await Bun.sleep(5)
    }
    taken.push((report.pagesAtMs[n] ?? Number.NaN) - sentMs)
  }
  say(`one of many woken: p50 ${rounded(percentile(taken, 50))} ms, p99 ${rounded(percentile(taken, 99))} ms`)
  return taken
}

interface Fanout {
  p50Ms: number
  p99Ms: number
  lastMs: number
  lag: Lag
  serverCpuMs: number
  agentsCpuMs: number
}

/** The commit is in the repository; time begins when the forge's webhook is sent. */
async function commitToAll({ say, agents, git, fleet, crowd, probed }: Parts, what: string): Promise<Fanout> {
  await git.commit(manifests(what), what)
  await Promise.all(crowd.map((process) => process.order({ do: 'reset' })))
  const lagging = probed.measureLag()
  const cpuMs = processorMs(fleet.serverPid())
  const agentsMs = () => crowd.reduce((sum, { pid }) => sum + processorMs(pid), 0)
  const agentsBeforeMs = agentsMs()
  const sentMs = machineMs()
  await fleet.webhook('apps')
  const taken = await received(crowd, agents, sentMs, what)
  const serverCpuMs = processorMs(fleet.serverPid()) - cpuMs
  const agentsCpuMs = agentsMs() - agentsBeforeMs
  const lag = await lagging.stop()
  const lastMs = taken.reduce((a, b) => Math.max(a, b), 0)
  const result = { p50Ms: percentile(taken, 50), p99Ms: percentile(taken, 99), lastMs, lag, serverCpuMs, agentsCpuMs }
  say(
    `${what}: ${taken.length} pages, p50 ${rounded(result.p50Ms, 0)} ms, p99 ${rounded(result.p99Ms, 0)} ms, last ${rounded(lastMs, 0)} ms; ` +
      `CPU: server ${serverCpuMs} ms, agents ${agentsCpuMs} ms; lag p50 ${lag.p50Ms} p99 ${lag.p99Ms} max ${lag.maxMs} ms, ${residentMb(fleet.serverPid())} MB`,
  )
  return result
}

/** How long after `sentMs` each agent had checked its page. */
async function received(crowd: readonly AgentsProcess[], agents: number, sentMs: number, what: string): Promise<number[]> {
  let taken: number[] = []
  await until(
    async () => {
      await Bun.sleep(250)
      const reports = await Promise.all(crowd.map((process) => process.order({ do: 'report' })))
      taken = reports.flatMap(({ pagesAtMs }) => pagesAtMs.map((atMs) => atMs - sentMs))
      return taken.length >= agents
    },
    `${what} to reach ${agents} agents`,
    120_000,
  )
  return taken
}

/** One whole wait, so that every agent's poll ends and is repeated once. */
async function idleCost({ say, agents, fleet, probed }: Parts): Promise<Record<string, number>> {
  const windowMs = WAIT_SECONDS_DEFAULT * 1_000
  const profiling = process.env['SKERRY_BENCH_PROFILE'] === undefined ? null : probed.measureLag() // it costs time of its own
  const before = processorMs(fleet.serverPid())
  const startMs = performance.now()
  await Bun.sleep(windowMs)
  const usedMs = processorMs(fleet.serverPid()) - before
  await profiling?.stop()
  const each = (usedMs / agents) * (HOUR_MS / (performance.now() - startMs))
  say(`idle for ${windowMs / 1_000} s: ${usedMs} ms of CPU`)
  return { server_cpu_ms_per_idle_agent_hour: rounded(each, 2) }
}

async function waitingIn(crowd: readonly AgentsProcess[]): Promise<number> {
  const reports = await Promise.all(crowd.map((process) => process.order({ do: 'report' })))
  return reports.reduce((sum, { waiting }) => sum + waiting, 0)
}

async function until(check: () => Promise<boolean>, what: string, timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await check())) {
    if (performance.now() > deadline) throw new Error(`${what}: not within ${timeoutMs / 1_000} s`)
    await Bun.sleep(100)
  }
}

const manifests = (text: string): Record<string, string> =>
  Object.fromEntries(
    ['app', 'wake'].flatMap((folder) =>
      Array.from({ length: folder === 'app' ? OBJECTS : 1 }, (_, n) => {
        // One of the service's objects changes with every commit, and nothing of the other service.
        const value = n === 0 && folder === 'app' ? text : 'stays'
        return [
          `${folder}/c${n}.yaml`,
          `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c${n}\ndata:\n  value: ${JSON.stringify(value)}\n`,
        ]
      }),
    ),
  )

const service = (name: string, selector: string): string =>
  `---\napiVersion: skerry.dev/v1\nkind: Service\nmetadata: {name: ${name}}\nspec:\n  source: {repository: apps, path: ${name}}\n  targets: {selector: ${selector}}\n  namespace: ${name}\n`
