// history: the revisions of a service, its changes in one cluster, or all that happened in a cluster.
import {
  type HistoryCause,
  type HistoryView,
  historyViewSchema,
  type RevisionView,
  revisionViewSchema,
  type TimelineView,
  timelineViewSchema,
} from '../../shared/model/history.ts'
import { shortRevision } from '../../shared/model/revision-text.ts'
import { listOf } from '../../shared/model/views.ts'
import { path } from './client.ts'
import { ageText, type Column } from './columns.ts'
import { type Context, type Output, printItems } from './context.ts'
import { UsageError } from './io.ts'
import { parseTarget } from './kinds.ts'
import { reasonOf } from './tables.ts'

export interface HistoryOptions {
  project: string
  cluster?: string | undefined
  /** Milliseconds. */
  since?: number | undefined
  limit?: number | undefined
  output?: Output
  headers?: boolean
}

export async function history(context: Context, kindText: string, nameText: string | undefined, options: HistoryOptions): Promise<void> {
  const { kind, name } = parseTarget(kindText, nameText, ['services', 'clusters'])
  if (name === undefined) throw new UsageError('history needs a name: skerry history service NAME, or skerry history cluster NAME')
  if (kind === 'clusters') return clusterHistory(context, name, options)
  const { project, cluster, since, limit = since === undefined ? 20 : 200 } = options
  const client = context.client()
  const nowMs = context.io.clock.nowMs()
  const sinceMs = since === undefined ? 0 : Math.max(nowMs - since, 0)
  const service = path`/projects/${project}/services/${name}`
  if (cluster === undefined) {
    const page = await client.get(`${service}/revisions`, listOf(revisionViewSchema), { limit })
    const items = page.items.filter(({ renderedMs }) => renderedMs >= sinceMs)
    const nameOf = ({ number }: RevisionView) => `revision/${number}`
    printItems(context, items, { columns: revisionColumns(nowMs), nameOf, single: false, none: `no revisions of service ${name}` }, options)
    return
  }
  const page = await client.get(`${service}/history`, listOf(historyViewSchema), {
    limit,
    cluster,
    ...(since === undefined ? {} : { since: sinceMs }),
  })
  const nameOf = ({ atMs }: HistoryView) => `change/${atMs}`
  const none = `no history of service ${name} in cluster ${cluster}`
  printItems(context, page.items, { columns: historyColumns(nowMs), nameOf, single: false, none }, options)
  if (since !== undefined && page.continue !== null) tellCut(context, page.items.length)
}

const tellCut = ({ io }: Context, shown: number): void =>
  void io.stderr.write(`only the newest ${shown} changes are shown; --limit shows more\n`)

async function clusterHistory(context: Context, name: string, options: HistoryOptions): Promise<void> {
  if (options.cluster !== undefined) throw new UsageError('--cluster is for skerry history service NAME')
  const { since = DAY_MS, limit = 200 } = options
  const nowMs = context.io.clock.nowMs()
  const query = { limit, since: Math.max(nowMs - since, 0) }
  const page = await context.client().get(path`/clusters/${name}/history`, listOf(timelineViewSchema), query)
  const nameOf = ({ atMs }: TimelineView) => `change/${atMs}`
  const none = `nothing happened in cluster ${name} in that time`
  printItems(context, page.items, { columns: timelineColumns(nowMs), nameOf, single: false, none }, options)
  if (page.continue !== null) tellCut(context, page.items.length)
}

const DAY_MS = 86_400_000

const short = (commit: string | null): string | null => (commit === null ? null : shortRevision(commit))

/** `3f2c9a1b`, of several repositories `charts@6.5.2,values@3f2c9a1b`. */
const commitsText = ({ commit, revisions }: RevisionView): string | null => {
  const named = Object.entries(revisions).sort(([a], [b]) => (a < b ? -1 : 1))
  return named.length < 2 ? short(commit) : named.map(([name, revision]) => `${name}@${shortRevision(revision)}`).join(',')
}

const revisionColumns = (nowMs: number): Column<RevisionView>[] => [
  { title: 'NUMBER', value: ({ number }) => number },
  { title: 'COMMIT', value: commitsText },
  { title: 'AGE', value: ({ renderedMs }) => ageText(renderedMs, nowMs) },
  { title: 'OBJECTS', value: ({ objectCount }) => objectCount },
  { title: 'CLUSTERS', value: ({ clusters }) => clusters },
  { title: 'VARIANTS', value: ({ variants }) => (variants === 1 ? null : variants), wide: true },
  { title: 'GENERATION', value: ({ generation }) => generation, wide: true },
  { title: 'DIGEST', value: ({ digest }) => digest, wide: true },
  { title: 'AUTHOR', value: ({ author }) => author ?? null },
  { title: 'SUBJECT', value: ({ subject }) => subject ?? null },
]

/** How long it was so is what the line above began. */
export const historyColumns = (nowMs: number): Column<HistoryView>[] => [
  { title: 'AGE', value: ({ atMs }) => ageText(atMs, nowMs) },
  { title: 'SYNC', value: ({ sync }) => sync, colour: true },
  { title: 'HEALTH', value: ({ health }) => health, colour: true },
  { title: 'COMMIT', value: ({ commit }) => short(commit) },
  { title: 'AUTHOR', value: ({ author }) => author ?? null },
  { title: 'SUBJECT', value: ({ subject }) => subject ?? null, wide: true },
  { title: 'TIME', value: ({ atMs }) => new Date(atMs).toISOString(), wide: true },
  { title: 'REASON', value: reasonOf },
  { title: 'CAUSE', value: ({ cause }) => causeText(cause) },
]

const timelineColumns = (nowMs: number): Column<TimelineView>[] => [
  { title: 'AGE', value: ({ atMs }) => ageText(atMs, nowMs) },
  { title: 'TIME', value: ({ atMs }) => new Date(atMs).toISOString().replace(/\.\d+Z$/, 'Z') },
  { title: 'PROJECT', value: ({ project }) => project },
  { title: 'SERVICE', value: ({ service }) => service },
  { title: 'SYNC', value: ({ sync }) => sync, colour: true },
  { title: 'HEALTH', value: ({ health }) => health, colour: true },
  { title: 'COMMIT', value: ({ commit }) => short(commit) },
  { title: 'AUTHOR', value: ({ author }) => author ?? null, wide: true },
  { title: 'REASON', value: ({ reason }) => reason, wide: true },
  { title: 'CAUSE', value: ({ cause }) => causeText(cause) },
]

const causeText = (cause: HistoryCause | null): string | null =>
  cause === null ? null : cause.kind === 'commit' ? cause.text : `${cause.kind}: ${cause.text}`
