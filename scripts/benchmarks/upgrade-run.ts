// A fleet of compiled programs that is upgraded: each agent has a real API server of its own, by whose audit log its
// writes are counted.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PlacementView } from '../../shared/model/views.ts'
import { WRITE_VERBS } from '../local-cluster/audit-log.ts'
import { startEtcd } from '../local-cluster/etcd.ts'
import { createGitServer } from '../local-cluster/git-http-server.ts'
import { type KubeCluster, startKubeCluster } from '../local-cluster/local-cluster.ts'
import { createLocalFleet, type LocalAgent } from '../local-cluster/local-fleet.ts'

const ROOT = join(import.meta.dir, '..', '..')

/** Commits in place of releases, of which there is none yet. `before` speaks version 1 of the protocol; `unsealed` is
 *  the last one that wrote rendered Secrets in clear. */
export const EARLIER = { previous: '5fc3070bc044', before: '57d3b3d56a2e', unsealed: 'f4e636973413' } as const

/** Why the programs of an earlier commit cannot be built in this clone; null if they can. A full clone has the history
 *  of its branch. */
export function lacksEarlier(commit: string): string | null {
  const git = (...args: string[]) => Bun.spawnSync(['git', '-C', ROOT, ...args], { stderr: 'ignore' })
  if (git('merge-base', '--is-ancestor', commit, 'HEAD').success) return null
  if (git('rev-parse', '--is-shallow-repository').stdout.toString().trim() === 'true')
    return `this clone is shallow and lacks ${commit}: run git fetch --unshallow`
  if (!git('rev-parse', 'HEAD').success) return `this folder is no clone and lacks ${commit}`
  throw new Error(`the history of HEAD lacks ${commit}: name another earlier build in scripts/benchmarks/upgrade-run.ts`)
}

/** Folders with `skerry` and `skerry-agent`. */
export const THIS_BUILD = join(ROOT, 'dist')

/** That of an earlier commit; built once, which needs the history of this clone. */
export function earlierBuild(commit: string): string {
  const made = Bun.spawnSync([join(ROOT, 'scripts/build-earlier'), commit], { stderr: 'pipe' })
  if (!made.success) throw new Error(made.stderr.toString())
  return made.stdout.toString().trim()
}

export type Half = 'skerry' | 'skerry-agent'

export interface UpgradeRun {
  /** Writes of all agents to their API server since the last call. */
  writes(): number
  /** Replaces the server or all agents; the next change shows that they are connected. */
  replace(half: Half, folder: string): Promise<void>
  /** Commits a change of one object of every service and waits for all clusters. While `away` runs there is no server.
   */
  change(text: string, away?: () => Promise<void>): Promise<void>
  stopServer(): Promise<void>
  startServer(): Promise<void>
  /** Starts another build on the data of the stopped server; resolves with its exit code and the end of its log. */
  tryServer(folder: string): Promise<{ code: number; log: string }>
  stop(): Promise<void>
}

const POLL_S = 1
const STARTED_AT_ONCE = 5

export async function until(what: string, timeoutMs: number, check: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + timeoutMs
  let last = ''
  const passes = () =>
    check().catch((error) => {
      last = String(error)
      return false
    })
  while (!(await passes())) {
    if (performance.now() > end) throw new Error(`${what}: not within ${timeoutMs} ms ${last}`)
    await Bun.sleep(200)
  }
}

