// Schema of a Project: its allowed sources, destinations and kinds. bounds.ts derives the rules for services and
// agents.
import { z } from 'zod'
import { labelSelectorSchema } from './labels.ts'
import { RENDERERS } from './render.ts'
import { isSourcePattern } from './source-patterns.ts'
import { isMapping } from './sources.ts'

const PATTERNS_MAX = 200

const sourcePatternSchema = z
  .string()
  .min(1)
  .max(2_048)
  .refine(isSourcePattern, 'expected "*", or an address such as https://git.example.com/web/*, without user, query, ".." and "%"')
export const namespacePatternSchema = z
  .string()
  .max(63)
  .regex(/^[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?$/, 'expected the name of a namespace, in which "*" stands for any characters')
const KIND_NAME = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Z][A-Za-z0-9]*$/
const KIND_PATTERN = /^(\*|([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/(\*|[A-Z][A-Za-z0-9]*))|\*\/[A-Z][A-Za-z0-9]*|[A-Z][A-Za-z0-9]*)$/
export const kindNameSchema = z
  .string()
  .max(317)
  .regex(KIND_NAME, 'expected group/Kind such as rbac.authorization.k8s.io/ClusterRole, or v1/Namespace')
export const kindPatternSchema = z
  .string()
  .max(317)
  .regex(KIND_PATTERN, 'expected group/Kind such as apps/Deployment or v1/Secret, group/*, */Kind, or *')
const ACCOUNT = /^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\/)?[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/
const ACCOUNT_PATTERN = /^([a-z0-9*]([-a-z0-9*]{0,61}[a-z0-9*])?\/)?[a-z0-9*]([-a-z0-9.*]{0,251}[a-z0-9*])?$/

/** PJ5: also of a site's own policy, which has no default. */
export const allowedAccountsSchema = z
  .array(
    z.string().regex(ACCOUNT_PATTERN, 'expected the name of a ServiceAccount, or namespace/name, in which "*" stands for any characters'),
  )
  .min(1)
  .max(PATTERNS_MAX)
export const accountRuleSchema = z.union([
  z.literal('required'),
  z
    .strictObject({
      default: z
        .string()
        .regex(ACCOUNT, 'expected the name of a ServiceAccount, or namespace/name')
        .optional()
        .describe("ServiceAccount of services that name none: a name in the service's namespace, or namespace/name."),
      allowed: allowedAccountsSchema
        .optional()
        .describe('ServiceAccounts that services may name. Default: only the default account. Without a default, a service must name one.'),
    })
    .refine((rule) => rule.default !== undefined || rule.allowed !== undefined, {
      message: 'expected default or allowed',
      when: isMapping,
    }),
])
export type AccountRule = z.infer<typeof accountRuleSchema>

/** PJ5: of a Project only. In the bounds that travel to agents it is no rule. */
const AS_AGENT = 'agent'
export const accountRuleOf = ({ serviceAccounts }: ProjectSpec): AccountRule | undefined =>
  serviceAccounts === AS_AGENT ? undefined : serviceAccounts

export const kindsRuleSchema = z.strictObject({
  allow: z.array(kindPatternSchema).max(PATTERNS_MAX).optional().describe('Allowed kinds: apps/Deployment, v1/Secret, batch/*, */Ingress.'),
  deny: z.array(kindPatternSchema).max(PATTERNS_MAX).optional().describe('Denied kinds; deny takes precedence over allow.'),
})
export type KindsRule = z.infer<typeof kindsRuleSchema>

const count = z.number().int().min(0).max(1_000_000_000)

export const projectSpecSchema = z.strictObject({
  sources: z
    .array(sourcePatternSchema)
    .max(PATTERNS_MAX)
    .describe('Allowed addresses of repositories and remote bases: https://git.example.com/web/*; "*" is any. Submodules need "*".'),
  destinations: z
    .array(
      z.strictObject({
        clusters: labelSelectorSchema.default({}).describe('Clusters, by their labels. Default: every cluster.'),
        namespaces: z
          .array(namespacePatternSchema)
          .min(1)
          .max(PATTERNS_MAX)
          .describe('Namespaces in these clusters: web, web-*; "*" is any.'),
      }),
    )
    .max(PATTERNS_MAX)
    .describe('Allowed destinations of services. A cluster that several destinations select has the namespaces of all of them.'),
  kinds: kindsRuleSchema.optional().describe('Namespaced kinds. Default: all.'),
  clusterScopedKinds: z
    .array(kindNameSchema)
    .max(PATTERNS_MAX)
    .default([])
    .describe('Allowed cluster-scoped kinds, by exact name. Default: none. v1/Namespace allows only the namespaces of destinations.'),
  serviceAccounts: z
    .union([z.literal(AS_AGENT), accountRuleSchema])
    .optional()
    .describe(
      'required: each service must set sync.serviceAccount. {default, allowed}: the accounts of services, in a namespace of the project. agent, which is the default: a service that names no account acts with the rights of the agent. Without this field, such a Project has a warning.',
    ),
  renderers: z.array(z.enum(RENDERERS)).max(RENDERERS.length).optional().describe('Renderers that services may use. Default: all.'),
  quotas: z
    .strictObject({
      services: count.optional().describe('Services of the project.'),
      placements: count.optional().describe('Placements of the project: each service counts once for each cluster that it targets.'),
      objects: count.optional().describe('Objects of one service in one cluster.'),
      renderedBytes: count.optional().describe('Bytes of all objects of one service in one cluster, as JSON.'),
    })
    .optional()
    .describe('Upper limits. Default: only the limits of the server.'),
})
export type ProjectSpec = z.infer<typeof projectSpecSchema>
