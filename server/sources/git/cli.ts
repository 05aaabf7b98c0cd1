// Git by its own program: for ssh, and for repositories that are too large to be held in memory. Only commits and
// folders are fetched, one commit deep; contents of files come in one go when they are read.
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isDiskFull } from '../../../shared/adapters/sqlite.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { unreachedText } from '../address/resolve.ts'
import { SizedCache } from '../sized-cache.ts'
import type { GitSecrets } from './auth.ts'
import { type BatchObject, BatchReader } from './cat-file.ts'
import { packBytes, removeUnfinished } from './folder.ts'
import type { GitWeb } from './http.ts'
import { KeptFiles } from './kept-files.ts'
import { BlobBudget } from './limits.ts'
import {
  type BlobWanted,
  type GitBackend,
  GitDamaged,
  type GitFolder,
  type GitObjects,
  type GitText,
  type GitWant,
  type RemoteRef,
} from './objects.ts'
import { keyFingerprint, removePrivateFolders, withPrivateFolder, writeSshFiles, writeWebFiles } from './private.ts'
import { type GitDone, type GitRun, runGit } from './process.ts'
import { flags, OWN_ENV, OWN_FLAGS, PARTIAL } from './program-config.ts'
import { readProblem } from './program-errors.ts'
import { programFailure } from './program-failure.ts'
import { readTree } from './text.ts'
import { type SshPlace, sshPlace } from './url.ts'

export const GIT_FETCH_MS = 10 * 60_000
export const GIT_LOOK_MS = 60_000
const READ_MS = 2 * 60_000
export const GIT_DISK_BYTES_MAX = 4 * 1024 * 1024 * 1024
const FOLDER_ENTRIES_KEPT_MAX = 50_000
const HEAD_REF = 'refs/skerry/head'
const INCOMING = 'refs/skerry/incoming'

export interface GitCliOptions {
  url: string
  place: string
  /** The source's folder: what is private lies beside it. */
  dir: string
  /** Null if it is reached by ssh. */
  web: GitWeb | null
  /** The secrets for ssh alone. */
  secrets(): Promise<GitSecrets>
  /** The name of the Config, for messages. */
  config?: string | undefined
  /** The address to connect to instead of the host; throws if it is refused. */
  allowedAddress(host: string): Promise<string>
  /** The proxy for http. Null for a direct connection. */
  proxyOf(url: string): string | null
  clock: Clock
  stopping: AbortSignal | null
  /** SourceDeps.cancelled. */
  cancelled?: (() => AbortSignal | undefined) | undefined
  /** SourceDeps.owner; '': there is no other one. */
  owner: string
  /** Paths. */
  programs: { git: string | null; ssh: string | null }
  fetchMs?: number | undefined
  diskBytesMax?: number | undefined
}

export function createGitCli(options: GitCliOptions): GitBackend {
  return new GitCli(options)
}

class GitCli implements GitBackend {
  private readonly options: GitCliOptions
  private readonly ssh: SshPlace | null
  private readonly kept = new KeptFiles()
  private readonly trees = new SizedCache<GitFolder>(FOLDER_ENTRIES_KEPT_MAX, ({ size }) => size + 1)
  /** Requests to the remote and writes of refs, one after the other. */
  private turn: Promise<unknown> = Promise.resolve()
  private swept = false

  constructor(options: GitCliOptions) {
    // Spelled in the one way that git cannot read as another host than the one that is checked: `https://a\@b/` is at b
    // for git, and at a for everybody else.
    this.options = options.web === null ? options : { ...options, url: new URL(options.url).href }
    this.ssh = options.web === null ? sshPlace(options.url) : null
  }

  release(): void {}

  async refs(prefixes: readonly string[]): Promise<RemoteRef[]> {
    const { web, url } = this.options
    if (web !== null) return web.refs(prefixes)
    // A ref is requested by its name, with the target of an annotated tag.
    const areTags = prefixes.every((prefix) => prefix === 'refs/tags/')
    const patterns = areTags ? [] : prefixes.flatMap((prefix) => [prefix, `${prefix}^{}`])
    const args = ['ls-remote', '--quiet', ...(areTags ? ['--tags'] : []), '--', url, ...patterns]
    const done = await this.inTurn(() => this.speak(args, 'look up', GIT_LOOK_MS))
    if (done.exitCode !== 0) throw await this.failure('look up', done)
    return readListing(done.stdout)
  }

  async fetch(gitdir: string, want: GitWant): Promise<string | null> {
    if (!existsSync(join(gitdir, 'HEAD'))) await this.init(gitdir)
    if ('commit' in want) return (await this.has(gitdir, want.commit)) ? want.commit : this.fetchOne(gitdir, want.commit)
    const known = this.options.web === null ? null : (await this.refs(want.refs)).map(({ name }) => name)
    for (const ref of want.refs) {
      const oid = known === null || known.includes(ref) ? await this.fetchOne(gitdir, ref) : null
      if (oid !== null) return oid
    }
    return null
  }

