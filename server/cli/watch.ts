// get --watch: the list, then each changed item again. The feed names the changes, and only those are read again.
import { AppError } from '../../shared/runtime/error.ts'
import type { Context } from './context.ts'
import { type FollowStep, follow, gathered, patiently } from './follow.ts'
import { type Shown, WATCHING, type WatchedKind } from './watch-kinds.ts'

/** Changes in quick succession are read together. */
const GATHER_MS = 250
/** After reading, as many times as long as that took… */
const REST_TIMES = 4
/** …at most. */
const REST_MS_MAX = 30_000
/** More than these are listed. */
const ONE_BY_ONE_MAX = 20

export interface Watched<T> {
  kind: WatchedKind
  shown: Omit<Shown, 'items'>
  list(): Promise<readonly T[]>
  /** Where one can be asked for by its key; not with a filter that it may no longer match. */
  one?: ((key: string) => Promise<T>) | undefined
  /** Key of the only one that is asked for. */
  only?: string | undefined
  keyOf(item: T): string
  print(items: readonly T[]): void
  /** It is no more, or no longer matches. */
  printGone(key: string): void
}

export async function watch<T>(context: Context, watched: Watched<T>): Promise<void> {
  const { topics } = WATCHING[watched.kind]
  const signal = context.io.signal ?? new AbortController().signal
  let held: ReadonlyMap<string, T> | null = null
  for await (const steps of gathered(follow(context, topics, signal), GATHER_MS, context.io.clock)) {
    const about: 'all' | ReadonlySet<string> = held === null ? 'all' : aboutOf(watched, steps, held)
    if (about !== 'all' && about.size === 0) continue
    const startedMs = context.io.clock.nowMs()
    // Before any output a failure is reported, as by any other command.
    const now: ReadonlyMap<string, T> =
      held === null ? await listed(watched) : await patiently(context, signal, () => readAgain(watched, about, held ?? new Map()))
    if (signal.aborted) return
    const before: ReadonlyMap<string, T> = held ?? new Map()
    const changed = [...now].filter(([key, item]) => textOf(before.get(key)) !== textOf(item)).map(([, item]) => item)
    if (changed.length > 0) watched.print(changed)
    for (const key of before.keys()) if (!now.has(key)) watched.printGone(key)
    held = now
    // A list of ten thousand that change all the time is no reason to read it all the time.
    await context.io.clock.sleep(Math.min(REST_MS_MAX, REST_TIMES * (context.io.clock.nowMs() - startedMs)), signal)
  }
}

function aboutOf<T>(
  { kind, shown, only }: Watched<T>,
  steps: readonly FollowStep[],
  items: ReadonlyMap<string, T>,
): 'all' | ReadonlySet<string> {
  const keys = new Set<string>()
  for (const step of steps) {
    const about = step.kind === 'change' ? WATCHING[kind].about(step.change, { ...shown, items }) : 'all'
    if (about === 'all') return 'all'
    for (const key of about ?? []) if (only === undefined || key === only) keys.add(key)
  }
  return keys
}

const listed = async <T>({ list, keyOf }: Watched<T>): Promise<Map<string, T>> => new Map((await list()).map((item) => [keyOf(item), item]))

async function readAgain<T>(
  watched: Watched<T>,
  about: 'all' | ReadonlySet<string>,
  before: ReadonlyMap<string, T>,
): Promise<Map<string, T>> {
  const { one, only } = watched
  if (one === undefined || (about === 'all' && only === undefined) || (about !== 'all' && about.size > ONE_BY_ONE_MAX))
    return listed(watched)
  const now = new Map(before)
  for (const key of about === 'all' ? [only ?? ''] : about) {
    const item = await one(key).catch(noneIfGone)
    if (item === null) now.delete(key)
    else now.set(key, item)
  }
  return now
}

function noneIfGone(error: unknown): null {
  if (error instanceof AppError && error.code === 'not_found') return null
  throw error
}

/** A contact of an agent, or a read of a repository, is no change. */
const PASSING = new Set(['lastSeenMs', 'lastReadMs', 'nextReadMs'])
const textOf = (item: unknown): string | undefined =>
  JSON.stringify(item, (name, value: unknown) => (PASSING.has(name) ? undefined : value))
