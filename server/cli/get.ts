// get: lists and single things of every kind.
import type { z } from 'zod'
import type { Query } from '../../client/client.ts'
import { notificationRouteViewSchema, notificationSinkViewSchema, notificationViewSchema } from '../../shared/model/notification-views.ts'
import { FLEET } from '../../shared/model/resources.ts'
import { savedQueryViewSchema } from '../../shared/model/saved-queries.ts'
import { suspensionViewSchema } from '../../shared/model/suspension.ts'
import {
  apiTokenViewSchema,
  clusterViewSchema,
  configViewSchema,
  confirmationViewSchema,
  eventViewSchema,
  healthRuleViewSchema,
  joinTokenViewSchema,
  objectViewSchema,
  placementViewSchema,
  projectViewSchema,
  repositoryViewSchema,
  roleBindingViewSchema,
  roleViewSchema,
  serviceViewSchema,
} from '../../shared/model/views.ts'
import { path } from './client.ts'
import type { Column } from './columns.ts'
import { type Context, type Output, printItems } from './context.ts'
import { events } from './events.ts'
import { type FilterOptions, filterQuery, isFiltered } from './fleet-filters.ts'
import { UsageError } from './io.ts'
import { KINDS, type Kind, parseTarget, singular } from './kinds.ts'
import { notificationColumns, routeColumns, sinkColumns } from './notify/facts.ts'
import { isPath, sortedBy } from './printing/documents.ts'
import { bindingColumns, roleColumns } from './rights/role-facts.ts'
import { savedQueryColumns } from './saved-query.ts'
import { streamPrinter } from './stream-printer.ts'
import { suspensionColumns } from './suspend.ts'
import {
  apiTokenColumns,
  clusterColumns,
  configColumns,
  confirmationColumns,
  eventColumns,
  healthRuleColumns,
  joinTokenColumns,
  objectColumns,
  placementColumns,
  projectColumns,
  repositoryColumns,
  serviceColumns,
} from './tables.ts'
import { watch } from './watch.ts'

export interface GetOptions extends FilterOptions {
  project: string
  /** That `--project` names; absent when nothing does. */
  givenProject?: string | undefined
  allProjects?: true | undefined
  cluster?: string | undefined
  service?: string | undefined
  /** The limit of all pages together. */
  limit?: number | undefined
  /** The limit of one page. */
  chunkSize?: number | undefined
  watch?: true | undefined
  showLabels?: true | undefined
  output?: Output
  headers?: boolean
}

