// Rights: verbs on kinds, the built-in roles, and the schemas of Role and RoleBinding.
import { z } from 'zod'
import { nameSchema } from '../runtime/ids.ts'
import { ACCESS_KINDS, ACCESS_VERBS, type AccessKind, type AccessVerb } from './access-words.ts'
import { labelSelectorSchema } from './labels.ts'

export interface AccessRule {
  verbs: ReadonlyArray<AccessVerb | '*'>
  kinds: ReadonlyArray<AccessKind | '*'>
}

const SEEN: AccessKind[] = [
  'Project',
  'Repository',
  'Service',
  'Config',
  'HealthRule',
  'NotificationSink',
  'NotificationRoute',
  'Cluster',
  'Server',
]
const VIEW: AccessRule = { verbs: ['read'], kinds: SEEN }
const SAVE_QUERIES: AccessRule = { verbs: ['write', 'delete'], kinds: ['SavedQuery'] }
const OPERATE: AccessRule[] = [
  { verbs: ['render', 'sync', 'confirm', 'suspend'], kinds: ['Service'] },
  { verbs: ['sync'], kinds: ['Repository'] },
  { verbs: ['suspend'], kinds: ['Cluster'] },
  { verbs: ['live:read', 'logs:read', 'restart'], kinds: ['Service', 'Cluster'] },
  SAVE_QUERIES,
]

/** Roles that exist in every installation and that cannot be changed, least powerful first. */
export const BUILT_IN_ROLES = {
  viewer: { description: 'reads everything but credentials, roles and bindings', rules: [VIEW] },
  operator: {
    description: 'viewer; also renders, syncs, confirms and suspends, reads live objects and logs, restarts',
    rules: [VIEW, ...OPERATE],
  },
  deployer: {
    description: 'viewer; also writes, deletes, renders and syncs services, reads their live objects and logs, restarts them',
    rules: [
      VIEW,
      { verbs: ['write', 'delete', 'render', 'sync', 'live:read', 'logs:read', 'restart'], kinds: ['Service'] },
      { verbs: ['config:use'], kinds: ['Config'] },
      { verbs: ['sync'], kinds: ['Repository'] },
      SAVE_QUERIES,
    ],
  },
  'project-admin': {
    description: 'everything in its projects: resources, secrets, confirmations and role bindings',
    rules: [
      VIEW,
      ...OPERATE,
      {
        verbs: ['read', 'write', 'delete'],
        kinds: ['Repository', 'Service', 'Config', 'HealthRule', 'RoleBinding', 'NotificationSink', 'NotificationRoute'],
      },
      { verbs: ['secret:write', 'config:use'], kinds: ['Config'] },
      { verbs: ['webhook:read'], kinds: ['Repository'] },
      { verbs: ['notify:test'], kinds: ['NotificationSink'] },
      { verbs: ['audit:read'], kinds: ['Audit'] },
    ],
  },
  'fleet-admin': { description: 'everything', rules: [{ verbs: ['*'], kinds: ['*'] }] },
} as const satisfies Record<string, { description: string; rules: readonly AccessRule[] }>
export type BuiltInRole = keyof typeof BUILT_IN_ROLES
export const BUILT_IN_ROLE_NAMES = Object.keys(BUILT_IN_ROLES) as BuiltInRole[]

export const isBuiltIn = (name: string): name is BuiltInRole => Object.hasOwn(BUILT_IN_ROLES, name)

/** Roles of API tokens. `none`: only role bindings of the token's name count. `admin`: the name of fleet-admin before
 *  there were projects. */
export const TOKEN_ROLES = ['none', 'viewer', 'operator', 'deployer', 'project-admin', 'fleet-admin', 'admin'] as const
export type TokenRole = (typeof TOKEN_ROLES)[number]
export const builtInOf = (role: TokenRole): BuiltInRole | null => (role === 'none' ? null : role === 'admin' ? 'fleet-admin' : role)

export const ALL_PROJECTS = '*'
/** One name, or the beginning of names with an asterisk: `shop-*`. */
const namePattern = z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$|^([a-z0-9][-a-z0-9]{0,61})?\*$/, {
  error: 'expected a name, or a prefix with *, such as shop-*',
})

export const roleSpecSchema = z.strictObject({
  description: z.string().max(500).optional().describe('Description of the role for people.'),
  rules: z
    .array(
      z.strictObject({
        verbs: z
          .array(z.enum([...ACCESS_VERBS, '*']))
          .min(1)
          .describe('Allowed verbs; * is every verb.'),
        kinds: z
          .array(z.enum([...ACCESS_KINDS, '*']))
          .min(1)
          .describe('Kinds to which the verbs apply; * is every kind.'),
      }),
    )
    .min(1)
    .max(50)
    .describe('Rules of the role. It has the rights of all its rules; a right is a verb on a kind.'),
})
export type RoleSpec = z.infer<typeof roleSpecSchema>

const subjectText = z
  .string()
  .min(1)
  .max(320)
  .regex(/^[\x21-\x7e]+$/, 'expected printable characters without spaces')
const subjectSchema = z
  .strictObject({
    user: subjectText.optional().describe('A verified e-mail address, or provider:subject.'),
    group: subjectText.optional().describe('provider:group, as the identity provider names the group.'),
    token: nameSchema.optional().describe('Name of API tokens: a service account.'),
  })
  .refine(({ user, group, token }) => [user, group, token].filter((one) => one !== undefined).length === 1, {
    message: 'expected one of user, group and token',
  })
export type Subject = z.infer<typeof subjectSchema>

export const roleBindingSpecSchema = z.strictObject({
  role: nameSchema.describe('A built-in role (viewer, operator, deployer, project-admin, fleet-admin) or a Role.'),
  subjects: z.array(subjectSchema).min(1).max(200).describe('Users, groups and API tokens that get the role.'),
  projects: z
    .array(z.union([nameSchema, z.literal(ALL_PROJECTS)]))
    .min(1)
    .max(100)
    .optional()
    .describe('Names of projects, or * for the whole fleet. Must be omitted in a binding with metadata.project.'),
  clusters: labelSelectorSchema
    .optional()
    .describe('Limit the binding to these clusters, and to the verbs read, sync, confirm, suspend, live:read, logs:read and restart.'),
  services: z
    .array(namePattern)
    .min(1)
    .max(100)
    .optional()
    .describe('Limit the binding to these services, and to no other kind: names, or shop-*.'),
})
export type RoleBindingSpec = z.infer<typeof roleBindingSpecSchema>
