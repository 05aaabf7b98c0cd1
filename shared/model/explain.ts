// The findings of zod for the author of the input: path, expectation, the nearest valid name. Never the value itself,
// which may be a secret.
import { z } from 'zod'
import { nearest } from '../runtime/edit-distance.ts'
import type { Problem } from '../runtime/error.ts'
import { READ_ONLY_METADATA } from './views.ts'

export interface LocatedProblem extends Problem {
  /** Path as segments, for callers that can find its line. */
  segments: PropertyKey[]
}

/** A boolean as written in YAML: `no`. Null means not known. */
type WordAt = (path: readonly PropertyKey[]) => string | null

/** All of them at once, in the order of the schema. */
export function explainIssues(schema: z.ZodType, input: unknown, error: z.ZodError, wordAt: WordAt = () => null): LocatedProblem[] {
  return error.issues.flatMap((issue): LocatedProblem[] => {
    const path = [...issue.path]
    const words = issue.code === 'invalid_union' ? discriminatorWords(schema, path) : []
    if (words.length > 0) {
      const given = valueAt(input, path)
      const tool = foreignTool(input)
      if (tool !== null) return [{ path: pathText(path), segments: path, message: comesFrom(tool) }]
      const near = typeof given === 'string' ? nearest(given, words) : null
      const hint = near === null ? '' : `; did you mean "${near}"?`
      return [{ path: pathText(path), segments: path, message: `expected ${words.join(' or ')}${hint}` }]
    }
    const branch = issue.code === 'invalid_union' ? branchOf(issue, valueAt(input, path)) : null
    if (branch !== null) {
      const inPath = branch.map((one) => ({ ...one, path: [...path, ...one.path] }))
      return explainIssues(schema, input, new z.ZodError(inPath), wordAt)
    }
    if (issue.code !== 'unrecognized_keys') {
      const message = unquoted(issue, valueAt(input, path), () => wordAt(path)) ?? messageOf(issue, input, schema)
      return [{ path: pathText(path), segments: path, message }]
    }
    const known = keysAt(schema, path, input)
    return issue.keys.map((key) => {
      const near = nearest(key, known)
      const hint = near !== null ? `; did you mean "${near}"?` : known.length > 0 ? `; known here: ${known.join(', ')}` : ''
      return { path: pathText([...path, key]), segments: [...path, key], message: `unknown field${hint}` }
    })
  })
}

/** `spec.targets.exclude[0]`. */
export function pathText(path: readonly PropertyKey[]): string {
  let text = ''
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else if (/^[\w-]+$/.test(String(part))) text += text === '' ? String(part) : `.${String(part)}`
    else text += `[${JSON.stringify(String(part))}]`
  }
  return text
}

/** The inverse of `pathText`. */
export const pathSegments = (text: string): PropertyKey[] =>
  [...text.matchAll(/\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|([^.[\]]+)/g)].map(([, index, quoted, word]) =>
    index !== undefined ? Number(index) : quoted !== undefined ? String(JSON.parse(`"${quoted}"`)) : (word ?? ''),
  )

/** Text that YAML takes for something else. A number is not repeated: it may be a secret. */
function unquoted(issue: z.core.$ZodIssue, given: unknown, word: () => string | null): string | null {
  if (issue.code !== 'invalid_type' || issue.expected !== 'string') return null
  // Some schemas have words of their own.
  if (typeof given === 'number')
    return issue.message.startsWith('Invalid input') ? 'expected string, received number; put it in quotes' : null
  if (typeof given !== 'boolean') return null
  const written = word()
  return written === null ? 'expected string, received boolean; put it in quotes' : `${written} is a boolean in YAML: write "${written}"`
}

type UnionIssue = Extract<z.core.$ZodIssue, { code: 'invalid_union' }>
const typesOf = ({ errors }: UnionIssue): Array<{ issues: z.core.$ZodIssue[]; expected: string | null }> =>
  errors.map((issues) => {
    const [first] = issues
    return { issues, expected: first?.code === 'invalid_type' && first.path.length === 0 ? first.expected : null }
  })

/** The problem by the intended member: the only one of the right type. Null if there is none, or more than one. */
function branchOf(issue: UnionIssue, given: unknown): z.core.$ZodIssue[] | null {
  if (given === undefined) return null
  const [meant, ...others] = typesOf(issue).filter(({ expected }) => expected === null)
  return meant === undefined || others.length > 0 ? null : meant.issues
}

const TYPE_WORDS: Readonly<Record<string, string>> = { array: 'a list', record: 'a mapping', object: 'a mapping', string: 'text' }

function unionWords(issue: UnionIssue): string | null {
  const expected = typesOf(issue).flatMap((one) => (one.expected === null ? [] : [TYPE_WORDS[one.expected] ?? one.expected]))
  return expected.length === 0 ? null : `expected ${[...new Set(expected)].join(' or ')}`
}

