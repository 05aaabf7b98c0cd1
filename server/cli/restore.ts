// restore: the changes that a server restored from a backup would make, and the confirmation that lets it continue.

import { shortRevision } from '../../shared/model/revision-text.ts'
import { type RestorePlanView, type RestoreServiceView, restoreConfirmedSchema, restorePlanViewSchema } from '../../shared/model/views.ts'
import { ageText, type Column, countText, plainText, renderTable } from './columns.ts'
import { type Context, type Output, usesColour } from './context.ts'
import { consent } from './delete.ts'
import { documentText } from './printing/documents.ts'

const NOTHING_WAITS = 'no pending restore\n'

export async function showRestore(context: Context, { output }: { output?: Output }): Promise<void> {
  const { io } = context
  const plan = await context.client().get('/restore', restorePlanViewSchema)
  const document = documentText(plan, output)
  if (document !== null) io.stdout.write(document)
  else if (!plan.pending) io.stderr.write(`${NOTHING_WAITS}${knocksText(plan, io.clock.nowMs())}`)
  else io.stdout.write(`${planText(plan, io.clock.nowMs(), usesColour(io))}\nConfirm it: skerry restore confirm\n`)
}

export async function confirmRestore(context: Context, { yes }: { yes?: true | undefined }): Promise<void> {
  const { io } = context
  const client = context.client()
  const plan = await client.get('/restore', restorePlanViewSchema)
  if (!plan.pending || plan.token === null) return void io.stderr.write(NOTHING_WAITS)
  io.stderr.write(planText(plan, io.clock.nowMs(), usesColour(io)))
  await consent(context, 'Confirm exactly this plan?', yes === true)
  const { clusters, marked } = await client.send('POST', '/restore/confirm', restoreConfirmedSchema, { token: plan.token })
  io.stdout.write(`restore confirmed: ${countText(clusters, 'cluster')} served again\n`)
  if (marked > 0)
    io.stderr.write(`${countText(marked, 'service')} in clusters prune nothing until their next commit, or until \`skerry confirm\`.\n`)
}

interface Line extends RestoreServiceView {
  cluster: string
  seenMs: number | null
}

const WHAT: Record<RestoreServiceView['what'], string> = {
  change: 'would change',
  place: 'would be placed',
  remove: 'removal order; deletes nothing before a confirmation',
  'let go': 'would no longer be managed; its objects stay',
  unclaimed: 'unclaimed: kept',
  resume: 'suspended after the backup: would be resumed; to prevent it, run `skerry suspend` before the confirmation',
}
const short = (commit: string | null): string | null => (commit === null ? null : shortRevision(commit))
const columns = (nowMs: number): Column<Line>[] => [
  { title: 'CLUSTER', value: ({ cluster }) => cluster },
  { title: 'SEEN', value: ({ seenMs }) => ageText(seenMs, nowMs) },
  { title: 'PROJECT', value: ({ project }) => project },
  { title: 'SERVICE', value: ({ service }) => service },
  { title: 'FROM', value: ({ from }) => short(from) },
  { title: 'TO', value: ({ to }) => short(to) },
  { title: 'WHAT', value: ({ what }) => WHAT[what] },
]

function planText(plan: RestorePlanView, nowMs: number, colours: boolean): string {
  const ahead = plan.clusters.filter(({ behind }) => behind !== null)
  const silent = plan.clusters.filter(({ heard }) => !heard)
  const lines = plan.clusters.flatMap(({ cluster, lastSeenMs, services }) =>
    services.map((service) => ({ ...service, cluster, seenMs: lastSeenMs })),
  )
  const same = plan.clusters.reduce((sum, cluster) => sum + cluster.same, 0)
  const texts = [
    `This server was restored from a backup (detected ${ageText(plan.sinceMs, nowMs)} ago); ${ahead.length} of ${countText(plan.clusters.length, 'cluster')} proved that their state is newer than its store.`,
    'Until this plan is confirmed, agents keep enforcing their state and receive nothing. The confirmation deletes nothing in any cluster.',
    '',
    lines.length === 0 ? 'No service would change.' : renderTable(columns(nowMs), lines, { wide: false, headers: true, colours }).trimEnd(),
    `${countText(same, 'service')} in clusters stay unchanged.`,
  ]
  if (silent.length > 0)
    texts.push(
      `Not heard of since, so what is shown of them is what they said before: ${silent.map(({ cluster }) => plainText(cluster)).join(', ')}`,
    )
  return `${texts.join('\n')}\n${knocksText(plan, nowMs)}`
}

function knocksText({ unknownAgents }: RestorePlanView, nowMs: number): string {
  if (unknownAgents.length === 0) return ''
  const lines = unknownAgents.map(
    ({ agentId, tries, lastMs }) => `  ${plainText(agentId)}, ${countText(tries, 'time')}, last ${ageText(lastMs, nowMs)} ago\n`,
  )
  return `Unknown agents that request a session, because their cluster joined after the backup or was removed:
${lines.join('')}Let such a cluster join again: skerry join-token create, then start its agent with that token and an empty
state folder. Applied objects stay in the cluster.
`
}
