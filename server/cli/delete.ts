// delete: shows exactly what goes, asks, and tells what follows.

import { deleteServicesAnswerSchema } from '../../shared/model/delete-services.ts'
import { type DependenciesView, dependenciesViewSchema } from '../../shared/model/dependency-views.ts'
import { type RemovalView, removalsViewSchema } from '../../shared/model/removal-views.ts'
import { DEFAULT_PROJECT, sourcesOf } from '../../shared/model/resources.ts'
import { savedQueryViewSchema } from '../../shared/model/saved-queries.ts'
import {
  clusterViewSchema,
  configViewSchema,
  type DeleteAnswer,
  deleteAnswerSchema,
  healthRuleViewSchema,
  joinTokenViewSchema,
  type PlacementView,
  placementViewSchema,
  projectViewSchema,
  repositoryViewSchema,
  roleBindingViewSchema,
  roleViewSchema,
  serviceViewSchema,
} from '../../shared/model/views.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { type Client, noContent, path } from './client.ts'
import { countText, plainText } from './columns.ts'
import type { Context } from './context.ts'
import { answersText, confirmationText } from './describe.ts'
import { healthRulePath, judgedText } from './health-rule-facts.ts'
import { askYes, UsageError } from './io.ts'
import { parseTarget, singular } from './kinds.ts'
import { notifyPath } from './notify/facts.ts'
import { askWithData, dataNames, deletedCount, keptText, removalText } from './removal-text.ts'
import { bindingPath } from './rights/role-facts.ts'
import { savedQueryEffect } from './saved-query.ts'
import { namesOf } from './service-facts.ts'

const USERS_SHOWN = 20
const DELETABLE = [
  'repositories',
  'services',
  'configs',
  'health-rules',
  'projects',
  'clusters',
  'join-tokens',
  'roles',
  'role-bindings',
  'notification-sinks',
  'notification-routes',
  'saved-queries',
] as const

export async function remove(
  context: Context,
  kindText: string,
  names: readonly string[],
  options: { project: string; givenProject?: string | undefined; yes?: true | undefined; confirmData?: readonly string[] | undefined },
): Promise<void> {
  const { kind, name } = parseTarget(kindText, names[0], DELETABLE)
  if (name === undefined) throw new UsageError(`name missing: \`skerry get ${kind}\` lists the names`)
  const { io } = context
  const client = context.client()
  const [, ...more] = names
  if (kind === 'services')
    return more.length === 0 ? removeService(context, name, options) : removeServices(context, [name, ...more], options)
  if (more.length > 0) throw new UsageError(`one at a time, but for services: ${more.join(' ')}`)
  if (options.confirmData !== undefined) throw new UsageError('--confirm-data is for services: deleting other resources deletes no objects')
  const effect =
    kind === 'notification-sinks' || kind === 'notification-routes'
      ? `${singular(kind)}/${name} is deleted; its messages are no longer sent.\n`
      : kind === 'saved-queries'
        ? savedQueryEffect(await client.get(path`/saved-queries/${name}`, savedQueryViewSchema))
        : kind === 'health-rules'
          ? await ruleEffect(client, name, options.givenProject)
          : kind === 'roles' || kind === 'role-bindings'
            ? await rightsEffect(client, kind, name, options.givenProject)
            : await blastRadius(context, kind, name, options.project)
  io.stderr.write(effect)
  await consent(context, `Delete ${singular(kind)} ${name}?`, options.yes === true)
  if (kind === 'join-tokens') {
    await client.send('DELETE', path`/join-tokens/${name}`, noContent)
    io.stdout.write(`join-token/${name} deleted\n`)
    return
  }
  if (kind === 'saved-queries') {
    await client.send('DELETE', path`/saved-queries/${name}`, noContent)
    io.stdout.write(`saved-query/${name} deleted\n`)
    return
  }
  const address =
    kind === 'clusters' || kind === 'projects' || kind === 'roles'
      ? `/${kind}/${path`${name}`}`
      : kind === 'notification-sinks' || kind === 'notification-routes'
        ? notifyPath(kind, name, options.givenProject)
        : kind === 'health-rules'
          ? healthRulePath(name, options.givenProject)
          : kind === 'role-bindings'
            ? bindingPath(name, options.givenProject)
            : `${path`/projects/${options.project}`}/${kind}/${encodeURIComponent(name)}`
  const answer = await client.send('DELETE', address, deleteAnswerSchema)
  io.stdout.write(outcomeText(`${singular(kind)}/${name}`, answer, io.clock.nowMs()))
}

/** Throws for one that does not exist. */
async function rightsEffect(client: Client, kind: 'roles' | 'role-bindings', name: string, project: string | undefined): Promise<string> {
  if (kind === 'roles') {
    await client.get(path`/roles/${name}`, roleViewSchema)
    return `Role ${name} is deleted; the server refuses it while a role binding names it.\n`
  }
  const { spec } = await client.get(bindingPath(name, project), roleBindingViewSchema)
  return `${countText(spec.subjects.length, 'subject')} of role binding ${name} lose the role ${spec.role} immediately.\n`
}

