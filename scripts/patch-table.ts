// Makes server/render/patch/table.ts of the OpenAPI document in the k8s.io/kubernetes Go module: which lists of
// built-in kinds a strategic merge patch merges, and by which key. bun scripts/patch-table.ts
// GO-MODULE-CACHE/k8s.io/kubernetes@VERSION/api/openapi-spec/swagger.json > server/render/patch/table.ts
import { z } from 'zod'

const property = z.object({
  $ref: z.string().optional(),
  items: z.object({ $ref: z.string().optional() }).optional(),
  additionalProperties: z.unknown().optional(),
  'x-kubernetes-patch-strategy': z.string().optional(),
  'x-kubernetes-patch-merge-key': z.string().optional(),
})
const definition = z.object({
  properties: z.record(z.string(), property).optional(),
  'x-kubernetes-group-version-kind': z.array(z.object({ group: z.string(), version: z.string(), kind: z.string() })).optional(),
})
const swagger = z.object({ definitions: z.record(z.string(), definition) })

const [path = ''] = process.argv.slice(2)
const { definitions } = swagger.parse(await Bun.file(path).json())

const refOf = ({ $ref, items }: z.infer<typeof property>): string | undefined => ($ref ?? items?.$ref)?.replace('#/definitions/', '')
const shortName = (name: string): string => name.split('.').slice(-2).join('.')

/** Types with a list that is merged, in them or below them. */
const relevant = new Set<string>()
for (let before = -1; before !== relevant.size; ) {
  before = relevant.size
  for (const [name, { properties = {} }] of Object.entries(definitions))
    for (const one of Object.values(properties))
      if (one['x-kubernetes-patch-strategy'] !== undefined || relevant.has(refOf(one) ?? '')) relevant.add(name)
}

/** The group distinguishes two types of one name. */
const shortNames = new Map<string, string>()
for (const name of [...relevant].sort()) {
  const taken = [...shortNames.values()].includes(shortName(name))
  shortNames.set(name, taken ? name.split('.').slice(-3).join('.') : shortName(name))
}

const fieldText = ([name, one]: [string, z.infer<typeof property>]): string[] => {
  const type = shortNames.get(refOf(one) ?? '') ?? ''
  const strategy = one['x-kubernetes-patch-strategy']
  if (type === '' && strategy === undefined) return []
  return [[name, type, strategy, one['x-kubernetes-patch-merge-key']].filter((part) => part !== undefined).join(':')]
}
const fieldsOf = (name: string): string =>
  Object.entries(definitions[name]?.properties ?? {})
    .flatMap(fieldText)
    .join(' ')
const PLAIN = 'metadata:v1.ObjectMeta'
const isOfUse = (name: string): boolean =>
  fieldsOf(name) !== PLAIN && !('items' in (definitions[name]?.properties ?? {}) && name.endsWith('List'))
const types = [...relevant]
  .filter(isOfUse)
  .sort()
  .map((name) => `${shortNames.get(name)} ${fieldsOf(name)}`)
const kinds = Object.entries(definitions).flatMap(([name, { properties = {}, 'x-kubernetes-group-version-kind': kinds = [] }]) => {
  const [kind] = kinds
  if (kind === undefined || kinds.length > 1 || 'items' in properties || !relevant.has(name)) return []
  const key = [kind.group, kind.version, kind.kind].filter((part) => part !== '').join('/')
  return [isOfUse(name) ? `${key}=${shortNames.get(name)}` : key]
})
const wrapped = (words: readonly string[]): string => {
  const lines: string[] = []
  for (const word of words) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + word.length < 138) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines.join('\n')
}

process.stdout.write(`// Made by scripts/patch-table.ts of the OpenAPI document of Kubernetes ${/@(v[^/]+)/.exec(path)?.[1]}: do not edit.

/**
 * For each type with a merged list in it or below it: its fields as \`name:type\`, and with a strategy
 * \`name:type:strategy:key\`.
 */
export const PATCH_TYPES = \`
${types.join('\n')}
\`

/** \`group/version/Kind=type\`; without a type, only its metadata has such lists. */
export const PATCH_KINDS = \`
${wrapped(kinds.sort())}
\`
`)