  private async init(gitdir: string): Promise<void> {
    await mkdir(gitdir, { recursive: true, mode: 0o700 })
    const done = await this.run({ args: ['init', '--quiet', '--bare', '--template=', gitdir], env: {}, timeoutMs: READ_MS })
    if (done.exitCode !== 0) throw await this.failure('fetch', done)
  }

  private async fetchOne(gitdir: string, what: string): Promise<string | null> {
    const done = await this.fetchInto(gitdir, ['--depth=1', 'origin', `+${what}:${INCOMING}`])
    if (done.exitCode !== 0 || done.stopped !== null) {
      if (done.stopped === null && readProblem(done.stderr).kind === 'no_ref') return null
      throw await this.failure('fetch', done)
    }
    const parsed = await this.run({ args: [`--git-dir=${gitdir}`, 'rev-parse', '--verify', INCOMING], env: {}, timeoutMs: READ_MS })
    const oid = parsed.stdout.trim()
    if (!/^[0-9a-f]{40}$/.test(oid)) throw await this.failure('fetch', parsed)
    return oid
  }

  private fetchInto(
    gitdir: string,
    args: readonly string[],
    more: Readonly<Record<string, string>> = {},
    stdin?: string,
  ): Promise<GitDone> {
    const { url, diskBytesMax = GIT_DISK_BYTES_MAX, fetchMs = GIT_FETCH_MS } = this.options
    const config = flags({ ...PARTIAL, ...more, 'remote.origin.url': url })
    const options = [
      '--quiet',
      '--no-tags',
      '--no-write-fetch-head',
      '--no-recurse-submodules',
      '--no-auto-maintenance',
      '--filter=blob:none',
    ]
    const tooLarge = `is larger than ${diskBytesMax / 1024 / 1024} MiB on the disk of this server`
    const watch = async () => ((await packBytes(gitdir)) > diskBytesMax ? tooLarge : null)
    return this.inTurn(async () => {
      await removeUnfinished(gitdir)
      const done = await this.speak([...config, `--git-dir=${gitdir}`, 'fetch', ...options, ...args], 'fetch', fetchMs, stdin, watch)
      // A small step over the limit can be quicker than the look at it.
      if (done.stopped !== null || (await watch()) !== null) await removeUnfinished(gitdir)
      return done.stopped === null && (await watch()) !== null ? { ...done, stopped: { why: 'limit', message: tooLarge } } : done
    })
  }

  /** The tip is what the remote learns; `INCOMING` may be a commit that was refused. */
  async keep(gitdir: string, commit: string): Promise<void> {
    const args = [`--git-dir=${gitdir}`, 'update-ref', HEAD_REF, commit]
    const done = await this.inTurn(() => this.run({ args, env: {}, timeoutMs: READ_MS }))
    if (done.exitCode !== 0) throw await this.failure('fetch', done)
  }

  async has(gitdir: string, commit: string): Promise<boolean> {
    if (!existsSync(join(gitdir, 'HEAD'))) return false
    return (await this.text(gitdir, commit).catch(() => null)) !== null
  }

  /** Seen by what fails. */
  async isDamaged(): Promise<boolean> {
    return false
  }

  async isSound(gitdir: string): Promise<boolean> {
    const kept = await this.run({
      args: [`--git-dir=${gitdir}`, 'rev-parse', '--verify', '--quiet', HEAD_REF],
      env: {},
      timeoutMs: READ_MS,
    })
    return kept.exitCode === 0 && (await this.has(gitdir, kept.stdout.trim()))
  }

  objects(gitdir: string): GitObjects {
    return {
      text: (oid) => this.text(gitdir, oid),
      folders: (oids) => this.folders(gitdir, oids),
      blobs: (wanted) => this.blobs(gitdir, wanted),
      bring: (oids) => this.bring(gitdir, oids),
    }
  }

  private async text(gitdir: string, oid: string): Promise<GitText | null> {
    const { found } = await this.read(gitdir, [oid], limit('a commit', 1024 * 1024))
    const [object] = found
    return object?.type === 'commit' || object?.type === 'tag' ? { type: object.type, text: object.bytes } : null
  }

