// describe: one thing with everything around it, in the order in which a person on call needs it.

import { dependenciesViewSchema } from '../../shared/model/dependency-views.ts'
import { selectorText } from '../../shared/model/labels.ts'
import { notificationRouteViewSchema, notificationSinkViewSchema } from '../../shared/model/notification-views.ts'
import { DEFAULT_PROJECT, sourcesOf } from '../../shared/model/resources.ts'
import {
  type ClusterView,
  type ConfirmationView,
  clusterViewSchema,
  configViewSchema,
  confirmationViewSchema,
  type EventView,
  eventViewSchema,
  healthRuleViewSchema,
  type Liveness,
  objectViewSchema,
  placementViewSchema,
  projectViewSchema,
  type RepositoryView,
  repositoryViewSchema,
  roleBindingViewSchema,
  roleViewSchema,
  type ServiceView,
  serviceViewSchema,
} from '../../shared/model/views.ts'
import { cutTexts } from '../../shared/runtime/cut-text.ts'
import type { Problem } from '../../shared/runtime/error.ts'
import { type Client, path } from './client.ts'
import { ageText, type Column, labelsText, messagesOf, plainText, renderTable, withAuthor, withShortMessages } from './columns.ts'
import { clusterConfigFacts, configFacts, siteFacts } from './config-facts.ts'
import { type Context, type Output, usesColour } from './context.ts'
import { get } from './get.ts'
import { healthRuleFacts, healthRulePath } from './health-rule-facts.ts'
import { UsageError } from './io.ts'
import { parseTarget } from './kinds.ts'
import { notifyPath, routeFacts, sinkFacts } from './notify/facts.ts'
import { projectFacts } from './project-facts.ts'
import { bindingFacts, bindingPath, roleFacts } from './rights/role-facts.ts'
import { type Fact, optionFacts } from './service-facts.ts'
import { shownProblem } from './shown-problem.ts'
import { readText, repositoryPlaceFacts, sourceFacts, warningsText } from './source-facts.ts'
import { suspensionFacts } from './suspend.ts'
import { eventColumns, objectColumns, placementColumns, warnedColumns } from './tables.ts'

const EVENTS_SHOWN = 10
const OBJECTS_SHOWN = 20

