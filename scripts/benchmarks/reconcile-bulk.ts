// Four thousand objects of one service: the first apply against a bare loop, a commit that changes nothing, restarts,
// an idle time, memory, and what events of others cost.
import { readFileSync } from 'node:fs'
import { isList } from '../local-cluster/audit-log.ts'
import { percentile, residentMb, rounded } from './figures.ts'
import type { Part } from './parts.ts'
import {
  configMap,
  countIn,
  each,
  enforcing,
  makeNamespace,
  type ReconcileSite,
  serviceDocument,
  startReconcileSite,
  until,
} from './reconcile-site.ts'

const BULK = 4_000
const FOREIGN = 20_000
const EVENTS = 1_000
const CONCURRENCY = 20
const IDLE_MS = Number(process.env['SKERRY_BENCH_IDLE_S'] ?? 300) * 1_000
const HOUR_MS = 3_600_000
/** Until the agent has released the memory of the first reconciliation. */
const SETTLE_MS = 5_000

const names = Array.from({ length: BULK }, (_, n) => `bulk-${n}`)
const text = (name: string): string => `${name} ${'x'.repeat(400)}`
const TICKS_PER_MS = 100 / 1_000

const processStatus = (pid: number, field: string): number =>
  rounded((Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1_024) / 1e6)

/** Processor time of a process so far, ms. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_MS
}

async function firstApply(site: ReconcileSite, say: (text: string) => void): Promise<Record<string, number>> {
  await makeNamespace(site, 'floor')
  const documents = names.map((name) => ({
    path: `/api/v1/namespaces/floor/configmaps/${name}`,
    body: JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'floor' }, data: { value: text(name) } }),
  }))
  const floorMs = await site.kube.applyAll(documents, CONCURRENCY)
  say(`floor: ${BULK} bare applies in ${rounded(floorMs, 0)} ms`)
  const mark = site.cluster.auditMark()
  await site.services([serviceDocument('bulk')])
  await site.commit(Object.fromEntries(names.map((name) => [`bulk/${name}.yaml`, configMap(name, text(name))])))
  await site.fleet.webhook('apps')
  const applies = () => site.requests(mark).filter(({ verb, requestURI }) => verb === 'patch' && requestURI.includes('/configmaps/bulk-'))
  await until('the bulk service', async () => (await countIn(site, 'bulk')) >= BULK && applies().length >= BULK, 180_000, 500)
  const times = applies()
  const first = Math.min(...times.map((event) => Date.parse(event.requestReceivedTimestamp)))
  const last = Math.max(...times.map((event) => Date.parse(event.stageTimestamp)))
  say(`ours: ${times.length} applies in ${last - first} ms`)
  return { apply_4000_ratio: rounded((last - first) / floorMs, 2), floor_ops_per_s: rounded(BULK / (floorMs / 1_000), 0) }
}

/** Every manifest gets a comment: rendered again, and the same. */
async function noChange(site: ReconcileSite): Promise<Record<string, number>> {
  const mark = site.cluster.auditMark()
  const commit = await site.commit(
    Object.fromEntries(names.map((name) => [`bulk/${name}.yaml`, `# again\n${configMap(name, text(name))}`])),
  )
  const started = performance.now()
  await site.fleet.webhook('apps')
  const rendered = async () =>
    JSON.stringify(await site.fleet.api('/projects/default/services/bulk')).includes(commit) ||
    JSON.stringify(await site.fleet.api('/projects/default/repositories/apps')).includes(commit)
  await until('the empty commit', rendered, 60_000, 10)
  const tookMs = performance.now() - started
  await Bun.sleep(2_000)
  return { noop_revision_ms: rounded(tookMs), noop_revision_requests: site.requests(mark).length }
}

/** Without a server: process start → an object that was deleted meanwhile exists again. */
async function coldStarts(site: ReconcileSite): Promise<Record<string, number>> {
  const { agent, fleet, cluster, kube } = site
  await agent.kill()
  const quiet = cluster.auditMark()
  await agent.start()
  await enforcing(agent)
  await Bun.sleep(SETTLE_MS)
  const writes = site.writes(quiet).length
  await fleet.killServer()
  const times: number[] = []
  for (let n = 0; n < 5; n++) {
    await agent.kill()
    const name = `bulk-${n}`
    await (await kube.request('DELETE', `/api/v1/namespaces/bulk/configmaps/${name}`)).text()
    let found: (atMs: number) => void = () => {}
    const back = new Promise<number>((resolve) => {
      found = resolve
    })
    const stop = await kube.watch('/api/v1/namespaces/bulk/configmaps', ({ type, object }, atMs) => {
      if (type !== 'DELETED' && object.metadata.name === name) found(atMs)
    })
    const started = performance.now()
    await agent.start()
    times.push((await back) - started)
    stop()
  }
  await fleet.startServer()
  await Bun.sleep(SETTLE_MS)
  return { restart_api_writes: writes, cold_start_ms: rounded(percentile(times, 50)) }
}

/** The API server ends watches after 30 to 60 s (`--min-request-timeout=30`); extrapolated from some minutes. */
async function idle(site: ReconcileSite, say: (text: string) => void): Promise<Record<string, number>> {
  say(`idle for ${IDLE_MS / 1_000} s`)
  await Bun.sleep(SETTLE_MS)
  const mark = site.cluster.auditMark()
  const before = cpuMs(site.agent.pid())
  await Bun.sleep(IDLE_MS)
  const lists = site.requests(mark).filter((event) => event.verb === 'get' || isList(event))
  return {
    idle_api_writes_per_hour: rounded((site.writes(mark).length * HOUR_MS) / IDLE_MS),
    idle_api_lists_per_hour: rounded((lists.length * HOUR_MS) / IDLE_MS),
    idle_cpu_ms_per_min: rounded(((cpuMs(site.agent.pid()) - before) * 60_000) / IDLE_MS),
  }
}

