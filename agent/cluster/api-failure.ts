// Classifies a refused request by its HTTP status and the Status in its body. Kubernetes answers some final errors with
// code 500 and some passing ones with 403, so the code alone is never enough. The classes are read from the raw text,
// which stays in this file: the message of a failure has passed the boundary (redact/safe-text.ts), and so have the
// warnings of any answer, which come in HTTP headers: `299 - "text"` (RFC 7234, section 5.5), several joined by commas.
import { z } from 'zod'
import { WARNING_CHARS_MAX, WARNINGS_MAX } from '../../shared/model/status.ts'
import { failureSays, failureText } from '../messages/object-messages.ts'
import type { ApiFailure, ApiResource } from './cluster.ts'
import { MESSAGE_CHARS_MAX, safeStatus, safeText } from './redact/safe-text.ts'

const statusSchema = z.looseObject({
  kind: z.literal('Status'),
  message: z.string().optional(),
  reason: z.string().optional(),
  code: z.number().optional(),
  details: z
    .looseObject({
      name: z.string().optional(),
      group: z.string().optional(),
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

/** The Status in a body. Null when the answer is not from Kubernetes, such as the page of a proxy. */
export function parseStatus(body: unknown): KubeStatus | null {
  const parsed = statusSchema.safeParse(body)
  return parsed.success ? parsed.data : null
}

/** KA6: a page of a proxy that asks for a day is no reason to wait for a day. */
const RETRY_AFTER_MAX_MS = 300_000

/** Seconds of a Retry-After header, in ms, 300,000 at most. API servers send no dates; a date counts as absent. */
export function retryAfterMsOf(header: string | null, status: KubeStatus | null): number | undefined {
  const seconds = header !== null && /^\d{1,6}$/.test(header) ? Number(header) : status?.details?.retryAfterSeconds
  return seconds === undefined || seconds <= 0 ? undefined : Math.min(seconds * 1000, RETRY_AFTER_MAX_MS)
}

/** Code 500 for an object that the server can never accept, because it cannot decode it as its kind. */
const UNREADABLE = [
  'failed to create typed patch',
  'failed to convert new object',
  'etcdserver: request is too large',
  // The limit of the API server's etcd client.
  'trying to send message larger than max',
]
const WEBHOOK_DOWN = ['failed calling webhook', 'failed to call webhook', 'conversion webhook for']
/** Errors of immutable fields, as the validation of the API server writes them. */
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

/** Denials come with any code: policies choose 403 or 422, and a webhook that names none gets 400. A policy that cannot
 *  be evaluated (no CRD of its parameters) names no binding. */
const DENIED =
  /^admission webhook "[^"]+" denied the request|is forbidden: ValidatingAdmissionPolicy '[^']+' (?:with binding|denied request)/

const saysOneOf = (text: string, phrases: readonly string[]) => phrases.some((phrase) => text.includes(phrase))

/** KA5: only if every cause is an immutable field outside of metadata: only then does deleting and creating the object
 *  help. */
function isImmutable(causes: readonly Cause[]): boolean {
  return (
    causes.length > 0 && causes.every(({ message, field }) => saysOneOf(message ?? '', IMMUTABLE) && !(field ?? '').startsWith('metadata.'))
  )
}

/** KA32: the object is fine; another one holds the port or the address, and may be deleted. */
const isTaken = (causes: readonly Cause[]): boolean =>
  causes.length > 0 && causes.every(({ message }) => saysOneOf(message ?? '', ['port is already allocated', 'IP is already allocated']))

export interface RefusedAnswer {
  status: number
  /** The parsed body; undefined if it is not JSON. */
  body: unknown
  /** The body as it came. */
  text: string
  retryAfter: string | null
  /** Plural of the requested resource; it tells a missing namespace from a missing object. */
  plural: string
  /** The body of the request. The answer may quote it. */
  sent?: unknown
  /** Other documents that the answer may quote. */
  about?: readonly unknown[]
}

/** KA1–KA6, KA31: the meaning of an answer that is not a success. */
export function failureOf({ status: code, body, text, retryAfter, plural, sent, about = [] }: RefusedAnswer): ApiFailure {
  const status = parseStatus(body)
  const context = { documents: sent === undefined ? about : [sent, ...about], isSecret: plural === 'secrets' }
  const raw = status === null ? plainText(text) : (status.message ?? '')
  const message = status === null ? safeText(raw, context) : safeStatus(status, context)
  const retryAfterMs = retryAfterMsOf(retryAfter, status)
  return {
    kind: kindOf(code, status, raw, plural),
    status: code,
    reason: reasonOf(status),
    message: message.slice(0, MESSAGE_CHARS_MAX) || failureText('status_alone', { code }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  }
}

/** A webhook may write anything here. */
const reasonOf = (status: KubeStatus | null): string => (/^[A-Za-z]{1,64}$/.test(status?.reason ?? '') ? (status?.reason ?? '') : '')

function kindOf(code: number, status: KubeStatus | null, message: string, plural: string): ApiFailure['kind'] {
  const causes = status?.details?.causes ?? []
  if (code === 401) return 'unauthorized'
  // KA29: the policy may change while the object stays. A denial that says "immutable" is no reason to delete the
  // object.
  if (code >= 400 && code < 500 && DENIED.test(message)) return 'forbidden'
  if (code === 403) return causes.some(({ reason }) => reason === 'NamespaceTerminating') ? 'namespace_terminating' : 'forbidden'
  if (code === 404) return status?.details?.kind === 'namespaces' && plural !== 'namespaces' ? 'namespace_missing' : 'not_found'
  if (code === 409) return 'conflict'
  // Another program answered, such as a proxy: nothing was said about the object.
  if (status === null && code >= 400 && code < 500 && code !== 429) return 'server_error'
  if (code === 422) return isImmutable(causes) ? 'immutable' : isTaken(causes) ? 'taken' : 'invalid'
  if (code === 429) return 'throttled'
  // 408 and 410 concern this one request; a retry helps.
  if (code === 408 || code === 410) return 'server_error'
  if (code >= 400 && code < 500) return 'invalid'
  if (saysOneOf(message, WEBHOOK_DOWN)) return 'webhook'
  return saysOneOf(message, UNREADABLE) ? 'invalid' : 'server_error'
}

/** Resources that OpenShift stores as other resources, whose NotFound it passes on. */
const KEPT_AS: Readonly<Record<string, string>> = {
  'projects.project.openshift.io': 'namespaces',
  'roles.authorization.openshift.io': 'roles.rbac.authorization.k8s.io',
  'rolebindings.authorization.openshift.io': 'rolebindings.rbac.authorization.k8s.io',
  'clusterroles.authorization.openshift.io': 'clusterroles.rbac.authorization.k8s.io',
  'clusterrolebindings.authorization.openshift.io': 'clusterrolebindings.rbac.authorization.k8s.io',
}
const qualified = (resource: string, group: string): string => (group === '' ? resource : `${resource}.${group}`)

/** KA7: a 404 that names the requested object means that it is absent. One without a name means that the server does
 *  not serve the kind, and one that names another object is about a lookup of an aggregated API. Confusing them
 *  would make every object of a broken group look deleted. */
export function namesMissingObject(
  body: unknown,
  { group, kind, plural }: Pick<ApiResource, 'group' | 'kind' | 'plural'>,
  name: string,
): boolean {
  const status = parseStatus(body)
  if (status?.reason !== 'NotFound' || name === '' || status.details?.name !== name) return false
  const { kind: resource = '', group: named = '' } = status.details
  if (qualified(resource, named) === KEPT_AS[qualified(plural, group)]) return true
  // Events of both groups, and many aggregated APIs, answer without the group.
  return (named === '' || named === group) && [plural, kind.toLowerCase()].includes(resource.toLowerCase())
}

const plainText = (text: string) =>
  text
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, 300)

/** Codes of Bun for a certificate that is not trusted. */
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

/**
 * A request without an answer. An untrusted certificate differs from a server that is down, because the remedies
 * differ.
 */
export function unreachable(server: string, error: unknown): ApiFailure {
  const code = errorCode(error)
  const address = server.replace(/^(https?:\/\/)[^/@]*@/, '$1')
  if (UNTRUSTED.has(code)) return { kind: 'unreachable', status: 0, ...failureSays('UntrustedCertificate', { address, code }) }
  const failure = safeText(error instanceof Error ? error.message : String(error))
  return { kind: 'unreachable', status: 0, reason: code, message: failureText('no_answer', { address, failure }) }
}

function errorCode(error: unknown): string {
  if (error === null || typeof error !== 'object') return ''
  if ('code' in error && typeof error.code === 'string') return error.code
  return error instanceof Error ? error.name : ''
}

const WARNING = /\s*,?\s*\d{3}\s+\S+\s+"((?:[^"\\]|\\.)*)"(?:\s+"[^"]*")?/y

/** The texts as the server wrote them, without the quotes of the header. */
export function parseWarnings(header: string | null): string[] {
  const texts: string[] = []
  if (header === null) return texts
  WARNING.lastIndex = 0
  for (let match = WARNING.exec(header); match !== null; match = WARNING.exec(header)) {
    const text = (match[1] ?? '').replace(/\\(.)/g, '$1').trim()
    if (text !== '') texts.push(text)
  }
  return texts
}

/** KA55: the warnings about the object that was sent, as people may read them: sorted, and each once. */
export function warningsOf(header: string | null, sent: unknown): string[] {
  const texts = parseWarnings(header).map((text) => safeText(text, { documents: [sent] }).slice(0, WARNING_CHARS_MAX))
  return [...new Set(texts)].sort().slice(0, WARNINGS_MAX)
}
