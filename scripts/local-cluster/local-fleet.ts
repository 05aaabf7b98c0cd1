// A server and agents as processes of their own, against real clusters on this machine: what the demo shows and what
// the end-to-end tests prove. Everything goes through the doors that a user has: the two programs, their flags, the
// HTTP API.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type ChildProcess, createDataFolder, freePort, startChild, waitUntil } from './child-process.ts'
import { type LocalPostgres, postgresIsWanted, startPostgres } from './postgres.ts'

const root = resolve(import.meta.dir, '../..')

/** `dist`: the compiled binaries, as users run them. `source`: from the working tree, without a build. */
export type Programs = 'dist' | 'source'
/** The command line of a program; asked before each start, so that a test can replace one. */
export type ProgramCommand = (name: 'skerry' | 'skerry-agent') => string[]

export interface CommandResult {
  code: number
  stdout: string
  stderr: string
}

/** Where an agent finds its API server. */
export interface KubeTarget {
  readonly kubeconfigPath: string
}

export interface LocalAgent {
  readonly name: string
  readonly cluster: KubeTarget
  readonly dataDir: string
  readonly running: boolean
  /** With the flags of its last start unless others are given. */
  start(extraFlags?: readonly string[]): Promise<void>
  /** SIGKILL: the power cord. */
  kill(): Promise<void>
  pid(): number
  pause(): void
  resume(): void
  /** `skerry-agent status -o json`, of the running agent or from its disk. */
  status(): Promise<AgentStatus>
  /** Another command of `skerry-agent` at this site; never throws for an exit code. */
  command(args: readonly string[]): Promise<CommandResult>
  log(): string
}

/** The part of the status that demo and tests look at. */
export interface AgentStatus {
  running: boolean
  clusterId: string | null
  link: {
    state: string
    bytesSent: number
    bytesReceived: number
    requests: number
    error: { code: string; message: string } | null
  } | null
  enforcement: { state: string; message: string }
  replica: { position: string | null; rows: number; verified: boolean } | null
  outboxDepth: number
  services: Array<{
    name: string
    status: { sync: string; health: string; message: string; reason: string; objectCount: number; healthyCount: number } | null
  }>
}

export interface FleetDatabase {
  readonly postgres: LocalPostgres
  /** With its password. */
  readonly url: string
}

export interface LocalFleet {
  readonly serverUrl: string
  readonly token: string
  /** Holds the token, for people who type commands. */
  readonly tokenFile: string
  readonly dataDir: string
  /** The database of the fleet store. Null for SQLite in `dataDir`. */
  readonly database: FleetDatabase | null
  /** `wait: false`: does not wait until it answers. */
  startServer(options?: { wait?: boolean }): Promise<void>
  killServer(): Promise<void>
  serverPid(): number
  serverLog(): string
  /** Runs the command line client; never throws for an exit code. */
  skerry(args: readonly string[], options?: { stdin?: string }): Promise<CommandResult>
  /** As `skerry`, but a failure throws with what it printed. Answers the standard output. */
  run(args: readonly string[], options?: { stdin?: string }): Promise<string>
  api<T>(path: string, init?: { method?: string; body?: unknown }): Promise<T>
  /** A signed push event, as a forge sends it. */
  webhook(repository: string, project?: string): Promise<void>
  /** `dataDir`: default a folder of this fleet's, removed with it. */
  addAgent(options: {
    name: string
    cluster: KubeTarget
    joinToken: string
    flags?: readonly string[]
    dataDir?: string
  }): Promise<LocalAgent>
  stop(): Promise<void>
}

/** SKERRY_TEST_STORE=postgres gives the server a PostgreSQL of its own. `serverEnv`: besides our own, for the server
 *  alone. `dataDir`: of the server; default a folder that is removed at the end. */
