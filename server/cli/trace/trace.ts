// trace: from an object of a cluster to its service, revision, commit and source. Each part is asked of a route that
// other verbs use, too.

import type { Query } from '../../../client/client.ts'
import { refKey } from '../../../shared/kube/object.ts'
import { revisionViewSchema } from '../../../shared/model/history.ts'
import { originViewSchema } from '../../../shared/model/render-views.ts'
import { type NamedSource, placeTexts, sourcesOf } from '../../../shared/model/resources.ts'
import {
  clusterViewSchema,
  listOf,
  type ObjectView,
  objectViewSchema,
  type PlacementView,
  placementViewSchema,
  repositoryViewSchema,
  type ServiceView,
  serviceViewSchema,
} from '../../../shared/model/views.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { type Client, path } from '../client.ts'
import { plainText } from '../columns.ts'
import { type Context, type Output, printItems } from '../context.ts'
import { facts, sinceText } from '../describe.ts'
import type { Fact } from '../service-facts.ts'
import { addressText, type ObjectAddress, parseObjectAddress } from './object-address.ts'

export interface TraceOptions {
  cluster: string
  project?: string | undefined
  service?: string | undefined
  output?: Output
}

/** The applied revision is looked for among this many of the newest ones. */
const REVISIONS_READ = 100
const MATCHES_READ = 20
/** Objects of the same name in other clusters that are read, and clusters of them that are named. */
const ELSEWHERE_READ = 200
const ELSEWHERE_NAMED = 10

interface TraceFile {
  /** Name of the Repository. */
  repository: string
  path: string
  /** Null where the object is not written in the file itself, such as in a template. */
  line: number | null
  /** The version in which it was looked up: another one than the applied one where that is not known any more. */
  version: string | null
}

interface TraceSource {
  repository: string
  /** The address of the repository now. Null if it is deleted, or if the caller may not read it. */
  url: string | null
  ref: string | null
  path: string | null
  chart: string | null
  /** Read for the applied revision. Null means not known. */
  revision: string | null
}

/** The document of `-o json`. */
export interface Trace {
  object: Pick<ObjectView, 'cluster' | 'group' | 'kind' | 'namespace' | 'name'>
  sync: string
  health: string
  reason: string
  message: string
  next: string
  sinceMs: number | null
  project: string
  service: string
  /** The commit of the applied revision. Null if the cluster has applied none yet. */
  commit: string | null
  digest: string | null
  appliedMs: number | null
  /** Correlation id of the applied revision: logs, events and spans of the change have it. Null means its server or
   *  agent knew none. */
  trace: string | null
  /** Null if the server does not know it. */
  author: string | null
  subject: string | null
  /** The revision in the history of the service. Null if it is too old, or was deleted with the service. */
  revision: { number: number; renderedMs: number; generation: number } | null
  /** That the cluster shall have. Null means that the service leaves it. */
  desired: { commit: string; digest: string } | null
  sources: TraceSource[]
  /** Null if it is not known: `fileNote` has the reason. */
  file: TraceFile | null
  fileNote: string | null
}

export async function trace(context: Context, objectText: string, options: TraceOptions): Promise<void> {
  const address = parseObjectAddress(objectText)
  const client = context.client()
  const found = await onlyOne(client, address, options)
  const traced = await traceOf(client, found)
  if (options.output === undefined || options.output === 'wide')
    return void context.io.stdout.write(facts(traceFacts(traced, context.io.clock.nowMs())))
  const nameOf = ({ service }: Trace) => `service/${service}`
  printItems(context, [traced], { columns: [], nameOf, single: true, none: '' }, options)
}

/** `doing`: the verb, for errors. */
export async function onlyOne(client: Client, address: ObjectAddress, options: TraceOptions, doing = 'trace'): Promise<ObjectView> {
  const { cluster } = options
  const { items } = await objectsAt(client, address, options, { cluster, limit: MATCHES_READ })
  const [first, second] = items
  if (first === undefined) throw await notFound(client, address, options)
  if (second === undefined) return first
  const each = items.map((item) => `${addressText(item)} of service ${item.project}/${item.service}`)
  throw new AppError('bad_request', {
    doing: `${doing} ${addressText(address)}`,
    detail: `${items.length} objects match in cluster ${cluster}: ${each.join('; ')}`,
    remedy: 'Narrow with KIND.GROUP, --project or --service.',
  })
}

