// The maintenance of shard files while they are served: each is checked about once an hour (CU2), a damaged one is
// rebuilt, one that is mostly history is compacted (RP3). One after the other, spread over the hour.
import type { Clock } from '../../shared/runtime/clock.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { startWorker, WorkerLine } from '../store/worker-line.ts'
import { type RewriteDeps, rewriteShard } from './rewrite-shard.ts'
import type { OpenedShards } from './shard-files.ts'
import { compactionDue, type ShardReport } from './shard-report.ts'

export const ROUND_MS = 60 * 60_000
/** A failure within this time after a check is not one that a check finds. */
const TROUBLE_MS = 60_000
/** A Worker that is busy for longer hangs. */
const LOOK_MS_MAX = 10 * 60_000

export interface MaintenanceDeps extends RewriteDeps {
  opened: RewriteDeps['opened'] & Pick<OpenedShards, 'onTrouble'>
  shardCount: number
  /** Default: in a Worker of its own. */
  examine?: (path: string, signal: AbortSignal) => Promise<ShardReport>
  clock: Clock
  random: Random
}

/** Until the signal. A file that gave trouble is looked through at once. */
export async function maintainShards(deps: MaintenanceDeps, signal: AbortSignal): Promise<void> {
  const { shardCount, clock, random, log, opened } = deps
  const lookedMs = new Map<number, number>()
  const hurried = new Set<number>()
  let bell = new AbortController()
  opened.onTrouble((index) => {
    if (clock.nowMs() - (lookedMs.get(index) ?? 0) < TROUBLE_MS) return
    hurried.add(index)
    bell.abort()
  })
  for (let next = 0; ; ) {
    bell = new AbortController()
    if (hurried.size === 0) await clock.sleep((ROUND_MS / shardCount) * (0.5 + random()), AbortSignal.any([signal, bell.signal]))
    if (signal.aborted) return
    const [index = next] = hurried
    const trouble = hurried.delete(index)
    if (!trouble) next = (next + 1) % shardCount
    try {
      const outcome = await maintainShard(deps, index, signal)
      if (!trouble || outcome !== 'whole') continue
      log.warn('a shard file had errors and is intact: opened again', { shard: index })
      opened.reopen(index, () => {})
    } catch (error) {
      if (!signal.aborted) log.error('maintenance of a shard file failed', { shard: index, error: describeError(error) })
    } finally {
      lookedMs.set(index, clock.nowMs())
    }
  }
}

export async function maintainShard(deps: MaintenanceDeps, index: number, signal: AbortSignal): Promise<'whole' | 'compacted' | 'rebuilt'> {
  const { opened, clock, log, examine = (path) => examineInWorker(path, clock, signal) } = deps
  const { damage, ...counts } = await examine(opened.pathOf(index), signal)
  if (damage === null && !compactionDue(counts)) return 'whole'
  const startedMs = clock.nowMs()
  const outcome = damage === null ? 'compacted' : 'rebuilt'
  if (damage === null) log.info('a shard file is mostly history: compacting it', { shard: index, ...counts })
  else
    log.error('a shard file is damaged: rebuilding it from the fleet store; its clusters fetch the differences', {
      shard: index,
      why: damage,
    })
  await rewriteShard(deps, index, outcome)
  log.info('shard file rebuilt', { shard: index, outcome, ms: clock.nowMs() - startedMs })
  return outcome
}

async function examineInWorker(path: string, clock: Clock, signal: AbortSignal): Promise<ShardReport> {
  const line = new WorkerLine<string, ShardReport>({
    start: () => startWorker('desired/check-worker'),
    clock,
    answerMsMax: LOOK_MS_MAX,
    onDied: (why) => new Error(`the worker that checks shard files failed: ${why}`),
  })
  signal.throwIfAborted()
  const stop = () => line.end(new Error('the server is stopping'))
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await line.ask(path)
  } finally {
    signal.removeEventListener('abort', stop)
    line.end(null)
  }
}
