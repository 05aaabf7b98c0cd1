// The life of the demo fleet: it is filled with services and clusters, gets the problems that a fleet has on any day,
// and then commits, drifts, failures and outages, a few in each round.
import { systemClock } from '../../shared/runtime/clock.ts'
import { systemRandom } from '../../shared/runtime/random.ts'
import {
  brokenManifest,
  DEMO_SERVICES,
  demoSites,
  folderOf,
  manifests,
  repositories,
  services,
  unreachableRepository,
} from './demo-content.ts'
import type { DemoGit } from './demo-git.ts'
import { notifications } from './demo-receiver.ts'
import { DemoSite } from './demo-site.ts'

export type Api = <T>(method: string, path: string, body?: unknown) => Promise<T>

const JOINS_AT_ONCE = 16
const ROUND_MS = 4_000
const COMMIT_EVERY = 6
/** By then nearly every site has what the first commit says. */
const SETTLED_MS = 15_000
const BROKEN_MS = 25_000
const AWAY_MS = 300_000
/** They stay as `trouble` made them. */
const LEFT_ALONE = ['loyalty', 'payments', 'coredns', 'checkout', 'pricing', 'bridge-console']
const AUTHORS = ['Ingrid Solberg', 'Matti Virtanen', 'Anna Schmidt', 'James Okafor']

export interface DemoFleet {
  sites: readonly DemoSite[]
  /** Ends all agents. */
  stop(): void
}

export interface DemoWorld {
  url: string
  git: DemoGit
  /** Address that receives notifications. */
  receiver: string
  api: Api
  /** Clusters of the fleet. */
  count: number
  /** Nothing more happens once the fleet is there, for pictures. */
  isStill: boolean
  say(text: string): void
}

/** Services and clusters; resolves when all have joined. What happens later goes on until `stop`. */
export async function startDemoFleet({ url, git, receiver, api, count, isStill, say }: DemoWorld): Promise<DemoFleet> {
  const fileOf = (service: (typeof DEMO_SERVICES)[number]) => `${folderOf(service)}/app.yaml`
  const authorOf = (n: number) => AUTHORS[n % AUTHORS.length] ?? ''
  const first = Object.fromEntries(DEMO_SERVICES.map((one) => [fileOf(one), manifests(one.name, '1.1.0')]))
  await git.commit(first, 'apps: first version', authorOf(0))
  await api('POST', '/apply', {
    resources: [...repositories(git.url), unreachableRepository, ...services(), ...notifications(receiver)],
  })

  const sites: DemoSite[] = []
  const ended = new AbortController()
  const choices = demoSites(count)
  const tokens = new Map<string, Promise<string>>()
  /** One for all sites with the same labels. */
  const tokenFor = (labels: Record<string, string>) => {
    const key = JSON.stringify(labels)
    const uses = choices.filter((one) => JSON.stringify(one.labels) === key).length
    const made =
      tokens.get(key) ?? api<{ token: string }>('POST', '/join-tokens', { labels, uses, expires: '1h' }).then(({ token }) => token)
    tokens.set(key, made)
    return made
  }
  for (let at = 0; at < choices.length && !ended.signal.aborted; at += JOINS_AT_ONCE) {
    const some = choices.slice(at, at + JOINS_AT_ONCE).map(async (choice) => {
      const site = new DemoSite(url, choice)
      await site.join(await tokenFor(choice.labels))
      sites.push(site)
      site.goOnline()
    })
    await Promise.all(some)
  }

  const versions = new Map(DEMO_SERVICES.map(({ name }) => [name, 1]))
  /** Trouble that a fleet of this size has on any day. */
  async function trouble(): Promise<void> {
    const at = (part: number) => sites[Math.floor(part * sites.length)]
    for (const part of [0.11, 0.37, 0.71, 0.9]) await at(part)?.degrade('shop/payments')
    for (const part of [0.05, 0.52, 0.83]) await at(part)?.drift('platform/coredns', false)
    for (const part of [0.33, 0.58]) await at(part)?.contest('shop/pricing')
    for (const part of [0.2, 0.21, 0.22, 0.23]) await at(part)?.refusePrune('shop/checkout')
    await at(0.46)?.setHeld('deck crew', 'docking until 18:00')
    for (const part of [0.3, 0.44, 0.47, 0.49, 0.6, 0.66, 0.77]) at(part)?.goOffline()
    const suspended = at(0.95)?.choice.name
    if (suspended !== undefined) await api('POST', '/suspend', { clusters: [suspended], reason: 'store is being rebuilt' })
    await git.commit({ 'shop/loyalty/app.yaml': brokenManifest('loyalty') }, 'loyalty: new template', authorOf(1))
  }
  /** A few things in each round; more would be noise. */
  async function live(round: number): Promise<void> {
    const some = () => sites.filter(({ online }) => online)[Math.floor(systemRandom() * sites.length * 0.9)]
    const drifting = some()
    const key = [...(drifting?.services.keys() ?? [])][round % 5]
    if (drifting !== undefined && key !== undefined) await drifting.drift(key, true)
    if (round % 5 === 0) {
      const broken = some()
      await broken?.degrade('shop/inventory')
      void systemClock.sleep(BROKEN_MS, ended.signal).then(() => broken?.heal('shop/inventory'))
    }
    if (round % 9 === 0) {
      const away = some()
      away?.goOffline()
      void systemClock.sleep(AWAY_MS, ended.signal).then(() => ended.signal.aborted || away?.goOnline())
    }
    if (round % COMMIT_EVERY !== 0) return
    const service = DEMO_SERVICES[(round / COMMIT_EVERY) % DEMO_SERVICES.length]
    if (service === undefined || LEFT_ALONE.includes(service.name)) return
    const version = (versions.get(service.name) ?? 1) + 1
    versions.set(service.name, version)
    await git.commit(
      { [fileOf(service)]: manifests(service.name, `1.${version}.0`) },
      `${service.name}: release 1.${version}.0`,
      authorOf(round),
    )
  }
  const story = async () => {
    await systemClock.sleep(SETTLED_MS, ended.signal)
    if (!ended.signal.aborted) await trouble()
    for (let round = 1; !ended.signal.aborted && !isStill; round++) {
      await systemClock.sleep(ROUND_MS, ended.signal)
      if (!ended.signal.aborted) await live(round)
    }
  }
  void story().catch((error: unknown) => void (ended.signal.aborted || say(`the demo stopped: ${String(error)}`)))
  return {
    sites,
    stop() {
      ended.abort()
      for (const site of sites) site.goOffline()
    },
  }
}
