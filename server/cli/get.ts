// get: lists and single things of every kind.
import type { z } from 'zod'
import {
  clusterViewSchema,
  confirmationViewSchema,
  eventViewSchema,
  joinTokenViewSchema,
  objectViewSchema,
  placementViewSchema,
  repositoryViewSchema,
  serviceViewSchema,
} from '../../shared/model/views.ts'
import { path, type Query } from './client.ts'
import type { Column } from './columns.ts'
import { type Context, type Output, printItems } from './context.ts'
import { UsageError } from './io.ts'
import { KINDS, type Kind, parseTarget, singular } from './kinds.ts'
import {
  clusterColumns,
  confirmationColumns,
  eventColumns,
  joinTokenColumns,
  objectColumns,
  placementColumns,
  repositoryColumns,
  serviceColumns,
} from './tables.ts'

export interface GetOptions {
  project: string
  allProjects?: true | undefined
  selector?: string | undefined
  cluster?: string | undefined
  service?: string | undefined
  output?: Output
  headers?: boolean
}

export async function get(context: Context, kindText: string, nameText: string | undefined, options: GetOptions): Promise<void> {
  const { kind, name } = parseTarget(kindText, nameText, KINDS)
  const client = context.client()
  const nowMs = context.io.clock.nowMs()
  const all = options.allProjects === true
  const project = all ? undefined : options.project
  const where = all ? '' : ` in project ${options.project}`
  const { cluster, service, selector } = options
  refuseUnused(kind, options)

  async function show<T extends z.ZodType>(
    schema: T,
    from: { list: [address: string, query?: Query]; one?: string },
    columns: Column<z.infer<T>>[],
    nameOf: (item: z.infer<T>) => string,
    scope = where,
  ): Promise<void> {
    const [address, query] = from.list
    const single = name !== undefined
    if (single && from.one === undefined) throw new UsageError(`${kind} have no names; narrow them with --service and --cluster`)
    const items: z.infer<T>[] =
      single && from.one !== undefined ? [await client.get(from.one, schema)] : await client.list(address, schema, query)
    const what = { columns, nameOf: (item: z.infer<T>) => `${singular(kind)}/${nameOf(item)}`, single, none: `no ${kind}${scope}` }
    printItems(context, items, what, options)
  }
  const narrowed: Query = { project, labelSelector: selector }
  const id = name ?? ''

  switch (kind) {
    case 'clusters':
      return show(
        clusterViewSchema,
        { list: ['/clusters', { labelSelector: selector }], one: path`/clusters/${id}` },
        clusterColumns(nowMs),
        ({ metadata }) => metadata.name,
        '',
      )
    case 'services':
      return show(
        serviceViewSchema,
        { list: ['/services', narrowed], one: path`/projects/${options.project}/services/${id}` },
        serviceColumns(nowMs, all),
        ({ metadata }) => metadata.name,
      )
    case 'repositories':
      return show(
        repositoryViewSchema,
        { list: ['/repositories', narrowed], one: path`/projects/${options.project}/repositories/${id}` },
        repositoryColumns(nowMs, all),
        ({ metadata }) => metadata.name,
      )
    case 'placements': {
      if ((cluster === undefined) === (service === undefined)) throw new UsageError('placements need --service NAME or --cluster NAME')
      const address =
        service === undefined ? path`/clusters/${cluster ?? ''}/services` : path`/projects/${options.project}/services/${service}/clusters`
      const nameOf = (view: { cluster: string; service: string }) => `${view.cluster}/${view.service}`
      return show(placementViewSchema, { list: [address] }, placementColumns(nowMs, cluster !== undefined), nameOf, '')
    }
    case 'objects':
      return show(objectViewSchema, { list: ['/objects', { project, service, cluster }] }, objectColumns(nowMs, all), (view) =>
        [view.cluster, view.project, view.service, view.kind, view.namespace, view.name].join('/'),
      )
    case 'confirmations':
      return show(
        confirmationViewSchema,
        { list: ['/confirmations'], one: path`/confirmations/${id}` },
        confirmationColumns(nowMs),
        (item) => item.id,
        ' wait',
      )
    case 'events':
      return show(
        eventViewSchema,
        { list: ['/events', { cluster, service, project: service === undefined ? undefined : project }] },
        eventColumns(nowMs, all),
        (item) => String(item.id),
        '',
      )
    case 'join-tokens':
      return show(joinTokenViewSchema, { list: ['/join-tokens'] }, joinTokenColumns(nowMs), (item) => item.id, '')
  }
}

const SELECTABLE: readonly Kind[] = ['clusters', 'services', 'repositories']
const PLACED: readonly Kind[] = ['placements', 'objects', 'events']

/** A filter that does nothing would show more than was meant. */
function refuseUnused(kind: Kind, { selector, cluster, service }: GetOptions): void {
  if (selector !== undefined && !SELECTABLE.includes(kind)) throw new UsageError(`-l does not apply to ${kind}`)
  if ((cluster !== undefined || service !== undefined) && !PLACED.includes(kind))
    throw new UsageError(`--cluster and --service do not apply to ${kind}`)
}
