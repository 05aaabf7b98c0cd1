// Live answers as tables, after all clusters answered: nodes of clusters, Kubernetes Events of one object.
import type { AnswerLineOf, AskRequest } from '../../../shared/protocol/ask.ts'
import { ageText, type Column } from '../columns.ts'
import { type Context, type Output, printItems } from '../context.ts'
import { askClusters, type Targets, targetsOf } from './fan-out.ts'
import { type AskOptions, note, refOfAddress, requestOf } from './live.ts'

interface TableOptions {
  output?: Output
  headers?: boolean
}

type Node = AnswerLineOf<'node'> & { cluster: string }
type Event = AnswerLineOf<'event'> & { cluster: string }

export async function liveNodes(context: Context, options: Targets & TableOptions): Promise<number> {
  const { items, failed } = await gathered(context, options, { question: { kind: 'nodes' } }, 'node')
  const what = { nameOf: (node: Node) => `node/${node.name}`, single: false, none: 'no nodes', columns: NODE_COLUMNS }
  printItems(context, items, what, options)
  return failed === 0 ? 0 : 1
}

/** Oldest first, as the events of the fleet. */
export async function liveEvents(context: Context, address: string, options: AskOptions & TableOptions): Promise<number> {
  const request = requestOf({ kind: 'events', ref: refOfAddress(address) }, options)
  const { items, failed } = await gathered(context, options, request, 'event')
  const nameOf = ({ reason, cluster }: Event) => `event/${cluster}/${reason}`
  const columns = liveEventColumns(context.io.clock.nowMs(), options.cluster === undefined)
  printItems(context, items, { nameOf, single: false, none: 'no events', columns }, options)
  return failed === 0 ? 0 : 1
}

async function gathered<T extends 'node' | 'event'>(context: Context, targets: Targets, request: AskRequest, t: T) {
  const client = context.client()
  const clusters = await targetsOf(client, targets)
  const byCluster = new Map(clusters.map((cluster) => [cluster, [] as Array<AnswerLineOf<T>>]))
  const { failed } = await askClusters(context, client, clusters, request, (cluster, line) => {
    if (line.t === t) byCluster.get(cluster)?.push(line as AnswerLineOf<T>)
    else note(context, cluster, clusters.length === 1, line)
  })
  return { items: [...byCluster].flatMap(([cluster, lines]) => lines.map((line) => ({ ...line, cluster }))), failed }
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
