// delete: shows exactly what goes, asks, and tells what follows.

import { type DependenciesView, dependenciesViewSchema } from '../../shared/model/dependency-views.ts'
import { type ServiceSpec, sourcesOf } from '../../shared/model/resources.ts'
import {
  clusterViewSchema,
  configViewSchema,
  type DeleteAnswer,
  deleteAnswerSchema,
  joinTokenViewSchema,
  objectViewSchema,
  type PlacementView,
  placementViewSchema,
  repositoryViewSchema,
  serviceViewSchema,
} from '../../shared/model/views.ts'
import { AppError } from '../../shared/protocol/error.ts'
import { type Client, noContent, path } from './client.ts'
import { countText, plainText } from './columns.ts'
import type { Context } from './context.ts'
import { answersText, confirmationText } from './describe.ts'
import { askYes, UsageError } from './io.ts'
import { parseTarget, singular } from './kinds.ts'
import { namesOf } from './service-facts.ts'

const USERS_SHOWN = 20

export async function remove(
  context: Context,
  kindText: string,
  nameText: string | undefined,
  options: { project: string; yes?: true | undefined },
): Promise<void> {
  const { kind, name } = parseTarget(kindText, nameText, ['repositories', 'services', 'configs', 'clusters', 'join-tokens'])
  if (name === undefined) throw new UsageError(`which one? \`skerry get ${kind}\` lists the names`)
  const { io } = context
  const client = context.client()
  const effect = await blastRadius(context, kind, name, options.project)
  io.stderr.write(effect)
  await consent(context, `Delete ${singular(kind)} ${name}?`, options.yes === true)
  if (kind === 'join-tokens') {
    await client.send('DELETE', path`/join-tokens/${name}`, noContent)
    io.stdout.write(`join-token/${name} deleted\n`)
    return
  }
  const address =
    kind === 'clusters' ? path`/clusters/${name}` : `${path`/projects/${options.project}`}/${kind}/${encodeURIComponent(name)}`
  const answer = await client.send('DELETE', address, deleteAnswerSchema)
  io.stdout.write(outcomeText(`${singular(kind)}/${name}`, answer, io.clock.nowMs()))
}

/** A question only where somebody can answer it; a script says --yes. */
export async function consent({ io }: Context, question: string, yes: boolean): Promise<void> {
  if (yes) return
  if (!io.isTty) throw new UsageError('nobody can be asked here: add --yes if that is what you want')
  if (!(await askYes(io, question))) throw new AppError('conflict', { detail: 'not done: nothing was changed', remedy: '' })
}

async function blastRadius({ client: connect }: Context, kind: string, name: string, project: string): Promise<string> {
  const client = connect()
  if (kind === 'clusters') {
    await client.get(path`/clusters/${name}`, clusterViewSchema)
    const placements = await client.list(path`/clusters/${name}/services`, placementViewSchema)
    const list = placementLines(placements, (view) => `${view.project}/${view.service}`)
    return `Cluster ${name} is forgotten, its agent is turned away. What is applied there stays applied and is no longer looked after:\n${list}`
  }
  if (kind === 'services') {
    const service = await client.get(path`/projects/${project}/services/${name}`, serviceViewSchema)
    const placements = await client.list(path`/projects/${project}/services/${name}/clusters`, placementViewSchema)
    const { neededBy } = await client.get(path`/projects/${project}/services/${name}/dependencies`, dependenciesViewSchema)
    const foreign = await foreignObjects(client, project, name)
    const own = placements.map((view) => ownCount(view, foreign))
    const goes = service.spec.deletionPolicy === 'prune' ? 'Its objects are DELETED' : 'Its objects are let go and stay'
    const isNone = foreign.size > 0 && own.every((count) => count === 0)
    const end = isNone ? 'No object is deleted: what it names in these clusters belongs to others' : `${goes} in these clusters`
    const list = placementLines(placements, (view) => view.cluster, foreign)
    return `Service ${name} of project ${project} is removed. ${end}:\n${list}${namespaceText(service.spec)}${dependentsText(neededBy)}`
  }
  if (kind === 'repositories') {
    await client.get(path`/projects/${project}/repositories/${name}`, repositoryViewSchema)
    const services = await client.list('/services', serviceViewSchema, { project })
    const users = services.filter(({ spec }) => sourcesOf(spec).some(({ repository }) => repository === name))
    refuseUsed(
      `repository/${name}`,
      users.map(({ metadata }) => `service/${metadata.name}`),
    )
    return `Repository ${name} of project ${project} is forgotten; nothing in a cluster changes.\n`
  }
  if (kind === 'configs') {
    const { spec, status } = await client.get(path`/projects/${project}/configs/${name}`, configViewSchema)
    refuseUsed(`config/${name}`, status.usedBy ?? [])
    const secrets = Object.keys(spec.secrets)
    const lost = secrets.length === 0 ? '' : `; the values of its secrets are LOST: ${plainText(secrets.join(', '))}`
    return `Config ${name} of project ${project} is forgotten${lost}.\n`
  }
  const tokens = await client.list('/join-tokens', joinTokenViewSchema)
  if (!tokens.some((token) => token.id === name))
    throw new AppError('not_found', { detail: `there is no join token ${name}`, remedy: '`skerry join-token list` shows them.' })
  return `Join token ${name} is worth nothing any more; clusters that joined with it stay.\n`
}