/** One page for the first form of the kind that finds something. */
async function objectsAt(
  client: Client,
  { kinds, group, namespace, name }: ObjectAddress,
  { project, service }: TraceOptions,
  rest: Query,
) {
  let page: { items: ObjectView[]; continue: string | null } = { items: [], continue: null }
  for (const kind of kinds) {
    page = await client.get('/objects', listOf(objectViewSchema), { kind, group, namespace, name, project, service, ...rest })
    if (page.items.length > 0) break
  }
  return page
}

async function notFound(client: Client, address: ObjectAddress, options: TraceOptions): Promise<AppError> {
  const { cluster, project, service } = options
  // A cluster that does not exist is an error of its own.
  await client.get(path`/clusters/${cluster}`, clusterViewSchema).catch(unlessForbidden)
  const page = await objectsAt(client, address, options, { sort: 'cluster', limit: ELSEWHERE_READ })
  const clusters = [...new Set(page.items.map((item) => item.cluster))]
  const named = clusters.slice(0, ELSEWHERE_NAMED).join(', ')
  const unnamed = clusters.length - ELSEWHERE_NAMED
  const more = page.continue !== null ? ' and more' : unnamed > 0 ? ` and ${unnamed} more` : ''
  const elsewhere = clusters.length === 0 ? 'no cluster has this object' : `clusters with this object: ${named}${more}`
  const narrowed = [project === undefined ? '' : ` of project ${project}`, service === undefined ? '' : ` of service ${service}`].join('')
  return new AppError('not_found', {
    detail: `no service applies ${addressText(address)}${narrowed} in cluster ${cluster}; ${elsewhere}`,
    remedy:
      address.kind === 'Pod' || address.kind === 'ReplicaSet'
        ? 'Trace the workload that owns it, such as deployment/NAMESPACE/NAME.'
        : `\`skerry get objects -A --cluster ${cluster} --search ${address.name}\` lists similar ones.`,
  })
}

/** A caller who may read objects of a service may lack the right to read the cluster. */
function unlessForbidden(error: unknown): null {
  if (error instanceof AppError && error.code === 'forbidden') return null
  throw error
}

/** Null if it was deleted meanwhile, or if the caller may not read it. */
export function whenReadable(error: unknown): null {
  if (error instanceof AppError && (error.code === 'not_found' || error.code === 'forbidden')) return null
  throw error
}

export async function traceOf(client: Client, object: ObjectView): Promise<Trace> {
  const { cluster, project, service } = object
  const at = path`/projects/${project}/services/${service}`
  const [[placement], view, revisions] = await Promise.all([
    client.list('/placements', placementViewSchema, { cluster, project, service }, { limit: 1 }),
    client.get(at, serviceViewSchema).catch(whenReadable),
    client.get(`${at}/revisions`, listOf(revisionViewSchema), { limit: REVISIONS_READ }).catch(whenReadable),
  ])
  const applied = placement?.applied ?? null
  const items = applied === null ? [] : (revisions?.items ?? [])
  // The digest of a cluster is that of its variant: the commit finds a revision with several.
  const revision = items.find(({ digest }) => digest === applied?.digest) ?? items.find(({ commit }) => commit === applied?.commit) ?? null
  const read = { ...revision?.revisions }
  const { kind, group, namespace, name, sync, health, reason, message, next, sinceMs } = object
  return {
    object: { cluster, group, kind, namespace, name },
    ...{ sync, health, reason, message, next, sinceMs },
    ...{ project, service },
    commit: applied?.commit ?? null,
    digest: applied?.digest ?? null,
    appliedMs: applied?.atMs ?? null,
    trace: applied?.trace ?? null,
    author: applied?.author ?? authorOf(view, applied),
    subject: applied?.subject ?? null,
    revision: revision === null ? null : { number: revision.number, renderedMs: revision.renderedMs, generation: revision.generation },
    desired: placement?.desired ? { commit: placement.desired.commit, digest: placement.desired.digest } : null,
    sources: await sourcesTraced(client, view, read, applied?.commit ?? null),
    ...(view === null ? { file: null, fileNote: null } : await fileTraced(client, object, revision?.number)),
  }
}

