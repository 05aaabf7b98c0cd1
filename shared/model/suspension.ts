// Suspensions: orders on the server to leave services unchanged. The documents of their rows, the services that each
// one covers, and the input and output of the API.
import { z } from 'zod'
import { type ServiceId, serviceKey } from '../runtime/ids.ts'

export const SUSPEND_REASON_MAX = 500
const ms = z.number().int().nonnegative()

/** Document of a `suspension/…` row. A newer server may say more; what this version does not know is left out. */
export const suspensionSchema = z.object({ by: z.string().max(256), why: z.string().max(1_024), sinceMs: ms })
export type Suspension = z.infer<typeof suspensionSchema>

/** `service` null: all services. `cluster` null: all clusters. */
export interface SuspendedScope {
  service: ServiceId | null
  cluster: string | null
}

/** Stands in the place of a service for the suspensions of a cluster. No service has an empty name, and no project is
 *  called so. */
export const SUSPENSIONS: ServiceId = { project: '*', service: '' }
export const SUSPENSION_PREFIX = 'suspension/'

/** The id of the row says whom the suspension concerns in its cluster, and the command that lifts it. Agents that know
 *  no suspensions leave the row alone. */
export function suspensionRowId({ service, cluster }: SuspendedScope): string {
  if (service === null) return cluster === null ? `${SUSPENSION_PREFIX}all` : `${SUSPENSION_PREFIX}cluster/${cluster}`
  return `${SUSPENSION_PREFIX}${cluster === null ? 'services' : `placement/${cluster}`}/${serviceKey(service)}`
}

/** Null if it is of another version. */
export function parseSuspensionRowId(id: string): SuspendedScope | null {
  if (!id.startsWith(SUSPENSION_PREFIX)) return null
  const [kind, ...rest] = id.slice(SUSPENSION_PREFIX.length).split('/')
  const [first = '', second = '', third = ''] = rest
  if (rest.includes('')) return null
  if (kind === 'all' && rest.length === 0) return { service: null, cluster: null }
  if (kind === 'cluster' && rest.length === 1) return { service: null, cluster: first }
  if (kind === 'services' && rest.length === 2) return { service: { project: first, service: second }, cluster: null }
  if (kind === 'placement' && rest.length === 3) return { service: { project: second, service: third }, cluster: first }
  return null
}

/** Whether it concerns the service in the cluster. */
export const isSuspendedBy = ({ service, cluster }: SuspendedScope, id: ServiceId, clusterName: string): boolean =>
  (cluster === null || cluster === clusterName) && (service === null || serviceKey(service) === serviceKey(id))

/** Wider ones first: as long as one is there, lifting a narrower one changes nothing. */
export const widthOf = ({ service, cluster }: SuspendedScope): number => (service === null ? 0 : 2) + (cluster === null ? 0 : 1)

/** The arguments of `skerry resume` that lift it. */
export function resumeFlags({ service, cluster }: SuspendedScope): string {
  const where = cluster === null ? '' : `--cluster ${cluster}`
  if (service === null) return where === '' ? '--all' : where
  return `${service.service} -p ${service.project}${where === '' ? '' : ` ${where}`}`
}

/** `all services`, `all services in ship-7`, `default/web`, `default/web in ship-7`. */
export const scopeText = ({ service, cluster }: SuspendedScope): string =>
  `${service === null ? 'all services' : serviceKey(service)}${cluster === null ? '' : ` in ${cluster}`}`

const minuteText = (ms: number): string => `${new Date(ms).toISOString().slice(0, 16)}Z`

/** The same text for as long as the suspension is the same. */
export const suspendedText = ({ by, why, sinceMs }: Suspension, scope: SuspendedScope): string =>
  `suspended by ${by} since ${minuteText(sinceMs)}: ${why}; \`skerry resume ${resumeFlags(scope)}\` resumes it`

/** One suspension, as the API lists it. `project` and `service` null: all services; `cluster` null: all clusters. */
export const suspensionViewSchema = z.object({
  project: z.string().nullable(),
  service: z.string().nullable(),
  cluster: z.string().nullable(),
  by: z.string(),
  reason: z.string(),
  sinceMs: ms,
})
export type SuspensionView = z.infer<typeof suspensionViewSchema>

const name = z.string().min(1).max(63)
/** Services by name or by the labels of the services; neither: all services. Clusters by name; none: all clusters. All
 *  services of all clusters only with `all`. */
const scopeShape = {
  project: name.optional(),
  services: z.array(name).max(500).optional(),
  labelSelector: z.string().min(1).max(1_024).optional(),
  clusters: z.array(name).max(500).optional(),
  all: z.boolean().optional(),
  dryRun: z.boolean().optional(),
}
export const suspendRequestSchema = z.strictObject({ ...scopeShape, reason: z.string().trim().min(1).max(SUSPEND_REASON_MAX) })
export const resumeRequestSchema = z.strictObject({ ...scopeShape, reason: z.string().trim().min(1).max(SUSPEND_REASON_MAX).optional() })
export type ScopeRequest = Omit<z.infer<typeof resumeRequestSchema>, 'reason'>

export const SUSPEND_ACTIONS = ['suspended', 'resumed', 'unchanged'] as const
export const suspendAnswerSchema = z.object({
  dryRun: z.boolean(),
  results: z.array(suspensionViewSchema.extend({ action: z.enum(SUSPEND_ACTIONS) })),
  /** For `resume`: suspensions that still apply to the resumed services. */
  remaining: z.array(suspensionViewSchema),
})
export type SuspendAnswer = z.infer<typeof suspendAnswerSchema>
