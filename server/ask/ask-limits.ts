// How much may be asked: in bytes and time by the question, in number by caller and by cluster.
import type { Question } from '../../shared/protocol/ask.ts'
import { AppError } from '../../shared/runtime/error.ts'

export const ASKS_OF_CALLER_MAX = 64
export const ASKS_OF_CLUSTER_MAX = 64
export const ASKS_MAX = 2_000
const RETRY_AFTER_MS = 1_000

const MINUTE_MS = 60_000
export const FOLLOW_MS_MAX = 60 * MINUTE_MS
export const ANSWER_MS_MAX = 2 * MINUTE_MS
export const LOG_BYTES_MAX = 256 * 1_024 * 1_024
export const FOLLOW_BYTES_MAX = 4 * 1_024 * 1_024 * 1_024
export const ANSWER_BYTES_MAX = 8 * 1_024 * 1_024

const follows = (question: Question): boolean => question.kind === 'logs' && question.follow === true

export const timeMax = (question: Question): number => (follows(question) ? FOLLOW_MS_MAX : ANSWER_MS_MAX)

export function answerBytesMax(question: Question): number {
  if (follows(question)) return FOLLOW_BYTES_MAX
  return question.kind === 'logs' ? LOG_BYTES_MAX : ANSWER_BYTES_MAX
}

export interface AskLimits {
  /** Throws `too_many_requests`. The result gives the place back. */
  enter(caller: string, cluster: { clusterId: string; name: string }): () => void
}

export function createAskLimits(): AskLimits {
  const counts = new Map<string, number>()
  const of = (key: string): number => counts.get(key) ?? 0
  const shift = (key: string, by: number) => {
    const count = of(key) + by
    if (count === 0) counts.delete(key)
    else counts.set(key, count)
  }
  return {
    enter(caller, { clusterId, name }) {
      const [byCaller, byCluster] = [`caller ${caller}`, `cluster ${clusterId}`]
      const refuse = (detail: string): never => {
        throw new AppError('too_many_requests', { doing: `ask cluster ${name}`, detail, retryAfterMs: RETRY_AFTER_MS })
      }
      if (of(byCaller) >= ASKS_OF_CALLER_MAX) refuse(`at most ${ASKS_OF_CALLER_MAX} questions of one caller at once`)
      if (of(byCluster) >= ASKS_OF_CLUSTER_MAX) refuse(`at most ${ASKS_OF_CLUSTER_MAX} questions to one cluster at once`)
      if (of('all') >= ASKS_MAX) refuse(`at most ${ASKS_MAX} questions at once`)
      const keys = [byCaller, byCluster, 'all']
      for (const key of keys) shift(key, 1)
      let isHeld = true
      return () => {
        if (isHeld) for (const key of keys) shift(key, -1)
        isHeld = false
      }
    },
  }
}
