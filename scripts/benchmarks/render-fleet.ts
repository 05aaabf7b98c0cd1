// How often a server renders: counted by the server itself, as it tells in its log, with real Git, real clusters' keys
// and its real programs.
import { rmSync } from 'node:fs'
import { createDataFolder } from '../local-cluster/child-process.ts'
import { createGitServer, type FileChanges, type GitServer } from '../local-cluster/git-http-server.ts'
import { createLocalFleet, type LocalFleet } from '../local-cluster/local-fleet.ts'
import { startAgents } from './agents-process.ts'
import type { Say } from './parts.ts'
import { programFolders } from './render-programs.ts'
import { benchPrograms, peakResidentMb } from './server-process.ts'

const CLUSTERS = 1_000
const SERVICES = 500
const CHART: FileChanges = {
  'chart/Chart.yaml': 'apiVersion: v2\nname: chart\nversion: 1.0.0\n',
  'chart/values.yaml': 'color: red\n',
  'chart/templates/a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\ndata: { color: "{{ .Values.color }}" }\n',
}
const TEMPLATE: FileChanges = {
  'templated/a.yaml.liquid': "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\ndata: { region: '{{ cluster.labels.region }}' }\n",
}

/** A thousand clusters in which nothing differs, with a chart and a template that looks at a label, of which the one
 *  that was rendered more often counts; then one cluster gets another label. */
export async function renderIdentical(say: Say): Promise<Record<string, number>> {
  return withFleet(async ({ fleet, git }) => {
    await git.commit({ ...CHART, ...TEMPLATE }, 'first')
    await fleet.run(['apply', '-f', '-'], { stdin: repository(git) })
    await joinAll(fleet)
    say(`${CLUSTERS} clusters joined`)
    const names = ['chart', 'templated']
    for (const name of names) {
      await fleet.run(['apply', '-f', '-'], { stdin: service(name) })
      await published(fleet, `default/${name}`, 1)
    }
    await idle(fleet)
    const identical = names.map((name) => rendersOf(fleet, `default/${name}`))
    say(`renders: ${names.map((name, index) => `${name} ${identical[index]}`).join(', ')}`)
    const before = renders(fleet)
    await fleet.run(['apply', '-f', '-'], {
      stdin: 'apiVersion: skerry.dev/v1\nkind: Cluster\nmetadata: {name: site-7, labels: {region: us}}\n',
    })
    await published(fleet, 'default/templated', 2)
    await idle(fleet)
    return {
      renders_for_1000_identical_clusters: Math.max(...identical),
      relabel_one_cluster_renders: renders(fleet) - before,
      render_rss_peak_mb: peakResidentMb(fleet.serverPid()),
    }
  })
}

/** One repository with five hundred services: one of them changes. */
export async function renderMonoRepo(say: Say): Promise<Record<string, number>> {
  return withFleet(async ({ fleet, git }) => {
    const names = Array.from({ length: SERVICES }, (_, n) => `svc-${String(n).padStart(3, '0')}`)
    const manifest = (value: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\ndata: { value: "${value}" }\n`
    await git.commit(Object.fromEntries(names.map((name) => [`${name}/a.yaml`, manifest('1')])), 'first')
    await fleet.run(['apply', '-f', '-'], { stdin: repository(git) })
    await joinAll(fleet, 1)
    for (let start = 0; start < SERVICES; start += 100)
      await fleet.run(['apply', '-f', '-'], {
        stdin: names
          .slice(start, start + 100)
          .map(service)
          .join(''),
      })
    await until(fleet, () => logged(fleet, 'revision published').length >= SERVICES, `${SERVICES} services to be published`)
    await idle(fleet)
    const before = renders(fleet)
    say(`${before} renders for ${SERVICES} services`)
    await git.commit({ 'svc-250/a.yaml': manifest('2') }, 'one of them')
    await fleet.webhook('apps')
    await published(fleet, 'default/svc-250', 2)
    await idle(fleet)
    return { mono_repo_500_services_one_change_renders: renders(fleet) - before }
  })
}

interface Parts {
  fleet: LocalFleet
  git: GitServer
}

async function withFleet<T>(work: (parts: Parts) => Promise<T>): Promise<T> {
  const folder = createDataFolder('skerry-render')
  const git = await createGitServer({ dir: folder.path })
  const fleet = await createLocalFleet({
    programs: benchPrograms(),
    serverEnv: { PATH: programFolders().join(':') },
  })
  try {
    await fleet.startServer()
    return await work({ fleet, git })
  } finally {
    await fleet.stop()
    await git.stop()
    rmSync(folder.path, { recursive: true, force: true })
  }
}

async function joinAll(fleet: LocalFleet, count = CLUSTERS): Promise<void> {
  const flags = ['--uses', String(count), '--label', 'region=eu', '-o', 'json']
  const { token } = JSON.parse(await fleet.run(['join-token', 'create', ...flags])) as { token: string }
  const agents = startAgents()
  try {
    const names = Array.from({ length: count }, (_, n) => `site-${n}`)
    await agents.order({ do: 'join', serverUrl: fleet.serverUrl, joinTokens: [token], names })
  } finally {
    agents.end()
  }
}

const repository = ({ url }: GitServer): string =>
  `apiVersion: skerry.dev/v1\nkind: Repository\nmetadata: {name: apps}\nspec: {git: {url: "${url}"}, poll: 1h}\n`
const service = (name: string): string =>
  `---\napiVersion: skerry.dev/v1\nkind: Service\nmetadata: {name: ${name}}\nspec: {source: {repository: apps, path: ${name}}, targets: {selector: {}}, namespace: ${name}}\n`

interface Line {
  msg: string
  service: string
  renders: number
}

const logged = (fleet: LocalFleet, msg: string): Line[] =>
  fleet
    .serverLog()
    .split('\n')
    .filter((line) => line.includes(msg))
    .map((line) => JSON.parse(line) as Line)

const rendersOf = (fleet: LocalFleet, name: string): number =>
  logged(fleet, 'service rendered').reduce((sum, { service, renders }) => sum + (service === name ? renders : 0), 0)
const renders = (fleet: LocalFleet): number => logged(fleet, 'service rendered').reduce((sum, { renders }) => sum + renders, 0)

/** The service was written to its clusters for the n-th time. */
const published = (fleet: LocalFleet, name: string, times: number): Promise<void> =>
  until(
    fleet,
    () => logged(fleet, 'revision published').filter(({ service }) => service === name).length >= times,
    `${name} to be published`,
  )

/**
 * Reconciliations of several services run at the same time: the server's work for a change has ended when it was silent
 * for two seconds.
 */
async function idle(fleet: LocalFleet): Promise<void> {
  let [said, sinceMs] = [-1, performance.now()]
  const isIdle = () => {
    const lines = logged(fleet, 'service rendered').length + logged(fleet, 'revision published').length
    if (lines !== said) [said, sinceMs] = [lines, performance.now()]
    return performance.now() - sinceMs > 2_000
  }
  await until(fleet, isIdle, 'an idle moment')
}

async function until(fleet: LocalFleet, isSo: () => boolean, what: string): Promise<void> {
  for (const endMs = performance.now() + 30_000; !isSo(); await Bun.sleep(50))
    if (performance.now() > endMs) throw new Error(`waited in vain for ${what}; the server says\n${fleet.serverLog().slice(-2_000)}`)
}
