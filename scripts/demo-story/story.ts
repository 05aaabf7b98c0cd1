// The story: each step does one thing to the world and waits until it can be seen at the API server. Times are measured
// where they are shown.
import type { PlacementView } from '../../shared/model/views.ts'
import { configMap } from '../local-cluster/demo-repository.ts'
import { bytes, chapter, counted, note, step } from './terminal.ts'
import { Ended, until } from './until.ts'
import { type Ear, listen } from './watch-lines.ts'
import type { DemoSite, World } from './world.ts'

const ARRIVAL_TIMEOUT_MS = 240_000
const FOREIGN_PATIENCE_MS = 30_000

export async function tellStory(world: World): Promise<{ next: string }> {
  chapter('From Git to the clusters')
  await arrival(world)
  const home = world.sites[0]
  if (home === undefined) throw new Error('no cluster joined')
  if (world.git === null) return { next: await whatNext(world) }

  const settings = listen(home.cluster, ['configmap', 'setting-01', '-n', 'settings'], '{.type} {.object.data.value}')
  const web = listen(home.cluster, ['deployment', 'web', '-n', 'shop'], '{.type} {.object.metadata.uid}')
  try {
    await settings.heard('ConfigMap setting-01', (line) => line.startsWith('ADDED'), 20_000)
    await web.heard('Deployment web', (line) => line.startsWith('ADDED'), 20_000)
    chapter('A commit')
    await commitArrives(world, settings, 'changed by a commit')
    chapter('A Deployment is deleted')
    await deletionIsHealed(home, web)
    chapter('The cluster is offline')
    await aloneAtSea(world, home, web)
    chapter('The server is back')
    await catchUp(world, home, settings)
  } finally {
    settings.stop()
    web.stop()
  }
  return { next: await whatNext(world) }
}

async function arrival(world: World): Promise<void> {
  for (const { agent, cluster } of world.sites) {
    await step(`${cluster.name} joined`, async () => {
      const joined = async () => {
        if (!agent.running) throw new Ended(`the agent ended: ${agent.log().trim().split('\n').at(-2) ?? ''}`)
        return (await agent.status()).clusterId === null ? null : true
      }
      await until(`${cluster.name} joins`, joined, 60_000)
      return {}
    })
  }
  for (const { cluster } of world.sites) {
    await step(`${cluster.name}:`, async (progress) => {
      const started = performance.now()
      const services = await until(
        `everything healthy in ${cluster.name}`,
        async () => {
          const { items } = await world.fleet.api<{ items: PlacementView[] }>(`/clusters/${cluster.name}/services`)
          const [healthy, all] = [sum(items, 'healthyCount'), sum(items, 'objectCount')]
          progress(`${healthy} of ${all} objects healthy`)
          const arrived = items.length > 0 && items.every((item) => item.sync === 'Synced')
          // Manifests of others may never become healthy here: then they are shown unfinished.
          const patient = world.git !== null || performance.now() - started < FOREIGN_PATIENCE_MS
          return arrived && (items.every(({ health }) => health === 'Healthy') || !patient) ? items : null
        },
        ARRIVAL_TIMEOUT_MS,
        200,
      )
      return {
        text: `${counted(sum(services, 'objectCount'), 'object')} of ${counted(services.length, 'service')} applied, ${sum(services, 'healthyCount')} healthy`,
      }
    })
  }
  for (const { what, why } of world.exceptions) note(`${what}: ${why}; Skerry does not hold that against an autoscaler`)
}

const sum = (items: readonly PlacementView[], field: 'objectCount' | 'healthyCount') =>
  items.reduce((total, item) => total + item[field], 0)

async function commitArrives(world: World, settings: Ear, value: string): Promise<void> {
  await step('Commit pushed → applied after', async () => {
    await world.git?.commit({ 'services/settings/setting-01.yaml': configMap('setting-01', value) }, value)
    const pushed = performance.now()
    await world.fleet.webhook('apps')
    const seen = await settings.heard('the new value', (line) => line.endsWith(` ${value}`))
    return { ms: seen - pushed }
  })
}