export async function get(context: Context, kindText: string, nameText: string | undefined, options: GetOptions): Promise<void> {
  const { kind, name } = parseTarget(kindText, nameText, KINDS)
  const client = context.client()
  const { clock } = context.io
  const all = options.allProjects === true
  const project = all ? undefined : options.project
  const where = all ? '' : ` in project ${options.project}`
  /** A health rule without a project is one of the whole fleet. */
  const isOfFleet = OPTIONAL_PROJECT.has(kind)
  const owner = isOfFleet ? (options.givenProject ?? FLEET) : options.project
  const { cluster, service, limit, chunkSize } = options
  refuseUnused(kind, options)
  const sortPath = options.sortBy !== undefined && isPath(options.sortBy) ? options.sortBy : null
  const noneText = (scope: string): string =>
    `no ${kind}${scope}${scope !== '' && scope === where ? '; -A lists those of all projects' : ''}`
  const inOrder = <T>(items: T[]): T[] => (sortPath === null ? items : sortedBy(items, sortPath))
  const filter = filterQuery(kind, options)

  async function show<T extends z.ZodType>(
    schema: T,
    from: { list: [address: string, query?: Query]; one?: (key: string) => string },
    columnsAt: (nowMs: number) => Column<z.infer<T>>[],
    nameOf: (item: z.infer<T>) => string,
    scope = where,
    keyOf = nameOf,
  ): Promise<void> {
    const [address, query] = from.list
    const single = name !== undefined
    const { one } = from
    if (single && one === undefined) throw new UsageError(`${kind} have no names; narrow them with --service and --cluster`)
    const only = single && keyOf !== nameOf ? `${owner}/${name}` : name
    const read = async (): Promise<z.infer<T>[]> =>
      only !== undefined && one !== undefined
        ? [await client.get(one(only), schema)]
        : // With a path for an order all pages are read before a limit is kept.
          inOrder(await client.list(address, schema, query, { limit: sortPath === null ? limit : undefined, chunkSize })).slice(0, limit)
    const fullName = (item: z.infer<T>) => `${singular(kind)}/${nameOf(item)}`
    if (options.watch !== true || kind === 'events') {
      const what = { columns: withLabels(kind, columnsAt(clock.nowMs()), options), nameOf: fullName, single, none: noneText(scope) }
      printItems(context, await read(), what, options)
      return
    }
    await watch<z.infer<T>>(context, {
      kind,
      shown: {
        project: kind === 'placements' && service === undefined ? undefined : isOfFleet ? options.givenProject : project,
        service,
        cluster: cluster === undefined ? undefined : { name: cluster, id: await clusterId(cluster) },
      },
      list: read,
      one: one === undefined || isFiltered(filter) ? undefined : (key) => client.get(one(key), schema),
      only,
      keyOf,
      print: streamPrinter(context, options, { nameOf: fullName, columns: () => withLabels(kind, columnsAt(clock.nowMs()), options) }),
      printGone: (key) => void context.io.stderr.write(`${singular(kind)}/${key} is gone\n`),
    })
  }
  const clusterId = async (of: string) => (await client.get(path`/clusters/${of}`, clusterViewSchema)).metadata.uid
  const narrowed: Query = { project, ...filter }
  // A service has a project; without one, those of a cluster are of all.
  const placed = service === undefined && cluster !== undefined ? undefined : project
  const inProject = ({ metadata }: { metadata: { project?: string | undefined; name: string } }) =>
    `${metadata.project ?? FLEET}/${metadata.name}`
  const addressOf = (kindPath: string) => (key: string) => {
    const [of = '', named = ''] = key.split('/')
    return `${of === FLEET ? '' : path`/projects/${of}`}/${kindPath}/${path`${named}`}`
  }

  switch (kind) {
    case 'clusters':
      return show(
        clusterViewSchema,
        { list: ['/clusters', filter], one: (key) => path`/clusters/${key}` },
        clusterColumns,
        ({ metadata }) => metadata.name,
        '',
      )
    case 'services':
      return show(
        serviceViewSchema,
        { list: ['/services', narrowed], one: addressOf('services') },
        (nowMs) => serviceColumns(nowMs, all),
        ({ metadata }) => metadata.name,
        where,
        inProject,
      )
    case 'repositories':
      return show(
        repositoryViewSchema,
        { list: ['/repositories', narrowed], one: addressOf('repositories') },
        (nowMs) => repositoryColumns(nowMs, all),
        ({ metadata }) => metadata.name,
        where,
        inProject,
      )
    case 'configs':
      return show(
        configViewSchema,
        { list: ['/configs', narrowed], one: addressOf('configs') },
        (nowMs) => configColumns(nowMs, all),
        ({ metadata }) => metadata.name,
        where,
        inProject,
      )
    case 'projects':
      return show(
        projectViewSchema,
        { list: ['/projects', filter], one: (key) => path`/projects/${key}` },
        projectColumns,
        ({ metadata }) => metadata.name,
        '',
      )
    case 'health-rules':
      return show(
        healthRuleViewSchema,
        { list: ['/health-rules', { project: options.givenProject, ...filter }], one: addressOf('health-rules') },
        healthRuleColumns,
        ({ metadata }) => metadata.name,
        options.givenProject === undefined ? '' : where,
        inProject,
      )
    case 'roles':
      return show(
        roleViewSchema,
        { list: ['/roles', filter], one: (key) => path`/roles/${key}` },
        roleColumns,
        ({ metadata }) => metadata.name,
        '',
      )
    case 'role-bindings':
      return show(
        roleBindingViewSchema,
        { list: ['/role-bindings', { project: options.givenProject, ...filter }], one: addressOf('role-bindings') },
        bindingColumns,
        ({ metadata }) => metadata.name,
        options.givenProject === undefined ? '' : where,
        inProject,
      )
    case 'notification-sinks':
      return show(
        notificationSinkViewSchema,
        { list: ['/notification-sinks', { project: options.givenProject, ...filter }], one: addressOf('notification-sinks') },
        sinkColumns,
        ({ metadata }) => metadata.name,
        options.givenProject === undefined ? '' : where,
        inProject,
      )
    case 'notification-routes':
      return show(
        notificationRouteViewSchema,
        { list: ['/notification-routes', { project: options.givenProject, ...filter }], one: addressOf('notification-routes') },
        routeColumns,
        ({ metadata }) => metadata.name,
        options.givenProject === undefined ? '' : where,
        inProject,
      )
    case 'notifications':
      return show(
        notificationViewSchema,
        { list: ['/notifications', { project: options.givenProject }], one: (key) => path`/notifications/${key}` },
        notificationColumns,
        (item) => item.id,
        options.givenProject === undefined ? '' : where,
      )
    case 'placements': {
      const nameOf = (view: { cluster: string; service: string }) => `${view.cluster}/${view.service}`
      const wide = cluster !== undefined || service === undefined
      const columns = (nowMs: number) => placementColumns(nowMs, wide)
      // A single cluster or service is reported as missing if it does not exist.
      if (isFiltered(filter) || (cluster === undefined) === (service === undefined))
        return show(placementViewSchema, { list: ['/placements', { project: placed, service, cluster, ...filter }] }, columns, nameOf, '')
      const address =
        service === undefined ? path`/clusters/${cluster ?? ''}/services` : path`/projects/${options.project}/services/${service}/clusters`
      return show(placementViewSchema, { list: [address] }, columns, nameOf, '')
    }
    case 'objects':
      return show(
        objectViewSchema,
        { list: ['/objects', { project, service, cluster, ...filter }] },
        (nowMs) => objectColumns(nowMs, all),
        (view) => [view.cluster, view.project, view.service, view.kind, view.namespace, view.name].join('/'),
      )
    case 'confirmations':
      return show(
        confirmationViewSchema,
        { list: ['/confirmations'], one: (key) => path`/confirmations/${key}` },
        confirmationColumns,
        (item) => item.id,
        ' wait',
      )
    case 'events':
      if (options.watch === true)
        return events(context, { ...options, project: service === undefined ? undefined : project, follow: true, limit: EVENTS_BEFORE })
      return show(
        eventViewSchema,
        { list: ['/events', { cluster, service, project: service === undefined ? undefined : project }] },
        (nowMs) => eventColumns(nowMs, all),
        (item) => String(item.id),
        '',
      )
    case 'suspensions':
      return show(
        suspensionViewSchema,
        { list: ['/suspensions'] },
        suspensionColumns,
        ({ project: of, service: named, cluster: at }) => [of ?? '*', named ?? '*', at ?? '*'].join('/'),
        ': nothing is suspended',
      )
    case 'saved-queries':
      return show(
        savedQueryViewSchema,
        { list: ['/saved-queries'], one: (key) => path`/saved-queries/${key}` },
        savedQueryColumns,
        ({ name }) => name,
        '',
      )
    case 'tokens':
      return show(apiTokenViewSchema, { list: ['/tokens'] }, apiTokenColumns, (item) => item.id, '')
    case 'join-tokens':
      return show(joinTokenViewSchema, { list: ['/join-tokens'] }, joinTokenColumns, (item) => item.id, '')
  }
}

/** The number of past events that are shown before new ones are watched. */
const EVENTS_BEFORE = 50

/** Kinds whose resources may belong to the fleet instead of a project. */
const OPTIONAL_PROJECT: ReadonlySet<Kind> = new Set(['health-rules', 'role-bindings', 'notification-sinks', 'notification-routes'])

const PLACED: readonly Kind[] = ['placements', 'objects', 'events']

function withLabels<T>(kind: Kind, columns: Column<T>[], { showLabels }: GetOptions): Column<T>[] {
  if (showLabels !== true) return columns
  const labels = columns.find(({ title }) => title === 'LABELS')
  if (labels === undefined) throw new UsageError(`${kind} have no labels`)
  return [...columns.filter((column) => column !== labels), { title: 'LABELS', value: labels.value }]
}

/** A filter that does nothing would show more than was meant. */
function refuseUnused(kind: Kind, { cluster, service }: GetOptions): void {
  if ((cluster !== undefined || service !== undefined) && !PLACED.includes(kind))
    throw new UsageError(`--cluster and --service do not apply to ${kind}`)
}