export async function createLocalFleet(
  options: { programs?: Programs | ProgramCommand; serverEnv?: Record<string, string>; dataDir?: string } = {},
): Promise<LocalFleet> {
  const programs = options.programs ?? (process.env['SKERRY_PROGRAMS'] === 'dist' ? 'dist' : 'source')
  const program = (name: 'skerry' | 'skerry-agent'): string[] => {
    if (typeof programs === 'function') return programs(name)
    return programs === 'dist'
      ? [join(root, 'dist', name)]
      : [process.execPath, join(root, name === 'skerry' ? 'server' : 'agent', 'main.ts')]
  }
  const folder = createDataFolder('skerry-fleet')
  const port = freePort()
  const serverUrl = `http://127.0.0.1:${port}`
  const tokenFile = join(folder.path, 'admin.token')
  const serverLogPath = join(folder.path, 'server.log')
  const dataDir = options.dataDir ?? join(folder.path, 'server')
  const database = postgresIsWanted() ? await startDatabase() : null
  const agents: LocalAgent[] = []
  let server: ChildProcess | undefined
  let token = ''

  const startServer = async ({ wait = true }: { wait?: boolean } = {}) => {
    if (wait && server?.exitCode() === null) return ready(server)
    await server?.kill()
    const flags = [
      'server',
      '--data',
      dataDir,
      '--listen',
      `127.0.0.1:${port}`,
      '--admin-token-file',
      tokenFile,
      '--source-addresses',
      '127.0.0.0/8',
    ]
    const env = { ...options.serverEnv, ...(database === null ? {} : { SKERRY_STORE: database.url }) }
    const child = startChild([...program('skerry'), ...flags], serverLogPath, env)
    server = child
    if (wait) await ready(child)
  }
  const ready = async (child: ChildProcess) => {
    await waitUntil('skerry server', async () => (await fetch(`${serverUrl}/readyz`, { keepalive: false })).ok, { child })
    if (token !== '') return
    // It serves before it tells the token.
    await waitUntil('admin token', async () => existsSync(tokenFile) && readFileSync(tokenFile, 'utf8').endsWith('\n'), { child })
    const first = readFileSync(tokenFile, 'utf8').trim() // it expires
    const headers = { authorization: `Bearer ${first}` }
    // The file is written before the store has the token.
    await waitUntil(
      'exchange of the admin token',
      async () => {
        const answer = await fetch(`${serverUrl}/api/v1/token/exchange`, { method: 'POST', headers, keepalive: false })
        if (answer.ok) token = ((await answer.json()) as { token: string }).token
        return answer.ok
      },
      { child },
    )
    writeFileSync(tokenFile, `${token}\n`)
  }
  const killServer = async () => {
    await server?.kill()
    server = undefined
  }
  const skerry = async (args: readonly string[], { stdin }: { stdin?: string } = {}): Promise<CommandResult> => {
    const env = { PATH: process.env['PATH'] ?? '', HOME: folder.path, SKERRY_SERVER: serverUrl, SKERRY_TOKEN: token, NO_COLOR: '1' }
    const child = Bun.spawn([...program('skerry'), ...args], {
      stdin: stdin === undefined ? 'ignore' : Buffer.from(stdin),
      stdout: 'pipe',
      stderr: 'pipe',
      env,
    })
    const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
    return { code, stdout, stderr }
  }
  const run = async (args: readonly string[], io?: { stdin?: string }) => {
    const { code, stdout, stderr } = await skerry(args, io)
    if (code !== 0) throw new Error(`skerry ${args.join(' ')}: exit code ${code}\n${stderr}${stdout}`)
    return stdout
  }
  const api = async <T>(path: string, init: { method?: string; body?: unknown } = {}): Promise<T> => {
    const response = await fetch(`${serverUrl}/api/v1${path}`, {
      method: init.method ?? 'GET',
      headers: { authorization: `Bearer ${token}`, ...(init.body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(init.body === undefined ? {} : { body: JSON.stringify(init.body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${init.method ?? 'GET'} ${path}: HTTP ${response.status} ${text}`)
    return (text === '' ? undefined : JSON.parse(text)) as T
  }
  const hooks = new Map<string, { url: string; secret: string }>()
  const tellPush = async (repository: string, project: string): Promise<Response> => {
    let hook = hooks.get(repository)
    if (hook === undefined) {
      const address = `/projects/${project}/repositories/${repository}/webhook`
      const read = (method: 'GET' | 'POST') => api<{ url: string; secret: string }>(address, { method })
      hook = await read('POST').catch(() => read('GET')) // builds before this one answer the secret to a GET
      hooks.set(repository, hook)
    }
    const body = JSON.stringify({ ref: 'refs/heads/main' })
    const signature = new Bun.CryptoHasher('sha256', hook.secret).update(body).digest('hex')
    const headers = { 'content-type': 'application/json', 'x-hub-signature-256': `sha256=${signature}` }
    return fetch(new URL(hook.url, serverUrl), { method: 'POST', headers, body })
  }
  const webhook = async (repository: string, project = 'default') => {
    let response = await tellPush(repository, project)
    if (response.status === 401 && hooks.delete(repository)) response = await tellPush(repository, project) // a store that was set back forgot the secret
    if (!response.ok) throw new Error(`webhook: HTTP ${response.status} ${await response.text()}`)
  }
  const addAgent: LocalFleet['addAgent'] = async ({ name, cluster, joinToken, flags = [], dataDir: dir = join(folder.path, name) }) => {
    const agent = createAgent({
      name,
      cluster,
      dir,
      logPath: join(folder.path, `${name}.log`),
      command: () => program('skerry-agent'),
      serverUrl,
      joinToken,
      flags,
    })
    agents.push(agent)
    await agent.start()
    return agent
  }
  const stop = async () => {
    await Promise.all(agents.map((agent) => agent.kill()))
    await killServer()
    await database?.postgres.stop()
    await folder.remove()
  }
  return {
    serverUrl,
    get token() {
      return token
    },
    tokenFile,
    dataDir,
    database,
    startServer,
    killServer,
    serverPid: () => server?.pid ?? 0,
    serverLog: () => (existsSync(serverLogPath) ? readFileSync(serverLogPath, 'utf8') : ''),
    skerry,
    run,
    api,
    webhook,
    addAgent,
    stop,
  }
}

async function startDatabase(): Promise<FleetDatabase> {
  const postgres = await startPostgres()
  return { postgres, url: await postgres.createDatabase() }
}

interface AgentOptions {
  name: string
  cluster: KubeTarget
  dir: string
  logPath: string
  command(): string[]
  serverUrl: string
  joinToken: string
  flags: readonly string[]
}

function createAgent({ name, cluster, dir, logPath, command, serverUrl, joinToken, flags }: AgentOptions): LocalAgent {
  let child: ChildProcess | undefined
  const start = async (extraFlags: readonly string[] = flags) => {
    await child?.kill()
    const own = ['--data', dir, '--server', serverUrl, '--cluster', name, '--join-token', joinToken, '--kubeconfig', cluster.kubeconfigPath]
    child = startChild([...command(), 'run', ...own, ...extraFlags], logPath)
  }
  const commandOf = async (args: readonly string[]): Promise<CommandResult> => {
    const asked = Bun.spawn([...command(), ...args, '--data', dir], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
      env: { PATH: process.env['PATH'] ?? '' },
    })
    const [stdout, stderr, code] = await Promise.all([new Response(asked.stdout).text(), new Response(asked.stderr).text(), asked.exited])
    return { stdout, stderr, code }
  }
  const status = async (): Promise<AgentStatus> => {
    const { stdout, stderr, code } = await commandOf(['status', '-o', 'json'])
    if (code !== 0) throw new Error(`skerry-agent status: exit code ${code}\n${stderr}`)
    return JSON.parse(stdout) as AgentStatus
  }
  return {
    name,
    cluster,
    dataDir: dir,
    get running() {
      return child !== undefined && child.exitCode() === null
    },
    start,
    kill: async () => {
      await child?.kill()
      child = undefined
    },
    pid: () => child?.pid ?? 0,
    pause: () => child?.pause(),
    resume: () => child?.resume(),
    status,
    command: commandOf,
    log: () => (existsSync(logPath) ? readFileSync(logPath, 'utf8') : ''),
  }
}