async function deletionIsHealed(home: DemoSite, web: Ear): Promise<void> {
  await step('kubectl delete deployment web → back after', async () => {
    web.forget()
    await home.cluster.kubectl(['delete', 'deployment', 'web', '-n', 'shop', '--wait=false'])
    const deleted = await web.heard('the deletion', (line) => line.startsWith('DELETED'))
    const back = await web.heard('the Deployment', (line) => line.startsWith('ADDED'))
    return { ms: Math.max(0, back - deleted) }
  })
}

async function aloneAtSea(world: World, home: DemoSite, web: Ear): Promise<void> {
  await step('Server stopped, agent killed (kill -9)', async () => {
    await world.fleet.killServer()
    await home.agent.kill()
    return {}
  })
  await step('Deployment deleted while no agent runs', async () => {
    await home.cluster.kubectl(['delete', 'deployment', 'web', '-n', 'shop'])
    return {}
  })
  await step('Agent started with no server → Deployment back after', async () => {
    web.forget()
    const started = performance.now()
    await home.agent.start()
    const back = await web.heard('the Deployment', (line) => line.startsWith('ADDED'))
    return { ms: back - started }
  })
  const { link, enforcement } = await home.agent.status()
  note(`skerry-agent status: ${enforcement.state}; server ${link?.state ?? 'unknown'}${link?.error ? ` (${link.error.code})` : ''}`)
}

async function catchUp(world: World, home: DemoSite, settings: Ear): Promise<void> {
  const value = 'committed while the server was away'
  await world.git?.commit({ 'services/settings/setting-01.yaml': configMap('setting-01', value) }, value)
  const before = await home.agent.status()
  await step('Server back → the site caught up with', async () => {
    const started = performance.now()
    await world.fleet.startServer()
    await world.fleet.webhook('apps')
    const seen = await settings.heard('the commit', (line) => line.endsWith(` ${value}`), 60_000)
    const after = await home.agent.status()
    return { text: bytes((after.link?.bytesReceived ?? 0) - (before.link?.bytesReceived ?? 0)), ms: seen - started }
  })
  await step('Everything healthy again after', async () => {
    for (const { cluster } of world.sites) {
      await until(
        `${cluster.name} healthy`,
        async () => {
          const { items } = await world.fleet.api<{ items: PlacementView[] }>(`/clusters/${cluster.name}/services`)
          return items.every((item) => item.sync === 'Synced' && item.health === 'Healthy') ? true : null
        },
        ARRIVAL_TIMEOUT_MS,
      )
    }
    return {}
  })
}

async function whatNext({ fleet, sites, git }: World): Promise<string> {
  const { url } = await fleet.api<{ url: string }>('/sign-in-links', { method: 'POST' })
  const home = sites[0]
  const kubeconfig = home === undefined ? '' : `export KUBECONFIG=${home.cluster.kubeconfigPath}`
  const lines = [
    '',
    'The demo keeps running. This link opens the dashboard and signs in once, within ten minutes:',
    '',
    `  ${url}`,
    '',
    'In another terminal:',
    '',
    `  export SKERRY_SERVER=${fleet.serverUrl} SKERRY_TOKEN=$(cat ${fleet.tokenFile})`,
    `  ${kubeconfig}`,
    '  dist/skerry get clusters',
    '  dist/skerry get services -o wide',
    '  dist/skerry describe service shop',
    `  dist/skerry-agent status --data ${home?.agent.dataDir ?? 'DIR'}`,
    ...(git === null ? [] : [`  git clone ${git.url} /tmp/fleet   # push a commit: it is applied within 30 s`]),
    '  kubectl -n shop delete deployment web && kubectl -n shop get deployment web',
    '',
    'Ctrl-C stops the demo and removes its files.',
  ]
  return lines.join('\n')
}