/** Others write annotations on a thousand objects of ours. */
async function foreignEvents(site: ReconcileSite): Promise<Record<string, number>> {
  const mark = site.cluster.auditMark()
  const before = cpuMs(site.agent.pid())
  await each(names.slice(0, EVENTS), CONCURRENCY, async (name) => {
    const body = { metadata: { annotations: { 'example.com/seen': 'yes' } } }
    await (await site.kube.request('PATCH', `/api/v1/namespaces/bulk/configmaps/${name}`, body, 'application/merge-patch+json')).text()
  })
  await Bun.sleep(2_000)
  return {
    cpu_ms_per_1000_events: rounded(((cpuMs(site.agent.pid()) - before) * 1_000) / EVENTS, 0),
    foreign_event_requests: site.requests(mark).length,
  }
}

async function foreignObjects(site: ReconcileSite): Promise<Record<string, number>> {
  await makeNamespace(site, 'others')
  const documents = Array.from({ length: FOREIGN }, (_, n) => ({
    path: `/api/v1/namespaces/others/configmaps/other-${n}`,
    body: JSON.stringify({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: `other-${n}`, namespace: 'others' },
      data: { value: text('other') },
    }),
  }))
  await site.kube.applyAll(documents, CONCURRENCY)
  await site.agent.kill()
  await site.agent.start()
  await enforcing(site.agent)
  await Bun.sleep(2 * SETTLE_MS)
  return { agent_rss_foreign_mb: residentMb(site.agent.pid()) }
}

export const bulk: Part = async (say) => {
  const site = await startReconcileSite('bulk')
  try {
    const applied = await firstApply(site, say)
    const unchanged = await noChange(site)
    await Bun.sleep(2 * SETTLE_MS)
    const pid = site.agent.pid()
    const memory = {
      agent_rss_mb: residentMb(pid),
      agent_rss_peak_mb: processStatus(pid, 'VmHWM'),
      agent_rss_anon_mb: processStatus(pid, 'RssAnon'),
    }
    say(`agent: ${memory.agent_rss_mb} MB, of it ${memory.agent_rss_anon_mb} MB its own`)
    const events = await foreignEvents(site)
    const starts = await coldStarts(site)
    const quiet = await idle(site, say)
    const foreign = await foreignObjects(site)
    return { ...applied, ...unchanged, ...starts, ...quiet, ...memory, ...foreign, ...events }
  } finally {
    await site.stop()
  }
}

const CHURN_MS = Number(process.env['SKERRY_BENCH_CHURN_S'] ?? 1_800) * 1_000
/** The first part of it is the heap finding its size. */
const CHURN_WARM_SHARE = 1 / 6

/** Half an hour of commits, foreign edits and deletes; least squares over samples of the agent's memory. Only with
 *  `--only churn`. */
export const churn: Part = async (say) => {
  const site = await startReconcileSite('churn')
  try {
    await site.services([serviceDocument('bulk')])
    await site.commit(Object.fromEntries(names.map((name) => [`bulk/${name}.yaml`, configMap(name, text(name))])))
    await site.fleet.webhook('apps')
    await until('the bulk service', async () => (await site.healthyServices()) === 1, 180_000, 500)
    const samples: Array<[atMs: number, mb: number]> = []
    const started = performance.now()
    let round = 0
    while (performance.now() - started < CHURN_MS) {
      const name = names[(round * 37) % BULK] ?? ''
      const path = `/api/v1/namespaces/bulk/configmaps/${names[(round * 53 + 1) % BULK]}`
      if (round % 5 === 0) {
        await site.commit({ [`bulk/${name}.yaml`]: configMap(name, `${text(name)} ${round}`) })
        await site.fleet.webhook('apps')
      }
      if (round % 2 === 0) await (await site.kube.request('DELETE', path)).text()
      else await (await site.kube.request('PATCH', path, { data: { value: 'foreign' } }, 'application/merge-patch+json')).text()
      await Bun.sleep(200)
      if (round % 25 === 0) samples.push([performance.now() - started, residentMb(site.agent.pid())])
      round += 1
    }
    const warm = samples.filter(([atMs]) => atMs > CHURN_MS * CHURN_WARM_SHARE)
    const slope = slopePerHour(warm)
    say(
      `${round} rounds; ${warm
        .map(([, mb]) => mb)
        .filter((_, n) => n % 20 === 0)
        .join(' ')} MB`,
    )
    return {
      churn_rss_mb_per_hour: rounded(slope, 2),
      churn_rss_last_mb: warm.at(-1)?.[1] ?? Number.NaN,
      churn_minutes: rounded(CHURN_MS / 60_000),
    }
  } finally {
    await site.stop()
  }
}

function slopePerHour(samples: ReadonlyArray<readonly [number, number]>): number {
  const meanX = samples.reduce((sum, [x]) => sum + x, 0) / samples.length
  const meanY = samples.reduce((sum, [, y]) => sum + y, 0) / samples.length
  const over = samples.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0)
  const under = samples.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0)
  return (over / under) * HOUR_MS
}