export async function describe(
  context: Context,
  kindText: string,
  nameText: string | undefined,
  options: { project: string; givenProject?: string | undefined; output?: Output },
): Promise<void> {
  const { kind, name } = parseTarget(kindText, nameText, [
    'clusters',
    'services',
    'repositories',
    'configs',
    'health-rules',
    'projects',
    'roles',
    'role-bindings',
    'notification-sinks',
    'notification-routes',
    'confirmations',
  ])
  if (name === undefined) throw new UsageError(`name missing: \`skerry get ${kind}\` lists the names`)
  // The document of one resource is the same, whatever verb shows it.
  if (options.output !== undefined) return get(context, kind, name, options)
  const client = context.client()
  const { project } = options
  const messages: string[] = []
  const write = (...blocks: string[]) => {
    const texts = cutTexts(messages, blocks[0])
    const full = texts.length === 0 ? '' : `Messages in full:\n${texts.map((text) => `  ${text}\n`).join('')}`
    context.io.stdout.write([...blocks, full].filter((block) => block !== '').join('\n'))
  }
  const nowMs = context.io.clock.nowMs()
  const section = <T>(title: string, columns: Column<T>[], items: readonly T[]): string => {
    if (items.length === 0) return ''
    messages.push(...messagesOf(columns, items))
    return `${title}:\n${renderTable(withShortMessages(columns), items, { wide: true, headers: true, colours: usesColour(context.io) })}`
  }
  const events = async (query: Record<string, string>) =>
    section<EventView>('Events', eventColumns(nowMs, false), (await client.list('/events', eventViewSchema, query)).slice(-EVENTS_SHOWN))

  switch (kind) {
    case 'clusters': {
      const view = await client.get(path`/clusters/${name}`, clusterViewSchema)
      const placements = await client.list(path`/clusters/${name}/services`, placementViewSchema)
      return void write(
        facts(clusterFacts(view, nowMs)),
        section('Services', placementColumns(nowMs, true), placements),
        await events({ cluster: name }),
      )
    }
    case 'services': {
      const view = withoutSelf(await client.get(path`/projects/${project}/services/${name}`, serviceViewSchema))
      const placements = await client.list(path`/projects/${project}/services/${name}/clusters`, placementViewSchema)
      const dependencies = await client.get(path`/projects/${project}/services/${name}/dependencies`, dependenciesViewSchema)
      const objects = await client.list('/objects', objectViewSchema, { project, service: name })
      const bad = objects.filter((object) => object.sync !== 'Synced' || object.health !== 'Healthy')
      const warned = objects.filter(({ warnings = [] }) => warnings.length > 0)
      return void write(
        facts([...serviceFacts(view, nowMs), ...(await sourceReadFacts(client, view, nowMs)), ...optionFacts(view.spec, dependencies)]),
        warningsText(view.status),
        problems(view.status.problems),
        section('Clusters', placementColumns(nowMs, false), placements),
        section(
          bad.length > OBJECTS_SHOWN
            ? `Objects that are not Synced and Healthy (first ${OBJECTS_SHOWN} of ${bad.length})`
            : 'Objects that are not Synced and Healthy',
          objectColumns(nowMs, false),
          bad.slice(0, OBJECTS_SHOWN),
        ),
        section('Warnings of the API server', warnedColumns, warned.slice(0, OBJECTS_SHOWN)),
        await events({ project, service: name }),
      )
    }
    case 'repositories': {
      const address = path`/projects/${project}/repositories/${name}`
      const view = await client.get(address, repositoryViewSchema)
      const webhook: Fact = ['Webhook', `\`skerry webhook-secret create ${name}\` makes a secret and shows what to enter in a forge`]
      return void write(facts([...repositoryFacts(view, nowMs), webhook]), problems(view.status.problems))
    }
    case 'configs': {
      const view = await client.get(path`/projects/${project}/configs/${name}`, configViewSchema)
      return void write(facts(configFacts(view)))
    }
    case 'projects': {
      const view = await client.get(path`/projects/${name}`, projectViewSchema)
      return void write(facts(projectFacts(view, nowMs)))
    }
    case 'roles':
      return void write(facts(roleFacts(await client.get(path`/roles/${name}`, roleViewSchema))))
    case 'notification-sinks': {
      const view = await client.get(notifyPath(kind, name, options.givenProject), notificationSinkViewSchema)
      return void write(facts(sinkFacts(view, nowMs)))
    }
    case 'notification-routes': {
      const view = await client.get(notifyPath(kind, name, options.givenProject), notificationRouteViewSchema)
      return void write(facts(routeFacts(view, nowMs)))
    }
    case 'role-bindings': {
      const view = await client.get(bindingPath(name, options.givenProject), roleBindingViewSchema)
      return void write(facts(bindingFacts(view, nowMs)))
    }
    case 'health-rules': {
      const view = await client.get(healthRulePath(name, options.givenProject), healthRuleViewSchema)
      return void write(facts(healthRuleFacts(view, nowMs)))
    }
    default: {
      const view = await client.get(path`/confirmations/${name}`, confirmationViewSchema)
      return void write(`${confirmationText(view, nowMs)}${view.confirmedMs === null ? answersText(view) : ''}`)
    }
  }
}

/** Nothing is added for a server that does not say when it reads, and for a repository that does not exist. */
async function sourceReadFacts(client: Client, { metadata, spec }: ServiceView, nowMs: number): Promise<Fact[]> {
  const names = [...new Set(sourcesOf(spec).map(({ repository }) => repository))]
  const read = async (name: string): Promise<Fact[]> => {
    const address = path`/projects/${metadata.project ?? DEFAULT_PROJECT}/repositories/${name}`
    const view = await client.get(address, repositoryViewSchema).catch(() => null)
    const text = view === null ? null : readText(view.status, nowMs)
    return text === null ? [] : [['Source read', names.length === 1 ? text : `${name}: ${text}`]]
  }
  return (await Promise.all(names.map(read))).flat()
}

