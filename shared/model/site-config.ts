// Values that only the site knows: a ConfigMap there, named by a Service or a Cluster. The server tells the agent which
// keys are wanted (a row of the cluster), the agent reports those and no others, and they become variables. Pure.
import { z } from 'zod'
import type { ServiceId } from '../runtime/ids.ts'

/** Keys that one Service or Cluster names. */
export const SITE_KEYS_MAX = 50
/** ConfigMaps that the services of a cluster name together. */
export const SITE_MAPS_MAX = 20
/** Characters of one value, and of all that an agent reports. */
export const SITE_VALUE_CHARS_MAX = 4_096
export const SITE_CHARS_MAX = 60_000

const objectName = z
  .string()
  .max(253)
  .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/, 'expected the name of a Kubernetes object')
const keyName = z
  .string()
  .max(253)
  .regex(/^[-._a-zA-Z0-9]+$/, 'expected a key of a ConfigMap')
const variable = z.string().regex(/^[A-Za-z_][-A-Za-z0-9_]{0,62}$/, 'expected a name of letters, digits, _ and -')
export const SITE_TYPES = ['text', 'number', 'boolean', 'json'] as const
const keySchema = z.union([
  keyName,
  z.strictObject({
    key: keyName.describe('Key in the data of the ConfigMap.'),
    name: variable.optional().describe('Name of the variable. Default: the key.'),
    type: z.enum(SITE_TYPES).optional().describe('How the text is read. Default text.'),
  }),
])
export const siteConfigSchema = z
  .strictObject({
    namespace: z
      .string()
      .max(63)
      .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, 'expected a namespace')
      .describe('Namespace of the ConfigMap in each cluster.'),
    name: objectName.describe('Name of the ConfigMap.'),
    keys: z
      .array(keySchema)
      .min(1)
      .max(SITE_KEYS_MAX)
      .describe(
        'Keys to read: a key, or {key, name, type}. Each becomes a variable; a key that the site lacks leaves the value of the other levels.',
      ),
  })
  .superRefine(({ keys }, context) => {
    const names = new Set<string>()
    for (const [index, { name }] of keys.map(wantedKey).entries()) {
      if (!variable.safeParse(name).success)
        context.addIssue({
          code: 'custom',
          path: ['keys', index],
          message: `${name} is no name of a variable: write {key: ${name}, name: …}`,
        })
      if (names.has(name)) context.addIssue({ code: 'custom', path: ['keys', index], message: `the variable ${name} is named twice` })
      names.add(name)
    }
  })
export type SiteConfig = z.infer<typeof siteConfigSchema>

export interface WantedKey {
  key: string
  name: string
  type: (typeof SITE_TYPES)[number]
}
export const wantedKey = (given: SiteConfig['keys'][number]): WantedKey =>
  typeof given === 'string'
    ? { key: given, name: given, type: 'text' }
    : { key: given.key, name: given.name ?? given.key, type: given.type ?? 'text' }

/** Stands in the place of a service for these rows. No service has an empty name, and no project is called so. */
export const SITE_CONFIGS: ServiceId = { project: '+', service: '' }
export const SITE_CONFIG_PREFIX = 'siteconfig/'
/** `infra/values`: as rows and reports name a ConfigMap. */
export const siteMapId = ({ namespace, name }: Pick<SiteConfig, 'namespace' | 'name'>): string => `${namespace}/${name}`
/** Document of a `siteconfig/…` row. */
export const siteConfigRowSchema = z.object({ keys: z.array(z.string().max(253)).max(1_000) })

/** The findings of the agent about one ConfigMap. */
export const siteMapSchema = z.object({
  values: z.record(z.string().max(253), z.string().max(SITE_VALUE_CHARS_MAX)),
  /** Named keys that are not there. */
  absent: z.array(z.string().max(253)),
  /** Named keys whose value is not reported, with the reason. */
  refused: z.record(z.string().max(253), z.string().max(512)).default({}),
  /** Why it cannot be read now; the values are those of before. */
  problem: z.string().max(1_024).nullable().default(null),
})
export type SiteMap = z.infer<typeof siteMapSchema>
/** Key `cluster`. By `namespace/name`. */
export const siteStatusSchema = z.object({ maps: z.record(z.string().max(320), siteMapSchema) })
export type SiteStatus = z.infer<typeof siteStatusSchema>

export type SiteRead = { kind: 'read'; values: Record<string, unknown> } | { kind: 'lacking'; why: string }

/** The variables of one ConfigMap; `lacking`: its cluster cannot be rendered for. */
export function readSite(wanted: SiteConfig, reported: SiteStatus | undefined): SiteRead {
  const at = `ConfigMap ${siteMapId(wanted)}`
  const map = reported?.maps[siteMapId(wanted)]
  if (map === undefined) return { kind: 'lacking', why: `its agent has not reported ${at} yet` }
  const values: Record<string, unknown> = {}
  for (const { key, name, type } of wanted.keys.map(wantedKey)) {
    const text = Object.hasOwn(map.values, key) ? map.values[key] : undefined
    if (text === undefined) {
      if (map.absent.includes(key)) continue
      const why = map.refused[key] ?? map.problem
      return { kind: 'lacking', why: why === null ? `its agent has not reported the key ${key} of ${at} yet` : `${at}, key ${key}: ${why}` }
    }
    const value = typed(text, type)
    if (value === undefined) return { kind: 'lacking', why: `${at}, key ${key}: expected ${type === 'json' ? 'JSON' : `a ${type}`}` }
    values[name] = value
  }
  return { kind: 'read', values }
}

/** The value; undefined means that the text is none of that type. */
function typed(text: string, type: WantedKey['type']): unknown {
  const trimmed = text.trim()
  switch (type) {
    case 'text':
      return text
    case 'number':
      return trimmed !== '' && Number.isFinite(Number(trimmed)) ? Number(trimmed) : undefined
    case 'boolean':
      return trimmed === 'true' ? true : trimmed === 'false' ? false : undefined
    case 'json':
      try {
        return JSON.parse(text)
      } catch {
        return undefined
      }
  }
}
