// scripts/bench install: what is downloaded, what it needs on a small node, how long a chart takes to its first object,
// and what an upgrade writes.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGitServer } from '../local-cluster/git-http-server.ts'
import { startKubeCluster } from '../local-cluster/local-cluster.ts'
import { createLocalFleet } from '../local-cluster/local-fleet.ts'
import { type Part, runParts, type Say } from './parts.ts'
import { EARLIER, earlierBuild, startUpgradeRun, THIS_BUILD, until } from './upgrade-run.ts'

const ROOT = join(import.meta.dir, '..', '..')
/** Each has an API server of its own, of 280 MB: 50 need 18 GB. */
const AGENTS = Number(process.env['SKERRY_UPGRADE_AGENTS'] ?? 5)
const OBJECTS = 4_000
const LIMIT_MB = 128
const REPOSITORY = 'apps'
/** Folder of the memory controller and its two files: version 2, or version 1 of control groups. */
const CGROUPS = [
  { root: '/sys/fs/cgroup', marker: 'cgroup.controllers', limit: 'memory.max', reached: 'memory.events' },
  { root: '/sys/fs/cgroup/memory', marker: 'memory.limit_in_bytes', limit: 'memory.limit_in_bytes', reached: 'memory.failcnt' },
] as const

const mb = (bytes: number): number => Math.round(bytes / 1e5) / 10

const sizes: Part = async (say) => {
  const folder = mkdtempSync(join(tmpdir(), 'skerry-images-'))
  try {
    const made = Bun.spawnSync([join(ROOT, 'scripts/image'), folder, '--json'])
    if (!made.success) throw new Error(made.stderr.toString())
    const images = JSON.parse(made.stdout.toString()) as Record<string, { platforms: Array<{ bytes: number }> }>
    const agent = statSync(join(THIS_BUILD, 'skerry-agent')).size
    const bun = statSync(process.execPath).size
    say(`of the ${mb(agent)} MB of the agent ${mb(bun)} MB are Bun`)
    return {
      image_server_mb: mb(images['skerry-server']?.platforms[0]?.bytes ?? 0),
      image_agent_mb: mb(images['skerry-agent']?.platforms[0]?.bytes ?? 0),
      agent_binary_mb: mb(agent),
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const fleetYaml = (url: string) => `apiVersion: skerry.dev/v1
kind: Repository
metadata: {name: ${REPOSITORY}}
spec: {git: {url: "${url}", ref: main}, poll: 1h}
---
apiVersion: skerry.dev/v1
kind: Service
metadata: {name: web}
spec:
  source: {repository: ${REPOSITORY}, path: web}
  targets: {selector: {matchLabels: {env: prod}}}
  namespace: web
`
const configMap = (name: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\ndata: {value: "${'x'.repeat(500)}"}\n`

/** A server with one service of so many objects, and a cluster for it. */
async function startSite(objects: number, agentCommand: readonly string[], kwok: boolean) {
  const undo: Array<() => unknown> = []
  const stop = async () => {
    for (const step of undo.splice(0).reverse()) await step()
  }
  try {
    const dir = mkdtempSync(join(tmpdir(), 'skerry-git-'))
    undo.push(() => rmSync(dir, { recursive: true, force: true }))
    const git = await createGitServer({ dir })
    undo.push(() => git.stop())
    await git.commit(Object.fromEntries(Array.from({ length: objects }, (_, n) => [`web/c${n}.yaml`, configMap(`c${n}`)])), 'begin')
    const cluster = await startKubeCluster({ name: 'install', controllers: kwok })
    undo.push(() => cluster.stop())
    const fleet = await createLocalFleet({ programs: (name) => (name === 'skerry' ? [join(THIS_BUILD, name)] : [...agentCommand]) })
    undo.push(() => fleet.stop())
    await fleet.startServer()
    await fleet.run(['apply', '-f', '-'], { stdin: fleetYaml(git.url) })
    const made = await fleet.run(['join-token', 'create', '--label', 'env=prod', '-o', 'json'])
    const count = async () =>
      (await cluster.kubectl(['-n', 'web', 'get', 'configmap', '-o', 'name'])).split('\n').filter((line) => line.includes('/c')).length
    return { cluster, fleet, joinToken: (JSON.parse(made) as { token: string }).token, count, undo, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** The kernel counts the files that the agent reads and writes, too, and gives their memory back at the limit. */
const limit: Part = async (say) => {
  const cgroup = CGROUPS.find(({ root, marker }) => existsSync(join(root, marker)))
  if (cgroup === undefined) throw new Error('this part needs the memory controller of control groups, and root')
  const group = join(cgroup.root, `skerry-${process.pid}`)
  mkdirSync(group)
  writeFileSync(join(group, cgroup.limit), String(LIMIT_MB * 1024 * 1024))
  /** Version 2 has a line for each kind of event. */
  const timesReached = () => Number(/(?:^|max )(\d+)$/m.exec(readFileSync(join(group, cgroup.reached), 'utf8'))?.[1] ?? 0)
  const command = ['sh', '-c', `echo $$ >${group}/cgroup.procs; exec "$0" "$@"`, join(THIS_BUILD, 'skerry-agent')]
  const site = await startSite(OBJECTS, command, false)
  try {
    const agent = await site.fleet.addAgent({ name: 'node', cluster: site.cluster, joinToken: site.joinToken })
    await until('all objects are there', 100_000, async () => (await site.count()) === OBJECTS || !agent.running)
    await Bun.sleep(5_000)
    const rss = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${agent.pid()}/status`, 'utf8'))?.[1] ?? 0) / 1024
    say(`${await site.count()} objects, ${Math.round(rss)} MB resident, at the limit ${timesReached()} times, running: ${agent.running}`)
    return { agent_rss_limit_128_ok: agent.running && (await site.count()) === OBJECTS ? 1 : 0, agent_rss_limited_mb: Math.round(rss) }
  } finally {
    await site.stop()
    rmdirSync(group)
  }
}

