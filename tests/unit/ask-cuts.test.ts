// AK6: answers about more than they show say so, and answers about as much as they show do not.
import { expect, test } from 'bun:test'
import { getEventListeners } from 'node:events'
import { AnswerWriter } from '../../agent/ask/answer-writer.ts'
import type { AnswerContext } from '../../agent/ask/ask-context.ts'
import { AskReads, LIST_OBJECTS_MAX } from '../../agent/ask/ask-reads.ts'
import { FIELDS_MAX } from '../../agent/ask/object-differences.ts'
import { answerEvents, answerTree, CHILDREN_MAX, EVENTS_MAX } from '../../agent/ask/object-tree.ts'
import { answerLogs, PODS_MAX } from '../../agent/ask/pod-log-answer.ts'
import { answerDryRun } from '../../agent/ask/service-trials.ts'
import { answerNote } from '../../agent/messages/question-messages.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import type { AnswerLine } from '../../shared/protocol/ask.ts'
import { systemClock } from '../../shared/runtime/clock.ts'

const REF = { group: 'apps', kind: 'StatefulSet', namespace: 'shop', name: 'db' }
const ROOT = {
  ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: 'db', namespace: 'shop', uid: 'u' } },
  spec: { selector: { matchLabels: { app: 'db' } } },
} as unknown as K8sObject
const many = (count: number, kind: string, more: object = {}): K8sObject[] =>
  Array.from(
    { length: count },
    (_, n) =>
      ({
        ...{ apiVersion: 'v1', kind, ...more },
        metadata: {
          name: `${kind}-${n}`,
          namespace: 'shop',
          uid: `${kind}-${n}`,
          ownerReferences: [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: 'u' }],
        },
      }) as unknown as K8sObject,
  )

/** Answers with these objects of each kind. */
async function linesOf(
  listed: Readonly<Record<string, K8sObject[]>>,
  answer: (context: AnswerContext, sink: { write(line: AnswerLine): Promise<void> }, signal: AbortSignal) => Promise<void>,
): Promise<{ lines: AnswerLine[]; notes: string[] }> {
  const all: AnswerLine[] = []
  const context = {
    reads: {
      object: async () => ROOT,
      objectIfReadable: async () => ROOT,
      list: async ({ kind }: { kind: string }) => ({ items: listed[kind] ?? [], why: null }),
    },
    ...{ state: { ownerOf: () => null, inventory: () => [], facts: () => new Map() }, policy: () => null, replica: () => null },
    logs: { logStream: async () => ({ kind: 'stream', body: new Response('line\n').body, release: () => {} }) },
    clock: systemClock,
  } as unknown as AnswerContext
  await answer(context, { write: async (line) => void all.push(line) }, new AbortController().signal)
  const notes = all.flatMap((line) => (line.t === 'note' ? [line.message] : []))
  return { lines: all.filter(({ t }) => t !== 'note'), notes }
}

const CONTAINERS = { spec: { containers: [{ name: 'app' }] } }

test.each([
  [
    'Pods of a log',
    PODS_MAX,
    (count: number) =>
      linesOf({ Pod: many(count, 'Pod', CONTAINERS) }, (context, sink, signal) =>
        answerLogs(context, { kind: 'logs', ref: REF }, sink, signal),
      ),
    0,
  ],
  // Beside the object itself.
  [
    'children of an object',
    CHILDREN_MAX,
    (count: number) => linesOf({ Pod: many(count, 'Pod') }, (context, sink, signal) => answerTree(context, REF, sink, signal)),
    1,
  ],
  [
    'events of an object',
    EVENTS_MAX,
    (count: number) =>
      linesOf({ Event: many(count, 'Event', { type: 'Normal' }) }, (context, sink, signal) => answerEvents(context, REF, sink, signal)),
    0,
  ],
] as const)('AK6 an answer that leaves out %s says so', async (_, max, answer, others) => {
  expect(await answer(max)).toMatchObject({ notes: [], lines: { length: max + others } })
  const cut = await answer(max + 1)
  expect(cut.lines).toHaveLength(max + others)
  expect(cut.notes).toEqual([expect.stringContaining(String(max))])
})

test('AK6 a dry run that changes more fields than it shows says so', async () => {
  const dataOf = (count: number, value: string) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, value]))
  const live = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', namespace: 'shop' } }
  const tryWith = (count: number) =>
    linesOf({}, (context, sink, signal) => {
      const reads = {
        objectOrNull: async () => ({ ...live, data: dataOf(count, 'a') }),
        find: async () => ({ namespaced: true }),
        turn: async () => ({ kind: 'applied', object: { ...live, data: dataOf(count, 'b') } }),
      }
      const question = { kind: 'dryRun' as const, service: { project: 'shop', service: 'web' }, objects: [live] }
      return answerDryRun({ ...context, isConfined: false, reads } as unknown as AnswerContext, question, sink, signal)
    })
  const fieldsOf = ({ lines }: { lines: AnswerLine[] }) => lines.flatMap((line) => (line.t === 'dryRun' ? (line.fields ?? []) : []))
  const whole = await tryWith(FIELDS_MAX)
  expect([fieldsOf(whole).length, whole.notes]).toEqual([FIELDS_MAX, []])
  const cut = await tryWith(FIELDS_MAX + 1)
  expect([fieldsOf(cut).length, cut.notes]).toEqual([
    FIELDS_MAX,
    [answerNote('fields_cut', { object: 'ConfigMap shop/x', most: FIELDS_MAX })],
  ])
})

test('AK6 a list that is longer than what one answer reads says so', async () => {
  const pod = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true, verbs: ['get'] }
  const listOf = async (count: number) => {
    const cluster = {
      async *watch() {
        for (const object of many(count, 'Pod')) yield { kind: 'present', object }
        yield { kind: 'synced' }
      },
    }
    const reads = new AskReads({ cluster, discovery: () => ({ resources: [pod] }) } as unknown as ConstructorParameters<typeof AskReads>[0])
    const { items, why } = await reads.list({ group: '', kind: 'Pod' }, { signal: new AbortController().signal })
    return [items?.length, why]
  }
  expect(await listOf(LIST_OBJECTS_MAX)).toEqual([LIST_OBJECTS_MAX, null])
  expect(await listOf(LIST_OBJECTS_MAX + 1)).toEqual([LIST_OBJECTS_MAX, expect.stringContaining(`only ${LIST_OBJECTS_MAX} pods`)])
})

test('an answer that has ended stays in no list of the agent', async () => {
  const { signal } = new AbortController()
  const session = { call: async () => ({ status: 200, body: new TextEncoder().encode('{"taken":true}') }) }
  const deps = { clock: systemClock, id: 'a', bytesMax: 1_000, stop: signal, session } as unknown as ConstructorParameters<
    typeof AnswerWriter
  >[0]
  const writer = new AnswerWriter(deps)
  expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  await writer.end({ t: 'end' } as unknown as Parameters<typeof writer.end>[0])
  expect(getEventListeners(signal, 'abort')).toHaveLength(0)
})
