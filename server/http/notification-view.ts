// Notification sinks, routes and messages as the admin API shows them.
import type { NotificationRouteView, NotificationSinkView, NotificationView } from '../../shared/model/notification-views.ts'
import { notificationRouteSpecSchema, notificationSinkSpecSchema, type SinkType, sinkTypeOf } from '../../shared/model/notifications.ts'
import { API_VERSION, FLEET } from '../../shared/model/resources.ts'
import type { NotificationRecord } from '../fleet/notification-records.ts'
import type { StoredResource } from '../fleet/records.ts'
import { titleOf } from '../notify/texts.ts'
import type { Store } from '../store/store.ts'
import { metadataOf } from './resource-metadata.ts'

type NotifyStore = Pick<Store, 'getResource' | 'notifications'>

export async function notificationView(
  store: NotifyStore,
  resource: StoredResource,
): Promise<NotificationSinkView | NotificationRouteView> {
  const head = { apiVersion: API_VERSION, metadata: metadataOf(resource) } as const
  const { project, name } = resource
  const written: unknown = JSON.parse(resource.spec)
  if (resource.kind === 'NotificationSink') {
    const spec = notificationSinkSpecSchema.parse(written)
    return {
      ...head,
      kind: 'NotificationSink',
      spec,
      status: { type: sinkTypeOf(spec), ...(await store.notifications.countsOf(project, name)) },
    }
  }
  const spec = notificationRouteSpecSchema.parse(written)
  const missingSinks: string[] = []
  for (const sink of spec.sinks)
    if ((await store.getResource({ kind: 'NotificationSink', project, name: sink })) === null) missingSinks.push(sink)
  return { ...head, kind: 'NotificationRoute', spec, status: { missingSinks, open: await store.notifications.openOf(project, name) } }
}

/** Members that a view names; the record counts them all. */
const MEMBERS_SHOWN = 50

export function messageView(record: NotificationRecord, type: SinkType): NotificationView {
  const { doc, state, error, attempts, nextMs } = record
  const isEvents = doc.type === 'events'
  const members = isEvents ? doc.members : []
  const waits = nextMs !== null && error === null
  return {
    id: String(record.id),
    project: record.project === FLEET ? null : record.project,
    route: record.route === '' ? null : record.route,
    sink: record.sink,
    type,
    state:
      state === 'dead'
        ? 'dead'
        : error !== null && nextMs !== null
          ? 'failed'
          : waits && record.sentVersion === 0
            ? 'waiting'
            : 'delivered',
    severity: isEvents ? doc.severity : doc.state === 'failure' ? 'warning' : 'info',
    reason: isEvents ? doc.reason : 'CommitStatus',
    title: titleOf(doc),
    active: isEvents ? members.length + doc.unnamed : 0,
    total: isEvents ? doc.total : 1,
    members: members.filter((member) => member !== '').slice(0, MEMBERS_SHOWN),
    resolved: isEvents ? doc.resolved : doc.state === 'success',
    attempts,
    error,
    createdMs: record.createdMs,
    updatedMs: record.updatedMs,
    sentMs: record.sentMs,
    nextMs,
  }
}
