// The columns of every kind. The words come from the server; here is only what is shown of them.

import { VERDICTS } from '../../shared/kube/fleet-rule.ts'
import { parseRefKey } from '../../shared/kube/object.ts'
import type { WrittenBy } from '../../shared/model/commits.ts'
import { placeOf, placeTexts, sourcesOf } from '../../shared/model/resources.ts'
import { shortRevision } from '../../shared/model/revision-text.ts'
import type {
  ApiTokenView,
  ClusterView,
  ConfigView,
  ConfirmationView,
  EventView,
  HealthRuleView,
  JoinTokenView,
  ObjectView,
  PlacementView,
  ProjectView,
  RepositoryView,
  ServerKeyView,
  ServiceView,
} from '../../shared/model/views.ts'
import { cutText } from '../../shared/runtime/cut-text.ts'
import { ageText, type Column, labelsText } from './columns.ts'
import { rendererText } from './source-facts.ts'

const short = (commit: string | null | undefined): string | null => (commit == null ? null : shortRevision(commit))
const yesNo = (value: boolean): string => (value ? 'True' : 'False')

interface Stateful {
  sync: string
  health: string
  reason: string
  message: string
}
const state = <T>(of: (item: T) => Stateful): [Column<T>, Column<T>] => [
  { title: 'SYNC', value: (item) => of(item).sync, colour: true },
  { title: 'HEALTH', value: (item) => of(item).health, colour: true },
]
type Explained = Pick<Stateful, 'reason'> & Partial<Stateful>
/** A reason that only repeats the state is none. */
export const reasonOf = ({ reason, sync, health }: Explained): string | null => (reason === sync || reason === health ? null : reason)
const why = <T>(of: (item: T) => Explained & Pick<Stateful, 'message'>): [Column<T>, Column<T>] => [
  { title: 'REASON', value: (item) => reasonOf(of(item)) },
  { title: 'MESSAGE', value: (item) => of(item).message, wide: true },
]
/** SU8: a reason that a person has to see first leaves room for the suspension. */
const withSuspended = (status: ServiceView['status']): Explained & Pick<Stateful, 'message'> => {
  const isSaid = status.suspensions.length === 0 || status.reason === 'Suspended' || status.reason === 'PartlySuspended'
  return isSaid ? status : { ...status, reason: [reasonOf(status) ?? '', 'Suspended'].filter((word) => word !== '').join(',') }
}
const project = <T>(all: boolean, of: (item: T) => string | null | undefined): Column<T>[] =>
  all ? [{ title: 'PROJECT', value: (item) => of(item) ?? null }] : []

export const healthRuleColumns = (nowMs: number): Column<HealthRuleView>[] => [
  { title: 'PROJECT', value: ({ metadata }) => metadata.project ?? '*' },
  { title: 'NAME', value: ({ metadata }) => metadata.name },
  { title: 'JUDGES', value: ({ spec }) => (spec.group === '' ? spec.kind : `${spec.kind}.${spec.group}`) },
  { title: 'VERDICTS', value: ({ spec }) => VERDICTS.filter((verdict) => spec[verdict] !== undefined).join(',') },
  { title: 'AGE', value: ({ metadata }) => ageText(metadata.createdMs, nowMs) },
  { title: 'VERSIONS', value: ({ spec }) => spec.versions?.join(',') ?? '*', wide: true },
  { title: 'LABELS', value: ({ metadata }) => labelsText(metadata.labels), wide: true },
]

export const projectColumns = (nowMs: number): Column<ProjectView>[] => [
  { title: 'NAME', value: ({ metadata }) => metadata.name },
  { title: 'SERVICES', value: ({ status }) => status.services },
  { title: 'NAMESPACES', value: ({ spec }) => [...new Set(spec.destinations.flatMap(({ namespaces }) => namespaces))].join(',') || 'none' },
  { title: 'SOURCES', value: ({ spec }) => spec.sources.join(',') || 'none' },
  { title: 'AGE', value: ({ metadata }) => ageText(metadata.createdMs, nowMs) },
  { title: 'LABELS', value: ({ metadata }) => labelsText(metadata.labels), wide: true },
]

