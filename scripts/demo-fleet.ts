// A lively fleet without a single cluster: the server, a Git repository with a commit now and then, and simulated sites that join, apply, drift, break, heal and go away,
// all of it through the real protocol. Made for looking at the dashboard.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import {
  brokenManifest,
  DEMO_SERVICES,
  demoSites,
  folderOf,
  manifests,
  repositories,
  services,
  unreachableRepository,
} from './demo-data/fleet.ts'
import { DemoSite } from './demo-data/site.ts'
import { createGitServer } from './local-cluster/git-http-server.ts'

const USAGE = `Usage: scripts/demo-fleet [--clusters COUNT] [--listen HOST:PORT] [--still]

Examples:
  scripts/demo-fleet                     120 simulated clusters; prints the address of the dashboard and a token
  scripts/demo-fleet --clusters 500      a larger fleet
  scripts/demo-fleet --still             nothing more happens once the fleet is there (for screenshots)
`
const JOINS_AT_ONCE = 8
const ROUND_MS = 4_000
const COMMIT_EVERY = 6
/** By then every site has what the first commit says. */
const SETTLED_MS = 20_000
/** They stay as `uglyStates` made them. */
const LEFT_ALONE = ['loyalty', 'payments', 'coredns', 'checkout']

const { values } = parseArgs({
  options: {
    clusters: { type: 'string', default: '120' },
    listen: { type: 'string', default: '127.0.0.1:8080' },
    still: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
})
if (values.help) {
  process.stdout.write(USAGE)
  process.exit(0)
}
const count = Number(values.clusters)
if (!Number.isInteger(count) || count < 10 || count > 5_000) {
  process.stderr.write(`scripts/demo-fleet: --clusters takes a number from 10 to 5000, not ${values.clusters}\n`)
  process.exit(2)
}

const folder = mkdtempSync(join(tmpdir(), 'skerry-demo-data-'))
const data = join(folder, 'data')
const url = `http://${values.listen}`
const program = [process.execPath, resolve(import.meta.dir, '../server/main.ts')]
const flags = ['server', '--data', data, '--listen', values.listen, '--source-addresses', '127.0.0.0/8', '--render-sandbox', 'limits']
const server = Bun.spawn([...program, ...flags], {
  stdout: 'ignore',
  stderr: Bun.file(join(folder, 'server.log')),
  env: { ...process.env, SKERRY_REQUESTS_PER_SECOND: '0' },
})
const git = await createGitServer({ dir: join(folder, 'git') })
const sites: DemoSite[] = []
const leave = async (code: number) => {
  for (const site of sites) site.goOffline()
  server.kill()
  await server.exited
  await git.stop()
  rmSync(folder, { recursive: true, force: true })
  process.exit(code)
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void leave(0))

await ready()
const token = readFileSync(join(data, 'admin-token'), 'utf8').trim()
const api = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const response = await fetch(`${url}/api/v1${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
  if (!response.ok) throw new Error(`${method} ${path}: HTTP ${response.status} ${await response.text()}`)
  return (await response.json()) as T
}

const versions = new Map(DEMO_SERVICES.map(({ name }) => [name, 1]))
const fileOf = (service: (typeof DEMO_SERVICES)[number]) => `${folderOf(service)}/app.yaml`
await git.commit(Object.fromEntries(DEMO_SERVICES.map((one) => [fileOf(one), manifests(one.name, '1.1.0')])), 'apps: first version')
await api('POST', '/apply', { resources: [...repositories(git.url), unreachableRepository, ...services()] })

const choices = demoSites(count)
for (let at = 0; at < choices.length; at += JOINS_AT_ONCE) await Promise.all(choices.slice(at, at + JOINS_AT_ONCE).map(joinSite))
process.stdout.write(
  `${count} clusters have joined\n\n  dashboard  ${url}/\n  token      ${token}\n\nCtrl-C ends it and removes everything.\n`,
)

await Bun.sleep(SETTLED_MS)
await uglyStates()
for (let round = 1; !values.still; round++) {
  await Bun.sleep(ROUND_MS)
  await live(round).catch((error: unknown) => process.stderr.write(`demo-fleet: ${String(error)}\n`))
}

async function ready(): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    if (
      await fetch(`${url}/readyz`).then(
        (answer) => answer.ok,
        () => false,
      )
    )
      return
    if (server.exitCode !== null) break
    await Bun.sleep(100)
  }
  process.stderr.write(
    `scripts/demo-fleet: the server does not start:\n${readFileSync(join(folder, 'server.log'), 'utf8').slice(-2_000)}\n`,
  )
  await leave(1)
}

async function joinSite(choice: ReturnType<typeof demoSites>[number]): Promise<void> {
  const made = await api<{ token: string }>('POST', '/join-tokens', { labels: choice.labels, uses: 1, expires: '1h' })
  const site = new DemoSite(url, choice)
  await site.join(made.token)
  sites.push(site)
  site.goOnline()
}

/** Trouble that a fleet of this size has on any day. */
async function uglyStates(): Promise<void> {
  const at = (part: number) => sites[Math.floor(part * sites.length)]
  for (const part of [0.11, 0.37, 0.71, 0.9]) await at(part)?.degrade('shop/payments')
  for (const part of [0.05, 0.52, 0.83]) await at(part)?.drift('platform/coredns', false)
  for (const part of [0.2, 0.21, 0.22, 0.23]) await at(part)?.refusePrune('shop/checkout')
  await at(0.46)?.setHeld('deck crew', 'docking until 18:00')
  for (const part of [0.3, 0.44, 0.47, 0.49, 0.6, 0.66, 0.77]) at(part)?.goOffline()
  const suspended = at(0.95)?.choice.name
  if (suspended !== undefined) await api('POST', '/suspend', { clusters: [suspended], reason: 'store is being rebuilt' })
  await git.commit({ 'shop/loyalty/app.yaml': brokenManifest('loyalty') }, 'loyalty: new template')
}

/** A few things in each round; more would be noise. */
async function live(round: number): Promise<void> {
  const some = () => sites.filter(({ online }) => online)[Math.floor(Math.random() * sites.length * 0.9)]
  const drifting = some()
  const key = [...(drifting?.services.keys() ?? [])][round % 5]
  if (drifting !== undefined && key !== undefined) await drifting.drift(key, true)
  if (round % 5 === 0) {
    const broken = some()
    await broken?.degrade('shop/inventory')
    setTimeout(() => void broken?.heal('shop/inventory'), 25_000)
  }
  if (round % 9 === 0) {
    const away = some()
    away?.goOffline()
    setTimeout(() => away?.goOnline(), 300_000)
  }
  if (round % COMMIT_EVERY === 0) {
    const service = DEMO_SERVICES[(round / COMMIT_EVERY) % DEMO_SERVICES.length]
    if (service === undefined || LEFT_ALONE.includes(service.name)) return
    const version = (versions.get(service.name) ?? 1) + 1
    versions.set(service.name, version)
    await git.commit({ [fileOf(service)]: manifests(service.name, `1.${version}.0`) }, `${service.name}: 1.${version}.0`)
  }
}
