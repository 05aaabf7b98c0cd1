// The file of `--oidc-config`: identity providers of people, and issuers of JWTs of pipelines.

import { z } from 'zod'
import { explainIssues } from '../../../shared/model/explain.ts'
import { durationMs, durationSchema } from '../../../shared/model/resources.ts'
import type { Problem } from '../../../shared/runtime/error.ts'
import { nameSchema } from '../../../shared/runtime/ids.ts'
import { isLoopback } from '../../../shared/runtime/loopback.ts'

/** Signatures with a public key. With HS256, every verifier of a JWT could also make one. */
export const JWT_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'] as const

const urlSchema = z
  .string()
  .max(2_048)
  .refine((text) => {
    if (!URL.canParse(text)) return false
    const url = new URL(text)
    if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') return false
    return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname))
  }, 'expected an https:// URL without user, query and fragment; http:// only on a loopback address')

const between = (least: string, most: string, otherwise: string) =>
  durationSchema
    .default(otherwise)
    .transform(durationMs)
    .refine((ms) => ms >= durationMs(least) && ms <= durationMs(most), `expected ${least} to ${most}`)

const text = z.string().min(1).max(256)
const groupSchema = text
const claimPath = text.describe('Name of the claim; a nested one as /realm_access/roles.')

const providerSchema = z.strictObject({
  name: nameSchema.describe('Short name; role bindings name its groups as NAME:GROUP.'),
  issuer: urlSchema.describe('Issuer, exactly as the provider writes it into its tokens.'),
  clientId: text.describe('Client that is registered at the provider, with the redirect URI SERVER/auth/callback.'),
  clientSecretFile: z
    .string()
    .min(1)
    .max(4_096)
    .optional()
    .describe('File with the secret of the client. Default: a public client without a secret.'),
  caFile: z
    .string()
    .min(1)
    .max(4_096)
    .optional()
    .describe('PEM file with the certificates that are trusted for this provider, instead of the system’s.'),
  scopes: z.array(text).min(1).max(50).default(['openid', 'profile', 'email', 'groups', 'offline_access']).describe('Scopes to request.'),
  claims: z
    .strictObject({
      username: claimPath.default('preferred_username').describe('Name that people see.'),
      email: claimPath.default('email').describe('E-mail address.'),
      emailVerified: z
        .enum(['required', 'assumed'])
        .default('required')
        .describe('required: the address counts only with email_verified: true. assumed: the provider verifies every address.'),
      groups: claimPath.default('groups').describe('List of groups.'),
    })
    .prefault({})
    .describe('Claims to read.'),
  allowedGroups: z.array(groupSchema).min(1).max(500).optional().describe('Only members of one of these groups may sign in.'),
})
export type ProviderSettings = z.infer<typeof providerSchema>

const claimPattern = z.union([
  z
    .string()
    .min(1)
    .max(1_024)
    .refine((pattern) => /[^*]/.test(pattern), 'expected more than *, which matches every value'),
  z.boolean(),
  z.number(),
])

const ruleSchema = z.strictObject({
  claims: z
    .record(text, claimPattern)
    .refine((claims) => Object.keys(claims).length > 0, 'expected at least one claim')
    .describe('Claims that all must match; * stands for any characters but /.'),
  name: z
    .string()
    .min(1)
    .max(200)
    .regex(/^[\w@.:/{}-]+$/, 'expected letters, digits, @ . _ : / - and {CLAIM}')
    .describe('Name of the caller; {CLAIM} is replaced by the value of the claim.'),
  groups: z.array(groupSchema).max(100).default([]).describe('Groups of the caller, for role bindings.'),
})

const workloadSchema = z.strictObject({
  name: nameSchema.describe('Short name; role bindings name its groups as NAME:GROUP.'),
  issuer: urlSchema.describe('Issuer of the JWTs.'),
  audience: text.describe('Audience that the JWTs must have, such as the URL of this server.'),
  jwksUri: urlSchema.optional().describe('URL of the public keys; default: from the discovery document of the issuer.'),
  caFile: z
    .string()
    .min(1)
    .max(4_096)
    .optional()
    .describe('PEM file with the certificates that are trusted for this issuer, instead of the system’s.'),
  algorithms: z.array(z.enum(JWT_ALGORITHMS)).min(1).default(['RS256', 'ES256']).describe('Signature algorithms that are accepted.'),
  maxAge: between('1m', '1d', '1h').describe('Maximum age of a JWT, whatever its expiry.'),
  lifetime: between('1m', '1h', '15m').describe('Lifetime of the token that it is exchanged for.'),
  reusable: z
    .boolean()
    .default(false)
    .describe('Allow several exchanges of one JWT, for platforms that keep one in a file for longer than lifetime, such as Kubernetes.'),
  rules: z.array(ruleSchema).min(1).max(200).describe('The first rule that matches names the caller. A JWT without one is refused.'),
})
export type WorkloadSettings = z.infer<typeof workloadSchema>

export const oidcSettingsSchema = z
  .strictObject({
    providers: z.array(providerSchema).max(20).default([]).describe('Identity providers of people.'),
    workloads: z.array(workloadSchema).max(50).default([]).describe('Issuers of JWTs that pipelines exchange for a token.'),
    sessions: z
      .strictObject({
        idle: between('5m', '30d', '8h').describe('Idle time after which a browser session ends.'),
        max: between('5m', '90d', '24h').describe('Maximum lifetime of a browser session.'),
        cliIdle: between('5m', '90d', '7d').describe('Idle time after which a login of the CLI ends.'),
        cliMax: between('5m', '365d', '30d').describe('Maximum lifetime of a login of the CLI.'),
        recheck: between('10s', '1h', '5m').describe('Maximum age of groups before they are read again from the provider.'),
        outage: between('1s', '7d', '15m').describe('Time for which sessions continue while the provider does not answer.'),
        unchecked: between('5m', '24h', '1h').describe('Maximum length of a session for which the provider gave no refresh token.'),
      })
      .prefault({})
      .describe('How long people stay signed in.'),
  })
  .superRefine(({ providers, workloads }, context) => {
    const seen = new Set<string>()
    for (const [list, entries] of Object.entries({ providers, workloads }))
      for (const [at, { name }] of entries.entries()) {
        if (seen.has(name)) context.addIssue({ code: 'custom', path: [list, at, 'name'], message: 'duplicate name' })
        seen.add(name)
      }
  })
export type OidcSettings = z.infer<typeof oidcSettingsSchema>
export type SessionSettings = OidcSettings['sessions']

/** `file` is for messages. */
export function readOidcSettings(value: unknown, file: string): { settings: OidcSettings } | { problems: Problem[] } {
  const read = oidcSettingsSchema.safeParse(value ?? {})
  if (read.success) return { settings: read.data }
  return {
    problems: explainIssues(oidcSettingsSchema, value, read.error).map(({ path, message }) => ({ path: `${file}: ${path}`, message })),
  }
}
