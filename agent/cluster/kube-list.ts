// A list by pages: only for servers that cannot stream one in a watch.
import { z } from 'zod'
import type { K8sObject } from '../../shared/kube/object.ts'
import type { ApiFailure, ApiResource } from './cluster.ts'
import { collectionPath } from './discovery.ts'
import type { KubeHttp } from './kube-http.ts'
import { asObject } from './watch-stream.ts'

const PAGE_OBJECTS_MAX = 500

const listSchema = z.looseObject({
  metadata: z.looseObject({ resourceVersion: z.string().optional(), continue: z.string().optional() }),
  items: z.array(z.looseObject({})).nullish(),
})

export type ListPage =
  | { kind: 'page'; objects: readonly K8sObject[]; resourceVersion: string; last: boolean }
  | { kind: 'failed'; failure: ApiFailure }

/** Pages of one consistent state; ends after the first failure. */
export async function* listObjects(
  http: KubeHttp,
  resource: ApiResource,
  options: { labelSelector?: string; fieldSelector?: string; namespace?: string; signal: AbortSignal },
): AsyncGenerator<ListPage> {
  let token = ''
  while (true) {
    const params = new URLSearchParams({ limit: String(PAGE_OBJECTS_MAX) })
    if (options.labelSelector !== undefined) params.set('labelSelector', options.labelSelector)
    if (options.fieldSelector !== undefined) params.set('fieldSelector', options.fieldSelector)
    if (token !== '') params.set('continue', token)
    const path = `${collectionPath(resource, options.namespace ?? '')}?${params}`
    const answer = await http.request({ method: 'GET', path, plural: resource.plural, signal: options.signal })
    if (answer.kind === 'failed') return yield answer
    const page = readPage(answer.body, resource)
    yield page
    if (page.kind === 'failed' || page.last) return
    token = page.token
  }
}

function readPage(body: unknown, { group, version, kind }: ApiResource): (ListPage & { token: string }) | (ListPage & { kind: 'failed' }) {
  const parsed = listSchema.safeParse(body)
  const objects: K8sObject[] = []
  const apiVersion = group === '' ? version : `${group}/${version}`
  for (const item of parsed.data?.items ?? []) {
    // Items of built-in lists carry neither field.
    const object = asObject({ apiVersion, kind, ...item })
    if (object === null) return unreadable(kind)
    objects.push(object)
  }
  if (!parsed.success) return unreadable(kind)
  const { resourceVersion = '', continue: token = '' } = parsed.data.metadata
  return { kind: 'page', objects, resourceVersion, last: token === '', token }
}

const unreadable = (kind: string): { kind: 'failed'; failure: ApiFailure } => ({
  kind: 'failed',
  failure: { kind: 'server_error', status: 200, reason: 'Unreadable', message: `the answer is no list of ${kind}` },
})