export const clusterColumns = (nowMs: number): Column<ClusterView>[] => [
  { title: 'NAME', value: ({ metadata }) => metadata.name },
  { title: 'LIVENESS', value: ({ status }) => status.liveness.word, colour: true },
  { title: 'SEEN', value: ({ status }) => ageText(status.liveness.lastSeenMs, nowMs) },
  ...state<ClusterView>(({ status }) => status),
  { title: 'SERVICES', value: ({ status: { services } }) => `${services.healthy}/${services.total}` },
  { title: 'AGE', value: ({ status }) => ageText(status.joinedMs, nowMs) },
  { title: 'LABELS', value: ({ metadata }) => labelsText(metadata.labels), wide: true },
  { title: 'KUBERNETES', value: ({ status }) => status.kubernetesVersion, wide: true },
  { title: 'NODES', value: ({ status }) => status.nodeCount, wide: true },
  { title: 'AGENT', value: ({ status }) => status.agentVersion, wide: true },
  ...why<ClusterView>(({ status }) => status),
]

/** Author and subject of the commit in the column before. */
const written = <T>(of: (item: T) => WrittenBy): Column<T>[] => [
  { title: 'AUTHOR', value: (item) => of(item).author ?? null, wide: true },
  { title: 'SUBJECT', value: (item) => cutText(of(item).subject ?? '', SUBJECT_CHARS_MAX), wide: true },
]
const SUBJECT_CHARS_MAX = 40

export const serviceColumns = (nowMs: number, allProjects: boolean): Column<ServiceView>[] => [
  ...project<ServiceView>(allProjects, ({ metadata }) => metadata.project),
  { title: 'NAME', value: ({ metadata }) => metadata.name },
  ...state<ServiceView>(({ status }) => status),
  { title: 'CLUSTERS', value: ({ status: { clusters } }) => `${clusters.healthy}/${clusters.total}` },
  { title: 'OBJECTS', value: ({ status }) => status.objectCount },
  { title: 'VARIANTS', value: ({ status }) => (status.variants > 1 ? status.variants : null), wide: true },
  { title: 'COMMIT', value: ({ status }) => short(status.commit) },
  { title: 'AGE', value: ({ metadata }) => ageText(metadata.createdMs, nowMs) },
  ...written<ServiceView>(({ status }) => status),
  {
    title: 'SOURCE',
    value: ({ spec }) =>
      sourcesOf(spec)
        .map(({ repository, path, chart }) => `${repository}:${chart ?? path ?? '.'}`)
        .join(','),
    wide: true,
  },
  { title: 'RENDERER', value: rendererText, wide: true },
  { title: 'LABELS', value: ({ metadata }) => labelsText(metadata.labels), wide: true },
  ...why<ServiceView>(({ status }) => withSuspended(status)),
]

export const repositoryColumns = (nowMs: number, allProjects: boolean): Column<RepositoryView>[] => [
  ...project<RepositoryView>(allProjects, ({ metadata }) => metadata.project),
  { title: 'NAME', value: ({ metadata }) => metadata.name },
  { title: 'KIND', value: ({ spec }) => placeOf(spec).kind },
  { title: 'READY', value: ({ status }) => yesNo(status.ready), colour: true },
  { title: 'COMMIT', value: ({ status }) => short(status.commit) },
  ...written<RepositoryView>(({ status }) => status),
  { title: 'TAG', value: ({ status }) => status.tag, wide: true },
  { title: 'FETCHED', value: ({ status }) => ageText(status.fetchedMs, nowMs) },
  { title: 'READ', value: ({ status }) => ageText(status.lastReadMs, nowMs), wide: true },
  { title: 'AGE', value: ({ metadata }) => ageText(metadata.createdMs, nowMs) },
  { title: 'URL', value: ({ spec }) => placeTexts(spec).url, wide: true },
  { title: 'REF', value: ({ spec }) => placeTexts(spec).ref, wide: true },
  ...why<RepositoryView>(({ status }) => status),
]

