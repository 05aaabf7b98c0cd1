// describe object: an object in a cluster with its whole provenance: service, revision, commit and author, source,
// drift, causes of its state, changes of its service there and events about it.
import { z } from 'zod'
import { COMMIT_ANNOTATION, REVISION_ANNOTATION, SERVICE_LABEL, TRACKING_ANNOTATION } from '../../../shared/kube/marks.ts'
import { historyViewSchema } from '../../../shared/model/history.ts'
import { type EventView, eventViewSchema, listOf, type ObjectView } from '../../../shared/model/views.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { answerOf } from '../ask/fan-out.ts'
import { path } from '../client.ts'
import { type Column, renderTable, withShortMessages } from '../columns.ts'
import { type Context, type Output, printItems, usesColour } from '../context.ts'
import { facts, sinceText } from '../describe.ts'
import { historyColumns } from '../history.ts'
import { UsageError } from '../io.ts'
import { parseTarget } from '../kinds.ts'
import type { Fact } from '../service-facts.ts'
import { eventColumns } from '../tables.ts'
import { causeText, objectWhy } from '../why.ts'
import { parseObjectAddress } from './object-address.ts'
import { onlyOne, traceFacts, traceOf, whenReadable } from './trace.ts'

interface DescribeOptions {
  cluster?: string | undefined
  project?: string | undefined
  output?: Output
}

const CHANGES_SHOWN = 10
const EVENTS_SHOWN = 10
const EVENTS_READ = 200

export async function describeObject(context: Context, kindText: string, nameText: string | undefined, options: DescribeOptions) {
  const { name } = parseTarget(kindText, nameText, ['objects'])
  const { cluster, project, output } = options
  if (name === undefined || cluster === undefined)
    throw new UsageError('describe object needs an object and its cluster: skerry describe object deployment/shop/web --cluster NAME')
  const client = context.client()
  const object = await onlyOne(client, parseObjectAddress(name), { cluster, project }, 'describe')
  const traced = await traceOf(client, object)
  const { service } = object
  const at = path`/projects/${object.project}/services/${service}`
  const [marks, explained, changes, told] = await Promise.all([
    readMarks(context, object),
    objectWhy(client, object),
    client.get(`${at}/history`, listOf(historyViewSchema), { cluster, limit: CHANGES_SHOWN }).catch(whenReadable),
    client.get('/events', listOf(eventViewSchema), { cluster, project: object.project, service, limit: EVENTS_READ }).catch(whenReadable),
  ])
  const events = (told?.items ?? []).filter((event) => isAbout(event, object)).slice(-EVENTS_SHOWN)
  if (output !== undefined && output !== 'wide') {
    const document = {
      ...traced,
      drift: object.drift,
      images: object.images ?? [],
      marks: marks.values,
      causes: explained.causes,
      changes: changes?.items,
      events,
    }
    printItems(context, [document], { columns: [], nameOf: () => `service/${service}`, single: true, none: '' }, { output })
    return
  }
  const nowMs = context.io.clock.nowMs()
  const section = <T>(title: string, columns: Column<T>[], items: readonly T[]): string =>
    items.length === 0
      ? ''
      : `${title}:\n${renderTable(withShortMessages(columns), items, { wide: output === 'wide', headers: true, colours: usesColour(context.io) })}`
  const [cause] = explained.causes
  const blocks = [
    facts([...traceFacts(traced, nowMs), ...objectFacts(object, nowMs), ...markFacts(marks)]),
    cause === undefined ? '' : `Most likely cause: ${causeText(cause, nowMs)}`,
    section(`Changes of service ${service} in cluster ${cluster}`, historyColumns(nowMs), changes?.items ?? []),
    section('Events', eventColumns(nowMs, false), events),
  ]
  context.io.stdout.write(blocks.filter((block) => block !== '').join('\n'))
}

/** An event names its object as the agent does: `apps/Deployment/shop/web`. */
const isAbout = ({ object }: EventView, { group, kind, namespace, name }: ObjectView): boolean =>
  object === `${group}/${kind}/${namespace}/${name}`

const MARKS_MS_MAX = 3_000
const ANNOTATIONS = [COMMIT_ANNOTATION, REVISION_ANNOTATION, TRACKING_ANNOTATION] as const

interface Marks {
  /** `why` says why they could not be read, if null. */
  values: { labels: Record<string, string>; annotations: Record<string, string> } | null
  why: string
}

/** The label and the annotations of Skerry, as the object in the cluster has them. */
async function readMarks({ client, io }: Context, { cluster, project, service, group, kind, namespace, name }: ObjectView): Promise<Marks> {
  const request = { question: { kind: 'object', ref: { group, kind, namespace, name } }, within: { project, service } } as const
  const late = AbortSignal.timeout(MARKS_MS_MAX)
  const signal = io.signal === undefined ? late : AbortSignal.any([io.signal, late])
  try {
    for await (const line of answerOf(client(), cluster, request, signal)) {
      if (line.t !== 'object') continue
      const { labels = {}, annotations = {} } = marked.parse(line.object).metadata
      const only = (held: Record<string, string>, names: readonly string[]) =>
        Object.fromEntries(names.flatMap((one) => (held[one] === undefined ? [] : [[one, held[one]]])))
      return { values: { labels: only(labels, [SERVICE_LABEL]), annotations: only(annotations, ANNOTATIONS) }, why: '' }
    }
  } catch (error) {
    if (!(error instanceof AppError || (error instanceof Error && late.aborted))) throw error
    if (!late.aborted) return { values: null, why: error.message }
  }
  return { values: null, why: `no answer of cluster ${cluster} within ${MARKS_MS_MAX / 1_000} s` }
}

const texts = z.record(z.string(), z.string()).optional()
const marked = z.looseObject({ metadata: z.looseObject({ labels: texts, annotations: texts }) })

function markFacts({ values, why }: Marks): Fact[] {
  if (values === null) return [['Marks', `not read: ${why}`]]
  const shown = (title: string, held: Record<string, string>) =>
    Object.entries(held).map(([key, value]): Fact => [title, `${key}=${value}`])
  return [...shown('Label', values.labels), ...shown('Annotation', values.annotations)]
}

function objectFacts({ drift, images = [], warnings = [] }: ObjectView, nowMs: number): Fact[] {
  const healed = drift?.healedMs === undefined ? '' : `, restored ${sinceText(drift.healedMs, nowMs)}`
  return [
    ['Images', images.join(', ')],
    ['Drift', drift === null ? null : `by ${drift.manager === '' ? 'an unknown manager' : drift.manager}${healed}`],
    ...warnings.map((warning): Fact => ['Warning', warning]),
  ]
}
