// One server, one agent, one real cluster and a Git server: what every part of the reconcile benchmark works on.
// Compiled programs, doors that users have.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AuditEvent, isList, WRITE_VERBS } from '../local-cluster/audit-log.ts'
import { createGitServer, type FileChanges } from '../local-cluster/git-http-server.ts'
import { type KubeCluster, startKubeCluster } from '../local-cluster/local-cluster.ts'
import { createLocalFleet, type LocalAgent, type LocalFleet } from '../local-cluster/local-fleet.ts'
import { type DirectKube, directKube } from './kube-direct.ts'

export interface ReconcileSite {
  fleet: LocalFleet
  cluster: KubeCluster
  agent: LocalAgent
  kube: DirectKube
  /** Commits; the server learns of it by `fleet.webhook('apps')`. */
  commit(files: FileChanges): Promise<string>
  /** Applies services by the command line client, in portions that it takes. */
  services(documents: readonly string[]): Promise<void>
  /** How many services are Synced and Healthy in the cluster. */
  healthyServices(): Promise<number>
  /** Requests of the agent to the API server since a mark, without watches. */
  requests(since: number): AuditEvent[]
  writes(since: number): AuditEvent[]
  stop(): Promise<void>
}

export const serviceDocument = (name: string, options: { namespace?: string; sync?: string } = {}): string =>
  `apiVersion: skerry.dev/v1
kind: Service
metadata: {name: ${name}}
spec:
  source: {repository: apps, path: ${name}}
  targets: {selector: {}}
  namespace: ${options.namespace ?? name}
  sync: {${options.sync ?? ''}}
`

/** An apply takes at most 500 resources. */
const APPLY_MAX = 500

export async function startReconcileSite(
  name: string,
  options: { controllers?: boolean; kwok?: boolean; audit?: boolean; controllerQps?: number } = {},
): Promise<ReconcileSite> {
  const { controllers = false, kwok = false, audit = true, controllerQps = 300 } = options
  const gitDir = mkdtempSync(join(tmpdir(), 'skerry-bench-'))
  const git = await createGitServer({ dir: gitDir })
  const cluster = await startKubeCluster({ name, controllers, kwok, audit, controllerQps })
  const fleet = await createLocalFleet({ programs: process.env['SKERRY_PROGRAMS'] === 'source' ? 'source' : 'dist' })
  const stop = async () => {
    await fleet.stop()
    await cluster.stop()
    await git.stop()
    rmSync(gitDir, { recursive: true, force: true })
  }
  try {
    await git.commit({ 'README.md': 'manifests\n' }, 'begin')
    await fleet.startServer()
    const repository = `apiVersion: skerry.dev/v1\nkind: Repository\nmetadata: {name: apps}\nspec: {git: {url: "${git.url}"}, poll: 1h}\n`
    await fleet.run(['apply', '-f', '-'], { stdin: repository })
    const { token } = JSON.parse(await fleet.run(['join-token', 'create', '-o', 'json'])) as { token: string }
    const agent = await fleet.addAgent({ name, cluster, joinToken: token })
    await enforcing(agent)
    const answered = (event: AuditEvent) => isList(event) || (event.stage === 'ResponseComplete' && event.verb !== 'watch')
    return {
      fleet,
      cluster,
      agent,
      kube: directKube(cluster),
      commit: (files) => git.commit(files, 'change'),
      services: async (documents) => {
        for (let at = 0; at < documents.length; at += APPLY_MAX)
          await fleet.run(['apply', '-f', '-'], { stdin: documents.slice(at, at + APPLY_MAX).join('---\n') })
      },
      healthyServices: async () => {
        const { items } = await fleet.api<{ items: Array<{ key: string; count: number }> }>('/counts?by=state&of=placements')
        return items.find(({ key }) => key === 'Synced/Healthy')?.count ?? 0
      },
      requests: (since) => cluster.auditLines({ userAgent: 'skerry-agent', since }).filter(answered),
      writes: (since) => cluster.auditLines({ userAgent: 'skerry-agent', verbs: WRITE_VERBS, since }).filter(answered),
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

export const enforcing = (agent: LocalAgent): Promise<void> =>
  until('the agent enforces', async () => (await agent.status()).enforcement.state === 'enforcing', 30_000).catch((error: Error) => {
    throw new Error(`${error.message}; its log ends with\n${agent.log().split('\n').slice(-10).join('\n')}`, { cause: error.cause })
  })

/** Asks again while there is no answer yet, for example because a process is still starting. */
export async function until(what: string, check: () => Promise<boolean>, timeoutMs = 120_000, everyMs = 50): Promise<void> {
  const deadline = performance.now() + timeoutMs
  let last: unknown = 'not yet'
  const holds = () =>
    check().catch((error: unknown) => {
      last = error
      return false
    })
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`${what}: not within ${timeoutMs / 1_000} s`, { cause: last })
    await Bun.sleep(everyMs)
  }
}

export const configMap = (name: string, value: string): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\ndata:\n  value: ${JSON.stringify(value)}\n`

export async function makeNamespace({ kube }: ReconcileSite, name: string): Promise<void> {
  await (await kube.request('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })).text()
}

export async function countIn({ kube }: ReconcileSite, namespace: string): Promise<number> {
  const response = await kube.request('GET', `/api/v1/namespaces/${namespace}/configmaps?limit=1`)
  if (!response.ok) return 0
  const { items, metadata } = (await response.json()) as { items?: unknown[]; metadata: { remainingItemCount?: number } }
  return (items?.length ?? 0) + (metadata.remainingItemCount ?? 0)
}

/** Runs `work` for each item, some at a time. */
export async function each<T>(items: readonly T[], concurrency: number, work: (item: T) => Promise<unknown>): Promise<void> {
  let next = 0
  const worker = async () => {
    for (let index = next++; index < items.length; index = next++) await work(items[index] as T)
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
}
