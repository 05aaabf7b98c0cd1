// Everything the story plays with, started in order and stopped as one.

import { clusterBinary } from '../local-cluster/binaries.ts'
import { demoRepository } from '../local-cluster/demo-repository.ts'
import { startEtcd } from '../local-cluster/etcd.ts'
import { createGitServer, type GitServer } from '../local-cluster/git-http-server.ts'
import { startKubeCluster } from '../local-cluster/local-cluster.ts'
import { createLocalFleet, type LocalAgent, type LocalFleet } from '../local-cluster/local-fleet.ts'
import type { DemoPlan } from './plan.ts'
import { counted, note, step } from './terminal.ts'
import { until } from './until.ts'
import type { KubeAccess } from './watch-lines.ts'

export interface DemoCluster extends KubeAccess {
  name: string
  kubectl(args: readonly string[]): Promise<string>
}

export interface DemoSite {
  cluster: DemoCluster
  agent: LocalAgent
}

export interface World {
  plan: DemoPlan
  fleet: LocalFleet
  /** Null with a repository of the user's: nothing can be committed there. */
  git: GitServer | null
  sites: DemoSite[]
  services: string[]
  /** Objects that cannot become healthy here, and why. */
  exceptions: ReadonlyArray<{ what: string; why: string }>
  stop(): Promise<void>
}

/**
 * `onStarted` gets the world before it is complete, so that everything that exists is stopped after a failure or
 * Ctrl-C.
 */
export async function startWorld(plan: DemoPlan, gitDir: string, onStarted: (world: World) => void): Promise<World> {
  const undo: Array<() => Promise<unknown>> = []
  const fleet = await createLocalFleet({ programs: 'dist' })
  undo.push(() => fleet.stop())
  const world: World = {
    plan,
    fleet,
    git: null,
    sites: [],
    services: [],
    exceptions: [],
    stop: async () => {
      for (const last of undo.splice(0).reverse()) await last().catch(() => {})
    },
  }
  onStarted(world)

  const clusters = plan.context === null ? await ownClusters(undo) : [usersCluster(plan.context)]
  for (const cluster of plan.context === null ? [] : clusters) {
    await refuseTakenNamespaces(cluster, plan)
    undo.push(() => cleanUsersCluster(world, cluster))
  }
  await step('Skerry server started', async () => {
    await fleet.startServer()
    return { text: fleet.serverUrl }
  })
  await step('Repository and services described to it', async () => {
    const resources = plan.repository === null ? await ownRepository(world, gitDir, undo) : usersRepository(world)
    await fleet.run(['apply', '-f', '-'], { stdin: resources })
    return {
      text: `${counted(world.services.length, 'service')} from ${world.git === null ? plan.repository?.url : 'a Git server on this machine'}`,
    }
  })
  await step(`${clusters.length === 1 ? 'Agent' : 'Agents'} started with a join token each`, async () => {
    for (const [index, cluster] of clusters.entries()) {
      const labels = ['--label', `site=${cluster.name}`, '--label', `ring=${index === 0 ? 'harbour' : 'sea'}`]
      const { token } = JSON.parse(await fleet.run(['join-token', 'create', ...labels, '-o', 'json'])) as { token: string }
      const agent = await fleet.addAgent({ name: cluster.name, cluster, joinToken: token, flags: ['--context', cluster.contextName] })
      world.sites.push({ cluster, agent })
    }
    return { text: clusters.map(({ name }) => name).join(', ') }
  })
  return world
}

async function ownClusters(undo: Array<() => Promise<unknown>>): Promise<DemoCluster[]> {
  const clusters: DemoCluster[] = []
  await step('Two real Kubernetes clusters on this machine', async (progress) => {
    progress('etcd')
    const etcd = await startEtcd()
    undo.push(() => etcd.stop())
    for (const name of ['harbour', 'ferry']) {
      progress(`${name}: API server, controllers, nodes`)
      const cluster = await startKubeCluster({ name, etcd })
      undo.push(() => cluster.stop())
      clusters.push({ ...cluster, name })
    }
    const version = JSON.parse((await clusters[0]?.kubectl(['version', '-o', 'json'])) ?? '{}') as {
      serverVersion?: { gitVersion: string }
    }
    return { text: `harbour and ferry, Kubernetes ${version.serverVersion?.gitVersion ?? ''}` }
  })
  return clusters
}