/** Before anything is asked. The server looks again, should somebody begin to use it meanwhile (AP5, CG4). */
function refuseUsed(what: string, users: readonly string[]): void {
  if (users.length === 0) return
  const shown = users.toSorted().slice(0, USERS_SHOWN).join(', ')
  const more = users.length > USERS_SHOWN ? ` and ${users.length - USERS_SHOWN} more` : ''
  const [use, those] = users.length === 1 ? ['uses', 'that'] : ['use', 'those']
  const detail = `nothing was changed: ${plainText(shown)}${more} ${use} it`
  throw new AppError('in_use', { doing: `delete ${what}`, detail, remedy: `Change or delete ${those} first.` })
}

/** By cluster: how many objects the service names and does not own. */
async function foreignObjects(client: Client, project: string, service: string): Promise<ReadonlyMap<string, number>> {
  const objects = await client.list('/objects', objectViewSchema, { project, service, reason: 'OwnedBy' })
  const counts = new Map<string, number>()
  for (const { cluster } of objects) counts.set(cluster, (counts.get(cluster) ?? 0) + 1)
  return counts
}
const ownCount = ({ cluster, objectCount }: PlacementView, foreign: ReadonlyMap<string, number>): number =>
  Math.max(0, objectCount - (foreign.get(cluster) ?? 0))

/** NS2: the agents decide it, each by what its cluster holds. */
const namespaceText = ({ deletionPolicy, namespace, sync }: ServiceSpec): string =>
  deletionPolicy !== 'prune' || sync.deleteNamespace !== true || namespace === undefined
    ? ''
    : `The namespace ${plainText(namespace)} is DELETED too, with everything in it, also what is not of this service (sync.deleteNamespace), where it was made for this service and no other has objects in it.\n`

/** DE4: nothing waits for them. */
const dependentsText = (services: DependenciesView['neededBy']): string =>
  services.length === 0
    ? ''
    : `These depend on it. They stay as they are, and begin no new revision without it: ${plainText(namesOf(services))}\n`

function placementLines(
  placements: readonly PlacementView[],
  nameOf: (view: PlacementView) => string,
  foreign: ReadonlyMap<string, number> = new Map(),
): string {
  if (placements.length === 0) return '  (none)\n'
  const objects = placements.reduce((sum, view) => sum + ownCount(view, foreign), 0)
  const lines = placements.map((view) => {
    const away = view.liveness.word === 'Online' ? '' : `, ${view.liveness.word}`
    const others = foreign.get(view.cluster) ?? 0
    const stay = others === 0 ? '' : `; ${others === 1 ? '1 belongs to others and stays' : `${others} belong to others and stay`}`
    return `  ${plainText(nameOf(view))} (${countText(ownCount(view, foreign), 'object')}${stay}${away})\n`
  })
  return placements.length === 1 ? lines.join('') : `${lines.join('')}  in all ${placements.length}, with ${countText(objects, 'object')}\n`
}

function outcomeText(name: string, { outcome, clusters, confirmation }: DeleteAnswer, nowMs: number): string {
  if (outcome === 'deleted') return `${name} deleted\n`
  if (outcome === 'removing') return `${name} is being removed from ${clusters.join(', ')}; skerry describe ${name} shows how far it is\n`
  const shown = confirmation === null ? '' : `${confirmationText(confirmation, nowMs)}${answersText(confirmation)}`
  return `${name} waits for a confirmation; nothing has happened yet\n${shown}`
}