/** Names and values in two columns; what is empty is left out. */
export function facts(list: readonly Fact[]): string {
  const shown = list.filter(([, value]) => value !== null && value !== undefined && value !== '')
  const width = Math.max(...shown.map(([name]) => name.length)) + 2
  return shown.map(([name, value]) => `${`${name}:`.padEnd(width)}${plainText(String(value))}\n`).join('')
}

const problems = (list: readonly Problem[]): string =>
  list.length === 0 ? '' : `Problems:\n${list.map((problem) => shownProblem(problem).replaceAll(/^(?=.)/gm, '  ')).join('')}`

/** The advice to run this very command helps nobody here. */
function withoutSelf(view: ServiceView): ServiceView {
  const { project, name } = view.metadata
  const next = view.status.next.replace(`\`skerry describe service ${name} -p ${project}\` shows each cluster.`, '').trim()
  return { ...view, status: { ...view.status, next } }
}

function stateFacts(
  status: { sync: string; health: string; reason: string; message: string; next: string; sinceMs: number | null },
  nowMs: number,
): Fact[] {
  return [
    ['State', `${status.sync}, ${status.health}`],
    ['Since', sinceText(status.sinceMs, nowMs)],
    ['Reason', status.reason],
    ['Message', status.message],
    ['Next', status.next],
  ]
}

export const sinceText = (ms: number | null, nowMs: number): string | null =>
  ms === null ? null : `${new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')} (${ageText(ms, nowMs)} ago)`

export function livenessText({ word, lastSeenMs }: Liveness, nowMs: number): string {
  const seen = lastSeenMs === null ? '' : `, last seen ${ageText(lastSeenMs, nowMs)} ago`
  switch (word) {
    case 'Offline':
      return `Offline since ${sinceText(lastSeenMs, nowMs)}`
    case 'NeverSeen':
      return 'joined; never seen since then'
    default:
      return word + seen
  }
}

const clusterFacts = ({ metadata, spec, status }: ClusterView, nowMs: number): Fact[] => [
  ['Cluster', metadata.name],
  ['Id', metadata.uid],
  ['Labels', labelsText(metadata.labels)],
  ['Liveness', livenessText(status.liveness, nowMs)],
  ...stateFacts(status, nowMs),
  ...suspensionFacts(status.suspensions, nowMs),
  ['Joined', sinceText(status.joinedMs, nowMs)],
  ['Kubernetes', status.facts?.kubernetesVersion ?? status.kubernetesVersion],
  ['APIs', apisText(status.facts)],
  ...siteFacts(status.site),
  ['Nodes', status.nodeCount],
  ['Agent', status.agentVersion],
  ...clusterConfigFacts(spec),
  ...status.problems.map((problem): Fact => ['Problem', `${problem.code}: ${problem.message}, since ${sinceText(problem.sinceMs, nowMs)}`]),
]

/** PJ11: clusters that the targets match but no destination selects. */
const leftOutText = ({ metadata, status: { leftOut } }: ServiceView): string | null =>
  leftOut === undefined ? null : `${leftOut} of its clusters, because no destination of project ${metadata.project ?? ''} selects them`

function serviceFacts(view: ServiceView, nowMs: number): Fact[] {
  const { metadata, spec, status } = view
  return [
    ['Service', metadata.name],
    ['Project', metadata.project],
    ['Labels', labelsText(metadata.labels)],
    ...stateFacts(status, nowMs),
    ['Waits for', status.confirmationId === null ? null : `skerry confirm ${status.confirmationId}`],
    ...suspensionFacts(status.suspensions, nowMs),
    ...sourceFacts(view),
    ['Targets', selectorText(spec.targets.selector) || 'every cluster'],
    [
      'Excluded',
      spec.targets.exclude.length === 0
        ? null
        : spec.targets.exclude.map((selector) => selectorText(selector) || 'every cluster').join('; '),
    ],
    ['Left out', leftOutText(view)],
    ['Namespace', spec.namespace],
    ['On deletion', spec.deletionPolicy],
    ['Protected', spec.protect ? 'each removal and prune needs a confirmation' : null],
    ['Commit', status.commit === null ? null : withAuthor(status.commit, status)],
    ['Failed at', failedText(view.status)],
    ['Objects', status.variants > 1 ? `${status.objectCount} at most, in ${status.variants} variants` : status.objectCount],
    ['Rendered', sinceText(status.renderedMs, nowMs)],
    [
      'In clusters',
      status.clusters.total === 0
        ? 'none'
        : `${status.clusters.total}: ${status.clusters.synced} Synced, ${status.clusters.healthy} Healthy, ${status.clusters.offline} not online`,
    ],
  ]
}

