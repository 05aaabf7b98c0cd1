// why: prints the causes that the server found, the most likely one first.

import type { ObjectView } from '../../shared/model/views.ts'
import { type WhyCause, type WhyEvidence, type WhyView, whyViewSchema } from '../../shared/model/why.ts'
import { type Client, path } from './client.ts'
import { ageText, plainText } from './columns.ts'
import { type Context, type Output, printItems } from './context.ts'
import { UsageError } from './io.ts'
import { kindOf, parseTarget } from './kinds.ts'
import { parseObjectAddress } from './trace/object-address.ts'
import { onlyOne } from './trace/trace.ts'

interface WhyOptions {
  project: string
  cluster?: string | undefined
  /** Also the last log lines of a container that ended or is not ready. */
  log?: boolean
  output?: Output
}

/** Other causes that are shown with their evidence. */
const OTHERS_SHOWN = 4

export async function why(context: Context, text: string, { project, cluster, log = false, output }: WhyOptions): Promise<void> {
  const word = text.includes('/') ? text.slice(0, text.indexOf('/')) : ''
  if (word !== '' && kindOf(word) !== 'services') return whyObject(context, text, { project, cluster, log, output })
  const name = word === '' ? text : parseTarget(text, undefined, ['services']).name
  if (name === undefined) throw new UsageError('why needs the name of a service: skerry why NAME')
  const view = await context.client().get(path`/projects/${project}/services/${name}/why`, whyViewSchema, {
    cluster,
    ...(log ? { log: 'true' } : {}),
  })
  show(context, view, name, output)
}

async function whyObject(context: Context, text: string, { cluster, log = false, output }: WhyOptions): Promise<void> {
  if (cluster === undefined) throw new UsageError(`why of an object needs its cluster: skerry why ${text} --cluster NAME`)
  const client = context.client()
  const found = await onlyOne(client, parseObjectAddress(text), { cluster }, 'explain')
  show(context, await objectWhy(client, found, log), found.service, output)
}

/** Causes of the service in the cluster that concern this object: its own first, else those of the whole service. */
export async function objectWhy(client: Client, object: ObjectView, log = false): Promise<WhyView> {
  const { project, service, cluster, kind, namespace, name, sync, health } = object
  const view = await client.get(path`/projects/${project}/services/${service}/why`, whyViewSchema, {
    cluster,
    ...(log ? { log: 'true' } : {}),
  })
  const named = `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`
  const own = view.causes.filter((cause) => cause.object === named)
  const isWell = sync === 'Synced' && ['Healthy', 'Suspended'].includes(health)
  const causes = isWell ? [] : own.length > 0 ? own : view.causes.filter((cause) => cause.object === null)
  return { ...view, sync, health, causes, changes: causes.length === 0 ? [] : view.changes }
}

function show(context: Context, view: WhyView, name: string, output: Output | undefined): void {
  if (view.causes.length > 0) context.exit(1)
  if (output !== undefined && output !== 'wide') {
    printItems(context, [view], { columns: [], nameOf: () => `service/${name}`, single: true, none: '' }, { output })
    return
  }
  context.io.stdout.write(whyText(view, context.io.clock.nowMs()))
}

function whyText({ project, service, cluster, sync, health, causes, changes, unknown }: WhyView, nowMs: number): string {
  const place = cluster === null ? '' : ` in cluster ${cluster}`
  const [first, ...others] = causes
  const head = `${project}/${service}${place}: ${sync}, ${health}\n`
  const notes = unknown.map((text) => `note: ${plainText(text)}\n`).join('')
  if (first === undefined) return `${head}nothing is wrong\n${notes}`
  const also = others.slice(0, OTHERS_SHOWN)
  const more = others.length - also.length
  return [
    head,
    `\nMost likely: ${causeText(first, nowMs)}`,
    also.length === 0 ? '' : `\nAlso:\n${also.map((one) => `- ${headText(one)}\n`).join('')}`,
    more === 0 ? '' : `- and ${more} more (-o json)\n`,
    changes.length === 0 ? '' : `\nChanges before:\n${changes.map((one) => `- ${evidenceText(one, nowMs)}\n`).join('')}`,
    notes === '' ? '' : `\n${notes}`,
  ].join('')
}

const headText = ({ cause, summary, object, clusters }: WhyCause): string =>
  plainText(
    `${summary} [${cause}]${object === null ? '' : `, ${object}`}${clusters.count < 2 ? '' : `, in ${clusters.count} clusters (${clusters.first.join(', ')})`}`,
  )

export const causeText = (cause: WhyCause, nowMs: number): string =>
  `${headText(cause)}\n${cause.evidence.map((one) => `  ${evidenceText(one, nowMs)}\n`).join('')}Next: ${plainText(cause.next)}\n`

function evidenceText({ from, text, atMs }: WhyEvidence, nowMs: number): string {
  if (from === 'log')
    return `log:${text
      .split('\n')
      .map((line) => `\n    ${plainText(line)}`)
      .join('')}`
  return `${from}${atMs === null ? '' : ` ${ageText(atMs, nowMs)} ago`}: ${plainText(text)}`
}