function messageOf(issue: z.core.$ZodIssue, input: unknown, schema: z.ZodType): string {
  const { message } = issue
  if (issue.code === 'invalid_union') {
    const words = unionWords(issue)
    if (words !== null) return valueAt(input, issue.path) === undefined ? `is required: ${words}` : words
  }
  if (issue.code === 'invalid_key') return issue.issues.map((one) => one.message).join('; ')
  if (issue.code === 'invalid_type' && valueAt(input, issue.path) === undefined) return `is required: expected ${issue.expected}`
  if (issue.code === 'invalid_value') {
    const given = valueAt(input, issue.path)
    // Where there is one word only, it is said already.
    const near = typeof given === 'string' && issue.values.length > 1 ? nearest(given, issue.values.map(String)) : null
    return `expected ${issue.values.map((value) => JSON.stringify(value)).join(' or ')}${near === null ? '' : `; did you mean "${near}"?`}`
  }
  if (issue.code === 'too_big' && issue.origin === 'number') return `expected at most ${issue.maximum}`
  if (issue.code === 'too_small' && issue.origin === 'number') return `expected at least ${issue.minimum}`
  // In the words of `skerry explain`.
  const said = message
    .replace(/^Invalid input: /, '')
    .replace(/^expected record/, 'expected map')
    .replace(/^expected array/, 'expected list')
  if (issue.code !== 'invalid_type') return said
  if (issue.expected === 'record' && typeof valueAt(input, issue.path) === 'string')
    return `${said}; write the mapping itself, not a text of it`
  if (issue.expected !== 'object') return said
  const form = formOf(schemaAt(schema, issue.path, input))
  return form === null ? said : `${said}; write ${form}`
}

/** `{name: …}`: the fields that must be there, or else those that may. */
function formOf(schema: unknown): string | null {
  if (!(schema instanceof z.ZodObject)) return null
  const fields = Object.entries(schema.shape)
  const required = fields.filter(([, field]) => field instanceof z.ZodType && !field.safeParse(undefined).success)
  const shown = required.length > 0 ? required : fields.slice(0, 2)
  return shown.length === 0 ? null : `{${shown.map(([name]) => `${name}: …`).join(', ')}}`
}

/** By name, so that nothing of a document is repeated that is not known. */
const TOOLS: ReadonlyArray<readonly [tool: string, group: RegExp, kinds: string]> = [
  ['Argo CD', /^argoproj\.io$/, 'Application ApplicationSet AppProject'],
  [
    'Flux',
    /\.toolkit\.fluxcd\.io$/,
    'HelmRelease Kustomization GitRepository HelmRepository HelmChart OCIRepository Bucket Receiver Alert Provider ImageRepository ImagePolicy ImageUpdateAutomation',
  ],
  ['Plural', /^deployments\.plural\.sh$/, 'ServiceDeployment GlobalService ManagedNamespace GitRepository HelmRepository'],
  ['Fleet', /^fleet\.cattle\.io$/, 'GitRepo HelmOp Bundle ClusterGroup'],
]
/** The other tool whose document this is, if a user tries one. */
function foreignTool(input: unknown): string | null {
  const [kind, apiVersion] = [valueAt(input, ['kind']), valueAt(input, ['apiVersion'])]
  if (typeof kind !== 'string' || typeof apiVersion !== 'string') return null
  const group = apiVersion.split('/')[0] ?? ''
  const found = TOOLS.find(([, groups, kinds]) => groups.test(group) && kinds.split(' ').includes(kind))
  return found === undefined ? null : `${found[0]} (${kind})`
}
const comesFrom = (tool: string): string =>
  `is a resource of ${tool}; write a Repository and a Service instead: docs/how-to/migrate.md maps each field`

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input
  for (const part of path) {
    if (typeof value !== 'object' || value === null) return undefined
    value = (value as Record<PropertyKey, unknown>)[part]
  }
  return value
}

/** The allowed words of the discriminator at this path. */
function discriminatorWords(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  if (!(schema instanceof z.ZodDiscriminatedUnion) || path.length !== 1 || path[0] !== schema.def.discriminator) return []
  return schema.options.flatMap((option) => {
    const word = option instanceof z.ZodObject ? option.shape[schema.def.discriminator] : undefined
    return word instanceof z.ZodLiteral ? [...word.values].map(String) : []
  })
}

/** Names that the schema knows at a path of the input; empty where any name is allowed. */
function keysAt(schema: z.ZodType, path: readonly PropertyKey[], input: unknown): string[] {
  const here = schemaAt(schema, path, input)
  return here instanceof z.ZodObject ? Object.keys(here.shape) : []
}

function schemaAt(schema: z.ZodType, path: readonly PropertyKey[], input: unknown): unknown {
  let at: unknown = schema
  let value = input
  for (const part of path) {
    const here = unwrap(at, value)
    if (here instanceof z.ZodObject) at = here.shape[String(part)]
    else if (here instanceof z.ZodArray) at = here.element
    else if (here instanceof z.ZodRecord) at = here.valueType
    else return null
    value = typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>)[part] : undefined
  }
  return unwrap(at, value)
}

/** Through defaults, optionals and unions (the member that the input's discriminator picks). */
function unwrap(schema: unknown, value: unknown): unknown {
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return unwrap(schema.unwrap(), value)
  if (schema instanceof z.ZodPipe) return unwrap(schema.in, value)
  if (schema instanceof z.ZodDiscriminatedUnion) {
    const { discriminator } = schema.def
    const word = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[discriminator] : undefined
    const member = schema.options.find(
      (option) => option instanceof z.ZodObject && (option.shape[discriminator] as z.ZodType | undefined)?.safeParse(word).success,
    )
    return member === undefined ? undefined : unwrap(member, value)
  }
  if (schema instanceof z.ZodUnion) {
    const meant = schema.options.find((option) => (Array.isArray(value) ? option instanceof z.ZodArray : option instanceof z.ZodObject))
    return meant === undefined ? undefined : unwrap(meant, value)
  }
  return schema
}

/** Without what only the server writes, so that `get -o yaml` can be edited and applied. */
export function withoutReadOnly(input: unknown): unknown {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return input
  const { status: _, ...document } = input as Record<string, unknown>
  const { metadata } = document
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) return document
  const readOnly: readonly string[] = READ_ONLY_METADATA
  return { ...document, metadata: Object.fromEntries(Object.entries(metadata).filter(([key]) => !readOnly.includes(key))) }
}
