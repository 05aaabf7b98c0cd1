// A Git repository opened as its resource says: with the library or the program, with the secrets of its Config, and
// its submodules as repositories of their own.
import type { GitSpec } from '../../../shared/model/sources.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import type { WebFetcher } from '../address/guard.ts'
import type { Source } from '../source.ts'
import { type GitSecrets, webAccess } from './auth.ts'
import { createGitCli } from './cli.ts'
import { GitSource, type Submodules } from './git-source.ts'
import { createGitWeb, type GitWeb } from './http.ts'
import { createGitLibrary } from './library.ts'
import { Modules } from './modules.ts'
import type { GitBackend } from './objects.ts'
import { readGitmodules, SUBMODULE_DEPTH_MAX, SUBMODULES_MAX } from './submodules.ts'
import type { GitTokens } from './tokens.ts'
import { isSameHost, isWebUrl, sshPlace, submoduleUrl } from './url.ts'
import type { RaiseWatermark } from './watermark.ts'

export interface GitDeps {
  fetcher: WebFetcher
  allowedAddress(host: string): Promise<string>
  /** For http. Null means connect directly. */
  proxyOf(url: string): string | null
  clock: Clock
  stopping: AbortSignal | null
  /** SourceDeps.cancelled. */
  cancelled?: (() => AbortSignal | undefined) | undefined
  /** SourceDeps.owner. Absent means that there is no other one. */
  owner?: string
  tokens: GitTokens
  /** For verified commits of this source's ref. */
  raiseWatermark: RaiseWatermark
  /** Paths. Null means that it is not on this server. */
  programs: { git: string | null; ssh: string | null }
}

export interface GitOpenOptions extends GitSpec {
  dir: string
  /** Secrets of the Config of `auth`, read again for each request. Null means no auth. */
  secrets: (() => Promise<GitSecrets>) | null
  /** The library's limit of one answer without a byte. */
  stallMs?: number | undefined
  answerBytesMax?: number | undefined
  fetchMs?: number | undefined
  packsMax?: number | undefined
  diskBytesMax?: number | undefined
}

/** Programs on PATH. Null means that it is not there. */
export const findGitPrograms = (): GitDeps['programs'] => ({ git: Bun.which('git'), ssh: Bun.which('ssh') })

/** A Git repository, kept in `options.dir`. Asks nothing yet: what the other side says comes with `head` and `fetch`.
 */
export function openGitSource(options: GitOpenOptions, deps: GitDeps): Source {
  const programs: Family['programs'] = new Map()
  const modules = new Modules(`${options.dir}.modules`, deps.clock, (dir) => programs.delete(dir))
  return openAt(options, deps, { depth: 0, modules, programs })
}

/** The repository that a resource names, with all submodules below it. */
interface Family {
  depth: number
  modules: Modules
  /** By folder: two commits of one submodule share one, so that none removes what the other is writing. */
  programs: Map<string, GitBackend>
}

function openAt(options: GitOpenOptions, deps: GitDeps, family: Family): Source {
  const { url, ref, semver, dir, verify, packsMax } = options
  const nowMs = () => deps.clock.nowMs()
  const submodules = options.submodules === true ? submodulesOf(options, deps, family) : null
  return new GitSource({
    url,
    ref,
    semver,
    dir,
    ...backendsOf(options, deps, family),
    verifyKeys: verify?.keys,
    raiseWatermark: deps.raiseWatermark,
    nowMs,
    packsMax,
    submodules,
  })
}

/** By itself the library, and the program for what is too large for it. */
function backendsOf(
  options: GitOpenOptions,
  deps: GitDeps,
  { depth, programs }: Family,
): { backend: GitBackend; larger: (() => GitBackend) | null } {
  const { url, ref, semver, client = 'auto', secrets, stallMs, answerBytesMax } = options
  const { fetcher, tokens, clock } = deps
  const place = depth === 0 ? `${semver ?? ref} of ${url}` : `the submodule ${url}`
  const access = secrets === null ? null : async () => webAccess(url, await secrets(), tokens, options.auth?.secretRef)
  const web = isWebUrl(url) ? createGitWeb({ url, fetcher, access, clock, dir: options.dir, stallMs, answerBytesMax }) : null
  const program = () => {
    const made = programs.get(options.dir) ?? programOf(options, deps, web, { depth, place })
    programs.set(options.dir, made)
    return made
  }
  if (web !== null && client !== 'cli')
    return { backend: createGitLibrary({ url, place, web, clock }), larger: client === 'auto' ? program : null }
  if (web === null && (client === 'library' || sshPlace(url) === null))
    throw new AppError('source_refused', {
      detail: `${url}: only https and http can be read without the git program`,
      remedy: 'Remove spec.git.client.',
    })
  return { backend: program(), larger: null }
}