export const configColumns = (nowMs: number, allProjects: boolean): Column<ConfigView>[] => [
  ...project<ConfigView>(allProjects, ({ metadata }) => metadata.project),
  { title: 'NAME', value: ({ metadata }) => metadata.name },
  { title: 'DATA', value: ({ spec }) => Object.keys(spec.data).length },
  { title: 'SECRETS', value: ({ spec }) => Object.keys(spec.secrets).length },
  { title: 'AGE', value: ({ metadata }) => ageText(metadata.createdMs, nowMs) },
  { title: 'CHANGED', value: ({ metadata }) => ageText(metadata.updatedMs, nowMs), wide: true },
  { title: 'LABELS', value: ({ metadata }) => labelsText(metadata.labels), wide: true },
]

export const placementColumns = (nowMs: number, allProjects: boolean): Column<PlacementView>[] => [
  { title: 'CLUSTER', value: ({ cluster }) => cluster },
  ...project<PlacementView>(allProjects, (view) => view.project),
  { title: 'SERVICE', value: ({ service }) => service },
  { title: 'LIVENESS', value: ({ liveness }) => liveness.word, colour: true },
  ...state<PlacementView>((view) => view),
  { title: 'OBJECTS', value: ({ healthyCount, objectCount }) => `${healthyCount}/${objectCount}` },
  { title: 'COMMIT', value: ({ desired }) => short(desired?.commit) },
  ...written<PlacementView>(({ desired }) => desired ?? {}),
  { title: 'APPLIED', value: ({ applied }) => short(applied?.commit), wide: true },
  { title: 'SINCE', value: ({ sinceMs }) => ageText(sinceMs, nowMs) },
  ...why<PlacementView>((view) => view),
]

export const objectColumns = (nowMs: number, allProjects: boolean): Column<ObjectView>[] => [
  { title: 'CLUSTER', value: ({ cluster }) => cluster },
  ...project<ObjectView>(allProjects, (view) => view.project),
  { title: 'SERVICE', value: ({ service }) => service },
  { title: 'KIND', value: ({ kind, group }) => (group === '' ? kind : `${kind}.${group}`) },
  { title: 'NAMESPACE', value: ({ namespace }) => namespace },
  { title: 'NAME', value: ({ name }) => name },
  ...state<ObjectView>((view) => view),
  { title: 'SINCE', value: ({ sinceMs }) => ageText(sinceMs, nowMs) },
  { title: 'DRIFTS', value: ({ drift }) => drift?.count ?? 0, wide: true },
  { title: 'IMAGES', value: ({ images = [] }) => images.join(','), wide: true },
  ...why<ObjectView>((view) => ({ ...view, message: withWarnings(view) })),
]

const withWarnings = ({ message, warnings = [] }: ObjectView): string =>
  [...(message === '' ? [] : [message]), ...warnings.map((text) => `warning: ${text}`)].join('; ')

/** Objects that the API server warns of. */
export const warnedColumns: Column<ObjectView>[] = [
  { title: 'CLUSTER', value: ({ cluster }) => cluster },
  { title: 'KIND', value: ({ kind, group }) => (group === '' ? kind : `${kind}.${group}`) },
  { title: 'NAMESPACE', value: ({ namespace }) => namespace },
  { title: 'NAME', value: ({ name }) => name },
  { title: 'MESSAGE', value: ({ warnings = [] }) => warnings.join('; '), wide: true },
]

/** `ConfigMap/web/settings`, `Namespace/web`: the kind, then where and what it is called. */
function objectName(key: string | null): string | null {
  const ref = key === null ? null : parseRefKey(key)
  return ref === null ? key : [ref.kind, ref.namespace, ref.name].filter(Boolean).join('/')
}

