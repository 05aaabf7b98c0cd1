// Git sources as a server opens them, each with a folder of its own; the same contract is held by all of them.
import { join } from 'node:path'
import { createGitServer, type GitServer } from '../../scripts/local-cluster/git-http-server.ts'
import { findGitPrograms, type GitDeps, type GitOpenOptions, openGitSource } from '../../server/sources/git/open.ts'
import { createGitTokens } from '../../server/sources/git/tokens.ts'
import type { Source } from '../../server/sources/source.ts'
import { raisedWatermark, type SignedCommit, type Watermark } from '../../shared/model/commits.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { loopbackGuard } from './source-guard.ts'
import { hasSshd, type SshServer, startSshServer } from './ssh-server.ts'
import { tempDir } from './temp-dir.ts'

export const GIT_WAYS = ['library over http', 'git over http', 'git over ssh'] as const
export type GitWay = (typeof GIT_WAYS)[number]
export const sshIsThere = hasSshd()

export type GitKit = Awaited<ReturnType<typeof createGitKit>>

export async function createGitKit(way: GitWay) {
  const root = tempDir()
  const server: GitServer = await createGitServer({ dir: join(root, 'remote') })
  const ssh: SshServer | null = way === 'git over ssh' ? await startSshServer(join(root, 'sshd')) : null
  const url = ssh === null ? server.url : `${ssh.url}${join(root, 'remote', 'fleet.git')}`
  const requests: string[] = []
  let folders = 0
  const watermarks = memoryWatermarks()
  const git = (...args: string[]) => gitIn(join(root, 'remote', 'work'), ...args)
  return {
    root,
    server,
    ssh,
    url,
    requests,
    git,
    newDir: () => join(root, `clone-${folders++}`),
    open(options: Partial<GitOpenOptions> = {}, deps: Partial<GitDeps> = {}): Source {
      const dir = options.dir ?? join(root, `clone-${folders++}`)
      const secrets = ssh === null ? null : async () => ssh.secrets
      const client = way === 'git over http' ? 'cli' : 'auto'
      const raiseWatermark = watermarks.of(`${dir} ${options.ref}`)
      return openGitSource({ url, ref: 'main', dir, secrets, client, ...options }, { ...gitDeps(requests), raiseWatermark, ...deps })
    },
    async setDown(down: boolean): Promise<void> {
      if (ssh === null) server.setDown(down)
      else await ssh.setDown(down)
    },
    async close(): Promise<void> {
      await server.stop()
      await ssh?.stop()
    },
  }
}

/** As the fleet store keeps them. */
export function memoryWatermarks() {
  const held = new Map<string, Watermark>()
  return {
    of: (ref: string) => async (signed: SignedCommit) => {
      const next = raisedWatermark(held.get(ref) ?? null, signed, systemClock.nowMs())
      if (next === null) return held.get(ref) ?? null
      held.set(ref, next)
      return null
    },
  }
}

export function gitDeps(requests: string[] = []): GitDeps {
  const guard = loopbackGuard({
    fetcher: (to, init) => {
      requests.push(`${init.method} ${new URL(to).pathname}`)
      return fetch(to, init)
    },
  })
  const { fetcher, allowedAddress, proxyOf } = guard
  const tokens = createGitTokens({ fetcher, clock: systemClock })
  const raiseWatermark = memoryWatermarks().of('')
  return { fetcher, allowedAddress, proxyOf, clock: systemClock, stopping: null, tokens, raiseWatermark, programs: findGitPrograms() }
}

export const gitIn = (dir: string, ...args: string[]): string => gitAt(null, dir, ...args)

/** With that date for what is committed, in seconds. Null means now. */
export function gitAt(seconds: number | null, dir: string, ...args: string[]): string {
  const env = {
    ...(seconds === null ? {} : { GIT_COMMITTER_DATE: `${seconds} +0000` }),
    PATH: process.env['PATH'] ?? '',
    HOME: '/nonexistent',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_ALLOW_PROTOCOL: 'file:http:https:ssh',
    ...AUTHOR,
  }
  const done = Bun.spawnSync(['git', '-C', dir, ...args], { env })
  if (done.exitCode !== 0) throw new Error(`git ${args.join(' ')}: ${done.stderr.toString()}`)
  return done.stdout.toString().trim()
}
const AUTHOR = { GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@example.com', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@example.com' }

export const filesOf = async (source: Source, commit: string, path: string, wanted: (path: string) => boolean = () => true) =>
  (await source.open(commit, { path: '.' })).tree.files(path, wanted)

export const textsOf = async (source: Source, commit: string, path = '.'): Promise<Record<string, string>> =>
  Object.fromEntries([...(await filesOf(source, commit, path))].map(([file, { bytes }]) => [file, new TextDecoder().decode(bytes)]))

export const idOf = async (source: Source, commit: string, path: string) => (await source.open(commit, { path: '.' })).tree.id(path)

/** Code and message; of a success, both empty. */
export async function failureOf(act: Promise<unknown>): Promise<[string, string]> {
  const error = await act.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  return error instanceof AppError ? [error.code, error.message] : ['', error === null ? '' : String(error)]
}
