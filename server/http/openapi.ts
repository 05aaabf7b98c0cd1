// What the OpenAPI document says beyond each route's own schemas: how a call can fail, and the headers that go with a version. Pure. Derived from the form of
// the operation, so that no route can forget it.
import { z } from 'zod'
import { problemBodySchema } from '../../shared/protocol/error.ts'

interface Response {
  description: string
  content?: unknown
  headers?: unknown
}
interface Operation {
  parameters?: Array<{ in: string; name: string }>
  requestBody?: unknown
  responses?: Record<string, Response>
}
export interface OpenApiDocument {
  paths: Record<string, Record<string, Operation>>
  components?: { schemas?: Record<string, unknown> }
}

const FAILURES = {
  400: 'The request has not the form that this route takes; `problems` names the places',
  401: 'No API token, or an unknown one',
  404: 'There is nothing of that name',
  409: 'It changed since it was read, or something refers to it; the detail says which',
  410: 'What comes after that number is no longer kept; `newest` is the number to go on from after listing again',
  413: 'The body is larger than this route takes',
  422: 'Fields are wrong; `problems` names each with what was expected. Nothing was changed',
  429: 'Too many at once; Retry-After says when to come back',
  500: 'The server met an error of its own; its log has it',
  503: 'Many look through the fleet at this time; Retry-After says when to come back',
  507: 'The data folder has no space left; nothing was changed',
} as const

type Failure = keyof typeof FAILURES

const IF_MATCH = {
  in: 'header',
  name: 'If-Match',
  required: false,
  description: 'The ETag that was read: the write is refused (409) if the resource changed since',
  schema: { type: 'string' },
} as const

function failuresOf(method: string, path: string, { parameters = [], requestBody }: Operation): Failure[] {
  const found: Failure[] = [401, 500]
  if (parameters.length > 0 || requestBody !== undefined) found.push(400)
  if (path.includes('{')) found.push(404)
  if (parameters.some(({ name }) => name === 'search')) found.push(503)
  if (requestBody !== undefined) found.push(413, 422)
  if (method !== 'get') found.push(507)
  if (path.endsWith('/changes')) found.push(410, 429)
  if (/\/(render|variants)$/.test(path)) found.push(429)
  if (method === 'put' || method === 'delete') found.push(409)
  return found
}

export function completeOpenApi<T extends OpenApiDocument>(document: T): T {
  const problem = { content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } } }
  const paths = Object.entries(document.paths).map(([path, operations]) => [
    path,
    Object.fromEntries(
      Object.entries(operations).map(([method, operation]) => {
        const failures = failuresOf(method, path, operation).map((status) => [status, { description: FAILURES[status], ...problem }])
        const parameters = method === 'put' ? [...(operation.parameters ?? []), IF_MATCH] : operation.parameters
        const whole = { ...operation, responses: { ...operation.responses, ...Object.fromEntries(failures) } }
        return [method, parameters === undefined ? whole : { ...whole, parameters }]
      }),
    ),
  ])
  const schemas = { ...document.components?.schemas, Problem: z.toJSONSchema(problemBodySchema, { io: 'output' }) }
  return { ...document, paths: Object.fromEntries(paths), components: { ...document.components, schemas } }
}
