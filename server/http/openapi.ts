// The parts of the OpenAPI document that the form of an operation implies, so that no route can forget them: how a
// request fails by its parameters, its body and its method, the headers that every write takes, and the limits that
// every answer tells. What is particular to a route, the route declares (`declared.ts`).
import { z } from 'zod'
import { problemBodySchema } from '../../shared/runtime/error.ts'
import { FAILS, type Failure, failures, HEADERS, type HeaderParameter } from './declared.ts'
import { SIGN_IN_PATHS } from './sign-in-document.ts'

interface Response {
  description?: string
  content?: unknown
  headers?: Record<string, unknown>
}
interface Parameter {
  in: string
  name: string
  required?: boolean
  schema?: Record<string, unknown>
  [more: string]: unknown
}
interface Operation {
  operationId?: string
  summary?: string
  parameters?: Parameter[]
  requestBody?: { required?: boolean; content: Record<string, { schema?: object; example?: unknown }> }
  responses?: Record<string, Response>
  [FAILS]?: readonly Failure[]
  [HEADERS]?: readonly HeaderParameter[]
}
export interface OpenApiDocument {
  paths: Record<string, Record<string, Operation>>
  components?: { schemas?: Record<string, unknown> }
}

const IDEMPOTENCY_KEY: Parameter = {
  in: 'header',
  name: 'Idempotency-Key',
  required: false,
  description: 'A repeated request with the same key gets the first answer and is not performed again',
  schema: { type: 'string', pattern: '^[\\x21-\\x7e]{1,255}$' },
}

const whole = (description: string) => ({ description, schema: { type: 'integer', minimum: 0 } })
/** On every answer while there is a limit. */
const RATE_HEADERS = {
  'RateLimit-Limit': whole('Requests of this credential at once, after a pause'),
  'RateLimit-Remaining': whole('Remaining requests'),
  'RateLimit-Reset': whole('Seconds until all requests are available again'),
}
const RETRY_AFTER = { 'Retry-After': whole('Seconds to wait before the next request') }

function impliedFailures(method: string, { parameters = [], requestBody }: Operation): Failure[] {
  const found: Failure[] = [401, 403, 429, 431, 500, 503]
  if (parameters.length > 0 || requestBody !== undefined) found.push(400)
  if (parameters.some((one) => one.in === 'path')) found.push(404)
  if (requestBody !== undefined) found.push(413, 415)
  // 422 is for a wrong body, or a key that was used for another request.
  if (method !== 'get') found.push(422, 507)
  return found
}

const DESCRIPTIONS: Readonly<Record<string, string>> = { '200': 'Done', '201': 'Created', '202': 'Under way' }

function completeResponses(method: string, operation: Operation): Record<string, Response> {
  const all = { ...failures(...impliedFailures(method, operation), ...(operation[FAILS] ?? [])), ...operation.responses }
  return Object.fromEntries(
    Object.entries(all).map(([status, response]: [string, Response]) => {
      const { description = '', headers } = response
      const retry = status === '429' || status === '503' ? RETRY_AFTER : {}
      const said = description.startsWith('Response for status') ? (DESCRIPTIONS[status] ?? description) : description
      const rate = status === '431' ? {} : RATE_HEADERS
      return [status, { ...response, description: said, headers: { ...headers, ...rate, ...retry } }]
    }),
  )
}

/** The library also names forms, which no route takes, and calls a body required that has a default. */
function jsonBody(requestBody: NonNullable<Operation['requestBody']>, json: { schema?: object }) {
  const hasDefault = json.schema !== undefined && 'default' in json.schema
  return { ...requestBody, ...(hasDefault ? { required: false } : {}), content: { 'application/json': json } }
}

function completeOperation(method: string, operation: Operation): Operation {
  const { [FAILS]: _, [HEADERS]: headers = [], ...shown } = operation
  const { requestBody } = operation
  const declared = [...(operation.parameters ?? []), ...headers.map((header): Parameter => ({ in: 'header', required: false, ...header }))]
  const parameters = method === 'get' ? declared : [...declared, IDEMPOTENCY_KEY]
  const json = requestBody?.content['application/json']
  return {
    ...shown,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(requestBody === undefined || json === undefined ? {} : { requestBody: jsonBody(requestBody, json) }),
    responses: completeResponses(method, { ...operation, parameters }),
  }
}

export function completeOpenApi<T extends OpenApiDocument>(given: T): T {
  const shared: Record<string, unknown> = {}
  const document = withSharedSchemas(given, shared) as T
  const paths = Object.entries(document.paths).map(([path, operations]) => [
    path,
    Object.fromEntries(Object.entries(operations).map(([method, operation]) => [method, completeOperation(method, operation)])),
  ])
  const problem = z.toJSONSchema(problemBodySchema, { io: 'output' })
  const schemas = { ...document.components?.schemas, ...shared, Problem: { ...problem, examples: [PROBLEM_EXAMPLE] } }
  return { ...document, paths: { ...Object.fromEntries(paths), ...SIGN_IN_PATHS }, components: { ...document.components, schemas } }
}

/** Definitions that a schema brings along belong to the document: `#/$defs/…` is read from its root. Of schemas that
 *  bring the same, there is one. */
function withSharedSchemas(node: unknown, shared: Record<string, unknown>, rename?: (name: string) => string): unknown {
  if (Array.isArray(node)) return node.map((item) => withSharedSchemas(item, shared, rename))
  if (typeof node !== 'object' || node === null) return node
  const { $defs: definitions, $schema: _, ...rest } = node as { $defs?: Record<string, unknown>; $schema?: unknown }
  const of = definitions === undefined ? undefined : Bun.hash.crc32(JSON.stringify(definitions)).toString(36)
  const naming = of === undefined ? rename : (name: string) => `${name.replace(/^__/, '')}-${of}`
  for (const [name, definition] of Object.entries(definitions ?? {})) {
    const key = naming?.(name) ?? name
    if (shared[key] !== undefined) continue
    shared[key] = true // it may name itself
    shared[key] = withSharedSchemas(definition, shared, naming)
  }
  return Object.fromEntries(
    Object.entries(rest).map(([key, value]) => {
      const name = key === '$ref' && typeof value === 'string' ? /^#\/\$defs\/(.+)$/.exec(value)?.[1] : undefined
      return [key, name === undefined ? withSharedSchemas(value, shared, naming) : `#/components/schemas/${naming?.(name) ?? name}`]
    }),
  )
}

const PROBLEM_EXAMPLE = {
  type: 'https://skerry.dev/errors/invalid_resource',
  title: 'A resource has fields that are unknown, missing or of the wrong type.',
  status: 422,
  code: 'invalid_resource',
  detail: '1 invalid field',
  remedy: 'Fix the fields listed and apply again; nothing was changed.',
  problems: [{ path: 'spec.git.reff', message: 'unknown field; did you mean "ref"?' }],
}
