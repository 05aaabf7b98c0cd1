// A Git repository opened as its resource says: with the library or the program, with the secrets of its Config, and its submodules as repositories of their own.
import { join } from 'node:path'
import { sha256Hex } from '../../../shared/kube/canonical.ts'
import type { GitSpec } from '../../../shared/model/sources.ts'
import { AppError } from '../../../shared/protocol/error.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { WebFetcher } from '../address/guard.ts'
import { SizedCache } from '../sized-cache.ts'
import type { Source } from '../source.ts'
import { type GitSecrets, webAccess } from './auth.ts'
import { createGitCli } from './cli.ts'
import { createGitWeb, type GitWeb } from './http.ts'
import { createGitLibrary } from './library.ts'
import type { GitBackend } from './objects.ts'
import { GitSource, type SubmoduleOpener } from './source.ts'
import { readGitmodules, SUBMODULE_DEPTH_MAX, SUBMODULES_MAX } from './submodules.ts'
import type { GitTokens } from './tokens.ts'
import { isSameHost, isWebUrl, sshPlace, submoduleUrl } from './url.ts'

export interface GitDeps {
  fetcher: WebFetcher
  allowedAddress(host: string): Promise<string>
  /** For http; null: connect directly. */
  proxyOf(url: string): string | null
  clock: Clock
  stopping: AbortSignal | null
  tokens: GitTokens
  /** Paths; null: it is not on this server. */
  programs: { git: string | null; ssh: string | null }
}

export interface GitOpenOptions extends GitSpec {
  dir: string
  /** Of the Config that `auth` names, read anew for each request. Null: there is no auth. */
  secrets: (() => Promise<GitSecrets>) | null
  /** Of the library: without a byte, and in one answer. */
  stallMs?: number | undefined
  answerBytesMax?: number | undefined
  fetchMs?: number | undefined
  packsMax?: number | undefined
  diskBytesMax?: number | undefined
}

const SUBMODULES_OPEN_MAX = 100

export const findGitPrograms = (): GitDeps['programs'] => ({ git: Bun.which('git'), ssh: Bun.which('ssh') })

export function openGitSource(options: GitOpenOptions, deps: GitDeps): Source {
  return openAt(options, deps, 0)
}

function openAt(options: GitOpenOptions, deps: GitDeps, depth: number): Source {
  const { url, ref, semver, dir, verify, packsMax } = options
  const nowMs = () => deps.clock.nowMs()
  const submodules = options.submodules === true ? submodulesOf(options, deps, depth) : null
  return new GitSource({ url, ref, semver, dir, ...backendsOf(options, deps), verifyKeys: verify?.keys, nowMs, packsMax, submodules })
}

/** By itself the library, and the program for what is too large for it. */
function backendsOf(options: GitOpenOptions, deps: GitDeps): { backend: GitBackend; larger: (() => GitBackend) | null } {
  const { url, ref, semver, client = 'auto', secrets, stallMs, answerBytesMax } = options
  const { fetcher, tokens, clock } = deps
  const place = `${semver ?? ref} of ${url}`
  const access = secrets === null ? null : async () => webAccess(url, await secrets(), tokens)
  const web = isWebUrl(url) ? createGitWeb({ url, fetcher, access, clock, stallMs, answerBytesMax }) : null
  const program = () => programOf(options, deps, web, place)
  if (web !== null && client !== 'cli')
    return { backend: createGitLibrary({ url, place, web }), larger: client === 'auto' ? program : null }
  if (web === null && (client === 'library' || sshPlace(url) === null))
    throw new AppError('source_refused', {
      detail: `${url}: only https and http can be read without the git program`,
      remedy: 'Leave spec.git.client away.',
    })
  return { backend: program(), larger: null }
}

function programOf(
  { url, secrets, dir, fetchMs, diskBytesMax }: GitOpenOptions,
  deps: GitDeps,
  web: GitWeb | null,
  place: string,
): GitBackend {
  const { allowedAddress, proxyOf, clock, stopping, programs } = deps
  const kept = { url, place, dir, web, secrets: secrets ?? (async () => ({})), fetchMs, diskBytesMax }
  return createGitCli({ ...kept, allowedAddress, proxyOf, clock, stopping, programs })
}

function submodulesOf(parent: GitOpenOptions, deps: GitDeps, depth: number): SubmoduleOpener {
  const opened = new SizedCache<Source>(SUBMODULES_OPEN_MAX, () => 1)
  return async (path, commit, gitmodules) => {
    if (depth >= SUBMODULE_DEPTH_MAX) throw refused(`${path} is a submodule below ${SUBMODULE_DEPTH_MAX} others: that deep nothing is read`)
    const urls = gitmodules === null ? new Map<string, string>() : readGitmodules(gitmodules)
    if (urls === null) throw refused(`.gitmodules cannot be read, or names more than ${SUBMODULES_MAX} submodules`)
    const text = urls.get(path)
    if (text === undefined) throw refused(`${path} is a submodule that .gitmodules does not name`)
    const url = submoduleUrl(parent.url, text)
    if (url === null)
      throw refused(
        `${path} is a submodule at an address that is not read: https, http, ssh, or relative to its repository; no credentials in it`,
      )
    const key = `${url} ${commit}`
    const source = opened.get(key) ?? openAt(submoduleOptions(parent, url, commit), deps, depth + 1)
    opened.set(key, source)
    if (!(await source.has(commit))) await source.fetch()
    return (await source.open(commit, { path: '.' })).tree
  }
}

/** The commit is named by what was verified, so that its own signature adds nothing. Credentials are for the host that they were written for. */
function submoduleOptions(parent: GitOpenOptions, url: string, commit: string): GitOpenOptions {
  const { semver: _, verify: __, ...rest } = parent
  const dir = join(`${parent.dir}.modules`, sha256Hex(url).slice(0, 16))
  return { ...rest, url, ref: commit, dir, secrets: isSameHost(parent.url, url) ? parent.secrets : null }
}

const refused = (detail: string): AppError => new AppError('source_refused', { detail })
