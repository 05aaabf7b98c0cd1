// Bodies of `/auth/`: what the CLI and pipelines exchange with the server to sign in. They are part of the API and
// change only compatibly.
import { z } from 'zod'

const ms = z.number().int()
const secretText = z.string().min(1).max(512)

export const SIGN_IN = '/auth'

/** Providers that people may choose from. */
export const providersAnswerSchema = z.object({ items: z.array(z.object({ name: z.string() })) })

export const deviceRequestSchema = z.strictObject({ provider: z.string().max(63).optional() })
export const deviceAnswerSchema = z.object({
  /** Buys the token when the person has decided. */
  device: z.string(),
  provider: z.string(),
  userCode: z.string(),
  verificationUri: z.string(),
  verificationUriComplete: z.string().nullable(),
  expiresInMs: ms,
  intervalMs: ms,
})

export const tokenRequestSchema = z.discriminatedUnion('grant', [
  z.strictObject({ grant: z.literal('code'), code: secretText, verifier: z.string().min(43).max(128) }),
  z.strictObject({ grant: z.literal('device'), device: secretText }),
  z.strictObject({ grant: z.literal('refresh'), refreshToken: secretText }),
])
export const tokenAnswerSchema = z.object({ token: z.string(), expiresInMs: ms, refreshToken: z.string() })
export type TokenAnswer = z.infer<typeof tokenAnswerSchema>

export const exchangeRequestSchema = z.strictObject({ token: z.string().min(1).max(16_384) })
export const exchangeAnswerSchema = z.object({ token: z.string(), expiresInMs: ms, name: z.string() })

/** `redirect`: page that ends the session at the provider. Null means that it has none. */
export const logoutAnswerSchema = z.object({ redirect: z.string().nullable() })

/** A link that opens the dashboard once. */
export const signInLinkSchema = z.object({ url: z.string(), expiresMs: ms })
export type SignInLink = z.infer<typeof signInLinkSchema>
export const signInLinkCodeSchema = z.strictObject({ code: secretText })
/** `token`: an API token with the rights of the one that created the link. */
export const signInLinkTokenSchema = z.object({ token: z.string(), expiresMs: ms })

export const sessionViewSchema = z.object({
  id: z.string(),
  kind: z.enum(['browser', 'cli', 'workload']),
  name: z.string(),
  provider: z.string(),
  email: z.string().nullable(),
  groups: z.array(z.string()),
  createdMs: ms,
  expiresMs: ms,
  /** When the provider last confirmed name and groups. */
  checkedMs: ms,
  /** Within a minute of the last use. */
  lastUsedMs: ms,
  lastUsedFrom: z.string().nullable(),
})
export type SessionView = z.infer<typeof sessionViewSchema>

/** The key of an agent. It is revoked, and valid again, by `spec.revoked` of its Cluster. */
export const agentCredentialSchema = z.object({
  id: z.string(),
  cluster: z.string(),
  /** Fingerprint of the public key. */
  fingerprint: z.string(),
  /** Fingerprint of the key to which rows are sealed. Null means that an earlier server does not say. */
  recipient: z.string().nullable().default(null),
  /** The agent was asked for another recipient key and has not made it yet. */
  rotating: z.boolean().default(false),
  /** Grows when another agent takes over with the same key. */
  incarnation: ms,
  joinedMs: ms,
  /** Last contact, within 10 s. */
  lastUsedMs: ms.nullable(),
  state: z.enum(['valid', 'revoked']),
})
export type AgentCredential = z.infer<typeof agentCredentialSchema>