const object = (name: string, value: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\ndata: {value: "${value}"}\n`

export async function startUpgradeRun(options: { agents: number; server: string; agent: string }): Promise<UpgradeRun> {
  const undo: Array<() => unknown> = []
  const stop = async () => {
    for (const step of undo.splice(0).reverse()) await step()
  }
  const folders: Record<Half, string> = { skerry: options.server, 'skerry-agent': options.agent }
  const names = Array.from({ length: options.agents }, (_, n) => `c${n}`)
  try {
    const gitDir = mkdtempSync(join(tmpdir(), 'skerry-git-'))
    undo.push(() => rmSync(gitDir, { recursive: true, force: true }))
    const git = await createGitServer({ dir: gitDir })
    undo.push(() => git.stop())
    await git.commit({ 'web/a.yaml': object('a', 'one'), 'web/b.yaml': object('b', 'one'), 'web/c.yaml': object('c', 'one') }, 'begin')
    const etcd = await startEtcd()
    undo.push(() => etcd.stop())
    const clusters: KubeCluster[] = []
    for (let at = 0; at < names.length; at += STARTED_AT_ONCE) {
      const few = names.slice(at, at + STARTED_AT_ONCE)
      const started = await Promise.allSettled(few.map((name) => startKubeCluster({ name, etcd, controllers: false })))
      for (const result of started)
        if (result.status === 'fulfilled') {
          clusters.push(result.value)
          undo.push(() => result.value.stop())
        }
      for (const result of started) if (result.status === 'rejected') throw result.reason
    }
    const fleet = await createLocalFleet({ programs: (name) => [join(folders[name], name)] })
    undo.push(() => fleet.stop())
    await fleet.startServer()
    const repository = `apiVersion: skerry.dev/v1\nkind: Repository\nmetadata: {name: apps}\nspec: {git: {url: "${git.url}", ref: main}, poll: ${POLL_S}s}\n`
    const service =
      '---\napiVersion: skerry.dev/v1\nkind: Service\nmetadata: {name: web}\nspec:\n  source: {repository: apps, path: web}\n' +
      '  targets: {selector: {matchLabels: {env: prod}}}\n  namespace: web\n'
    await fleet.run(['apply', '-f', '-'], { stdin: repository + service })
    const agents: LocalAgent[] = []
    for (const cluster of clusters) {
      const made = await fleet.run(['join-token', 'create', '--label', 'env=prod', '-o', 'json'])
      agents.push(await fleet.addAgent({ name: cluster.name, cluster, joinToken: (JSON.parse(made) as { token: string }).token }))
    }

    const placement = async (name: string) =>
      (await fleet.api<{ items: PlacementView[] }>(`/clusters/${name}/services`)).items.find(({ service }) => service === 'web')
    /** As the server says and as the API server has it: the one could be told what the other never got. */
    const settled = async (commit: string, text: string) => {
      for (const name of names)
        await until(`${name} at ${commit}`, 120_000, async () => {
          const found = await placement(name)
          return found?.sync === 'Synced' && found.health === 'Healthy' && found.applied?.commit === commit
        })
      for (const cluster of clusters) {
        const value = await cluster.kubectl(['-n', 'web', 'get', 'configmap', 'a', '-o', 'jsonpath={.data.value}'])
        if (value !== text) throw new Error(`${cluster.name} has ${value} in place of ${text}`)
      }
    }
    let marks = clusters.map((cluster) => cluster.auditMark())
    const run: UpgradeRun = {
      writes: () => {
        const counts = clusters.map(
          (cluster, at) =>
            cluster
              .auditLines({ userAgent: 'skerry-agent', verbs: WRITE_VERBS, since: marks[at] ?? 0 })
              .filter(({ stage, objectRef }) => stage === 'ResponseComplete' && objectRef?.resource !== 'events').length,
        )
        marks = clusters.map((cluster) => cluster.auditMark())
        return counts.reduce((sum, count) => sum + count, 0)
      },
      replace: async (half, folder) => {
        folders[half] = folder
        if (half === 'skerry') {
          await fleet.killServer()
          await fleet.startServer()
        } else for (const agent of agents) await agent.start()
        // The effects of the first reads of the cluster.
        await Bun.sleep(5_000)
      },
      change: async (text, away) => {
        const commit = await git.commit({ 'web/a.yaml': object('a', text) }, text)
        await away?.()
        await settled(commit, text)
      },
      stopServer: () => fleet.killServer(),
      startServer: () => fleet.startServer(),
      tryServer: async (folder) => {
        const tried = Bun.spawn([join(folder, 'skerry'), 'server', '--data', fleet.dataDir, '--listen', '127.0.0.1:0'], {
          stdout: 'pipe',
          stderr: 'pipe',
          timeout: 30_000,
        })
        const texts = await Promise.all([new Response(tried.stdout).text(), new Response(tried.stderr).text()])
        return { code: await tried.exited, log: texts.join('') }
      },
      stop,
    }
    await run.change('two')
    run.writes()
    return run
  } catch (error) {
    await stop()
    throw error
  }
}
