// Logs of the containers of a Pod, or of all Pods of a workload, as whole lines. Several containers are read at once.
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import { refOf, refText } from '../../shared/kube/object.ts'
import type { Question } from '../../shared/protocol/ask.ts'
import type { LogStreams } from '../cluster/pod-logs.ts'
import { answerNote, questionRefusal } from '../messages/question-messages.ts'
import { cutOffLine, logLine, noteLine } from './answer-lines.ts'
import type { AnswerSink } from './answer-writer.ts'
import type { AnswerContext } from './ask-context.ts'
import { AskRefused } from './ask-desk.ts'
import { refusedBy } from './ask-reads.ts'
import { selectorOf } from './object-tree.ts'

type LogQuestion = Extract<Question, { kind: 'logs' }>

export const PODS_MAX = 50
/** Followed at once, by all questions: each is a connection to the API server for as long as somebody reads. */
export const STREAMS_MAX = 12
const TEXT_CHARS_MAX = 64 * 1_024
/** A line without an end is handed on in pieces. */
const LINE_CHARS_MAX = 1_024 * 1_024

let streams = 0

export async function answerLogs(context: AnswerContext, question: LogQuestion, sink: AnswerSink, signal: AbortSignal): Promise<void> {
  const { logs } = context
  if (logs === undefined) throw new AskRefused(questionRefusal('agent_forbidden.no_logs'))
  const found = await podsOf(context, question.ref, signal)
  const pods = found.slice(0, PODS_MAX)
  const read = pods.flatMap((pod) => containersOf(pod, question.container).map((container) => ({ pod: refOf(pod), container })))
  if (read.length === 0) {
    const object = refText(question.ref)
    const { container } = question
    throw new AskRefused(
      container === undefined
        ? questionRefusal('object_not_found.no_pods', { object })
        : questionRefusal('object_not_found.no_container', { object, container }),
    )
  }
  if (question.follow && streams + read.length > STREAMS_MAX)
    throw new AskRefused(questionRefusal('agent_busy.streams', { most: STREAMS_MAX, now: streams }))
  if (found.length > PODS_MAX) await sink.write(noteLine(answerNote('pods_cut', { most: PODS_MAX, count: found.length })))
  const left = [...read]
  let failures = 0
  const run = async () => {
    for (let next = left.shift(); next !== undefined && !signal.aborted; next = left.shift()) {
      streams += 1
      try {
        if (!(await readOne(logs, next, question, sink, signal))) failures += 1
      } catch (error) {
        if (!(error instanceof AskRefused) || read.length === 1) throw error
        failures += 1
        await sink.write(noteLine(error.message))
      } finally {
        streams -= 1
      }
    }
  }
  await Promise.all(Array.from({ length: question.follow ? read.length : 3 }, run))
  if (failures === read.length && read.length > 1) throw new AskRefused(questionRefusal('question_failed.no_log'))
}

async function podsOf({ reads }: AnswerContext, ref: ObjectRef, signal: AbortSignal): Promise<K8sObject[]> {
  const object = await reads.object(ref)
  if (ref.kind === 'Pod' && ref.group === '') return [object]
  const labelSelector = selectorOf(object)
  if (labelSelector === null) throw new AskRefused(questionRefusal('object_not_found.no_selector', { object: refText(ref) }))
  const listOf = async (kind: Pick<ObjectRef, 'group' | 'kind'>) => {
    const listed = await reads.list(kind, { namespace: ref.namespace, labelSelector, signal })
    if (listed.items === null) throw new AskRefused(questionRefusal('agent_forbidden.list', { why: listed.why }))
    return listed.items
  }
  // Labels select Pods of others, too: only owners tell whose Pods they are (AK3).
  const owners = new Set([object.metadata.uid])
  if (!OWN_PODS.has(ref.kind))
    for (const one of await listOf({ group: 'apps', kind: 'ReplicaSet' })) if (isOwned(one, owners)) owners.add(one.metadata.uid)
  const pods = (await listOf({ group: '', kind: 'Pod' })).filter((pod) => isOwned(pod, owners))
  return pods.toSorted((a, b) => String(a.metadata.name).localeCompare(String(b.metadata.name)))
}

/** Kinds without a ReplicaSet between them and their Pods. */
const OWN_PODS: ReadonlySet<string> = new Set(['StatefulSet', 'DaemonSet', 'ReplicaSet', 'Job'])
const isOwned = ({ metadata }: K8sObject, owners: ReadonlySet<string | undefined>): boolean =>
  (metadata.ownerReferences ?? []).some(({ uid }) => owners.has(uid))

interface PodSpec {
  containers?: Array<{ name: string }>
  initContainers?: Array<{ name: string }>
}

function containersOf(pod: K8sObject, wanted: string | undefined): string[] {
  const { containers = [], initContainers = [] } = (pod['spec'] ?? {}) as PodSpec
  if (wanted === undefined) return containers.map(({ name }) => name)
  return [...containers, ...initContainers].some(({ name }) => name === wanted) ? [wanted] : []
}

/** False: nothing could be read. */
async function readOne(
  logs: LogStreams,
  { pod, container }: { pod: ObjectRef; container: string },
  question: LogQuestion,
  sink: AnswerSink,
  signal: AbortSignal,
): Promise<boolean> {
  const { follow = false, previous = false, timestamps = false, sinceSeconds, tailLines } = question
  const opened = await logs.logStream(pod, { container, follow, previous, timestamps, sinceSeconds, tailLines, signal })
  if (opened.kind === 'failed')
    throw refusedBy(opened.failure, answerNote('read_log', { object: refText(pod) }), { verb: 'get', resource: 'pods/log', group: '' })
  const decoder = new TextDecoder()
  let rest = ''
  const reader = opened.body.getReader()
  const stop = () => void reader.cancel().catch(() => {})
  signal.addEventListener('abort', stop, { once: true })
  const write = async (text: string) => {
    for (let at = 0; at < text.length; at += TEXT_CHARS_MAX)
      await sink.write(logLine(pod.name, container, text.slice(at, at + TEXT_CHARS_MAX)))
  }
  try {
    for (let chunk = await reader.read(); chunk.value !== undefined && !signal.aborted; chunk = await reader.read()) {
      const text = rest + decoder.decode(chunk.value, { stream: true })
      const end = text.lastIndexOf('\n') + 1
      rest = text.slice(end)
      await write(text.slice(0, end))
      if (rest.length > LINE_CHARS_MAX) {
        await write(rest)
        rest = ''
      }
    }
    if (rest !== '') await write(rest)
  } catch (error) {
    if (signal.aborted) return true
    if (!isCut(error)) throw error
    await sink.write(cutOffLine(answerNote('log_of', { object: refText(pod) }), error))
  } finally {
    signal.removeEventListener('abort', stop)
    opened.release()
  }
  return true
}

/** The connection to the API server, and not the answer, failed. */
const isCut = (error: unknown): boolean => error instanceof Error && 'code' in error
