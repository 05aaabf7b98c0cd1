// The last log lines of the container that a cause names, asked of its cluster for a caller who may read logs. The rest
// of an explanation waits for them for a moment only.

import type { WhyCause, WhyEvidence } from '../../shared/model/why.ts'
import { type AnswerLine, answerLineSchema, type Question, questionSchema } from '../../shared/protocol/ask.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { nameSchema } from '../../shared/runtime/ids.ts'
import type { Principal } from '../access/principal.ts'
import type { AnswerStream } from '../ask/asks.ts'
import { evidence } from '../fleet/why/explain.ts'
import { type AskDeps, confined, openAnswer } from './asking.ts'

const LOG_LINES = 20
const LINE_CHARS_MAX = 300
const WAIT_MS = 2_000

interface LogOfCause {
  evidence: WhyEvidence[]
  /** Why there is none. */
  unknown: string[]
}

/** `cluster`: default the first one of the cause. */
export async function logOfCause(
  deps: AskDeps,
  by: Principal,
  id: ServiceId,
  cause: WhyCause,
  cluster = cause.clusters.first[0],
): Promise<LogOfCause> {
  const question = logQuestion(cause)
  const record = question === null || cluster === undefined ? null : await deps.store.clusterByName(cluster)
  if (question === null || record === null) return { evidence: [], unknown: [] }
  try {
    const ask = { verb: 'logs:read', kind: 'Cluster', name: record.name, cluster: record } as const
    const { asked } = confined(deps, by, ask, { question, within: id })
    const lines = await linesOf(await openAnswer(deps, by, record, { question, within: id }, asked), deps)
    if (lines.length === 0) return { evidence: [], unknown: [`log of ${textOf(question)} in ${record.name}: no lines`] }
    return { evidence: [evidence('log', lines.join('\n'), deps.clock.nowMs())], unknown: [] }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return { evidence: [], unknown: [`log of ${textOf(question)} in ${record.name}: ${error.message}`] }
  }
}

/** As agents name the container of a Pod that explains a workload. */
const NAMED = /\bPod ([\w.-]+)\/([\w.-]+): (?:init )?container ([\w.-]+) (\S.*)/

/** The question for the log of a container; null if the cause names none. */
function logQuestion({ evidence: told }: WhyCause): Extract<Question, { kind: 'logs' }> | null {
  for (const { from, text } of told) {
    const [, namespace = '', name = '', container = '', state = ''] = (from === 'object' && NAMED.exec(text)) || []
    if (name === '') continue
    const previous = /CrashLoopBackOff|was restarted/.test(state)
    const ref = { group: '', kind: 'Pod', namespace, name }
    const question = questionSchema.safeParse({ kind: 'logs', ref, container, previous, tailLines: LOG_LINES })
    // An agent chooses the names of what it reports.
    if (question.success && question.data.kind === 'logs' && nameSchema.safeParse(namespace).success) return question.data
  }
  return null
}

const textOf = ({ ref, container, previous }: Extract<Question, { kind: 'logs' }>): string =>
  `Pod ${ref.namespace}/${ref.name}, container ${container}${previous ? ', run before' : ''}`

/** Throws `ask_refused`, `ask_unanswered`. */
async function linesOf(stream: AnswerStream, { clock }: Pick<AskDeps, 'clock'>): Promise<string[]> {
  const over = new AbortController()
  const late = clock.sleep(WAIT_MS, over.signal).then(() => 'late' as const)
  const decoder = new TextDecoder()
  let log = ''
  try {
    for (;;) {
      const bytes = await Promise.race([stream.read(), late])
      if (bytes === 'late') throw new AppError('ask_unanswered', { detail: `no answer within ${WAIT_MS / 1_000} s` })
      if (bytes === null) break
      for (const line of decoder.decode(bytes).split('\n').flatMap(parsed)) {
        if (line.t === 'log') log += line.text
        if (line.t === 'failed') throw new AppError('ask_refused', { detail: line.message })
      }
    }
  } finally {
    over.abort()
    stream.cancel()
  }
  const lines = log.split('\n').filter((line) => line.trim() !== '')
  return lines.slice(-LOG_LINES).map((line) => line.slice(0, LINE_CHARS_MAX))
}

function parsed(text: string): AnswerLine[] {
  try {
    return text === '' ? [] : [answerLineSchema.parse(JSON.parse(text))]
  } catch {
    return []
  }
}
