// explain: the fields of a kind, from the schemas that apply checks with. No server is asked.
import { z } from 'zod'
import { notificationRouteSchema, notificationSinkSchema } from '../../shared/model/notifications.ts'
import {
  API_VERSION,
  clusterSchema,
  configSchema,
  healthRuleSchema,
  projectSchema,
  repositorySchema,
  roleBindingSchema,
  roleSchema,
  serviceSchema,
} from '../../shared/model/resources.ts'
import { nearest } from '../../shared/runtime/edit-distance.ts'
import { type CliIo, UsageError } from './io.ts'
import { type Kind, parseTarget, singular } from './kinds.ts'

const SCHEMAS: Partial<Record<Kind, z.ZodObject>> = {
  services: serviceSchema,
  repositories: repositorySchema,
  configs: configSchema,
  'health-rules': healthRuleSchema,
  clusters: clusterSchema,
  projects: projectSchema,
  roles: roleSchema,
  'role-bindings': roleBindingSchema,
  'notification-sinks': notificationSinkSchema,
  'notification-routes': notificationRouteSchema,
}
const EXPLAINED = Object.keys(SCHEMAS) as Kind[]

interface Field {
  /** The schema without optional, default and the like. */
  core: unknown
  isRequired: boolean
  /** As JSON. Null means none. */
  byDefault: string | null
  description: string
}

/** `path`: `service`, `svc.spec.render.helm`, `service.spec.sources[0].path`; nothing: which kinds there are. */
export function explainField(io: Pick<CliIo, 'stdout'>, path: string | undefined, { recursive }: { recursive?: true | undefined }): void {
  if (path === undefined) {
    io.stdout.write(kindsText())
    return
  }
  const [kindText = '', ...names] = path.replaceAll(/\[[^\]]*\]/g, '').split('.')
  const { kind } = parseTarget(kindText, undefined, EXPLAINED)
  const root = SCHEMAS[kind]
  if (root === undefined) throw new UsageError(`no documentation for ${kind}`)
  let field = fieldOf(root)
  let at = kindText
  for (const name of names) {
    const fields = fieldsOf(field.core)
    const next = fields.get(name)
    if (next === undefined) throw new UsageError(unknownField(at, name, [...fields.keys()]))
    field = next
    at += `.${name}`
  }
  const { value } = root.shape['kind'] as z.ZodLiteral<string>
  const head = `KIND:   ${value} (${API_VERSION})\n${names.length === 0 ? '' : `FIELD:  ${names.join('.')} ${typeLine(field)}\n`}`
  const about = field.description === '' ? '' : `\n${field.description}\n`
  const fields = fieldsOf(field.core)
  const list = recursive === true ? treeText(fields, 1) : listText(fields)
  io.stdout.write(`${head}${about}${list === '' ? '' : `\nFIELDS:\n${list}`}`)
}

export interface FieldLine {
  /** From the kind on: `service.spec.sync.drift`. */
  path: string
  /** Type, whether it is required, default. */
  type: string
  description: string
}

/** All fields of all kinds, depth first. */
export const allFields = (): { kind: string; fields: FieldLine[] }[] =>
  EXPLAINED.map((kind) => ({ kind: singular(kind), fields: linesBelow(singular(kind), fieldsOf(SCHEMAS[kind])) }))

const linesBelow = (path: string, fields: ReadonlyMap<string, Field>): FieldLine[] =>
  [...fields].flatMap(([name, field]) => [
    { path: `${path}.${name}`, type: typeLine(field), description: field.description },
    ...linesBelow(`${path}.${name}`, fieldsOf(field.core)),
  ])

const kindsText = (): string =>
  EXPLAINED.map((kind) => `${singular(kind)}.spec\n      ${fieldOf(SCHEMAS[kind]?.shape['spec']).description}\n`).join('')

function unknownField(at: string, name: string, known: readonly string[]): string {
  const near = nearest(name, known)
  const hint = near === null ? '' : `; did you mean "${near}"?`
  return `${at} has no field "${name}"${hint}\n${known.length === 0 ? 'It has no fields that have names of their own.' : `Fields: ${known.join(', ')}`}`
}

const listText = (fields: ReadonlyMap<string, Field>): string =>
  [...fields]
    .map(([name, field]) => `  ${name} ${typeLine(field)}\n${field.description === '' ? '' : `      ${field.description}\n`}`)
    .join('')

const treeText = (fields: ReadonlyMap<string, Field>, depth: number): string =>
  [...fields]
    .map(([name, field]) => `${'  '.repeat(depth)}${name} ${typeLine(field)}\n${treeText(fieldsOf(field.core), depth + 1)}`)
    .join('')

const typeLine = ({ core, isRequired, byDefault }: Field): string =>
  `<${typeText(core)}>${isRequired ? ' required' : byDefault === null ? '' : `, default ${byDefault}`}`

function typeText(schema: unknown): string {
  const { core } = fieldOf(schema)
  if (core instanceof z.ZodObject) return 'object'
  if (core instanceof z.ZodArray) return `list of ${typeText(core.element)}`
  if (core instanceof z.ZodRecord) return `map of ${typeText(core.valueType)}`
  if (core instanceof z.ZodEnum) return core.options.join(' | ')
  if (core instanceof z.ZodLiteral) return [...core.values].join(' | ')
  if (core instanceof z.ZodBoolean) return 'boolean'
  if (core instanceof z.ZodNumber) return core.isInt ? 'integer' : 'number'
  if (core instanceof z.ZodString) return 'string'
  if (core instanceof z.ZodUnion) return `(${core.options.map(typeText).join(' or ')})`
  return 'any'
}

/** By name; those of the elements of a list or a map too. Empty where the names are free. */
function fieldsOf(schema: unknown): ReadonlyMap<string, Field> {
  const { core } = fieldOf(schema)
  if (core instanceof z.ZodObject) return new Map(Object.entries(core.shape).map(([name, field]) => [name, fieldOf(field)]))
  if (core instanceof z.ZodArray) return fieldsOf(core.element)
  return core instanceof z.ZodRecord ? fieldsOf(core.valueType) : new Map()
}

function fieldOf(schema: unknown): Field {
  let core = schema
  let description = ''
  let byDefault: string | null = null
  let isRequired = true
  for (;;) {
    if (core instanceof z.ZodType && description === '') description = core.description ?? ''
    if (core instanceof z.ZodDefault) byDefault = defaultText(core.def.defaultValue)
    if (core instanceof z.ZodOptional || core instanceof z.ZodDefault) isRequired = false
    if (core instanceof z.ZodOptional || core instanceof z.ZodDefault || core instanceof z.ZodNullable) core = core.unwrap()
    else if (core instanceof z.ZodPipe) core = core.in
    else return { core, isRequired, byDefault, description }
  }
}

/** The defaults of an object are shown at its fields. */
const defaultText = (value: unknown): string | null =>
  typeof value === 'object' && value !== null && Object.keys(value).length > 0 ? null : JSON.stringify(value)