const failedText = ({ failedAt }: ServiceView['status']): string | null =>
  failedAt === null
    ? null
    : `${failedAt.commit}${failedAt.author === null ? '' : ` by ${failedAt.author}`}${failedAt.subject === undefined ? '' : `: ${failedAt.subject}`}`

const repositoryFacts = (view: RepositoryView, nowMs: number): Fact[] => [
  ['Repository', view.metadata.name],
  ['Project', view.metadata.project],
  ['Labels', labelsText(view.metadata.labels)],
  ['Ready', view.status.ready ? 'True' : 'False'],
  ['Since', sinceText(view.status.sinceMs, nowMs)],
  ['Reason', view.status.reason],
  ['Message', view.status.message],
  ['Next', view.status.next],
  ...repositoryPlaceFacts(view, nowMs),
  ['Fetched', sinceText(view.status.fetchedMs, nowMs)],
]

function apisText(facts: ClusterView['status']['facts']): string | null {
  if (facts === null) return null
  const versions = Object.keys(facts.apis).length
  const kinds = Object.values(facts.apis).reduce((sum, of) => sum + of.length, 0)
  return facts.cut === true ? `${versions} group versions; too many kinds to name` : `${kinds} kinds in ${versions} group versions`
}

const MEANING: Record<string, string> = {
  remove_service: 'The service is removed from these clusters',
  leave_targets: 'The service leaves these clusters',
  prune: 'These objects are deleted',
  sync: 'The revision is applied in these clusters',
  release: 'The new version of the tool changes these objects',
}

const INSTEAD: Record<string, string> = {
  remove_service: 'To undo, apply the service again: skerry apply -f',
  leave_targets: 'To undo, restore the targets of the service, or the labels of the clusters: skerry apply -f',
  prune: 'To undo, restore the manifests and push',
  release: 'Without confirmation nothing changes; to undo, start the server with the old version of the tool',
}

/** The commands with which a person answers. */
export const answersText = ({ id, kind }: ConfirmationView): string =>
  `Confirm with: skerry confirm ${id}\nKeep the objects with: skerry refuse ${id} --reason TEXT\n${INSTEAD[kind] === undefined ? '' : `${INSTEAD[kind]}\n`}`

const countText = (count: number): string => count.toLocaleString('en-US')

function clustersText({ clusters }: ConfirmationView): string | null {
  if (clusters === undefined) return null
  const { count, first } = clusters
  return `${countText(count)}: ${first.join(', ')}${count > first.length ? ` and ${countText(count - first.length)} more` : ''}`
}

/** Exactly the effect of a confirmation. */
export function confirmationText(view: ConfirmationView, nowMs: number): string {
  const head = facts([
    ['Confirmation', view.id],
    ['Service', `${view.project}/${view.service}`],
    ['Cluster', view.cluster],
    ['Clusters', clustersText(view)],
    ['Why', view.why],
    ['Asked', sinceText(view.createdMs, nowMs)],
    ['Refused', view.refused === undefined ? null : `${sinceText(view.refused.atMs, nowMs)} by ${view.refused.by}: ${view.refused.why}`],
    ['Confirmed', view.confirmedMs === null ? null : `${sinceText(view.confirmedMs, nowMs)} by ${view.confirmedBy ?? ''}`],
  ])
  const { clusters, names } = view
  const many = clusters === undefined ? '' : ` in ${countText(clusters.count)} clusters, the same ${names.length} objects`
  const title =
    clusters === undefined ? `${MEANING[view.kind] ?? view.kind} (${names.length}):` : `${MEANING[view.kind] ?? view.kind}${many}:`
  return `${head}${title}\n${view.names.map((name) => `  ${plainText(name)}\n`).join('')}`
}
