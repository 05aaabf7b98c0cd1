// The whole chain for end-to-end tests: a Git server, a Skerry server and an agent for each real cluster. Tests read
// like what a person does.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGitServer, type FileChanges, type GitServer } from '../../scripts/local-cluster/git-http-server.ts'
import {
  createLocalFleet,
  type LocalAgent,
  type LocalFleet,
  type ProgramCommand,
  type Programs,
} from '../../scripts/local-cluster/local-fleet.ts'
import type { PlacementView } from '../../shared/model/views.ts'
import { type AuditEvent, type Etcd, eventually, type KubeCluster, startEtcd, startKubeCluster, WRITE_VERBS } from './kube-cluster.ts'

export const AGENT_USER_AGENT = 'skerry-agent'

export interface Site {
  cluster: KubeCluster
  agent: LocalAgent
}

export interface Scenario {
  fleet: LocalFleet
  git: GitServer
  sites: Record<string, Site>
  /** Commits and tells the server by webhook. */
  push(files: FileChanges, message?: string): Promise<string>
  /** Waits until every named service (`name` in the default project) is Synced and Healthy in the cluster, at the
   *  commit if given. */
  settled(site: string, services: readonly string[], options?: { commit?: string; timeoutMs?: number }): Promise<void>
  status(site: string, service: string): Promise<PlacementView | undefined>
  stop(): Promise<void>
}

export interface SiteOptions {
  labels?: Record<string, string>
  /** Default true: controllers and fake nodes. */
  controllers?: boolean
  extraApiServerFlags?: readonly string[]
  /** Fake nodes; default as `controllers`. */
  kwok?: boolean
  /** More arguments of the agent. */
  agentArgs?: readonly string[]
}

export async function startScenario(options: {
  sites: Record<string, SiteOptions>
  poll?: string
  programs?: Programs | ProgramCommand
  /** Besides our own, for the server alone. */
  serverEnv?: Record<string, string>
}): Promise<Scenario> {
  const undo: Array<() => unknown> = []
  const stop = async () => {
    for (const step of undo.splice(0).reverse()) await step()
  }
  try {
    const gitDir = mkdtempSync(join(tmpdir(), 'skerry-git-'))
    undo.push(() => rmSync(gitDir, { recursive: true, force: true }))
    const git = await createGitServer({ dir: gitDir })
    undo.push(() => git.stop())
    await git.commit({ 'README.md': '# manifests\n' }, 'begin')
    const etcd: Etcd = await startEtcd()
    undo.push(() => etcd.stop())
    const fleet = await createLocalFleet({
      ...(options.programs === undefined ? {} : { programs: options.programs }),
      ...(options.serverEnv === undefined ? {} : { serverEnv: options.serverEnv }),
    })
    undo.push(() => fleet.stop())
    await fleet.startServer()
    await fleet.run(['apply', '-f', '-'], { stdin: repositoryYaml('apps', git.url, options.poll) })
    const sites: Record<string, Site> = {}
    for (const [name, site] of Object.entries(options.sites)) {
      const { controllers = true, kwok = controllers, extraApiServerFlags = [] } = site
      const cluster = await startKubeCluster({ name, etcd, controllers, kwok, extraApiServerFlags })
      undo.push(() => cluster.stop())
      const agent = await fleet.addAgent({
        name,
        cluster,
        joinToken: await joinToken(fleet, site.labels ?? {}),
        flags: site.agentArgs ?? [],
      })
      sites[name] = { cluster, agent }
    }
    const status = async (site: string, service: string) => {
      const { items } = await fleet.api<{ items: PlacementView[] }>(`/clusters/${site}/services`)
      return items.find((item) => item.service === service)
    }
    return {
      fleet,
      git,
      sites,
      push: async (files, message = 'change') => {
        const commit = await git.commit(files, message)
        await fleet.webhook('apps')
        return commit
      },
      status,
      // Ends before the test does, so that it says what it waited for.
      settled: async (site, services, { commit, timeoutMs = 45_000 } = {}) => {
        for (const service of services) {
          let last: PlacementView | undefined
          const check = async () => {
            last = await status(site, service)
            return last?.sync === 'Synced' && last.health === 'Healthy' && (commit === undefined || last.applied?.commit === commit)
          }
          await eventually(`${service} in ${site} Synced and Healthy`, check, timeoutMs).catch((error) => {
            throw new Error(
              `${error.message}\nlast: ${JSON.stringify(last)}\nagent log:\n${sites[site]?.agent.log().split('\n').slice(-15).join('\n')}`,
            )
          })
        }
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** `skerry join-token create`, as a person would make one for a new site. */
export async function joinToken(fleet: LocalFleet, labels: Record<string, string>, flags: readonly string[] = []): Promise<string> {
  const labelFlags = Object.entries(labels).flatMap(([key, value]) => ['--label', `${key}=${value}`])
  const made = await fleet.run(['join-token', 'create', ...labelFlags, ...flags, '-o', 'json'])
  return (JSON.parse(made) as { token: string }).token
}

export const repositoryYaml = (name: string, url: string, poll = '1h'): string => `apiVersion: skerry.dev/v1
kind: Repository
metadata: {name: ${name}}
spec:
  git: {url: "${url}", ref: main}
  poll: ${poll}
`

export interface ServiceYaml {
  name: string
  path?: string
  namespace?: string
  labels?: Record<string, string>
  /** YAML flow text of spec.sync. */
  sync?: string
  extra?: string
}

export const serviceYaml = ({ name, path = name, namespace = name, labels = {}, sync, extra }: ServiceYaml): string => `---
apiVersion: skerry.dev/v1
kind: Service
metadata: {name: ${name}}
spec:
  source: {repository: apps, path: ${path}}
  targets: {selector: {matchLabels: ${JSON.stringify(labels)}}}
  namespace: ${namespace}
${sync === undefined ? '' : `  sync: ${sync}\n`}${extra === undefined ? '' : `  ${extra}\n`}`

export const configMapYaml = (name: string, data: Record<string, string>): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\ndata: ${JSON.stringify(data)}\n`

export const deploymentYaml = (name: string, replicas = 1, image = 'app:1'): string => `apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${name}
spec:
  replicas: ${replicas}
  selector: {matchLabels: {app: ${name}}}
  template:
    metadata: {labels: {app: ${name}}}
    spec:
      containers:
        - name: app
          image: ${image}
`

/** Writes that the agent made at the API server since the mark. */
export const agentWrites = (cluster: KubeCluster, since: number): AuditEvent[] =>
  cluster
    .auditLines({ userAgent: AGENT_USER_AGENT, verbs: WRITE_VERBS, since })
    // KE1: what went wrong, and what was put back, is also told on the object; that is no write to it.
    .filter((event) => event.stage === 'ResponseComplete' && event.objectRef?.resource !== 'events')

export const requestText = (event: AuditEvent): string =>
  `${event.verb} ${event.requestURI.split('?')[0]} ${event.responseStatus?.code ?? ''}`
