// A Git repository over smart HTTP on loopback for the demo data: `git http-backend` behind Bun.serve, and a clone
// beside it to commit with. Read-only from outside.
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { AppError } from '../../shared/runtime/error.ts'

export interface DemoGit {
  readonly url: string
  /** Commits these files to `main`; answers the id of the commit. */
  commit(files: Readonly<Record<string, string>>, message: string, author: string): Promise<string>
  stop(): Promise<void>
}

/** The configuration of the person at this machine (signing, hooks) changes nothing here. */
const envOf = (path: string, author = 'Skerry demo') => ({
  PATH: path,
  HOME: '/',
  ...{ GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0' },
  ...{ GIT_AUTHOR_NAME: author, GIT_AUTHOR_EMAIL: `${author.toLowerCase().replaceAll(' ', '.')}@example.com` },
  ...{ GIT_COMMITTER_NAME: 'Skerry demo', GIT_COMMITTER_EMAIL: 'demo@example.com' },
})

/** `path`: PATH of this program. */
export async function startDemoGit(dir: string, path: string): Promise<DemoGit> {
  const env = (author?: string) => envOf(path, author)
  if (Bun.which('git') === null)
    throw new AppError('unavailable', { doing: 'start the demo', detail: 'git is not on PATH', remedy: 'Install git.' })
  const bare = join(dir, 'fleet.git')
  const work = join(dir, 'work')
  mkdirSync(bare, { recursive: true })
  await git(bare, env(), 'init', '--quiet', '--bare', '--initial-branch=main')
  await git(bare, env(), 'config', 'uploadpack.allowFilter', 'true')
  await git(dir, env(), 'init', '--quiet', '--initial-branch=main', work)
  await git(work, env(), 'remote', 'add', 'origin', bare)
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: (request) => answer(dir, request, env()) })
  return {
    url: `http://127.0.0.1:${server.port}/fleet.git`,
    async commit(files, message, author) {
      for (const [name, text] of Object.entries(files)) {
        mkdirSync(dirname(join(work, name)), { recursive: true })
        await Bun.write(join(work, name), text)
      }
      await git(work, env(), 'add', '--all')
      await git(work, env(author), 'commit', '--quiet', '--allow-empty', '--no-verify', '-m', message)
      await git(work, env(), 'push', '--quiet', 'origin', 'HEAD:main')
      return git(work, env(), 'rev-parse', 'HEAD')
    },
    async stop() {
      await server.stop(true)
    },
  }
}

async function git(dir: string, environment: Record<string, string>, ...args: string[]): Promise<string> {
  const child = Bun.spawn(['git', '-C', dir, ...args], { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe', env: environment })
  const [output, errors, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
  if (code !== 0) throw new Error(`git ${args[0]}: exit code ${code}: ${errors}`)
  return output.trim()
}

/** One request through git's CGI program: environment in, header lines and a body out (RFC 3875). */
async function answer(root: string, request: Request, environment: Record<string, string>): Promise<Response> {
  const { pathname, search } = new URL(request.url)
  const header = (name: string) => request.headers.get(name) ?? ''
  const body = new Uint8Array(await request.arrayBuffer())
  const child = Bun.spawn(['git', 'http-backend'], {
    stdin: body,
    stdout: 'pipe',
    stderr: 'ignore',
    env: {
      ...environment,
      ...{ GIT_PROJECT_ROOT: root, GIT_HTTP_EXPORT_ALL: '1', PATH_INFO: decodeURIComponent(pathname), QUERY_STRING: search.slice(1) },
      ...{ REQUEST_METHOD: request.method, CONTENT_TYPE: header('content-type'), CONTENT_LENGTH: String(body.byteLength) },
      ...{ HTTP_CONTENT_ENCODING: header('content-encoding'), GIT_PROTOCOL: header('git-protocol'), REMOTE_ADDR: '127.0.0.1' },
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
  return new Response(output.subarray(headEnd + 4), { status, headers })
}