/** From a render of the service, which takes a right of its own and may fail. */
async function fileTraced(client: Client, { cluster, project, service, ...ref }: ObjectView, revision: number | undefined) {
  const at = path`/projects/${project}/services/${service}/origin`
  try {
    const found = await client.get(at, originViewSchema, { cluster, object: refKey(ref), revision })
    const { repository, file, line, version, note } = found
    return { file: file === null || repository === null ? null : { repository, path: file, line, version }, fileNote: note }
  } catch (error) {
    if (!(error instanceof AppError) || !UNTOLD.includes(error.code)) throw error
    return { file: null, fileNote: error.code === 'forbidden' ? 'you may not render the service' : error.message }
  }
}
/** Without the file, the rest of the trace is still an answer. */
const UNTOLD: readonly string[] = ['forbidden', 'not_found', 'too_many_requests']

/** The server asks for the author of a commit that fails to render, and of no other. */
const authorOf = (view: ServiceView | null, applied: PlacementView['applied']): string | null =>
  applied !== null && view?.status.failedAt?.commit === applied.commit ? view.status.failedAt.author : null

async function sourcesTraced(
  client: Client,
  view: ServiceView | null,
  read: Readonly<Record<string, string>>,
  commit: string | null,
): Promise<TraceSource[]> {
  if (view === null) return []
  const traced = async ({ repository, path: folder, chart }: NamedSource, index: number): Promise<TraceSource> => {
    const address = path`/projects/${view.metadata.project ?? ''}/repositories/${repository}`
    const found = await client.get(address, repositoryViewSchema).catch(whenReadable)
    const place = found === null ? null : placeTexts(found.spec)
    return {
      repository,
      url: place?.url ?? null,
      ref: place?.ref ?? null,
      path: folder ?? null,
      chart: chart ?? null,
      revision: read[repository] ?? (index === 0 ? commit : null),
    }
  }
  return Promise.all(sourcesOf(view.spec).map(traced))
}

export function traceFacts(traced: Trace, nowMs: number): Fact[] {
  const { object, project, service, sync, health, commit, digest, desired, revision, sources, file, fileNote } = traced
  const about = revision === null ? '' : ` (number ${revision.number}, rendered ${sinceText(revision.renderedMs, nowMs)})`
  return [
    ['Object', `${addressText(object)} in cluster ${object.cluster}`],
    ['State', `${sync}, ${health}`],
    ['Since', sinceText(traced.sinceMs, nowMs)],
    ['Reason', traced.reason],
    ['Message', traced.message],
    ['Next', traced.next],
    ['Service', `${project}/${service}`],
    ['Revision', digest === null ? 'no revision applied yet' : `${digest}${about}`],
    ['Commit', commit],
    ['Author', traced.author],
    ['Subject', traced.subject],
    ['Applied', sinceText(traced.appliedMs, nowMs)],
    ['Correlation id', traced.trace],
    [
      'Desired',
      desired === null ? 'the service leaves the cluster' : desired.digest === digest ? null : `${desired.digest} of ${desired.commit}`,
    ],
    ...(sources.length === 0 ? [['Source', 'unknown: the service was deleted, or you may not read it'] satisfies Fact] : []),
    ...sources.flatMap((source): Fact[] => [
      [
        'Repository',
        `${source.repository}${source.url === null ? '' : ` (${plainText(source.url)}${source.ref ? ` ${source.ref}` : ''})`}`,
      ],
      [source.chart === null ? 'Path' : 'Chart', source.chart ?? source.path],
      ['Read at', sources.length === 1 ? null : source.revision],
    ]),
    ['File', file === null ? (fileNote === null ? null : `not known: ${fileNote}`) : fileText(file, traced)],
  ]
}

function fileText({ repository, path, line, version }: TraceFile, { commit, sources }: Trace): string {
  const place = `${sources.length > 1 ? `${repository}: ` : ''}${plainText(path)}${line === null ? '' : `:${line}`}`
  return version === null || commit === null || version === commit ? place : `${place} (at ${version})`
}
