// The caller of a request. Authentication creates it; the authorizer alone decides about its rights.
import type { TokenRole } from '../../shared/model/access.ts'
import type { AuditActor } from '../../shared/model/audit.ts'

export interface Principal {
  /** The credential: id of a token or of a session. */
  readonly id: string
  /** `workload`: a pipeline with a token that was exchanged for a JWT of its provider. */
  readonly kind: 'token' | 'user' | 'workload'
  /** For people: events, orders, confirmations, audit. */
  readonly name: string
  /** Identity provider that vouches for `subject`, `email` and `groups`. Null means an API token. */
  readonly provider: string | null
  /** As the provider names the caller. Null means an API token. */
  readonly subject: string | null
  /** Only an address that the provider has verified. */
  readonly email: string | null
  /** As the provider names them, without the provider. */
  readonly groups: readonly string[]
  /** Role that an API token was made with. Of users and workloads the authorizer ignores it. */
  readonly role: TokenRole | null
  /** The credential is worth nothing outside these projects. Null means no such limit. */
  readonly projects: readonly string[] | null
}

export const tokenPrincipal = (id: string, name: string, role: TokenRole, projects: readonly string[] | null = null): Principal => ({
  id,
  kind: 'token',
  name,
  provider: null,
  subject: null,
  email: null,
  groups: [],
  role,
  projects,
})

/**
 * Keys of the subjects of bindings that match this caller. A provider's name has no colon, so no provider can imitate
 * another.
 */
export function subjectKeys({ kind, name, provider, subject, email, groups }: Principal): string[] {
  if (kind === 'token') return [`token:${name}`]
  return [
    ...(email === null ? [] : [`user:${email.toLowerCase()}`]),
    ...(provider === null || subject === null ? [] : [`user:${provider}:${subject}`]),
    ...(provider === null ? [] : groups.map((group) => `group:${provider}:${group}`)),
  ]
}

/** For the audit log. An API token proves that it is the token; its name is what its creator called it. */
export const actorOf = ({ id, kind, name, provider }: Principal): AuditActor => ({
  ...{ kind, id, name, verified: true },
  ...(provider === null ? {} : { provider }),
})