function usersCluster({ name, kubeconfig }: { name: string; kubeconfig: string }): DemoCluster {
  return {
    name:
      name
        .toLowerCase()
        .replace(/[^a-z0-9]+/g, '-')
        .replace(/^-+|-+$/g, '')
        .slice(0, 63) || 'cluster',
    kubeconfigPath: kubeconfig,
    contextName: name,
    kubectl: async (args) => {
      const child = Bun.spawn([clusterBinary('kubectl'), '--kubeconfig', kubeconfig, '--context', name, ...args], {
        stdin: 'ignore',
        stdout: 'pipe',
        stderr: 'pipe',
      })
      const [output, errors, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
      if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: exit code ${code}\n${errors}`)
      return output
    },
  }
}

/** The objects that the demo creates in a cluster of others, and therefore may remove there. */
const namespacesOf = ({ repository }: DemoPlan): string[] => [...(repository === null ? AT_SEA : ['mine']), 'skerry-system']

async function refuseTakenNamespaces(cluster: DemoCluster, plan: DemoPlan): Promise<void> {
  const present = (await cluster.kubectl(['get', 'namespaces', '-o', 'name'])).split('\n')
  const taken = namespacesOf(plan).filter((name) => present.includes(`namespace/${name}`))
  if (taken.length > 0)
    throw new Error(
      `${cluster.contextName} has namespaces that the demo would make: ${taken.join(', ')}. Choose another cluster, or delete them first`,
    )
}

/** Through the front door: the services are deleted, their agents remove them, then the namespaces go. */
async function cleanUsersCluster(world: World, cluster: DemoCluster): Promise<void> {
  const { fleet, services } = world
  for (const name of services) await fleet.run(['delete', 'service', name, '--yes'])
  const gone = async () => ((await fleet.run(['get', 'services', '-o', 'name'])).trim() === '' ? true : null)
  await until('the services are removed', gone, 60_000).catch((error: unknown) =>
    note(`${error}: look at what is left in ${cluster.contextName}`),
  )
  await world.sites.find((site) => site.cluster === cluster)?.agent.kill()
  await cluster.kubectl(['delete', 'namespace', '--ignore-not-found', '--timeout=60s', ...namespacesOf(world.plan)])
}

const repositoryYaml = (url: string, ref: string) => `apiVersion: skerry.dev/v1
kind: Repository
metadata: {name: apps}
spec: {git: {url: "${url}", ref: "${ref}"}, poll: 30s}
`
const serviceYaml = (name: string, path: string, namespace: string, selector: string) => `---
apiVersion: skerry.dev/v1
kind: Service
metadata: {name: ${name}}
spec:
  source: {repository: apps, path: "${path}"}
  targets: {selector: ${selector}}
  namespace: ${namespace}
`

/** Everything goes to the harbour; the ferry gets what a small site needs. A cluster of the user's gets only what stays
 *  in namespaces of its own. */
const AT_SEA = new Set(['shop', 'settings'])

async function ownRepository(world: World, gitDir: string, undo: Array<() => Promise<unknown>>): Promise<string> {
  const git = await createGitServer({ dir: gitDir })
  undo.push(() => git.stop())
  world.git = git
  const { files, services, expectedUnhealthy } = demoRepository()
  const shown = services.filter(({ name }) => world.plan.context === null || AT_SEA.has(name))
  world.services = shown.map(({ name }) => name)
  world.exceptions = expectedUnhealthy
  await git.commit({ 'README.md': '# What the fleet shall be\n', ...files }, 'Everything')
  const selector = (name: string) => (world.plan.context !== null || AT_SEA.has(name) ? '{}' : '{matchLabels: {ring: harbour}}')
  return (
    repositoryYaml(git.url, 'main') + shown.map(({ name, path, namespace }) => serviceYaml(name, path, namespace, selector(name))).join('')
  )
}

function usersRepository(world: World): string {
  const { repository } = world.plan
  if (repository === null) return ''
  world.services = ['mine']
  return repositoryYaml(repository.url, repository.ref) + serviceYaml('mine', repository.path, 'mine', '{}')
}
