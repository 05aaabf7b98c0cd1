// A server with simulated sites that speak the real protocol, and a repository with a service that renders and one that
// does not.
import { join } from 'node:path'
import { waitUntil } from '../../scripts/local-cluster/child-process.ts'
import { createGitServer, type GitServer } from '../../scripts/local-cluster/git-http-server.ts'
import { createLocalFleet, type LocalFleet } from '../../scripts/local-cluster/local-fleet.ts'
import { demoSites, manifests } from '../../server/dev/demo-content.ts'
import { DemoSite } from '../../server/dev/demo-site.ts'
import { tempDir } from './temp-dir.ts'

export interface DemoFleet {
  readonly fleet: LocalFleet
  readonly git: GitServer
  readonly sites: DemoSite[]
  site(index: number): DemoSite
  api<T>(method: string, path: string, body?: unknown): Promise<T>
  stop(): Promise<void>
}

const HEAD = { apiVersion: 'skerry.dev/v1' }

/** `beforeServer`: with the URL that the server will have. */
export async function startDemoFleet(
  count: number,
  { serverEnv = {}, beforeServer }: { serverEnv?: Record<string, string>; beforeServer?(serverUrl: string): Promise<void> } = {},
): Promise<DemoFleet> {
  const fleet = await createLocalFleet({ serverEnv: { SKERRY_REQUESTS_PER_SECOND: '0', ...serverEnv } })
  await beforeServer?.(fleet.serverUrl)
  await fleet.startServer()
  const git = await createGitServer({ dir: join(tempDir(), 'git') })
  await git.commit({ 'web/app.yaml': manifests('web', '1.0.0'), 'broken/app.yaml': 'kind: {\n' }, 'first')
  const api = <T>(method: string, path: string, body?: unknown) => fleet.api<T>(path, { method, ...(body === undefined ? {} : { body }) })
  const service = (name: string) => ({
    ...{ ...HEAD, kind: 'Service', metadata: { project: 'shop', name } },
    spec: { source: { repository: 'apps', path: name }, targets: { selector: {} }, namespace: name },
  })
  const repository = {
    ...{ ...HEAD, kind: 'Repository', metadata: { project: 'shop', name: 'apps' } },
    spec: { git: { url: git.url, ref: 'main' }, poll: '5s' },
  }
  await api('POST', '/apply', { resources: [repository, service('web'), service('broken')] })
  const sites: DemoSite[] = []
  for (const choice of demoSites(count)) {
    const { token } = await api<{ token: string }>('POST', '/join-tokens', { labels: choice.labels, uses: 1, expires: '1h' })
    const site = new DemoSite(fleet.serverUrl, choice)
    await site.join(token)
    site.goOnline()
    sites.push(site)
  }
  const isHealthy = async () => {
    const { items } = await api<{ items: Array<{ health: string }> }>('GET', '/placements?project=shop&service=web')
    return items.length === count && items.every(({ health }) => health === 'Healthy')
  }
  await waitUntil('each site has the service', isHealthy, { timeoutMs: 120_000 })
  return {
    ...{ fleet, git, sites, api },
    site: (index) => {
      const found = sites[index]
      if (found === undefined) throw new Error(`there is no site ${index}`)
      return found
    },
    stop: async () => {
      for (const site of sites) site.goOffline()
      await git.stop()
      await fleet.stop()
    },
  }
}
