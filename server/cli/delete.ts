// delete: shows exactly what goes, asks, and tells what follows.

import { type DependenciesView, dependenciesViewSchema } from '../../shared/model/dependency-views.ts'
import type { ServiceSpec } from '../../shared/model/resources.ts'
import {
  clusterViewSchema,
  configViewSchema,
  type DeleteAnswer,
  deleteAnswerSchema,
  joinTokenViewSchema,
  type PlacementView,
  placementViewSchema,
  repositoryViewSchema,
  serviceViewSchema,
} from '../../shared/model/views.ts'
import { AppError } from '../../shared/protocol/error.ts'
import { noContent, path } from './client.ts'
import { countText, plainText } from './columns.ts'
import type { Context } from './context.ts'
import { answersText, confirmationText } from './describe.ts'
import { askYes, UsageError } from './io.ts'
import { parseTarget, singular } from './kinds.ts'
import { namesOf } from './service-facts.ts'

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
    const end = service.spec.deletionPolicy === 'prune' ? 'Its objects are DELETED' : 'Its objects are let go and stay'
    const list = placementLines(placements, (view) => view.cluster)
    return `Service ${name} of project ${project} is removed. ${end} in these clusters:\n${list}${namespaceText(service.spec)}${dependentsText(neededBy)}`
  }
  if (kind === 'repositories') {
    await client.get(path`/projects/${project}/repositories/${name}`, repositoryViewSchema)
    return `Repository ${name} of project ${project} is forgotten; nothing in a cluster changes.\n`
  }
  if (kind === 'configs') {
    const { spec } = await client.get(path`/projects/${project}/configs/${name}`, configViewSchema)
    const secrets = Object.keys(spec.secrets)
    const lost = secrets.length === 0 ? '' : `; the values of its secrets are LOST: ${plainText(secrets.join(', '))}`
    return `Config ${name} of project ${project} is forgotten${lost}.\n`
  }
  const tokens = await client.list('/join-tokens', joinTokenViewSchema)
  if (!tokens.some((token) => token.id === name))
    throw new AppError('not_found', { detail: `there is no join token ${name}`, remedy: '`skerry join-token list` shows them.' })
  return `Join token ${name} is worth nothing any more; clusters that joined with it stay.\n`
}

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

function placementLines(placements: readonly PlacementView[], nameOf: (view: PlacementView) => string): string {
  if (placements.length === 0) return '  (none)\n'
  const objects = placements.reduce((sum, view) => sum + view.objectCount, 0)
  const lines = placements.map((view) => {
    const away = view.liveness.word === 'Online' ? '' : `, ${view.liveness.word}`
    return `  ${plainText(nameOf(view))} (${countText(view.objectCount, 'object')}${away})\n`
  })
  return placements.length === 1 ? lines.join('') : `${lines.join('')}  in all ${placements.length}, with ${countText(objects, 'object')}\n`
}

function outcomeText(name: string, { outcome, clusters, confirmation }: DeleteAnswer, nowMs: number): string {
  if (outcome === 'deleted') return `${name} deleted\n`
  if (outcome === 'removing') return `${name} is being removed from ${clusters.join(', ')}; skerry describe ${name} shows how far it is\n`
  const shown = confirmation === null ? '' : `${confirmationText(confirmation, nowMs)}${answersText(confirmation)}`
  return `${name} waits for a confirmation; nothing has happened yet\n${shown}`
}
