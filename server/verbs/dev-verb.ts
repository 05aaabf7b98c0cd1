// `skerry dev`: a server on this machine to look at, in a temporary folder, with a one-time sign-in link; with
// --demo-data over a fleet of simulated clusters.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { signInLinkSchema } from '../../shared/model/sign-in.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { OptionTable } from '../../shared/runtime/options.ts'
import { startDemoGit } from '../dev/demo-git.ts'
import { type Api, type DemoFleet, startDemoFleet } from '../dev/demo-life.ts'
import { startDemoReceiver } from '../dev/demo-receiver.ts'
import { SERVER_OPTIONS } from './server-options.ts'
import { type Flags, runVerb, type VerbIo } from './verb-io.ts'

export const DEV_OPTIONS = {
  listen: SERVER_OPTIONS.listen,
  demoData: { type: 'flag', help: 'Fill the server with a simulated fleet: commits, drift, failures and offline sites.' },
  clusters: { type: 'integer', placeholder: 'COUNT', help: 'Simulated clusters of --demo-data.', default: '500', min: 10, max: 5_000 },
  still: { type: 'flag', help: 'With --demo-data: no more changes after the fleet is ready.' },
} as const satisfies OptionTable

/** Each simulated agent keeps one request open, and Bun reads its limit at the start of a process. */
const REQUESTS_LIMIT = 'BUN_CONFIG_MAX_HTTP_REQUESTS'
const REQUESTS_MAX = '10000'
const READY_TRIES = 1_200
const READY_WAIT_MS = 100

const self = (): string[] =>
  import.meta.url.includes('$bunfs') ? [process.execPath] : [process.execPath, join(import.meta.dir, '../main.ts')]

export const runDev = (flags: Flags, io: VerbIo, onLeft: (listener: () => void) => void): Promise<number> =>
  runVerb('dev', DEV_OPTIONS, flags, io, async ({ listen, demoData, clusters, still }) => {
    const stopped = new Promise<void>((resolve) => {
      // A terminal sends a signal to the whole group of processes: one more is no reason to end without removing the
      // folder.
      const again = () => {
        io.onStop(again)
        resolve()
      }
      io.onStop(again)
      onLeft(resolve) // the server is another process, which nobody would end
    })
    if (demoData && io.env[REQUESTS_LIMIT] === undefined) return await again(io, stopped)
    const folder = mkdtempSync(join(tmpdir(), 'skerry-dev-'))
    const undo: Array<() => unknown> = [() => rmSync(folder, { recursive: true, force: true })]
    try {
      const server = startServer(folder, listen, io.env['PATH'] ?? '')
      undo.push(() => {
        server.child.kill('SIGKILL') // its data are removed: nothing has to be finished
        return server.child.exited
      })
      const api = await connect(server, folder, io.clock)
      const { url } = signInLinkSchema.parse(await api('POST', '/sign-in-links'))
      io.out(`\n  ${url}\n\nThis link signs in once, within ten minutes. For another one:\n\n`)
      io.out(`  SKERRY_SERVER=${server.url} SKERRY_TOKEN=$(cat ${join(folder, 'data/admin-token')}) skerry dashboard\n\n`)
      io.out('Ctrl-C stops the server and removes its data.\n')
      const fleet = demoData ? startDemo({ folder, url: server.url, api, count: clusters, isStill: still, io, undo }) : null
      const ended = server.child.exited.then((code) => {
        throw new AppError('unavailable', { doing: 'run the server', detail: `it exited with code ${code}: ${server.lastLines()}` })
      })
      await Promise.race([stopped, ended, fleet?.then(() => new Promise<void>(() => {}))].filter((one) => one !== undefined))
    } finally {
      for (const last of undo.toReversed()) await last()
    }
    return 0
  })

/** The same verb in a process with room for its requests. */
async function again(io: VerbIo, stopped: Promise<void>): Promise<number> {
  const arguments_ = process.argv.slice(process.argv.indexOf('dev'))
  const child = Bun.spawn([...self(), ...arguments_], {
    env: { ...io.env, [REQUESTS_LIMIT]: REQUESTS_MAX },
    stdio: ['inherit', 'inherit', 'inherit'],
  })
  void stopped.then(() => child.kill('SIGTERM'))
  return await child.exited
}

interface DevServer {
  url: string
  child: Bun.Subprocess
  lastLines(): string
}

function startServer(folder: string, listen: string, path: string): DevServer {
  const data = join(folder, 'data')
  const log = join(folder, 'server.log')
  mkdirSync(data)
  const flags = ['server', '--data', data, '--listen', listen, '--source-addresses', '127.0.0.0/8', '--render-sandbox', 'limits']
  const child = Bun.spawn([...self(), ...flags], {
    stdout: 'ignore',
    stderr: Bun.file(log),
    env: { PATH: path, HOME: folder, SKERRY_REQUESTS_PER_SECOND: '0' },
  })
  return { url: `http://${listen}`, child, lastLines: () => readFileSync(log, 'utf8').slice(-1_000) }
}

async function connect({ url, child, lastLines }: DevServer, folder: string, clock: Clock): Promise<Api> {
  const isReady = () =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )
  const tokenFile = join(folder, 'data/admin-token')
  // The token is written after the server listens.
  for (let tries = 0; !(await isReady()) || !existsSync(tokenFile); tries++) {
    if (child.exitCode !== null || tries === READY_TRIES)
      throw new AppError('unavailable', { doing: 'start the server', detail: lastLines() })
    await clock.sleep(READY_WAIT_MS)
  }
  const token = readFileSync(tokenFile, 'utf8').trim()
  return async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const response = await fetch(`${url}/api/v1${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
    if (!response.ok) throw new Error(`${method} ${path}: HTTP ${response.status} ${await response.text()}`)
    return (await response.json()) as T
  }
}

interface DemoStart {
  folder: string
  url: string
  api: Api
  count: number
  isStill: boolean
  io: VerbIo
  undo: Array<() => unknown>
}

async function startDemo({ folder, url, api, count, isStill, io, undo }: DemoStart): Promise<DemoFleet> {
  const git = await startDemoGit(join(folder, 'git'), io.env['PATH'] ?? '')
  undo.push(() => git.stop())
  const receiver = startDemoReceiver()
  undo.push(() => receiver.stop())
  const startMs = io.clock.monotonicMs()
  const fleet = await startDemoFleet({
    url,
    git,
    receiver: receiver.url,
    api,
    count,
    isStill,
    say: (text) => io.err(`skerry dev: ${text}\n`),
  })
  undo.push(() => fleet.stop())
  io.out(`${fleet.sites.length} simulated clusters joined in ${Math.round((io.clock.monotonicMs() - startMs) / 1_000)} s\n`)
  return fleet
}
