// One question to many clusters: a few at a time, answers as they come, late clusters named, and those that gave none.
import { clusterViewSchema } from '../../../shared/model/views.ts'
import { type AnswerLine, type AskRequest, answerLineSchema } from '../../../shared/protocol/ask.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { type Client, path } from '../client.ts'
import { countText, plainText } from '../columns.ts'
import type { Context } from '../context.ts'
import { UsageError } from '../io.ts'

const CLUSTERS_AT_ONCE = 16
const LATE_MS = 5_000
const LATE_NAMED_MAX = 10
/** The server takes as many open questions of one caller. */
const FOLLOWED_MAX = 64
/** Attempts while the server has too many requests, and the wait after the first of them. */
const BUSY_TRIES_MAX = 12
const BUSY_MS = 1_000
const BUSY_MS_MAX = 15_000

export interface Targets {
  cluster?: string | undefined
  selector?: string | undefined
}

/** Names of clusters. Throws for a selector that selects none. */
export async function targetsOf(client: Client, { cluster, selector }: Targets): Promise<string[]> {
  if ((cluster === undefined) === (selector === undefined))
    throw new UsageError('which cluster? Give --cluster NAME,… or -l SELECTOR for all clusters with these labels')
  if (cluster !== undefined) return [...new Set(cluster.split(',').filter((name) => name !== ''))]
  const found = await client.list('/clusters', clusterViewSchema, { labelSelector: selector })
  if (found.length === 0) throw new UsageError(`no cluster has the labels ${selector}`)
  return found.map(({ metadata }) => metadata.name).sort()
}

export interface Answered {
  answered: number
  failed: number
}

interface FanOut {
  /** Default CLUSTERS_AT_ONCE. */
  atOnce?: number
  /** Before the names of clusters of which nothing has come yet. */
  lateText?: string
}

/** `onLine` is told every line but the last, `onEnd` when a cluster has answered. A failure of one cluster does not end
 *  the others. */
export async function askClusters(
  context: Pick<Context, 'io'>,
  client: Client,
  clusters: readonly string[],
  request: AskRequest,
  onLine: (cluster: string, line: AnswerLine) => void,
  onEnd?: (cluster: string) => void,
): Promise<Answered> {
  const { question } = request
  const follows = question.kind === 'logs' && question.follow === true
  if (follows && clusters.length > FOLLOWED_MAX)
    throw new UsageError(`at most ${FOLLOWED_MAX} clusters can be followed at once, not ${clusters.length}; narrow --cluster or -l`)
  const { signal } = context.io
  const ask = async (cluster: string, heard: () => void) => {
    for await (const line of answerOf(client, cluster, request, signal)) {
      heard()
      onLine(cluster, line)
    }
    onEnd?.(cluster)
  }
  const options = follows ? { atOnce: FOLLOWED_MAX, lateText: 'no log lines yet from' } : {}
  return inClusters(context, clusters, ask, options)
}

/**
 * Does `work` in each cluster, some at a time. A server that is busy is asked again after the time that it names. A
 * failure of one cluster does not end the others; of a single cluster it is thrown.
 */
export async function inClusters(
  { io }: Pick<Context, 'io'>,
  clusters: readonly string[],
  work: (cluster: string, heard: () => void) => Promise<void>,
  { atOnce = CLUSTERS_AT_ONCE, lateText = 'waiting for' }: FanOut = {},
): Promise<Answered> {
  const left = [...clusters]
  const silent = new Set(clusters)
  const failures = new Map<string, AppError>()
  const workPatiently = async (cluster: string) => {
    let isHeard = false
    const heard = () => {
      isHeard = true
      silent.delete(cluster)
    }
    for (let tries = 1; ; tries++) {
      try {
        return await work(cluster, heard)
      } catch (error) {
        const isBusy = error instanceof AppError && error.code === 'too_many_requests'
        if (!isBusy || isHeard || tries >= BUSY_TRIES_MAX || io.signal?.aborted) throw error
        await io.clock.sleep(Math.min(BUSY_MS_MAX, (error.retryAfterMs ?? BUSY_MS) * tries), io.signal)
      }
    }
  }
  const run = async () => {
    for (let cluster = left.shift(); cluster !== undefined && !io.signal?.aborted; cluster = left.shift()) {
      try {
        await workPatiently(cluster)
      } catch (error) {
        if (io.signal?.aborted) return
        if (!(error instanceof AppError) || clusters.length === 1) throw error
        failures.set(cluster, error)
      } finally {
        silent.delete(cluster)
      }
    }
  }
  const done = new AbortController()
  if (clusters.length > 1) void nameLate(io, silent, lateText, done.signal)
  try {
    await Promise.all(Array.from({ length: Math.min(atOnce, clusters.length) }, run))
  } finally {
    done.abort()
  }
  for (const [cluster, error] of [...failures].sort(([a], [b]) => (a < b ? -1 : 1)))
    io.stderr.write(`${cluster}: ${plainText(error.message)}\n`)
  if (failures.size > 0) io.stderr.write(`${failures.size} of ${countText(clusters.length, 'cluster')} gave no answer\n`)
  return { answered: clusters.length - failures.size, failed: failures.size }
}

async function nameLate(
  { clock, stderr }: { clock: Clock; stderr: { write(text: string): unknown } },
  silent: ReadonlySet<string>,
  lateText: string,
  signal: AbortSignal,
): Promise<void> {
  await clock.sleep(LATE_MS, signal)
  const waiting = [...silent].sort()
  if (signal.aborted || waiting.length === 0) return
  const more = waiting.length > LATE_NAMED_MAX ? ` and ${waiting.length - LATE_NAMED_MAX} more` : ''
  stderr.write(`${lateText} ${waiting.slice(0, LATE_NAMED_MAX).join(', ')}${more}\n`)
}

/** Lines of one answer. Throws what the site or the server says in its place. */
export async function* answerOf(
  client: Client,
  cluster: string,
  request: AskRequest,
  signal: AbortSignal | undefined,
): AsyncGenerator<AnswerLine, void, void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of await client.streamPost(path`/clusters/${cluster}/ask`, request, signal)) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const text of lines) {
      if (text === '') continue
      const line = lineOf(text)
      if (line === null) continue // of a newer agent
      if (line.t === 'failed')
        throw new AppError('ask_refused', {
          detail: line.message,
          ...(line.remedy === undefined ? {} : { remedy: line.remedy }),
          extra: { reason: line.code },
        })
      if (line.t !== 'end') yield line
      else if (line.truncated === undefined) return
      else {
        const limit = line.truncated === 'bytes' ? 'its limit in bytes' : 'its time limit'
        yield { t: 'note', message: `the answer was cut off at ${limit}` }
        return
      }
    }
  }
  if (signal?.aborted !== true) throw new AppError('ask_unanswered', { detail: `the answer of cluster ${cluster} was cut off` })
}

function lineOf(text: string): AnswerLine | null {
  try {
    return answerLineSchema.safeParse(JSON.parse(text)).data ?? null
  } catch {
    return null
  }
}