function programOf(
  { url, secrets, auth, dir, fetchMs, diskBytesMax }: GitOpenOptions,
  deps: GitDeps,
  web: GitWeb | null,
  { depth, place }: { depth: number; place: string },
): GitBackend {
  const { allowedAddress, proxyOf, clock, stopping, cancelled, owner = '', programs } = deps
  const kept = {
    url,
    place,
    dir,
    web,
    secrets: secrets ?? (() => Promise.reject(noConfig(url, depth))),
    config: auth?.secretRef,
    fetchMs,
    diskBytesMax,
  }
  return createGitCli({ ...kept, allowedAddress, proxyOf, clock, stopping, cancelled, owner, programs })
}

/** Ssh always needs a key. */
function noConfig(url: string, depth: number): AppError {
  const host = sshPlace(url)?.host ?? url
  return depth === 0
    ? new AppError('credential_missing', {
        detail: `${host} uses ssh, and no key is configured`,
        remedy: 'Set spec.git.auth.secretRef to a Config with sshKey and knownHosts.',
      })
    : new AppError('credential_missing', {
        detail: `the submodule ${url} uses ssh, and there are no credentials for ${host}`,
        remedy:
          'Set spec.git.submoduleCredentials: true and use the host of the repository in .gitmodules; the Config of spec.git.auth.secretRef needs sshKey and knownHosts.',
      })
}

function submodulesOf(parent: GitOpenOptions, deps: GitDeps, family: Family): Submodules {
  const { depth, modules } = family
  return {
    newCommit: () => modules.newCommit(),
    async open(path, commit, gitmodules) {
      if (depth >= SUBMODULE_DEPTH_MAX) throw refused(`${path} is a submodule nested more than ${SUBMODULE_DEPTH_MAX} deep`)
      const url = moduleUrl(parent.url, path, gitmodules)
      const secrets = parent.submoduleCredentials === true && isSameHost(parent.url, url) ? parent.secrets : null
      const openIn = (dir: string) => openAt(submoduleOptions(parent, { url, commit, dir, secrets }), deps, { ...family, depth: depth + 1 })
      // Content that was read with credentials is not available to a submodule that may not use them.
      const source = await modules.source(secrets === null ? `${url} without` : url, commit, openIn)
      return (await source.open(commit, { path: '.' })).tree
    },
  }
}

function moduleUrl(parentUrl: string, path: string, gitmodules: string | null): string {
  const urls = gitmodules === null ? new Map<string, string>() : readGitmodules(gitmodules)
  if (urls === null) throw refused(`.gitmodules is invalid, or names more than ${SUBMODULES_MAX} submodules`)
  const text = urls.get(path)
  if (text === undefined) throw refused(`${path} is a submodule that .gitmodules does not name`)
  const url = submoduleUrl(parentUrl, text)
  if (url !== null) return url
  throw refused(`${path} is a submodule with an unsupported URL: expected https, http, ssh, or a relative path, without credentials`)
}

/** The commit is named by what was verified, so that its own signature adds nothing. Credentials are for the host that
 *  they were written for. */
function submoduleOptions(
  parent: GitOpenOptions,
  own: Pick<GitOpenOptions, 'url' | 'dir' | 'secrets'> & { commit: string },
): GitOpenOptions {
  const { semver: _, verify: __, ...rest } = parent
  const { commit: ref, ...where } = own
  return { ...rest, ...where, ref }
}

const refused = (detail: string): AppError => new AppError('source_refused', { detail })
