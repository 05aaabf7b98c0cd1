// Lists by pages, for servers that cannot stream a list in a watch.
import { z } from 'zod'
import type { K8sObject } from '../../shared/kube/object.ts'
import { failureSays } from '../messages/object-messages.ts'
import type { ApiFailure, ApiResource, Extent, WatchScope } from './cluster.ts'
import { collectionPath } from './discovery.ts'
import type { KubeHttp } from './kube-http.ts'
import { asObject, METADATA_LIST_ACCEPT, ofResource } from './watch-stream.ts'

const PAGE_OBJECTS_MAX = 500
/** Tokens that expire one after another, without a page between them. */
const EXPIRED_MAX = 3

const listMetaSchema = z.looseObject({
  metadata: z.looseObject({ resourceVersion: z.string().optional(), continue: z.string().optional() }),
})
const listSchema = listMetaSchema.extend({
  items: z.array(z.looseObject({})).nullish(),
})

export type ListPage =
  | { kind: 'page'; objects: readonly K8sObject[]; resourceVersion: string; last: boolean }
  | { kind: 'failed'; failure: ApiFailure }

/** The pages of one list. Ends after the first failure. From the watch cache, all objects come in one page. Where etcd
 *  has forgotten the version of the first page (after five minutes, by default), the pages that follow are of a later
 *  one (KA42). */
export async function* listObjects(http: KubeHttp, resource: ApiResource, options: WatchScope & Extent): AsyncGenerator<ListPage> {
  let token = ''
  let expired = 0
  while (true) {
    const extent: Record<string, string> = options.fromCache ? { resourceVersion: '0' } : { limit: String(PAGE_OBJECTS_MAX) }
    const params = new URLSearchParams(extent)
    if (options.labelSelector !== undefined) params.set('labelSelector', options.labelSelector)
    if (options.fieldSelector !== undefined) params.set('fieldSelector', options.fieldSelector)
    if (token !== '') params.set('continue', token)
    const path = `${collectionPath(resource, options.namespace ?? '')}?${params}`
    const accept = options.metadataOnly ? { accept: METADATA_LIST_ACCEPT } : {}
    const answer = await http.request({ method: 'GET', path, plural: resource.plural, signal: options.signal, ...accept })
    if (answer.kind === 'failed') {
      const later = answer.failure.status === 410 && token !== '' ? continueOf(answer.body) : ''
      expired += 1
      if (later === '' || expired > EXPIRED_MAX) return yield answer
      token = later
      continue
    }
    expired = 0
    const page = readPage(answer.body, resource)
    yield page
    if (page.kind === 'failed' || page.last) return
    token = page.token
  }
}

function readPage(body: unknown, resource: ApiResource): (ListPage & { token: string }) | (ListPage & { kind: 'failed' }) {
  const { group, version, kind } = resource
  const parsed = listSchema.safeParse(body)
  const objects: K8sObject[] = []
  const apiVersion = group === '' ? version : `${group}/${version}`
  for (const item of parsed.data?.items ?? []) {
    // Items of built-in lists have no apiVersion and no kind.
    const object = asObject(ofResource({ apiVersion, kind, ...item }, resource))
    if (object === null) return unreadable(kind)
    objects.push(object)
  }
  if (!parsed.success) return unreadable(kind)
  const { resourceVersion = '', continue: token = '' } = parsed.data.metadata
  return { kind: 'page', objects, resourceVersion, last: token === '', token }
}

/** The token with which the list continues at the present version; '' if the answer has none. */
const continueOf = (body: unknown): string => listMetaSchema.safeParse(body).data?.metadata.continue ?? ''

/** '' if the answer is no list. */
export const listVersion = (body: unknown): string => listSchema.safeParse(body).data?.metadata.resourceVersion ?? ''

const unreadable = (kind: string): { kind: 'failed'; failure: ApiFailure } => ({
  kind: 'failed',
  failure: { kind: 'server_error', status: 200, ...failureSays('Unreadable.list', { kind }) },
})
