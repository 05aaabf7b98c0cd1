// A Git server over smart HTTP on loopback, for demo and tests: Bun.serve in front of git's own CGI (git http-backend),
// one bare repository, and a working clone behind it to commit with. It takes pushes from anybody on this machine.
import { mkdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Files by path; null removes one. */
export type FileChanges = Readonly<Record<string, string | null>>

export interface GitServer {
  /** The address of the repository, for `git clone`. Its branch is `main`. */
  readonly url: string
  /** Commits and publishes; answers the commit's id. Without any change in the files it makes an empty commit. */
  commit(files: FileChanges, message: string): Promise<string>
  /** Down: connections are refused, as by a host that is gone. Up again on the same port. */
  setDown(down: boolean): void
  stop(): Promise<void>
}

export interface GitServerOptions {
  /** An empty or missing folder for the repository and its clone. It stays when the server stops. */
  dir: string
  /** Called after a push from outside, not after `commit`. */
  onPush?: () => void
  /** Requests without it are refused with 401. Default: anybody. */
  login?: { username: string; password: string }
}

// No personal configuration (signing, hooks, templates) may change what these commits are.
const GIT_ENV = {
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_TERMINAL_PROMPT: '0',
  GIT_AUTHOR_NAME: 'Skerry demo',
  GIT_AUTHOR_EMAIL: 'demo@skerry.example',
  GIT_COMMITTER_NAME: 'Skerry demo',
  GIT_COMMITTER_EMAIL: 'demo@skerry.example',
}
const env = () => ({ PATH: process.env['PATH'] ?? '', HOME: '/', ...GIT_ENV })

async function git(dir: string, ...args: string[]): Promise<string> {
  const child = Bun.spawn(['git', '-C', dir, ...args], { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe', env: env() })
  const streams = [Bun.readableStreamToText(child.stdout), Bun.readableStreamToText(child.stderr)] as const
  const [output, errors, code] = await Promise.all([...streams, child.exited])
  if (code !== 0) throw new Error(`git ${args.join(' ')}: exit code ${code}\n${errors}`)
  return output.trim()
}

export async function createGitServer({ dir, onPush, login }: GitServerOptions): Promise<GitServer> {
  const bare = join(dir, 'fleet.git')
  const work = join(dir, 'work')
  mkdirSync(bare, { recursive: true })
  await git(bare, 'init', '--quiet', '--bare', '--initial-branch=main')
  await git(bare, 'config', 'http.receivepack', 'true')
  await git(bare, 'config', 'uploadpack.allowFilter', 'true')
  await git(dir, 'init', '--quiet', '--initial-branch=main', work)
  await git(work, 'remote', 'add', 'origin', bare)

  const wanted = login === undefined ? null : `Basic ${btoa(`${login.username}:${login.password}`)}`
  const mayRead = ({ headers }: Request) => wanted === null || headers.get('authorization') === wanted
  const refused = () => new Response(null, { status: 401, headers: { 'www-authenticate': 'Basic realm="git"' } })
  let port = 0
  const listen = () => {
    const started = Bun.serve({
      hostname: '127.0.0.1',
      port,
      fetch: (request) => (mayRead(request) ? runBackend(dir, request, onPush) : refused()),
      maxRequestBodySize: 2 ** 30,
    })
    port = started.port ?? 0
    return started
  }
  let server: ReturnType<typeof listen> | undefined = listen()

  const commit = async (files: FileChanges, message: string): Promise<string> => {
    // Another process may have pushed meanwhile.
    if (await git(bare, 'for-each-ref', 'refs/heads/main')) {
      await git(work, 'fetch', '--quiet', 'origin', 'main')
      await git(work, 'reset', '--quiet', '--hard', 'FETCH_HEAD')
    }
    for (const [path, text] of Object.entries(files)) {
      if (text === null) await rm(join(work, path), { force: true })
      else await Bun.write(join(work, path), text)
    }
    await git(work, 'add', '--all')
    await git(work, 'commit', '--quiet', '--allow-empty', '--no-verify', '-m', message)
    await git(work, 'push', '--quiet', 'origin', 'HEAD:main')
    return git(work, 'rev-parse', 'HEAD')
  }
  return {
    url: `http://127.0.0.1:${port}/fleet.git`,
    commit,
    setDown: (down) => {
      if (down) {
        server?.stop(true)
        server = undefined
      } else server ??= listen()
    },
    stop: async () => {
      await server?.stop(true)
      server = undefined
    },
  }
}

/** One request through git's CGI program: environment in, a head of header lines and a body out (RFC 3875). */
async function runBackend(root: string, request: Request, onPush: (() => void) | undefined): Promise<Response> {
  const { pathname, search } = new URL(request.url)
  const header = (name: string) => request.headers.get(name) ?? ''
  const body = new Uint8Array(await request.arrayBuffer())
  const child = Bun.spawn(['git', 'http-backend'], {
    stdin: body,
    stdout: 'pipe',
    stderr: 'ignore',
    env: {
      ...env(),
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      PATH_INFO: decodeURIComponent(pathname),
      QUERY_STRING: search.slice(1),
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: header('content-type'),
      CONTENT_LENGTH: String(body.byteLength),
      HTTP_CONTENT_ENCODING: header('content-encoding'),
      GIT_PROTOCOL: header('git-protocol'),
      REMOTE_ADDR: '127.0.0.1',
    },
  })
  const output = Buffer.from(await new Response(child.stdout).arrayBuffer())
  const headEnd = output.indexOf('\r\n\r\n')
  if (headEnd < 0) return new Response('git http-backend gave no answer', { status: 500 })
  const headers = new Headers()
  let status = 200
  for (const line of output.subarray(0, headEnd).toString().split('\r\n')) {
    const colon = line.indexOf(':')
    const [name, value] = [line.slice(0, colon), line.slice(colon + 1).trim()]
    if (name.toLowerCase() === 'status') status = Number.parseInt(value, 10)
    else headers.set(name, value)
  }
  if (status === 200 && pathname.endsWith('/git-receive-pack') && request.method === 'POST') onPush?.()
  return new Response(output.subarray(headEnd + 4), { status, headers })
}