/** kwok says that the Pod runs; then this plays the kubelet and starts the agent with what is in the Pod: its
 *  environment, its ServiceAccount. No image is pulled. */
const first: Part = async (say) => {
  const site = await startSite(1, [], true)
  try {
    const { cluster, fleet } = site
    const values = JSON.stringify({
      server: fleet.serverUrl,
      cluster: 'oslo',
      joinToken: { value: site.joinToken },
      rbac: { preset: 'cluster-admin' },
    })
    const startMs = performance.now()
    const installed = Bun.spawn(
      [
        join(ROOT, 'build/render/helm'),
        'install',
        'skerry-agent',
        join(ROOT, 'charts/skerry-agent'),
        '-n',
        'skerry-system',
        '--create-namespace',
        '-f',
        '-',
      ],
      {
        stdin: Buffer.from(values),
        env: { PATH: '/usr/bin', KUBECONFIG: cluster.kubeconfigPath, HOME: tmpdir() },
        stdout: 'ignore',
        stderr: 'pipe',
      },
    )
    if ((await installed.exited) !== 0) throw new Error(await new Response(installed.stderr).text())
    say(`helm install: ${Math.round(performance.now() - startMs)} ms`)
    const pods = async () =>
      (JSON.parse(await cluster.kubectl(['-n', 'skerry-system', 'get', 'pods', '-o', 'json'])) as { items: PodView[] }).items.filter(
        ({ status }) => status.phase === 'Running',
      )
    await until('the Pod runs', 60_000, async () => (await pods()).length === 1)
    say(`Pod running: ${Math.round(performance.now() - startMs)} ms`)
    const [pod] = await pods()
    const account = pod?.spec.serviceAccountName ?? ''
    const token = (await cluster.kubectl(['-n', 'skerry-system', 'create', 'token', account])).trim()
    const folder = mkdtempSync(join(tmpdir(), 'skerry-pod-'))
    site.undo.push(() => rmSync(folder, { recursive: true, force: true }))
    const user = { name: account, user: { token } }
    const context = { name: 'pod', context: { cluster: 'pod', user: account } }
    const clusters = [
      { name: 'pod', cluster: { server: cluster.server, 'certificate-authority-data': Buffer.from(cluster.caPem).toString('base64') } },
    ]
    writeFileSync(
      join(folder, 'config'),
      JSON.stringify({ apiVersion: 'v1', kind: 'Config', clusters, users: [user], contexts: [context], 'current-context': 'pod' }),
    )
    writeFileSync(join(folder, 'token'), site.joinToken, { mode: 0o600 })
    const container = pod?.spec.containers[0]
    const env = Object.fromEntries((container?.env ?? []).map(({ name, value }) => [name, value ?? '']))
    const agent = Bun.spawn([join(THIS_BUILD, 'skerry-agent'), ...(container?.args ?? []), '--kubeconfig', join(folder, 'config')], {
      env: { ...env, SKERRY_DATA: join(folder, 'data'), SKERRY_JOIN_TOKEN_FILE: join(folder, 'token'), SKERRY_PROBES: '' },
      stdout: 'ignore',
      stderr: Bun.file(join(folder, 'log')),
    })
    site.undo.push(() => agent.kill(9))
    await until('the first object', 60_000, async () => (await site.count()) === 1).catch((error) => {
      throw new Error(`${error.message}\n${readFileSync(join(folder, 'log'), 'utf8').slice(-2_000)}`)
    })
    return { install_to_first_apply_s: Math.round((performance.now() - startMs) / 10) / 100 }
  } finally {
    await site.stop()
  }
}

interface PodView {
  spec: { serviceAccountName: string; containers: Array<{ args: string[]; env: Array<{ name: string; value?: string }> }> }
  status: { phase: string }
}

const upgrade: Part = async (say) => {
  const earlier = earlierBuild(EARLIER.previous)
  const run = await startUpgradeRun({ agents: AGENTS, server: earlier, agent: earlier })
  try {
    await run.replace('skerry', THIS_BUILD)
    const ofServer = run.writes()
    await run.change('three')
    const ofChange = run.writes()
    await run.replace('skerry-agent', THIS_BUILD)
    const ofAgents = run.writes()
    say(`${AGENTS} clusters: new server ${ofServer} writes, a commit ${ofChange}, new agents ${ofAgents}`)
    return { upgrade_agents: AGENTS, upgrade_api_writes: ofServer + ofAgents + ofChange - AGENTS }
  } finally {
    await run.stop()
  }
}

export const benchInstall = (say: Say, only: string | null): Promise<Record<string, number>> =>
  runParts('install', { sizes, limit, first, upgrade }, say, only)
