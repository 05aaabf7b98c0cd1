// The routes of the API with what they take and answer. Types only, from the schemas by which the server checks its
// requests and makes its OpenAPI document.
import type { z } from 'zod'
import type { canIAnswerSchema, whoCanAnswerSchema } from '../shared/model/access-views.ts'
import type { ApplyAnswer } from '../shared/model/apply-views.ts'
import type { AttentionView } from '../shared/model/attention.ts'
import type { AuditRecord, AuditState, auditPageSchema } from '../shared/model/audit.ts'
import type { changePageSchema } from '../shared/model/change.ts'
import type { ChartView } from '../shared/model/chart.ts'
import type { CommitView } from '../shared/model/commits.ts'
import type { CountsView } from '../shared/model/counts.ts'
import type { DeleteServicesAnswer, deleteServicesSchema } from '../shared/model/delete-services.ts'
import type { DependenciesView } from '../shared/model/dependency-views.ts'
import type { DiffRequest, DiffView } from '../shared/model/diff-views.ts'
import type { SqlAnswer, SqlView, sqlQuestionSchema } from '../shared/model/fleet-sql.ts'
import type { HistoryView, RevisionView, TimelineView } from '../shared/model/history.ts'
import type {
  NotificationRouteView,
  NotificationSinkView,
  NotificationTestAnswer,
  NotificationView,
} from '../shared/model/notification-views.ts'
import type { ObjectOrders } from '../shared/model/object-order.ts'
import type { removalsViewSchema } from '../shared/model/removal-views.ts'
import type { OriginView, RenderView, VariantsView } from '../shared/model/render-views.ts'
import type { Applicable } from '../shared/model/resources.ts'
import type { SavedQueryInput, SavedQueryView } from '../shared/model/saved-queries.ts'
import type { RotationAnswer, SealView } from '../shared/model/sealing-views.ts'
import type { AgentCredential, SessionView, SignInLink } from '../shared/model/sign-in.ts'
import type { SuspendAnswer, SuspensionView } from '../shared/model/suspension.ts'
import type { SyncAnswer, SyncPlanView, SyncRequest } from '../shared/model/sync.ts'
import type {
  ApiTokenView,
  ClusterView,
  ConfigView,
  ConfirmationView,
  createdApiTokenSchema,
  createdJoinTokenSchema,
  DeleteAnswer,
  EventView,
  exchangedTokenSchema,
  HealthRuleView,
  JoinTokenView,
  ObjectView,
  PlacementView,
  ProjectView,
  RepositoryView,
  RestorePlanView,
  RoleBindingView,
  RoleView,
  refreshAnswerSchema,
  refuseConfirmationSchema,
  resealAnswerSchema,
  restoreConfirmedSchema,
  ServerKeyView,
  ServiceList,
  ServiceView,
  versionAnswerSchema,
  WhoamiAnswer,
  webhookAnswerSchema,
} from '../shared/model/views.ts'
import type { WhyView } from '../shared/model/why.ts'
import type { AskRequest } from '../shared/protocol/ask.ts'

interface Read<T> {
  answer: T
  body?: undefined
}
interface Write<T, Body = unknown> {
  answer: T
  body?: Body
}
interface Page<T> {
  items: T[]
  /** For the next page, as `continue` of the query. Null means that this is the last one. */
  continue: string | null
}
type List<T> = Read<Page<T>>
/** A resource as people write it; members that the server writes are ignored. */
type Document<Kind extends Applicable['kind']> = z.input<z.ZodType<Extract<Applicable, { kind: Kind }>>> | Record<string, unknown>

interface Resources {
  Repository: RepositoryView
  Service: ServiceView
  Cluster: ClusterView
  Config: ConfigView
  HealthRule: HealthRuleView
  Project: ProjectView
  Role: RoleView
  RoleBinding: RoleBindingView
  NotificationSink: NotificationSinkView
  NotificationRoute: NotificationRouteView
}

