// sync: what waits for a person in a service with `sync.mode: manual`, shown object by object; and the yes to exactly
// that.
import { shortRevision } from '../../shared/model/revision-text.ts'
import {
  type SyncAnswer,
  type SyncChange,
  type SyncCluster,
  type SyncNames,
  type SyncPlanView,
  syncAnswerSchema,
  syncPlanViewSchema,
} from '../../shared/model/sync.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { path } from './client.ts'
import { type Column, countText, plainText, renderTable } from './columns.ts'
import { type Context, type Output, usesColour } from './context.ts'
import { consent } from './delete.ts'
import { UsageError } from './io.ts'
import { parseTarget } from './kinds.ts'
import { documentText } from './printing/documents.ts'

export interface SyncOptions {
  project: string
  cluster: string[]
  selector?: string | undefined
  dryRun?: true | undefined
  yes?: true | undefined
  output?: Output
}

export async function sync(context: Context, target: string, options: SyncOptions): Promise<void> {
  const name = target.includes('/') ? parseTarget(target, undefined, ['services']).name : target
  if (name === undefined || name === '') throw new UsageError('name missing: `skerry get services` lists the names')
  const { io } = context
  const client = context.client()
  const address = path`/projects/${options.project}/services/${name}/sync`
  const [only] = options.cluster
  const query = { labelSelector: options.selector, cluster: options.cluster.length === 1 ? only : undefined }
  const plan = narrowed(await client.get(address, syncPlanViewSchema, query), options.cluster)
  if (options.dryRun === true) {
    io.stdout.write(documentText(plan, options.output) ?? planText(plan, usesColour(io)))
    return
  }
  const waiting = plan.clusters.filter(({ waits }) => waits)
  if (waiting.length === 0) {
    const answers: SyncAnswer[] = []
    io.stdout.write(documentText(answers, options.output) ?? '')
    io.stderr.write(nothingText(plan))
    return
  }
  io.stderr.write(planText(plan, usesColour(io)))
  await consent(context, `Sync ${name} in ${countText(waiting.length, 'cluster')}?`, options.yes === true)
  const answers: SyncAnswer[] = []
  for (const [digest, clusters] of byDigest(waiting))
    answers.push(await client.send('POST', address, syncAnswerSchema, { digest, clusters }))
  io.stdout.write(documentText(answers, options.output) ?? answers.map((answer) => answerText(name, answer)).join(''))
}

/** A named cluster is intended: one without the service is an error. */
function narrowed(plan: SyncPlanView, names: readonly string[]): SyncPlanView {
  if (names.length === 0) return plan
  const missing = names.filter((name) => !plan.clusters.some(({ cluster }) => cluster === name))
  if (missing.length > 0)
    throw new AppError('not_found', {
      detail: `${plan.service} is not in ${missing.join(', ')}`,
      remedy: `\`skerry describe service ${plan.service} -p ${plan.project}\` shows its state.`,
    })
  return { ...plan, clusters: plan.clusters.filter(({ cluster }) => names.includes(cluster)) }
}

function byDigest(clusters: readonly SyncCluster[]): Map<string, string[]> {
  const grouped = new Map<string, string[]>()
  for (const { digest, cluster } of clusters) grouped.set(digest, [...(grouped.get(digest) ?? []), cluster])
  return grouped
}

const short = (commit: string | null): string | null => (commit === null ? null : shortRevision(commit))

interface Line extends SyncCluster {
  delta: SyncChange | null
}
const number = (change: SyncChange | null, pick: (change: SyncChange) => number): number | string | null =>
  change === null ? null : change.known ? pick(change) : '?'
const columns: Column<Line>[] = [
  { title: 'CLUSTER', value: ({ cluster }) => cluster },
  { title: 'LIVENESS', value: ({ liveness }) => liveness.word, colour: true },
  { title: 'FROM', value: ({ delta }) => short(delta?.fromCommit ?? null) },
  { title: 'TO', value: ({ commit }) => short(commit) },
  { title: 'CREATE', value: ({ delta }) => number(delta, ({ create }) => create.count) },
  { title: 'CHANGE', value: ({ delta }) => number(delta, ({ change }) => change.count) },
  { title: 'PRUNE', value: ({ delta }) => number(delta, ({ prune }) => prune.count) },
  { title: 'SAME', value: ({ delta }) => number(delta, ({ same }) => same) },
]

const nothingText = ({ service, project, mode, clusters }: SyncPlanView): string => {
  if (mode === 'auto') return `nothing to sync: sync.mode of ${service} is auto, so revisions are applied automatically\n`
  if (clusters.length === 0)
    return `nothing to sync: ${service} of project ${project} is in none of these clusters; \`skerry describe service ${service} -p ${project}\` shows its clusters\n`
  return `nothing to sync: the newest revision of ${service} is already approved in ${countText(clusters.length, 'cluster')}\n`
}

const CLUSTERS_NAMED = 5

function planText(plan: SyncPlanView, colours: boolean): string {
  const waiting = plan.clusters.filter(({ waits }) => waits)
  if (waiting.length === 0) return nothingText(plan)
  const changeOf = ({ change }: SyncCluster) => (change === null ? null : (plan.changes[change] ?? null))
  const lines = waiting.map((cluster): Line => ({ ...cluster, delta: changeOf(cluster) }))
  const head = `Service ${plan.service} of project ${plan.project}: ${waiting.length} of ${countText(plan.clusters.length, 'cluster')} ${plan.clusters.length === 1 ? 'waits' : 'wait'} for a sync.\n`
  const blocks = plan.changes.map((change, index) => {
    const names = waiting.filter((cluster) => cluster.change === index).map(({ cluster }) => cluster)
    return names.length === 0 ? '' : changeText(change, names, plan.prunes)
  })
  return `${head}${renderTable(columns, lines, { wide: true, headers: true, colours })}${blocks.join('')}`
}

function changeText(change: SyncChange, clusters: readonly string[], prunes: boolean): string {
  const more = clusters.length > CLUSTERS_NAMED ? ` and ${clusters.length - CLUSTERS_NAMED} more` : ''
  const where = `In ${clusters.slice(0, CLUSTERS_NAMED).map(plainText).join(', ')}${more}`
  const to = `${short(change.fromCommit) ?? 'nothing'} to ${short(change.commit)}`
  if (!change.known) return `${where}, ${to}: the objects of the previous revision are no longer stored, so they cannot be compared.\n`
  const lists = [
    namesText('create', change.create),
    namesText('change', change.change),
    namesText(prunes ? 'prune' : 'keep (sync.prune is false)', change.prune),
  ]
  const shown = lists.join('')
  return `${where}, ${to}:\n${shown === '' ? '  (no object changes)\n' : shown}`
}

function namesText(verb: string, { count, names }: SyncNames): string {
  const more = count > names.length ? `  ${verb} ${count - names.length} more\n` : ''
  return names.map((name) => `  ${verb} ${plainText(name)}\n`).join('') + more
}

function answerText(name: string, { commit, clusters, already }: SyncAnswer): string {
  const before = already === 0 ? '' : `, approved before in ${already} more`
  return `service/${name} approved for commit ${commit.slice(0, 12)} in ${countText(clusters.length, 'cluster')}${before}; skerry describe service/${name} shows the progress\n`
}
