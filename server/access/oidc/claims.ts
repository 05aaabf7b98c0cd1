// Maps the claims of a token to the name, address and groups of a caller.
import { AppError } from '../../../shared/runtime/error.ts'
import type { ProviderSettings } from './settings.ts'

/** A person or a pipeline, as its provider vouches for it. */
export interface Identity {
  provider: string
  subject: string
  name: string
  /** Only a verified address. */
  email: string | null
  groups: readonly string[]
}

type Claims = Readonly<Record<string, unknown>>

const GROUPS_MAX = 1_000
const TEXT_MAX = 256
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be in a name.
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/

/** Bindings name users by address or as provider:subject, which a colon would mix up. Lower case of other letters than
 *  ASCII's can be ASCII. */
const ADDRESS = /^[\x21-\x39\x3b-\x7e]+@[\x21-\x39\x3b-\x7e]+$/

/** `groups`, or `/realm_access/roles` for a nested one. */
export function claimAt(claims: Claims, path: string): unknown {
  if (!path.startsWith('/')) return Object.hasOwn(claims, path) ? claims[path] : undefined
  let value: unknown = claims
  for (const part of path.slice(1).split('/')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined
    value = (value as Record<string, unknown>)[part]
  }
  return value
}

const textOf = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' && value.length <= TEXT_MAX && !CONTROL.test(value) ? value : null

/** Throws `sign_in_refused` for claims without a name, or of a person who may not sign in. */
export function identityOf(claims: Claims, settings: Pick<ProviderSettings, 'name' | 'claims' | 'allowedGroups'>): Identity {
  const subject = textOf(claims['sub'])
  if (subject === null) throw refused('the token of the provider has no usable claim sub')
  const groups = groupsOf(claims, settings.claims.groups)
  const { allowedGroups } = settings
  if (allowedGroups !== undefined && !groups.some((group) => allowedGroups.includes(group)))
    throw refused('the person is not in a group of allowedGroups')
  const verified = settings.claims.emailVerified === 'assumed' || claimAt(claims, 'email_verified') === true
  const address = textOf(claimAt(claims, settings.claims.email))
  const email = verified && address !== null && ADDRESS.test(address) ? address.toLowerCase() : null
  // An unverified address could belong to another person, so it is no name either.
  const username = settings.claims.username === settings.claims.email ? email : textOf(claimAt(claims, settings.claims.username))
  return { provider: settings.name, subject, name: username ?? email ?? subject, email, groups }
}

function groupsOf(claims: Claims, path: string): string[] {
  const value = claimAt(claims, path)
  if (value === undefined || value === null) {
    // Microsoft Entra ID leaves the list out where it is long, and names a place to fetch it from.
    const elsewhere = claimAt(claims, '_claim_names')
    if (typeof elsewhere === 'object' && elsewhere !== null && Object.hasOwn(elsewhere, path))
      throw refused(`the provider left the claim ${path} out because the person has too many groups; limit the groups in the token`)
    return []
  }
  const list = typeof value === 'string' ? [value] : value
  if (!Array.isArray(list)) throw refused(`the claim ${path} is not a list of groups`)
  if (list.length > GROUPS_MAX) throw refused(`the claim ${path} has more than ${GROUPS_MAX} groups`)
  return [...new Set(list.flatMap((group) => textOf(group) ?? []))]
}

export const refused = (detail: string): AppError => new AppError('sign_in_refused', { detail })