/** Paths of single resources. */
interface Places {
  '/projects/:project': 'Project'
  '/projects/:project/repositories/:name': 'Repository'
  '/projects/:project/services/:name': 'Service'
  '/clusters/:name': 'Cluster'
  '/projects/:project/configs/:name': 'Config'
  '/health-rules/:name': 'HealthRule'
  '/projects/:project/health-rules/:name': 'HealthRule'
  '/roles/:name': 'Role'
  '/role-bindings/:name': 'RoleBinding'
  '/projects/:project/role-bindings/:name': 'RoleBinding'
  '/notification-sinks/:name': 'NotificationSink'
  '/projects/:project/notification-sinks/:name': 'NotificationSink'
  '/notification-routes/:name': 'NotificationRoute'
  '/projects/:project/notification-routes/:name': 'NotificationRoute'
}

type ResourceRoutes = {
  [Path in keyof Places as `GET ${Path}`]: Read<Resources[Places[Path]]>
} & {
  [Path in keyof Places as `PUT ${Path}`]: Write<Resources[Places[Path]], Document<Places[Path]>>
} & {
  [Path in keyof Places as `DELETE ${Path}`]: Write<DeleteAnswer, { confirmData?: readonly string[] }>
}

interface OtherRoutes {
  'GET /whoami': Read<WhoamiAnswer>
  'POST /token/exchange': Write<z.infer<typeof exchangedTokenSchema>>
  'GET /version': Read<z.infer<typeof versionAnswerSchema>>
  'POST /apply': Write<ApplyAnswer, { resources: unknown[]; dryRun?: boolean; confirmData?: readonly string[] }>
  'GET /repositories': List<RepositoryView>
  'GET /services': Read<ServiceList>
  'GET /clusters': List<ClusterView>
  'GET /configs': List<ConfigView>
  'GET /health-rules': List<HealthRuleView>
  'GET /projects': List<ProjectView>
  'GET /roles': List<RoleView>
  'GET /role-bindings': List<RoleBindingView>
  'GET /notification-sinks': List<NotificationSinkView>
  'GET /notification-routes': List<NotificationRouteView>
  'GET /notifications': List<NotificationView>
  'GET /notifications/:id': Read<NotificationView>
  'POST /notifications/:id/retry': Write<NotificationView>
  'POST /notification-sinks/:name/test': Write<NotificationTestAnswer>
  'POST /projects/:project/notification-sinks/:name/test': Write<NotificationTestAnswer>
  'GET /auth/can-i': Read<z.infer<typeof canIAnswerSchema>>
  'GET /auth/who-can': Read<z.infer<typeof whoCanAnswerSchema>>
  'GET /projects/:project/repositories/:name/webhook': Read<z.infer<typeof webhookAnswerSchema>>
  'POST /projects/:project/repositories/:name/webhook': Write<z.infer<typeof webhookAnswerSchema>>
  'GET /projects/:project/repositories/:name/commits': List<CommitView>
  'POST /projects/:project/repositories/:name/refresh': Write<z.infer<typeof refreshAnswerSchema>>
  'GET /objects': List<ObjectView>
  'GET /placements': List<PlacementView>
  'GET /counts': Read<CountsView>
  'POST /query': Write<SqlAnswer, z.input<typeof sqlQuestionSchema>>
  'GET /query/views': List<SqlView>
  'GET /saved-queries': List<SavedQueryView>
  'GET /saved-queries/:name': Read<SavedQueryView>
  'PUT /saved-queries/:name': Write<SavedQueryView, SavedQueryInput>
  'DELETE /saved-queries/:name': Write<null>
  'GET /chart': Read<ChartView>
  'GET /changes': Read<z.infer<typeof changePageSchema>>
  'GET /metrics': Read<string>
  'GET /events': List<EventView>
  'GET /suspensions': List<SuspensionView>
  'GET /confirmations': List<ConfirmationView>
  'GET /confirmations/:id': Read<ConfirmationView>
  'GET /confirmations/:id/removal': Read<z.infer<typeof removalsViewSchema>>
  'POST /confirmations/:id/confirm': Write<ConfirmationView, { confirmData?: readonly string[] }>
  'POST /confirmations/:id/refuse': Write<ConfirmationView, z.input<typeof refuseConfirmationSchema>>
  'GET /attention': Read<AttentionView>
  'GET /clusters/:name/services': List<PlacementView>
  'GET /clusters/:name/history': List<TimelineView>
  'POST /clusters/:name/ask': Write<string, AskRequest>
  'GET /projects/:project/services/:name/clusters': List<PlacementView>
  'GET /projects/:project/services/:name/revisions': List<RevisionView>
  'GET /projects/:project/services/:name/history': List<HistoryView>
  'GET /projects/:project/services/:name/order': Read<ObjectOrders>
  'GET /projects/:project/services/:name/removal': Read<z.infer<typeof removalsViewSchema>>
  'GET /projects/:project/services/:name/sync': Read<SyncPlanView>
  'POST /projects/:project/services/:name/sync': Write<SyncAnswer, SyncRequest>
  'GET /projects/:project/services/:name/dependencies': Read<DependenciesView>
  'GET /projects/:project/services/:name/why': Read<WhyView>
  'GET /projects/:project/services/:name/render': Read<RenderView>
  'GET /projects/:project/services/:name/variants': Read<VariantsView>
  'GET /projects/:project/services/:name/origin': Read<OriginView>
  'POST /projects/:project/services/:name/diff': Write<DiffView, DiffRequest>
  'POST /projects/:project/delete-services': Write<DeleteServicesAnswer, z.input<typeof deleteServicesSchema>>
  'POST /suspend': Write<SuspendAnswer>
  'POST /resume': Write<SuspendAnswer>
  'GET /join-tokens': List<JoinTokenView>
  'POST /join-tokens': Write<z.infer<typeof createdJoinTokenSchema>>
  'DELETE /join-tokens/:id': Write<null>
  'GET /tokens': List<ApiTokenView>
  'POST /tokens': Write<z.infer<typeof createdApiTokenSchema>>
  'DELETE /tokens/:id': Write<null>
  'POST /sign-in-links': Write<SignInLink>
  'GET /sessions': List<SessionView>
  'DELETE /sessions/:id': Write<null>
  'GET /agents': List<AgentCredential>
  'POST /agents/:id/rotate-recipient': Write<null>
  'GET /secrets/seal': Read<SealView>
  'POST /secrets/seal': Write<SealView>
  'GET /secrets/rotate-key': Read<RotationAnswer>
  'POST /secrets/rotate-key': Write<RotationAnswer>
  'GET /server-keys': List<ServerKeyView>
  'POST /server-keys/rotate': Write<Page<ServerKeyView>>
  'POST /server-keys/revoke': Write<Page<ServerKeyView>>
  'POST /server-keys/rotate-mac': Write<null>
  'POST /server-keys/rotate-secrets': Write<z.infer<typeof resealAnswerSchema>>
  'GET /profile/cpu': Read<object>
  'GET /profile/heap': Read<object>
  'GET /profile/heap-snapshot': Read<object>
  'GET /audit': List<AuditRecord>
  'GET /audit/state': Read<AuditState>
  'GET /audit/entries': Read<z.infer<typeof auditPageSchema>>
  'GET /restore': Read<RestorePlanView>
  'POST /restore/confirm': Write<z.infer<typeof restoreConfirmedSchema>>
}

export type Routes = ResourceRoutes & OtherRoutes
export type Route = keyof Routes & string
export type Changes = '/changes'

type Names<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | Names<Rest>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never
/** `project` and `name` of `GET /projects/:project/services/:name`. */
export type ParamsOf<R extends string> = Record<Names<R>, string>
