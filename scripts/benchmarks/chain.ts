// From a commit to the object and back, on a real API server with the compiled programs. Every figure is measured here,
// in one run.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isList } from '../local-cluster/audit-log.ts'
import { createGitServer } from '../local-cluster/git-http-server.ts'
import { startKubeCluster } from '../local-cluster/local-cluster.ts'
import { createLocalFleet, type LocalFleet } from '../local-cluster/local-fleet.ts'
import { percentile, residentMb, rounded } from './figures.ts'
import { type DirectKube, directKube } from './kube-direct.ts'
import { type Part, runParts, type Say } from './parts.ts'

const COMMITS = 200
const DRIFTS = 50
/** One object each: repeated changes of one object within a minute count as a fight, and a fight backs off. */
const SMALL = 1 + 2 * DRIFTS
const BULK = 4_000
const CONCURRENCY = 20
const IDLE_MS = 120_000

type Visible = (what: string, matches: (name: string, uid: string, value: string | undefined) => boolean) => Promise<number>

const configMap = (name: string, value: string) =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\ndata:\n  value: ${JSON.stringify(value)}\n`
const service = (name: string) =>
  `---\napiVersion: skerry.dev/v1\nkind: Service\nmetadata: {name: ${name}}\nspec:\n  source: {repository: apps, path: ${name}}\n  targets: {selector: {}}\n  namespace: ${name}\n`

const chain: Part = async (say) => {
  const gitDir = mkdtempSync(join(tmpdir(), 'skerry-bench-'))
  const git = await createGitServer({ dir: gitDir })
  const cluster = await startKubeCluster({ name: 'bench', controllers: false })
  const fleet = await createLocalFleet({ programs: 'dist' })
  try {
    await fleet.startServer()
    await fleet.run(['apply', '-f', '-'], {
      stdin: `apiVersion: skerry.dev/v1\nkind: Repository\nmetadata: {name: apps}\nspec: {git: {url: "${git.url}"}, poll: 1h}\n${service('small')}`,
    })
    const { token } = JSON.parse(await fleet.run(['join-token', 'create', '-o', 'json'])) as { token: string }
    const agent = await fleet.addAgent({ name: 'bench', cluster, joinToken: token })
    const kube = directKube(cluster)

    await git.commit(
      Object.fromEntries(Array.from({ length: SMALL }, (_, n) => [`small/c${n}.yaml`, configMap(`c${n}`, 'start')])),
      'start',
    )
    await fleet.webhook('apps')
    await until(async () => (await count(kube, 'small')) >= SMALL, 'the small service')
    const { visible, stop } = await collectionEar(kube, '/api/v1/namespaces/small/configmaps')

    const pushes: number[] = []
    for (let n = 0; n < COMMITS; n++) {
      await git.commit({ 'small/c0.yaml': configMap('c0', `commit ${n}`) }, `commit ${n}`)
      const seen = visible(`commit ${n}`, (name, _, value) => name === 'c0' && value === `commit ${n}`)
      const sent = performance.now()
      await fleet.webhook('apps')
      pushes.push((await seen) - sent)
    }
    say(`push to apply: ${COMMITS} commits`)
    const heals = await driftHeals(kube, visible)
    say(`drift: ${heals.length} foreign changes`)
    stop()

    const bulk = await bulkApply({ git, fleet, kube, cluster, say })
    await Bun.sleep(5_000)
    const memory = { agent_rss_mb: residentMb(agent.pid()), server_rss_mb: residentMb(fleet.serverPid()) }
    say(`idle for ${IDLE_MS / 1_000} s`)
    const before = await agent.status()
    const mark = cluster.auditMark()
    await Bun.sleep(IDLE_MS)
    const after = await agent.status()
    const idle = cluster
      .auditLines({ userAgent: 'skerry-agent', since: mark })
      .filter((event) => isList(event) || (event.stage === 'ResponseComplete' && event.verb !== 'watch'))
    const minutes = IDLE_MS / 60_000
    return {
      push_to_apply_p50_ms: rounded(percentile(pushes, 50)),
      push_to_apply_p99_ms: rounded(percentile(pushes, 99)),
      drift_heal_p50_ms: rounded(percentile(heals, 50)),
      drift_heal_p99_ms: rounded(percentile(heals, 99)),
      ...bulk,
      ...memory,
      idle_api_requests_per_min: rounded(idle.length / minutes),
      idle_polls_per_min: rounded(((after.link?.requests ?? 0) - (before.link?.requests ?? 0)) / minutes),
    }
  } finally {
    await fleet.stop()
    await cluster.stop()
    await git.stop()
    rmSync(gitDir, { recursive: true, force: true })
  }
}

export const benchChain = (say: Say, only: string | null): Promise<Record<string, number>> => runParts('chain', { chain }, say, only)

/** Foreign change answered → our repair visible. */
async function driftHeals(kube: DirectKube, visible: Visible): Promise<number[]> {
  const heals: number[] = []
  const path = (name: string) => `/api/v1/namespaces/small/configmaps/${name}`
  for (let n = 0; n < DRIFTS; n++) {
    const name = `c${1 + n}`
    const { metadata } = (await (await kube.request('GET', path(name))).json()) as { metadata: { uid: string } }
    const recreated = visible(`${name} back`, (seen, uid, value) => seen === name && uid !== metadata.uid && value === 'start')
    await (await kube.request('DELETE', path(name))).text()
    const deleted = performance.now()
    heals.push((await recreated) - deleted)
    await Bun.sleep(50)
  }
  for (let n = 0; n < DRIFTS; n++) {
    const name = `c${1 + DRIFTS + n}`
    let edited = false
    const repaired = visible(`${name} repaired`, (seen, _, value) => {
      if (seen === name && value === `foreign ${n}`) edited = true
      return edited && seen === name && value === 'start'
    })
    await (await kube.request('PATCH', path(name), { data: { value: `foreign ${n}` } }, 'application/merge-patch+json')).text()
    const answered = performance.now()
    heals.push(Math.max(0, (await repaired) - answered))
    await Bun.sleep(50)
  }
  return heals
}

interface BulkParts {
  git: Awaited<ReturnType<typeof createGitServer>>
  fleet: LocalFleet
  kube: DirectKube
  cluster: Awaited<ReturnType<typeof startKubeCluster>>
  say: Say
}

/** Ours: first to last server-side apply of the agent, by the API server's own log. The floor: the same documents in
 *  another namespace, nothing else done. */
async function bulkApply({ git, fleet, kube, cluster, say }: BulkParts): Promise<Record<string, number>> {
  const names = Array.from({ length: BULK }, (_, n) => `bulk-${n}`)
  const text = (name: string) => `${name} ${'x'.repeat(400)}`
  await (await kube.request('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'floor' } })).text()
  const documents = names.map((name) => ({
    path: `/api/v1/namespaces/floor/configmaps/${name}`,
    body: JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'floor' }, data: { value: text(name) } }),
  }))
  const floorMs = await kube.applyAll(documents, CONCURRENCY)
  say(`floor: ${BULK} bare applies in ${rounded(floorMs)} ms`)
  const mark = cluster.auditMark()
  await fleet.run(['apply', '-f', '-'], { stdin: service('bulk') })
  await git.commit(Object.fromEntries(names.map((name) => [`bulk/${name}.yaml`, configMap(name, text(name))])), 'bulk')
  await fleet.webhook('apps')
  const applies = () =>
    cluster
      .auditLines({ userAgent: 'skerry-agent', verbs: ['patch'], since: mark })
      .filter((event) => event.stage === 'ResponseComplete' && event.requestURI.includes('/configmaps/bulk-'))
  await until(async () => (await count(kube, 'bulk')) >= BULK && applies().length >= BULK, 'the bulk service', 180_000, 500)
  const times = applies()
  const first = Math.min(...times.map((event) => Date.parse(event.requestReceivedTimestamp)))
  const last = Math.max(...times.map((event) => Date.parse(event.stageTimestamp)))
  say(`ours: ${times.length} applies in ${last - first} ms`)
  return { apply_4000_ratio: rounded((last - first) / floorMs, 2), floor_ops_per_s: rounded(BULK / (floorMs / 1_000), 0) }
}

async function count(kube: DirectKube, namespace: string): Promise<number> {
  const response = await kube.request('GET', `/api/v1/namespaces/${namespace}/configmaps?limit=1`)
  if (!response.ok) return 0
  const { items, metadata } = (await response.json()) as { items?: unknown[]; metadata: { remainingItemCount?: number } }
  return (items?.length ?? 0) + (metadata.remainingItemCount ?? 0)
}

async function collectionEar(kube: DirectKube, path: string): Promise<{ visible: Visible; stop: () => void }> {
  const waiting = new Set<(name: string, uid: string, value: string | undefined, atMs: number) => void>()
  const stop = await kube.watch(path, ({ type, object }, atMs) => {
    if (type === 'DELETED') return
    for (const look of [...waiting]) look(object.metadata.name, object.metadata.uid, object.data?.['value'], atMs)
  })
  const visible: Visible = (what, matches) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${what}: not visible within 30 s`)), 30_000)
      const look = (name: string, uid: string, value: string | undefined, atMs: number) => {
        if (!matches(name, uid, value)) return
        clearTimeout(timer)
        waiting.delete(look)
        resolve(atMs)
      }
      waiting.add(look)
    })
  return { visible, stop }
}

async function until(check: () => Promise<boolean>, what: string, timeoutMs = 60_000, everyMs = 50): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await check())) {
    if (performance.now() > deadline) throw new Error(`${what}: not within ${timeoutMs / 1_000} s`)
    await Bun.sleep(everyMs)
  }
}