  private async folders(gitdir: string, oids: readonly string[]): Promise<GitFolder[]> {
    const missing = [...new Set(oids)].filter((oid) => this.trees.get(oid) === undefined)
    const read = new Map<string, GitFolder>()
    const { found } = missing.length === 0 ? { found: [] } : await this.read(gitdir, missing, limit('a folder', 16 * 1024 * 1024))
    for (const { oid, type, bytes } of found) {
      const folder = type === 'tree' ? readTree(bytes) : null
      if (folder === null) continue
      read.set(oid, folder)
      this.trees.set(oid, folder)
    }
    return oids.map((oid) => {
      const folder = read.get(oid) ?? this.trees.get(oid)
      if (folder === undefined) throw new AppError('git_failed', { detail: `read ${this.options.place}: folder ${oid} is missing` })
      return folder
    })
  }

  private async blobs(gitdir: string, wanted: readonly BlobWanted[]): Promise<Map<string, Uint8Array>> {
    const found = new Map<string, Uint8Array>()
    const budget = new BlobBudget(wanted)
    for (const { oid } of wanted) {
      const held = found.has(oid) ? undefined : this.kept.get(oid)
      if (held === undefined) continue
      budget.count(oid, held.byteLength)
      found.set(oid, held)
    }
    const take = async (oids: readonly string[]): Promise<readonly string[]> => {
      if (oids.length === 0) return []
      const read = await this.read(gitdir, oids, (oid, _, bytes) => budget.count(oid, bytes))
      for (const { oid, bytes } of read.found) {
        found.set(oid, bytes)
        this.kept.set(oid, bytes)
      }
      return read.missing
    }
    const missing = await take([...new Set(wanted.map(({ oid }) => oid))].filter((oid) => !found.has(oid)))
    if (missing.length === 0) return found
    await this.fetchBlobs(gitdir, missing)
    await take(missing)
    return found
  }

  private async bring(gitdir: string, oids: readonly string[]): Promise<void> {
    const asked = [...new Set(oids)].filter((oid) => this.kept.get(oid) === undefined)
    if (asked.length === 0) return
    const args = [`--git-dir=${gitdir}`, 'cat-file', '--batch-check=%(objectname)', '--buffer']
    const done = await this.run({ args, env: {}, stdin: `${asked.join('\n')}\n`, timeoutMs: READ_MS })
    if (done.exitCode !== 0) throw await this.failure('read', done)
    const missing = done.stdout.split('\n').flatMap((line) => (line.endsWith(' missing') ? [line.slice(0, 40)] : []))
    if (missing.length > 0) await this.fetchBlobs(gitdir, missing)
  }

  private async fetchBlobs(gitdir: string, oids: readonly string[]): Promise<void> {
    // Nothing is said of what is here: the other side would take it for granted that a commit came with its files.
    const alone = { 'fetch.negotiationAlgorithm': 'noop' }
    const done = await this.fetchInto(gitdir, ['--stdin', 'origin'], alone, `${oids.join('\n')}\n`)
    if (done.exitCode !== 0 || done.stopped !== null) throw await this.failure('fetch files', done)
  }

  private async read(
    gitdir: string,
    oids: readonly string[],
    onHead: (oid: string, type: string, bytes: number) => void,
  ): Promise<{ found: BatchObject[]; missing: readonly string[] }> {
    const found: BatchObject[] = []
    const reader = new BatchReader(onHead, (object) => found.push(object))
    const args = [`--git-dir=${gitdir}`, 'cat-file', '--batch', '--buffer']
    const onOutput = (chunk: Uint8Array) => reader.push(chunk)
    const done = await this.run({ args, env: {}, stdin: `${oids.join('\n')}\n`, timeoutMs: READ_MS, onOutput })
    if (done.exitCode !== 0 && done.stopped === null) throw new GitDamaged(await this.failure('read', done))
    if (done.exitCode !== 0) throw await this.failure('read', done)
    return { found, missing: reader.missing }
  }

  /** With whatever the other side wants, and nothing of it left behind. */
  private async speak(
    args: readonly string[],
    doing: string,
    timeoutMs: number,
    stdin?: string,
    watch?: GitRun['watch'],
  ): Promise<GitDone> {
    try {
      if (!this.swept) await removePrivateFolders(this.options.dir, this.options.owner)
      this.swept = true
      const bounds = { timeoutMs, ...(stdin === undefined ? {} : { stdin }), ...(watch === undefined ? {} : { watch }) }
      const run = (logLevel: 'ERROR' | 'DEBUG1') =>
        withPrivateFolder(this.options.dir, this.options.owner, async (folder) => {
          const { env, config } = await this.entry(folder, logLevel)
          return this.run({ args: [...flags(config), ...args], env: { HOME: folder, ...env }, ...bounds })
        })
      const done = await run('ERROR')
      const problem = this.ssh === null || done.exitCode === 0 ? null : readProblem(done.stderr)
      // The fingerprint of an unknown key appears only in ssh's debug output.
      return problem?.kind === 'host_key' && !problem.isChanged ? await run('DEBUG1') : done
    } catch (error) {
      throw this.translate(doing, error)
    }
  }

