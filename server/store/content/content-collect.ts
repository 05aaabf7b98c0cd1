// ST12: unreferenced content is set aside, where it can still be read, and removed a day later. Without locks, also if
// several servers share one folder: code that is about to refer to content first puts or refreshes it, under its own
// name. Content that was set aside at that very moment is referred to long before its day is over, and returned.
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import type { Pace } from '../../../shared/runtime/pace.ts'
import type { Random } from '../../../shared/runtime/random.ts'
import type { ContentFiles } from './content-files.ts'
import { asidePath, contentPath, isContentFolder, readContentName, temporaryPath } from './content-names.ts'
import { isWhole } from './file-content-store.ts'

/** Nothing younger is touched: it may be about to get a reference. */
export const YOUNG_MS = 60 * 60_000
/** A snapshot of the store finds its content for as long: a backup needs no lock, and a dump of a database that was
 *  made a little before it is as good. */
export const ASIDE_MS = 24 * 60 * 60_000
const ROUND_MS = 60 * 60_000
/** Names that are looked up in the store at once. */
const NAMES = 50

export interface CollectDeps {
  files: ContentFiles
  /** Those of the names that something refers to, as of now. */
  referenced(sha256s: readonly string[]): Promise<ReadonlySet<string>>
  clock: Pick<Clock, 'nowMs'>
  pace?: Pace
}

export interface Collected {
  /** Set aside. */
  aside: number
  /** Referred to again. */
  back: number
  removed: number
  bytes: number
  /** The number of files that crashes left. */
  leftovers: number
}

/** Until the signal. */
export async function maintainContent(
  deps: CollectDeps & { clock: Clock; random: Random; log: Logger },
  signal: AbortSignal,
): Promise<void> {
  const { clock, random, log } = deps
  for (;;) {
    await clock.sleep(ROUND_MS * (0.5 + random()), signal)
    if (signal.aborted) return
    try {
      const done = await collectContent(deps, signal)
      if (Object.values(done).some((count) => count > 0)) log.info('content store collected', { ...done })
    } catch (error) {
      if (!signal.aborted) log.error('the content store cannot be collected', { error: describeError(error) })
    }
  }
}

/** One round over the whole folder. */
export async function collectContent(deps: CollectDeps, signal?: AbortSignal): Promise<Collected> {
  const done: Collected = { aside: 0, back: 0, removed: 0, bytes: 0, leftovers: 0 }
  for (const folder of (await deps.files.list('')).filter(isContentFolder)) {
    if (signal?.aborted) break
    await collectFolder(deps, folder, done)
  }
  return done
}

async function collectFolder(deps: CollectDeps, folder: string, done: Collected): Promise<void> {
  const { files } = deps
  const old: Record<'content' | 'aside', string[]> = { content: [], aside: [] }
  for (const name of await files.list(folder)) {
    const read = readContentName(folder, name)
    if (read.kind === 'foreign') continue
    if (read.kind === 'aside') old.aside.push(read.sha256)
    else if (await isOld(deps, `${folder}/${name}`, YOUNG_MS)) {
      if (read.kind === 'content') old.content.push(read.sha256)
      else {
        await files.remove(`${folder}/${name}`)
        done.leftovers++
      }
    }
    await deps.pace?.()
  }
  for (const [names, each] of [
    [old.content, setAside],
    [old.aside, settle],
  ] as const) {
    for (let start = 0; start < names.length; start += NAMES) {
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
  // Its age once more, after the references: code that refers to it since then refreshed it before.
  if (referenced || !(await isOld(deps, path, YOUNG_MS))) return
  if ((await files.stat(aside)) !== null) return // an older one waits there: first that
  if (!(await files.touch(path))) return // its day begins
  if (await files.rename(path, aside)) done.aside++
}

async function settle(deps: CollectDeps, sha256: string, referenced: boolean, done: Collected): Promise<void> {
  const { files } = deps
  const aside = asidePath(sha256)
  if (referenced) {
    done.back++
    return giveBack(files, sha256)
  }
  if (!(await isOld(deps, aside, ASIDE_MS))) return
  const doomed = await claim(files, sha256)
  if (doomed === null) return
  const claimed = await files.stat(doomed)
  if (claimed !== null && isOlder(deps, claimed.mtimeMs, ASIDE_MS)) {
    done.removed++
    done.bytes += claimed.bytes
  } else await files.link(doomed, contentPath(sha256))
  await files.remove(doomed)
}

/** Never in the place of what was put meanwhile, unless that is damaged. */
async function giveBack(files: ContentFiles, sha256: string): Promise<void> {
  const [path, aside] = [contentPath(sha256), asidePath(sha256)]
  const linked = await files.link(aside, path)
  if (linked === 'exists' && !(await isWhole(files, path, sha256)) && (await isWhole(files, aside, sha256))) {
    await files.rename(aside, path)
    return
  }
  const doomed = await claim(files, sha256)
  if (doomed === null) return
  await files.link(doomed, path) // nearly always it is there
  await files.remove(doomed)
}

/**
 * Meanwhile another server may remove a file that is set aside, and set aside one that was put since. Under a name of
 * our own it cannot become another file any more; its content must be checked then.
 */
async function claim(files: ContentFiles, sha256: string): Promise<string | null> {
  const doomed = temporaryPath(sha256)
  return (await files.rename(asidePath(sha256), doomed)) ? doomed : null
}

/** A time that is still to come is of a clock that was set back: young, to be careful. */
const isOlder = ({ clock }: Pick<CollectDeps, 'clock'>, mtimeMs: number, ms: number): boolean => clock.nowMs() - mtimeMs >= ms

async function isOld(deps: CollectDeps, path: string, ms: number): Promise<boolean> {
  const found = await deps.files.stat(path)
  return found !== null && isOlder(deps, found.mtimeMs, ms)
}
