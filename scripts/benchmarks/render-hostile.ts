// Hostile content: how long polls of a thousand agents of other projects take while each case is read and rendered.
import { rmSync } from 'node:fs'
import { createDataFolder } from '../local-cluster/child-process.ts'
import { createGitServer, type GitServer } from '../local-cluster/git-http-server.ts'
import { createLocalFleet, type LocalFleet } from '../local-cluster/local-fleet.ts'
import { type AgentsProcess, startAgents } from './agents-process.ts'
import { percentile, rounded } from './figures.ts'
import { HOSTILE, hostileArchive } from './hostile-content.ts'
import type { Say } from './parts.ts'
import { programFolders } from './render-programs.ts'
import { benchPrograms } from './server-process.ts'

const AGENTS = Number(process.env['SKERRY_BENCH_AGENTS'] ?? 1_000)
const PROCESSES = 2
const POLL_EVERY_MS = 1_000
/** A case that holds its worker is stopped twice, each time after 15 s. */
const CASE_MS_MAX = 45_000
const CASE_MS_MIN = 5_000

export async function benchHostile(say: Say): Promise<Record<string, number>> {
  const folders = [createDataFolder('skerry-hostile'), createDataFolder('skerry-hostile')]
  const [git, alone] = await Promise.all(folders.map(({ path }) => createGitServer({ dir: path })))
  if (git === undefined || alone === undefined) throw new Error('no Git server')
  const { index, archive } = hostileArchive()
  const charts = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ url }) => new Response(url.endsWith('index.yaml') ? index : archive),
  })
  const fleet = await createLocalFleet({ programs: benchPrograms(), serverEnv: { PATH: programFolders().join(':') } })
  const crowd = Array.from({ length: PROCESSES }, startAgents)
  try {
    await commitAll(git, alone)
    await fleet.startServer()
    await connect(fleet, crowd)
    const quiet = await pollsWhile(crowd, () => Bun.sleep(CASE_MS_MIN))
    say(`${AGENTS} agents poll once a second: p99 ${quiet} ms`)
    const places = {
      apps: { git: { url: git.url } },
      alone: { git: { url: alone.url } },
      charts: { helm: { url: charts.url.href } },
    }
    const put = (kind: string, name: string, spec: object) =>
      fleet.api(`/projects/default/${kind === 'Service' ? 'services' : 'repositories'}/${name}`, {
        method: 'PUT',
        body: { apiVersion: 'skerry.dev/v1', kind, metadata: { name }, spec },
      })
    await put('Repository', 'apps', { ...places.apps, poll: '1h' })
    const cases = HOSTILE.map(({ name, spec = {}, alone: isAlone = false }) => ({
      name,
      repository: isAlone ? 'alone' : 'apps',
      spec: { source: { repository: isAlone ? 'alone' : 'apps', path: name }, ...spec },
    }))
    cases.push({
      name: 'archive',
      repository: 'charts',
      spec: { source: { repository: 'charts', chart: 'bomb', version: '1.0.0' } } as never,
    })
    let worst = quiet
    for (const { name, repository, spec } of cases) {
      let tookMs = 0
      const p99 = await pollsWhile(crowd, async () => {
        const startMs = performance.now()
        if (repository !== 'apps') await put('Repository', repository, { ...places[repository as keyof typeof places], poll: '1h' })
        await put('Service', name, { ...spec, namespace: 'hostile', targets: { selector: { matchLabels: { none: 'x' } } } }).then(
          () => ended(fleet, name, repository),
          (error: unknown) => say(`${name}: ${String(error).slice(0, 120)}`),
        )
        tookMs = performance.now() - startMs
      })
      worst = Math.max(worst, p99)
      say(`${name}: p99 ${p99} ms, over after ${rounded(tookMs / 1_000)} s`)
    }
    return { poll_p99_ms_quiet: quiet, poll_p99_ms_under_hostile_render: worst }
  } finally {
    for (const process of crowd) process.end()
    await fleet.stop()
    await Promise.all([git.stop(), alone.stop(), charts.stop(true)])
    for (const { path } of folders) rmSync(path, { recursive: true, force: true })
  }
}

async function commitAll(git: GitServer, alone: GitServer): Promise<void> {
  const below = (isAlone: boolean) =>
    Object.fromEntries(
      HOSTILE.filter((one) => (one.alone ?? false) === isAlone).flatMap(({ name, files }) =>
        Object.entries(files).map(([path, text]) => [`${name}/${path}`, text]),
      ),
    )
  await git.commit(below(false), 'hostile')
  await alone.commit(below(true), 'hostile')
}

async function connect(fleet: LocalFleet, crowd: readonly AgentsProcess[]): Promise<void> {
  const flags = ['--uses', String(AGENTS), '-o', 'json']
  const { token } = JSON.parse(await fleet.run(['join-token', 'create', ...flags])) as { token: string }
  const names = Array.from({ length: AGENTS }, (_, n) => `site-${n}`)
  await Promise.all(
    crowd.map(async (process, part) => {
      await process.order({
        do: 'join',
        serverUrl: fleet.serverUrl,
        joinTokens: [token],
        names: names.filter((_, n) => n % crowd.length === part),
      })
      await process.order({ do: 'connect', everyMs: POLL_EVERY_MS })
    }),
  )
  await Bun.sleep(2 * POLL_EVERY_MS)
}

/** 99th percentile of the polls that were answered meanwhile, ms. */
async function pollsWhile(crowd: readonly AgentsProcess[], act: () => Promise<unknown>): Promise<number> {
  await Promise.all(crowd.map((process) => process.order({ do: 'reset' })))
  const startMs = performance.now()
  await act()
  await Bun.sleep(Math.max(0, startMs + CASE_MS_MIN - performance.now()))
  const reports = await Promise.all(crowd.map((process) => process.order({ do: 'report' })))
  return rounded(percentile(reports.flatMap(({ emptyTookMs }) => emptyTookMs), 99)) // biome-ignore format: one figure
}

/** Resolves when the service was rendered, or its repository cannot be read. */
async function ended(fleet: LocalFleet, name: string, repository: string): Promise<void> {
  const startMs = performance.now()
  const isOver = () =>
    fleet
      .serverLog()
      .split('\n')
      .some(
        (line) =>
          (/service rendered|render changed its state/.test(line) && line.includes(`default/${name}"`)) ||
          (line.includes('repository cannot be read') && line.includes(`"repository":"${repository}"`)),
      )
  while (!isOver() && performance.now() - startMs < CASE_MS_MAX) await Bun.sleep(100)
}
