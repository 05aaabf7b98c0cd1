// Notification sinks, routes and messages in lists and in describe.
import { selectorText } from '../../../shared/model/labels.ts'
import type { NotificationRouteView, NotificationSinkView, NotificationView } from '../../../shared/model/notification-views.ts'
import { path } from '../client.ts'
import { ageText, type Column, labelsText } from '../columns.ts'
import type { Fact } from '../service-facts.ts'

export type NotifyKind = 'notification-sinks' | 'notification-routes'

/** Without a project it is the sink or route of the fleet that has this name. */
export const notifyPath = (kind: NotifyKind, name: string, project: string | undefined): string =>
  project === undefined ? `/${kind}/${path`${name}`}` : `${path`/projects/${project}`}/${kind}/${path`${name}`}`

export const sinkColumns = (nowMs: number): Column<NotificationSinkView>[] => [
  { title: 'PROJECT', value: ({ metadata }) => metadata.project ?? '*' },
  { title: 'NAME', value: ({ metadata }) => metadata.name },
  { title: 'TYPE', value: ({ status }) => status.type },
  { title: 'WAITING', value: ({ status }) => status.waiting },
  { title: 'DEAD', value: ({ status }) => status.dead },
  { title: 'SENT', value: ({ status }) => ageText(status.lastSentMs, nowMs) },
  { title: 'AGE', value: ({ metadata }) => ageText(metadata.createdMs, nowMs) },
  { title: 'ERROR', value: ({ status }) => status.error, wide: true },
]

export const routeColumns = (nowMs: number): Column<NotificationRouteView>[] => [
  { title: 'PROJECT', value: ({ metadata }) => metadata.project ?? '*' },
  { title: 'NAME', value: ({ metadata }) => metadata.name },
  { title: 'EVENTS', value: ({ spec }) => spec.events?.join(',') ?? '*' },
  { title: 'SEVERITY', value: ({ spec }) => spec.severity },
  { title: 'SINKS', value: ({ spec }) => spec.sinks.join(',') },
  { title: 'OPEN', value: ({ status }) => status.open },
  { title: 'AGE', value: ({ metadata }) => ageText(metadata.createdMs, nowMs) },
  { title: 'SERVICES', value: ({ spec }) => spec.services?.join(',') ?? '*', wide: true },
  { title: 'CLUSTERS', value: ({ spec }) => (spec.clusters === undefined ? '*' : selectorText(spec.clusters)), wide: true },
]

export const notificationColumns = (nowMs: number): Column<NotificationView>[] => [
  { title: 'ID', value: ({ id }) => id },
  { title: 'PROJECT', value: ({ project }) => project ?? '*' },
  { title: 'SINK', value: ({ sink }) => sink },
  { title: 'STATE', value: ({ state }) => state, colour: true },
  { title: 'SEVERITY', value: ({ severity }) => severity },
  { title: 'ACTIVE', value: ({ active }) => active },
  { title: 'RESOLVED', value: ({ resolved }) => (resolved ? 'yes' : 'no') },
  { title: 'AGE', value: ({ createdMs }) => ageText(createdMs, nowMs) },
  { title: 'ROUTE', value: ({ route }) => route, wide: true },
  { title: 'TRIES', value: ({ attempts }) => attempts, wide: true },
  { title: 'MESSAGE', value: ({ title, error }) => (error === null ? title : `${title} (${error})`) },
]

export const sinkFacts = ({ metadata, spec, status }: NotificationSinkView, nowMs: number): Fact[] => [
  ['Notification sink', metadata.name],
  ['Project', metadata.project ?? 'none: for routes of the fleet'],
  ['Labels', labelsText(metadata.labels)],
  ['Type', `${status.type}${spec.paused === true ? ' (paused)' : ''}`],
  ['Credential', spec.auth === undefined ? 'none' : `Config ${spec.auth.secretRef}`],
  ['Waiting', status.waiting],
  ['Dead', status.dead],
  ['Last sent', status.lastSentMs === null ? 'never' : `${ageText(status.lastSentMs, nowMs)} ago`],
  ['Error', status.error],
  ['Age', ageText(metadata.createdMs, nowMs)],
]

export const routeFacts = ({ metadata, spec, status }: NotificationRouteView, nowMs: number): Fact[] => [
  ['Notification route', metadata.name],
  ['Project', metadata.project ?? 'none: for the whole fleet'],
  ['Labels', labelsText(metadata.labels)],
  ['Events', spec.events?.join(', ') ?? 'all'],
  ['Severity', `${spec.severity} or above`],
  ['Services', spec.services?.join(', ') ?? 'all'],
  ['Clusters', spec.clusters === undefined ? 'all' : selectorText(spec.clusters)],
  ['Sinks', spec.sinks.join(', ')],
  ...(status.missingSinks.length === 0 ? [] : [['Missing sinks', status.missingSinks.join(', ')] as Fact]),
  ['Grouped by', spec.group.by.join(', ') || 'nothing: all events are one message'],
  ...(spec.quietHours ?? []).map(({ days, from, to, timeZone, except }): Fact => {
    const when = `${days === undefined ? '' : `${days.join(', ')} `}${from}-${to} ${timeZone}`
    return ['Quiet hours', `${when}, except ${except}`]
  }),
  ['Open messages', status.open],
  ['Age', ageText(metadata.createdMs, nowMs)],
]
