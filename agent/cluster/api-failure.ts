// What a refused request means, decided from HTTP status and the body's Status alone. Kubernetes says some final errors with code 500 and
// some passing ones with 403, so the number is never enough.
import { z } from 'zod'
import type { ApiFailure } from './cluster.ts'
import { withoutDocuments } from './failure-text.ts'

const statusSchema = z.looseObject({
  kind: z.literal('Status'),
  message: z.string().optional(),
  reason: z.string().optional(),
  code: z.number().optional(),
  details: z
    .looseObject({
      name: z.string().optional(),
      kind: z.string().optional(),
      causes: z
        .array(z.looseObject({ reason: z.string().optional(), message: z.string().optional(), field: z.string().optional() }))
        .optional(),
      retryAfterSeconds: z.number().optional(),
    })
    .optional(),
})
export type KubeStatus = z.infer<typeof statusSchema>
type Cause = NonNullable<NonNullable<KubeStatus['details']>['causes']>[number]

/** Longest message taken over from a server; a proxy's HTML page or a validation of a thousand fields must not fill the status. */
const MESSAGE_CHARS_MAX = 2000

/** The Status in a body, or null when something else answered (a proxy, the mux's "404 page not found"). */
export function parseStatus(body: unknown): KubeStatus | null {
  const parsed = statusSchema.safeParse(body)
  return parsed.success ? parsed.data : null
}

/** Seconds of a Retry-After header as ms; dates are not sent by API servers and count as absent. */
export function retryAfterMsOf(header: string | null, status: KubeStatus | null): number | undefined {
  const seconds = header !== null && /^\d{1,6}$/.test(header) ? Number(header) : status?.details?.retryAfterSeconds
  return seconds === undefined || seconds <= 0 ? undefined : seconds * 1000
}

/** An object that the server can never take, said with code 500: it cannot be read as its kind at all. */
const UNREADABLE = [
  'failed to create typed patch',
  'failed to convert new object',
  'etcdserver: request is too large',
  // Above what the API server's own etcd client sends.
  'trying to send message larger than max',
]
const WEBHOOK_DOWN = ['failed calling webhook', 'failed to call webhook', 'conversion webhook for']
/** Fields that need a new object, in the words of the API server's own validation where those do not say "immutable". */
const IMMUTABLE = [
  'immutable',
  'cannot change roleRef',
  'updates to statefulset spec for fields other than',
  'pod updates may not change fields other than',
  'may not change once set', // addresses of a Service
  'may not be changed in an update', // PriorityClass
  'updates to provisioner are forbidden', // StorageClass
  'updates to parameters are forbidden',
]

/** Said with any code: 403 and 422 by policies, 400 by webhooks that name none. */
const DENIED = /^admission webhook "[^"]+" denied the request|is forbidden: ValidatingAdmissionPolicy '[^']+' with binding /

const saysOneOf = (text: string, phrases: readonly string[]) => phrases.some((phrase) => text.includes(phrase))

/** KA5: only when every cause is an immutable field of the object's own content: deleting and creating it again would then help. */
function isImmutable(causes: readonly Cause[]): boolean {
  return (
    causes.length > 0 && causes.every(({ message, field }) => saysOneOf(message ?? '', IMMUTABLE) && !(field ?? '').startsWith('metadata.'))
  )
}

/** KA32: what has it may go: nothing is wrong with the object itself. */
const isTaken = (causes: readonly Cause[]): boolean =>
  causes.length > 0 && causes.every(({ message }) => saysOneOf(message ?? '', ['port is already allocated', 'IP is already allocated']))

/** KA1–KA6: the meaning of an answer that is not a success. `plural` names the resource that was asked for, for telling a missing namespace
 *  from a missing object. */
export function failureOf(answer: { status: number; body: unknown; text: string; retryAfter: string | null; plural: string }): ApiFailure {
  const status = parseStatus(answer.body)
  const said = withoutDocuments(withoutValues(status?.message ?? plainText(answer.text)))
  const message = said.slice(0, MESSAGE_CHARS_MAX) || `HTTP ${answer.status} without a message`
  const retryAfterMs = retryAfterMsOf(answer.retryAfter, status)
  return {
    kind: kindOf(answer.status, status, message, answer.plural),
    status: answer.status,
    reason: status?.reason ?? '',
    message,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  }
}

/** What has the wrong type is quoted whole, also of a Secret, and nothing tells where the quotation ends. */
function withoutValues(message: string): string {
  const at = message.indexOf(', got &')
  return at < 0 ? message : `${message.slice(0, at)}, got something else`
}

function kindOf(code: number, status: KubeStatus | null, message: string, plural: string): ApiFailure['kind'] {
  const causes = status?.details?.causes ?? []
  if (code === 401) return 'unauthorized'
  // KA29: the policy may change and the object stay; that its text says "immutable" is no reason to delete it.
  if (code >= 400 && code < 500 && DENIED.test(message)) return 'forbidden'
  if (code === 403) return causes.some(({ reason }) => reason === 'NamespaceTerminating') ? 'namespace_terminating' : 'forbidden'
  if (code === 404) return status?.details?.kind === 'namespaces' && plural !== 'namespaces' ? 'namespace_missing' : 'not_found'
  if (code === 409) return 'conflict'
  if (code === 422) return isImmutable(causes) ? 'immutable' : isTaken(causes) ? 'taken' : 'invalid'
  if (code === 429) return 'throttled'
  // 408 and 410 are about this one request; asking again is the cure.
  if (code === 408 || code === 410) return 'server_error'
  if (code >= 400 && code < 500) return 'invalid'
  if (saysOneOf(message, WEBHOOK_DOWN)) return 'webhook'
  return saysOneOf(message, UNREADABLE) ? 'invalid' : 'server_error'
}

/** A 404 about an object names it; one without a name means that the server does not serve this kind (or that its group is gone). Taking the
 *  second for the first would make every object of a broken group look deleted. */
export function namesMissingObject(body: unknown): boolean {
  const status = parseStatus(body)
  return status?.reason === 'NotFound' && status.details?.name !== undefined && status.details.name !== ''
}

const plainText = (text: string) =>
  text
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, 300)

/** Codes of a TLS handshake that failed on trust, as Bun names them. */
const UNTRUSTED = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_SIGNATURE_FAILURE',
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_UNTRUSTED',
  'ERR_TLS_CERT_ALTNAME_INVALID',
])

/** A request that got no answer. Says whether trust failed, because the remedy is another one than for a dead server. */
export function unreachable(server: string, error: unknown): ApiFailure {
  const code = errorCode(error)
  const text = error instanceof Error ? error.message : String(error)
  if (UNTRUSTED.has(code)) {
    const message = `the certificate of ${server} was refused (${code}): it is not signed by the certificate authority in the credentials, is not for this name, or has expired`
    return { kind: 'unreachable', status: 0, reason: 'UntrustedCertificate', message }
  }
  return { kind: 'unreachable', status: 0, reason: code, message: `no answer from ${server}: ${text}` }
}

function errorCode(error: unknown): string {
  if (error === null || typeof error !== 'object') return ''
  if ('code' in error && typeof error.code === 'string') return error.code
  return error instanceof Error ? error.name : ''
}
