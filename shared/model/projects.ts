// A Project: what the services of one project may read, where they may go, and what they may be made of. The rules that follow from it are in bounds.ts.
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
        .describe("Used by services that name none: a name in the service's namespace, or namespace/name."),
      allowed: allowedAccountsSchema
        .optional()
        .describe('ServiceAccounts that services may name. Left out: only the default. Without a default a service must name one.'),
    })
    .refine((rule) => rule.default !== undefined || rule.allowed !== undefined, {
      message: 'expected default or allowed',
      when: isMapping,
    }),
])
export type AccountRule = z.infer<typeof accountRuleSchema>

export const kindsRuleSchema = z.strictObject({
  allow: z
    .array(kindPatternSchema)
    .max(PATTERNS_MAX)
    .optional()
    .describe('Only these kinds: apps/Deployment, v1/Secret, batch/*, */Ingress.'),
  deny: z.array(kindPatternSchema).max(PATTERNS_MAX).optional().describe('None of these kinds, also where allow names them.'),
})
export type KindsRule = z.infer<typeof kindsRuleSchema>

const count = z.number().int().min(0).max(1_000_000_000)

export const projectSpecSchema = z.strictObject({
  sources: z
    .array(sourcePatternSchema)
    .max(PATTERNS_MAX)
    .describe('Addresses that repositories and remote bases may have: https://git.example.com/web/*; "*" is any, and submodules need it.'),
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
    .describe('Where services may go. A cluster that several of them select has the namespaces of all of them.'),
  kinds: kindsRuleSchema.optional().describe('Namespaced kinds. Default: all.'),
  clusterScopedKinds: z
    .array(kindNameSchema)
    .max(PATTERNS_MAX)
    .default([])
    .describe('Kinds outside namespaces, each by its name. Default: none. With v1/Namespace, the namespaces of destinations only.'),
  serviceAccounts: accountRuleSchema
    .optional()
    .describe(
      'required: each service names sync.serviceAccount. Or {default, allowed}. In each case the account is in a namespace of the project. Default: as the service says, else the agent itself.',
    ),
  renderers: z.array(z.enum(RENDERERS)).max(RENDERERS.length).optional().describe('Renderers that services may use. Default: all.'),
  quotas: z
    .strictObject({
      services: count.optional().describe('Services of the project.'),
      placements: count.optional().describe('Services of the project, each counted once for each cluster that it targets.'),
      objects: count.optional().describe('Objects of one service in one cluster.'),
      renderedBytes: count.optional().describe('Bytes of all objects of one service in one cluster, as JSON.'),
    })
    .optional()
    .describe('Upper limits. Default: none but those of the server.'),
})
export type ProjectSpec = z.infer<typeof projectSpecSchema>
