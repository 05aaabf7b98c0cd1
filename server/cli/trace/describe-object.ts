// describe object: an object in a cluster with its whole provenance: service, revision, commit and author, source, drift,
// causes of its state, changes of its service there and events about it.
import { COMMIT_ANNOTATION, SERVICE_LABEL, serviceLabel } from '../../../shared/kube/marks.ts'
import { historyViewSchema } from '../../../shared/model/history.ts'
import { type EventView, eventViewSchema, listOf, type ObjectView } from '../../../shared/model/views.ts'
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
import { onlyOne, type Trace, traceFacts, traceOf, whenReadable } from './trace.ts'

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
  const [explained, changes, told] = await Promise.all([
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
    facts([...traceFacts(traced, nowMs), ...objectFacts(object, traced, nowMs)]),
    cause === undefined ? '' : `Most likely cause: ${causeText(cause, nowMs)}`,
    section(`Changes of service ${service} in cluster ${cluster}`, historyColumns(nowMs), changes?.items ?? []),
    section('Events', eventColumns(nowMs, false), events),
  ]
  context.io.stdout.write(blocks.filter((block) => block !== '').join('\n'))
}

/** An event names its object as the agent does: `apps/Deployment/shop/web`. */
const isAbout = ({ object }: EventView, { group, kind, namespace, name }: ObjectView): boolean =>
  object === `${group}/${kind}/${namespace}/${name}`

function objectFacts({ drift, images = [], warnings = [] }: ObjectView, { project, service, commit }: Trace, nowMs: number): Fact[] {
  const healed = drift?.healedMs === undefined ? '' : `, restored ${sinceText(drift.healedMs, nowMs)}`
  return [
    ['Images', images.join(', ')],
    ['Drift', drift === null ? null : `by ${drift.manager === '' ? 'an unknown manager' : drift.manager}${healed}`],
    ...warnings.map((warning): Fact => ['Warning', warning]),
    ['Label', `${SERVICE_LABEL}=${serviceLabel(project, service)}`],
    ['Annotation', commit === null ? null : `${COMMIT_ANNOTATION} is the commit that last changed the object`],
  ]
}
