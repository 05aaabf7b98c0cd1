// ST12: what nothing refers to any more is set aside, and removed a day later. Without locks, also where several servers share one folder: whoever is about to
// refer to content makes it of now first, under its own name; so what is set aside is either found to be of now and given back, or was not about to be used.
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { Pace } from '../../shared/runtime/pace.ts'
import type { Random } from '../../shared/runtime/random.ts'
import type { ContentFiles } from './content-files.ts'
import { asidePath, contentPath, isContentFolder, isHold, readContentName, temporaryPath } from './content-names.ts'
import { isWhole } from './file-content-store.ts'

/** Nothing younger is touched: somebody may be about to refer to it. */
export const YOUNG_MS = 60 * 60_000
/** A database that was dumped before the content was copied finds its content all the same. */
export const ASIDE_MS = 24 * 60 * 60_000
/** A backup that lasts keeps its hold of now; an older one is of a process that died. */
export const HOLD_MS = 24 * 60 * 60_000
const ROUND_MS = 60 * 60_000
/** Names that are looked up in the store at once. */
const NAMES = 50

export interface CollectDeps {
  files: ContentFiles
  /** Those of the names that something refers to, as of now. */
  referenced(sha256s: readonly string[]): Promise<ReadonlySet<string>>
  clock: Clock
  log: Logger
  pace?: Pace
}

export interface Collected {
  /** A backup runs: nothing was done, or no more from then on. */
  held: boolean
  aside: number
  removed: number
  bytes: number
  /** What crashes left. */
  leftovers: number
}

/** Until the signal. */
export async function maintainContent(deps: CollectDeps & { random: Random }, signal: AbortSignal): Promise<void> {
  const { clock, random, log } = deps
  for (;;) {
    await clock.sleep(ROUND_MS * (0.5 + random()), signal)
    if (signal.aborted) return
    try {
      const { held, ...done } = await collectContent(deps, signal)
      if (held) log.info('a backup runs: the content store is not collected')
      else if (Object.values(done).some((count) => count > 0)) log.info('content store collected', done)
    } catch (error) {
      if (!signal.aborted) log.error('the content store cannot be collected', { error: describeError(error) })
    }
  }
}

/** One round over the whole folder. */
export async function collectContent(deps: CollectDeps, signal?: AbortSignal): Promise<Collected> {
  const done: Collected = { held: false, aside: 0, removed: 0, bytes: 0, leftovers: 0 }
  done.held = await isHeld(deps, true)
  for (const folder of (await deps.files.list('')).filter(isContentFolder)) {
    if (done.held || signal?.aborted) break
    await collectFolder(deps, folder, done)
  }
  return done
}

async function collectFolder(deps: CollectDeps, folder: string, done: Collected): Promise<void> {
  const { files } = deps
  const found: Record<'content' | 'aside', string[]> = { content: [], aside: [] }
  for (const name of await files.list(folder)) {
    const read = readContentName(folder, name)
    if (read.kind === 'foreign') continue
    if (read.kind === 'aside') found.aside.push(read.sha256)
    else if (await isOlder(deps, `${folder}/${name}`, YOUNG_MS)) {
      if (read.kind === 'content') found.content.push(read.sha256)
      else {
        await files.remove(`${folder}/${name}`)
        done.leftovers++
      }
    }
    await deps.pace?.()
  }
  // After the listing: what was put since is not in it, and what is in it and about to be referred to is made of now first.
  for (const [names, each] of [
    [found.content, setAside],
    [found.aside, settle],
  ] as const) {
    for (let start = 0; start < names.length && !done.held; start += NAMES) {
      const batch = names.slice(start, start + NAMES)
      const referenced = await deps.referenced(batch)
      for (const sha256 of batch) await each(deps, sha256, referenced.has(sha256), done)
      await deps.pace?.()
    }
  }
}

async function setAside(deps: CollectDeps, sha256: string, referenced: boolean, done: Collected): Promise<void> {
  const { files } = deps
  const [path, aside] = [contentPath(sha256), asidePath(sha256)]
  if (referenced || !(await isOlder(deps, path, YOUNG_MS))) return
  if ((await files.stat(aside)) !== null || !(await files.rename(path, aside))) return // an older one waits there: first that
  // Somebody may have made it of now between the two steps: from here on nobody can, because that is done under its own name.
  const moved = await files.stat(aside)
  if (moved === null) return // another server's collection was faster
  if (isYoung(deps, moved.mtimeMs, YOUNG_MS) || (await deps.referenced([sha256])).has(sha256)) return giveBack(deps, sha256)
  await files.touch(aside)
  done.aside++
}

async function settle(deps: CollectDeps, sha256: string, referenced: boolean, done: Collected): Promise<void> {
  const { files } = deps
  const aside = asidePath(sha256)
  if (referenced) return giveBack(deps, sha256)
  const found = await files.stat(aside)
  if (found === null || isYoung(deps, found.mtimeMs, ASIDE_MS)) return
  // The hold after the references: a backup that reads references takes its hold first.
  done.held ||= await isHeld(deps, false)
  if (done.held) return
  // Another server may have removed it, and set aside what was put since: only what is under a name of our own cannot become another file any more.
  const doomed = temporaryPath(sha256)
  if (!(await files.rename(aside, doomed))) return
  const claimed = await files.stat(doomed)
  if (claimed !== null && isYoung(deps, claimed.mtimeMs, ASIDE_MS)) await files.link(doomed, contentPath(sha256))
  else {
    done.removed++
    done.bytes += found.bytes
  }
  await files.remove(doomed)
}

/** Of now, because whoever made it of now may not have referred to it yet. It never takes the place of what was put meanwhile, unless that is damaged. */
async function giveBack({ files }: CollectDeps, sha256: string): Promise<void> {
  const [path, aside] = [contentPath(sha256), asidePath(sha256)]
  await files.touch(aside)
  const linked = await files.link(aside, path)
  const better = linked === 'exists' && !(await isWhole(files, path, sha256)) && (await isWhole(files, aside, sha256))
  if (better) await files.rename(aside, path)
  else await files.remove(aside)
}

async function isHeld({ files, clock }: CollectDeps, clean: boolean): Promise<boolean> {
  let held = false
  for (const name of (await files.list('')).filter(isHold)) {
    const found = await files.stat(name)
    if (found === null) continue
    if (isYoung({ clock }, found.mtimeMs, HOLD_MS)) held = true
    else if (clean) await files.remove(name)
  }
  return held
}

/** A time that is still to come is of a clock that was set back: young, to be careful. */
const isYoung = ({ clock }: Pick<CollectDeps, 'clock'>, mtimeMs: number, ms: number): boolean => clock.nowMs() - mtimeMs < ms

async function isOlder(deps: CollectDeps, path: string, ms: number): Promise<boolean> {
  const found = await deps.files.stat(path)
  return found !== null && !isYoung(deps, found.mtimeMs, ms)
}