  private inTurn<T>(act: () => Promise<T>): Promise<T> {
    const mine = this.turn.then(act)
    this.turn = mine.catch(() => {})
    return mine
  }

  private async entry(
    folder: string,
    logLevel: 'ERROR' | 'DEBUG1',
  ): Promise<{ env: Record<string, string>; config: Record<string, string> }> {
    const { web, url, programs, secrets, allowedAddress, proxyOf } = this.options
    if (this.ssh !== null) {
      if (programs.ssh === null)
        throw new AppError('git_program_missing', { detail: `${this.ssh.host} uses ssh, and no ssh program is installed` })
      const address = await this.address(this.ssh.host, allowedAddress)
      const use = { place: this.ssh, secrets: await secrets(), config: this.options.config, address, program: programs.ssh, logLevel }
      const files = await writeSshFiles(folder, use)
      return { env: { ...files, GIT_ALLOW_PROTOCOL: 'ssh' }, config: {} }
    }
    if (web === null) throw new AppError('source_refused', { detail: `${url} is not the address of a Git repository` })
    const { hostname, port, protocol } = new URL(url)
    const proxy = proxyOf(url)
    const files = await writeWebFiles(folder, { ...(await web.granted()), proxy })
    if (proxy !== null) return { env: { ...files, GIT_ALLOW_PROTOCOL: protocol.slice(0, -1) }, config: {} }
    const address = await this.address(hostname, allowedAddress)
    const pinned = `${hostname}:${port === '' ? (protocol === 'https:' ? 443 : 80) : port}:${address.includes(':') ? `[${address}]` : address}`
    return { env: { ...files, GIT_ALLOW_PROTOCOL: protocol.slice(0, -1) }, config: { 'http.curloptResolve': pinned } }
  }

  private async address(host: string, allowedAddress: GitCliOptions['allowedAddress']): Promise<string> {
    try {
      return await allowedAddress(host)
    } catch (error) {
      if (error instanceof AppError) throw error
      throw new AppError('git_unreachable', { detail: `the Git server ${host} ${unreachedText(error)}` }, { cause: error })
    }
  }

  private run(run: Omit<GitRun, 'program'>): Promise<GitDone> {
    const { programs, clock, stopping, cancelled } = this.options
    if (programs.git === null)
      throw new AppError('git_program_missing', { detail: `${this.options.place} needs the git program, which is not installed` })
    return runGit(
      { ...run, program: programs.git, args: [...OWN_FLAGS, ...run.args], env: { ...OWN_ENV, ...run.env } },
      { clock, stopping, cancelled: cancelled?.() },
    )
  }

  private async failure(doing: string, done: GitDone): Promise<AppError> {
    const { place, url } = this.options
    const host = this.ssh?.host ?? new URL(url).host
    const knownHosts = async () => (await this.options.secrets())['knownHosts'] ?? ''
    return programFailure(done, { doing, place, host, ssh: this.ssh, tried: () => this.tried(), knownHosts })
  }

  private async tried(): Promise<string> {
    const { web, secrets } = this.options
    if (web !== null) return (await web.granted()).what
    const fingerprint = keyFingerprint((await secrets())['sshKey'] ?? '')
    return `sshKey${fingerprint === null ? '' : ` ${fingerprint}`}${this.ssh?.user == null ? '' : ` as ${this.ssh.user}`}`
  }

  translate(doing: string, error: unknown): Error {
    const { place } = this.options
    if (error instanceof AppError) return error
    if (isDiskFull(error)) return new AppError('disk_full', { doing: `${doing}: ${place}` }, { cause: error })
    const detail = `${doing}: ${place}: ${error instanceof Error ? error.message : String(error)}`
    return new AppError('git_failed', { detail }, { cause: error })
  }
}

/** `id TAB name` lines; what a tag leads to is named with `^{}` behind it, after the tag. */
function readListing(text: string): RemoteRef[] {
  const refs = new Map<string, RemoteRef>()
  for (const line of text.split('\n')) {
    const [, oid = '', name = '', peeled] = /^([0-9a-f]{40})\t(\S+?)(\^\{\})?$/.exec(line) ?? []
    if (oid !== '' && (peeled === undefined || refs.has(name))) refs.set(name, { name, oid: refs.get(name)?.oid ?? oid, commit: oid })
  }
  return [...refs.values()]
}

const limit = (what: string, bytesMax: number) => (oid: string, _: string, bytes: number) => {
  if (bytes > bytesMax) throw new AppError('source_refused', { detail: `${what}, ${oid}, is larger than ${bytesMax / 1024 / 1024} MiB` })
}