async function removeService(context: Context, name: string, { project, yes, confirmData = [] }: Removing): Promise<void> {
  const { io } = context
  const client = context.client()
  const address = path`/projects/${project}/services/${name}`
  const { items } = await client.get(`${address}/removal`, removalsViewSchema)
  io.stderr.write(await serviceEffect(client, project, name, items))
  const names = dataNames(items)
  const confirmed = await consentWithData(context, `Delete service ${name}?`, { names, given: confirmData, yes: yes === true })
  const answer = await client.send('DELETE', address, deleteAnswerSchema, { confirmData: confirmed })
  io.stdout.write(outcomeText(`service/${name}`, answer, io.clock.nowMs()))
  if (answer.outcome === 'removing')
    io.stderr.write(keptText(names, confirmed, `skerry delete service ${name}${project === DEFAULT_PROJECT ? '' : ` -p ${project}`} --yes`))
}

interface Removing {
  project: string
  yes?: true | undefined
  confirmData?: readonly string[] | undefined
}

/** By one request: separate ones would be a reconciliation each. */
async function removeServices(context: Context, services: readonly string[], { project, yes, confirmData = [] }: Removing): Promise<void> {
  const { io } = context
  const client = context.client()
  const address = path`/projects/${project}/delete-services`
  const { removals } = await client.send('POST', address, deleteServicesAnswerSchema, { names: services, dryRun: true })
  const count = countText(services.length, 'service')
  io.stderr.write(
    `${count} of project ${project} will be deleted; ${countText(deletedCount(removals), 'object')} will be deleted with them.\n`,
  )
  io.stderr.write(removalText(removals, 'will be'))
  const names = dataNames(removals)
  const confirmed = await consentWithData(context, `Delete ${count}?`, { names, given: confirmData, yes: yes === true })
  const { results } = await client.send('POST', address, deleteServicesAnswerSchema, { names: services, confirmData: confirmed })
  for (const { name, ...answer } of results) io.stdout.write(outcomeText(`service/${name}`, answer, io.clock.nowMs()))
  io.stderr.write(keptText(names, confirmed, null))
}

/** The names of data that a person confirms: those that an option names, and at a terminal those that were shown.
 *  `--yes` alone confirms none. */
export async function consentWithData(
  { io }: Context,
  question: string,
  { names, given, yes }: { names: readonly string[]; given: readonly string[]; yes: boolean },
): Promise<readonly string[]> {
  refuseUnknown(given, names)
  if (yes) return given
  if (!io.isTty) throw new UsageError(NOT_A_TERMINAL)
  const confirmed = await askWithData(io, question, names, given)
  if (confirmed === null) throw notDone()
  return confirmed
}

/** Before anything is asked: a name with a mistake would confirm nothing. */
function refuseUnknown(given: readonly string[], names: readonly string[]): void {
  const unknown = given.filter((name) => !names.includes(name))
  if (unknown.length === 0) return
  const known = names.length === 0 ? 'no object that holds data is deleted' : `these hold data: ${names.join(', ')}`
  throw new UsageError(plainText(`--confirm-data names no object that is deleted here: ${unknown.join(', ')}; ${known}`))
}

const NOT_A_TERMINAL = 'not a terminal: use --yes to confirm'
const notDone = () => new AppError('conflict', { detail: 'not done: nothing was changed', remedy: '' })

/** Asks only at a terminal; a script passes --yes. */
export async function consent({ io }: Context, question: string, yes: boolean): Promise<void> {
  if (yes) return
  if (!io.isTty) throw new UsageError(NOT_A_TERMINAL)
  if (!(await askYes(io, question))) throw notDone()
}

