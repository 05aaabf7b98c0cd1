// Live answers as tables: nodes of clusters, Kubernetes Events of one object. The rows of a cluster are printed when it
// has answered; a document needs all answers.
import type { AnswerLineOf, AskRequest } from '../../../shared/protocol/ask.ts'
import { ageText, type Column } from '../columns.ts'
import { type Context, type Output, printItems } from '../context.ts'
import { streamPrinter } from '../stream-printer.ts'
import { askClusters, type Targets, targetsOf } from './fan-out.ts'
import { type AskOptions, note, refOfAddress, requestOf } from './live.ts'

interface TableOptions {
  output?: Output
  headers?: boolean
}

type Node = AnswerLineOf<'node'> & { cluster: string }
type Event = AnswerLineOf<'event'> & { cluster: string }

export async function liveNodes(context: Context, options: Targets & TableOptions): Promise<number> {
  const what = { nameOf: (node: Node) => `node/${node.name}`, none: 'no nodes', columns: NODE_COLUMNS }
  return printAnswers(context, options, { request: { question: { kind: 'nodes' } }, t: 'node', what })
}

/** Oldest first, as the events of the fleet. */
export async function liveEvents(context: Context, address: string, options: AskOptions & TableOptions): Promise<number> {
  const request = requestOf({ kind: 'events', ref: refOfAddress(address) }, options)
  const nameOf = ({ reason, cluster }: Event) => `event/${cluster}/${reason}`
  const columns = liveEventColumns(context.io.clock.nowMs(), options.cluster === undefined || options.cluster.includes(','))
  return printAnswers(context, options, { request, t: 'event', what: { nameOf, none: 'no events', columns } })
}

interface Answers<T extends 'node' | 'event'> {
  request: AskRequest
  t: T
  what: { nameOf(item: Row<T>): string; none: string; columns: readonly Column<Row<T>>[] }
}
type Row<T extends 'node' | 'event'> = AnswerLineOf<T> & { cluster: string }

async function printAnswers<T extends 'node' | 'event'>(
  context: Context,
  options: Targets & TableOptions,
  { request, t, what }: Answers<T>,
): Promise<number> {
  const client = context.client()
  const clusters = await targetsOf(client, options)
  const byCluster = new Map(clusters.map((cluster) => [cluster, [] as Row<T>[]]))
  const { nameOf, columns } = what
  // Values of one document stand together, and only rows of a table can be printed one cluster after the other.
  const isTable = options.output === undefined || options.output === 'wide' || options.output === 'name'
  const print = streamPrinter<Row<T>>(context, options, { columns: () => columns, nameOf })
  let printed = 0
  const { failed } = await askClusters(
    context,
    client,
    clusters,
    request,
    (cluster, line) => {
      if (line.t === t) byCluster.get(cluster)?.push({ ...(line as AnswerLineOf<T>), cluster })
      else note(context, cluster, clusters.length === 1, line)
    },
    (cluster) => {
      const rows = byCluster.get(cluster) ?? []
      printed += rows.length
      if (isTable) print(rows)
    },
  )
  const items = clusters.flatMap((cluster) => byCluster.get(cluster) ?? [])
  if (!isTable || printed === 0) printItems(context, items, { nameOf, columns, none: what.none, single: false }, options)
  return failed === 0 ? 0 : 1
}

const NODE_COLUMNS: readonly Column<Node>[] = [
  { title: 'CLUSTER', value: ({ cluster }) => cluster },
  { title: 'NODE', value: ({ name }) => name },
  { title: 'READY', value: ({ ready }) => (ready ? 'yes' : 'no') },
  { title: 'VERSION', value: ({ version }) => version },
  { title: 'PODS', value: ({ pods, allocatable }) => `${pods}/${allocatable['pods'] ?? '?'}` },
  { title: 'CPU', value: ({ requested, allocatable }) => `${requested['cpu'] ?? 0}/${allocatable['cpu'] ?? '?'}` },
  { title: 'MEMORY', value: ({ requested, allocatable }) => `${gibText(requested['memory'] ?? 0)}/${allocatable['memory'] ?? '?'}` },
  { title: 'DISK', value: ({ allocatable }) => allocatable['ephemeral-storage'] ?? null, wide: true },
  { title: 'MESSAGE', value: ({ problems }) => problems.join('; ') },
]

const gibText = (bytes: number): string => `${Math.round((bytes / 2 ** 30) * 10) / 10}Gi`

const liveEventColumns = (nowMs: number, manyClusters: boolean): Column<Event>[] => [
  { title: 'AGE', value: ({ at }) => ageText(Number.isNaN(Date.parse(at)) ? null : Date.parse(at), nowMs) },
  ...(manyClusters ? [{ title: 'CLUSTER', value: ({ cluster }: Event) => cluster }] : []),
  { title: 'TYPE', value: ({ type }) => type, colour: true },
  { title: 'REASON', value: ({ reason }) => reason },
  { title: 'COUNT', value: ({ count }) => count },
  { title: 'SOURCE', value: ({ source }) => source, wide: true },
  { title: 'MESSAGE', value: ({ message }) => message },
]