/** `nowMs` null: lines of a stream, which stay on the screen while ages would grow. */
export const eventColumns = (nowMs: number | null, allProjects: boolean): Column<EventView>[] => [
  nowMs === null
    ? { title: 'TIME', value: ({ atMs }) => new Date(atMs).toISOString().replace(/\.\d+Z$/, 'Z') }
    : { title: 'AGE', value: ({ atMs }) => ageText(atMs, nowMs) },
  { title: 'TYPE', value: ({ type }) => type, colour: true },
  { title: 'REASON', value: ({ reason }) => reason },
  { title: 'CLUSTER', value: ({ cluster }) => cluster },
  ...project<EventView>(allProjects, (event) => event.project),
  { title: 'SERVICE', value: ({ service }) => service },
  { title: 'OBJECT', value: ({ object }) => objectName(object) },
  { title: 'TRACE', value: ({ trace }) => trace ?? null, wide: true },
  { title: 'MESSAGE', value: ({ message }) => message },
]

export const confirmationColumns = (nowMs: number): Column<ConfirmationView>[] => [
  { title: 'ID', value: ({ id }) => id },
  { title: 'KIND', value: ({ kind }) => kind },
  { title: 'PROJECT', value: (view) => view.project },
  { title: 'SERVICE', value: ({ service }) => service },
  { title: 'CLUSTER', value: ({ cluster, clusters }) => (clusters === undefined ? cluster : `${clusters.count}-clusters`) },
  { title: 'NAMES', value: ({ names }) => names.length },
  { title: 'AGE', value: ({ createdMs }) => ageText(createdMs, nowMs) },
  { title: 'WHY', value: (view) => view.why },
]

export const apiTokenColumns = (nowMs: number): Column<ApiTokenView>[] => [
  { title: 'ID', value: ({ id }) => id },
  { title: 'NAME', value: ({ name }) => name },
  { title: 'ROLE', value: ({ role }) => role },
  { title: 'STATE', value: (view) => view.state, colour: true },
  { title: 'EXPIRES', value: ({ expiresMs }) => (expiresMs === null ? 'never' : expiresMs <= nowMs ? 'past' : ageText(nowMs, expiresMs)) },
  { title: 'LAST-USED', value: ({ lastUsedMs }) => (lastUsedMs === null ? '' : ageText(lastUsedMs, nowMs)) },
  { title: 'FROM', value: ({ lastUsedFrom }) => lastUsedFrom ?? '' },
  { title: 'AGE', value: ({ createdMs }) => ageText(createdMs, nowMs) },
  { title: 'BY', value: ({ createdBy }) => createdBy ?? 'server' },
]

export const joinTokenColumns = (nowMs: number): Column<JoinTokenView>[] => [
  { title: 'ID', value: ({ id }) => id },
  { title: 'STATE', value: (view) => view.state, colour: true },
  { title: 'LEFT', value: ({ uses, usesLeft }) => `${usesLeft}/${uses}` },
  { title: 'EXPIRES', value: ({ expiresMs }) => (expiresMs <= nowMs ? 'past' : ageText(nowMs, expiresMs)) },
  { title: 'AGE', value: ({ createdMs }) => ageText(createdMs, nowMs) },
  { title: 'BY', value: ({ createdBy }) => createdBy },
  { title: 'LABELS', value: ({ labels }) => labelsText(labels) },
]

export const serverKeyColumns = (nowMs: number): Column<ServerKeyView>[] => [
  { title: 'FINGERPRINT', value: ({ fingerprint }) => fingerprint },
  { title: 'STATE', value: (view) => view.state },
  { title: 'SINCE', value: ({ sinceMs }) => ageText(sinceMs, nowMs) },
  { title: 'PUBLIC-KEY', value: ({ publicKey }) => publicKey, wide: true },
]