async function blastRadius({ client: connect }: Context, kind: string, name: string, project: string): Promise<string> {
  const client = connect()
  if (kind === 'clusters') {
    await client.get(path`/clusters/${name}`, clusterViewSchema)
    const placements = await client.list(path`/clusters/${name}/services`, placementViewSchema)
    const list = placementLines(placements, (view) => `${view.project}/${view.service}`)
    return `Cluster ${name} will be removed and its agent refused. No object is deleted: applied objects stay in the cluster, unmanaged:\n${list}`
  }
  if (kind === 'projects') {
    const { status } = await client.get(path`/projects/${name}`, projectViewSchema)
    if (status.services > 0)
      throw new AppError('in_use', {
        detail: `project/${name} has ${countText(status.services, 'service')}: \`skerry get services -p ${name}\``,
      })
    return `Project ${name} will be deleted: its limits no longer apply to its resources.\n`
  }
  if (kind === 'repositories') {
    await client.get(path`/projects/${project}/repositories/${name}`, repositoryViewSchema)
    const services = await client.list('/services', serviceViewSchema, { project })
    const users = services.filter(({ spec }) => sourcesOf(spec).some(({ repository }) => repository === name))
    refuseUsed(
      `repository/${name}`,
      users.map(({ metadata }) => `service/${metadata.name}`),
    )
    return `Repository ${name} of project ${project} will be deleted; nothing in a cluster changes.\n`
  }
  if (kind === 'configs') {
    const { spec, status } = await client.get(path`/projects/${project}/configs/${name}`, configViewSchema)
    refuseUsed(`config/${name}`, status.usedBy ?? [])
    const secrets = Object.keys(spec.secrets)
    const lost = secrets.length === 0 ? '' : `; the values of its secrets are LOST: ${plainText(secrets.join(', '))}`
    return `Config ${name} of project ${project} will be deleted${lost}.\n`
  }
  const tokens = await client.list('/join-tokens', joinTokenViewSchema)
  if (!tokens.some((token) => token.id === name))
    throw new AppError('not_found', { detail: `join token ${name} does not exist`, remedy: '`skerry join-token list` shows them.' })
  return `Join token ${name} will be invalid; clusters that joined with it stay.\n`
}

async function serviceEffect(client: Client, project: string, name: string, removals: readonly RemovalView[]): Promise<string> {
  const address = path`/projects/${project}/services/${name}`
  const { spec } = await client.get(address, serviceViewSchema)
  const placements = await client.list(`${address}/clusters`, placementViewSchema)
  const { neededBy } = await client.get(`${address}/dependencies`, dependenciesViewSchema)
  const away = placements.filter(({ liveness }) => liveness.word !== 'Online')
  const count = deletedCount(removals)
  const objects = spec.deletionPolicy === 'prune' ? `${countText(count, 'object')} will be deleted` : 'its objects are released and stay'
  const later = away.map(({ cluster, liveness }) => `${cluster} (${liveness.word})`).join(', ')
  const awayText = away.length === 0 ? '' : `Not online (done there when they reconnect): ${plainText(later)}\n`
  const head =
    placements.length === 0
      ? `Service ${name} of project ${project} will be deleted; it is not in any cluster.\n`
      : `Service ${name} of project ${project} will be removed from ${countText(placements.length, 'cluster')}; ${objects}.\n`
  return `${head}${removalText(removals, 'will be')}${awayText}${dependentsText(neededBy)}`
}

async function ruleEffect(client: Client, name: string, project: string | undefined): Promise<string> {
  const { spec, status } = await client.get(healthRulePath(name, project), healthRuleViewSchema)
  const of = project === undefined ? 'of the whole fleet' : `of project ${project}`
  const clusters = countText(status.clusters ?? 0, 'cluster')
  return `HealthRule ${name} ${of} is deleted. Objects of ${plainText(judgedText(spec))} in ${clusters} are then evaluated by the next rule, or by the built-in rules.\n`
}

/** Before any question. The server checks again, in case a user appears meanwhile (AP5, CG4). */
function refuseUsed(what: string, users: readonly string[]): void {
  if (users.length === 0) return
  const shown = users.toSorted().slice(0, USERS_SHOWN).join(', ')
  const more = users.length > USERS_SHOWN ? ` and ${users.length - USERS_SHOWN} more` : ''
  const [use, those] = users.length === 1 ? ['uses', 'that'] : ['use', 'those']
  const detail = `nothing was changed: ${plainText(shown)}${more} ${use} it`
  throw new AppError('in_use', { doing: `delete ${what}`, detail, remedy: `Change or delete ${those} first.` })
}

/** DE4: nothing waits for them. */
const dependentsText = (services: DependenciesView['neededBy']): string =>
  services.length === 0
    ? ''
    : `These services depend on it. They stay unchanged and start no new revision without it: ${plainText(namesOf(services))}\n`

function placementLines(placements: readonly PlacementView[], nameOf: (view: PlacementView) => string): string {
  if (placements.length === 0) return '  (none)\n'
  const objects = placements.reduce((sum, { objectCount }) => sum + objectCount, 0)
  const lines = placements.map((view) => {
    const away = view.liveness.word === 'Online' ? '' : `, ${view.liveness.word}`
    return `  ${plainText(nameOf(view))} (${countText(view.objectCount, 'object')}${away})\n`
  })
  return placements.length === 1 ? lines.join('') : `${lines.join('')}  in all ${placements.length}, with ${countText(objects, 'object')}\n`
}

function outcomeText(name: string, { outcome, clusters, confirmation }: DeleteAnswer, nowMs: number): string {
  if (outcome === 'deleted') return `${name} deleted\n`
  if (outcome === 'removing') return `${name} is being removed from ${clusters.join(', ')}; skerry describe ${name} shows the progress\n`
  const shown = confirmation === null ? '' : `${confirmationText(confirmation, nowMs)}${answersText(confirmation)}`
  return `${name} waits for confirmation; nothing was changed yet\n${shown}`
}
