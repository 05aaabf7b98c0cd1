// How a route declares what it takes and answers, for the OpenAPI document: from the schemas that check it, and nowhere
// else.
import { z } from 'zod'

type Io = 'input' | 'output'
const converted: Readonly<Record<Io, WeakMap<z.ZodType, object>>> = { input: new WeakMap(), output: new WeakMap() }

/** OpenAPI 3.1 uses JSON Schema unchanged; the two libraries only name the type differently. Each schema is converted
 *  once: that is most of the work of making the routes. */
export function jsonSchema(schema: z.ZodType, io: Io = 'input'): object {
  const known = converted[io].get(schema)
  if (known !== undefined) return known
  const { $schema: _, ...document } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  converted[io].set(schema, document)
  return document
}

/** Why a request fails, by status. */
export const FAILURES = {
  400: 'The request does not match the schema of this route; `problems` names the places',
  401: 'No credential, or an unknown one',
  403: 'The credential has no right to do this; the detail names the missing right',
  404: 'Not found',
  405: 'The path does not support this method; `Allow` lists the supported ones',
  409: 'The resource changed, or another resource refers to it; the detail names it',
  410: 'The changes after that number are no longer kept; `newest` is the number to continue from after listing again',
  412: 'The resource has another version than `If-Match` names, or exists in spite of `If-None-Match: *`',
  413: 'The body is larger than the limit of this route',
  415: 'The body is not application/json',
  422: 'Invalid fields; `problems` lists each with the expected value. Nothing was changed',
  429: 'Too many requests; `Retry-After` tells when to retry',
  431: 'The address or the headers are too long',
  500: 'Internal error; the server log has the cause',
  502: 'Another system that the request needs failed; the detail names it',
  503: 'The server is starting, stopping or overloaded; `Retry-After` tells when to retry',
  507: 'The data folder has no space left; nothing was changed',
} as const
export type Failure = keyof typeof FAILURES

const PROBLEM = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } } as const

/** The HTTP parser answers it before any code of ours. */
const WITHOUT_BODY = 431

export const FAILS = 'x-failures'
export const HEADERS = 'x-headers'

export interface HeaderParameter {
  name: string
  description: string
  schema: { type: 'string'; pattern?: string }
}
/** In the detail of a route: headers that it takes. The library would put the parameters of schemas in place of
 *  `parameters`. */
export const takesHeaders = (...headers: readonly HeaderParameter[]) => ({ [HEADERS]: headers })

/** In the detail of a route: its failures beside those that its form implies (`openapi.ts`). The library would put the
 *  answers of `response` in place of `responses`. */
export const fails = (...statuses: readonly Failure[]) => ({ [FAILS]: statuses })

/** Failures as answers of the document. */
export const failures = (...statuses: readonly Failure[]) =>
  Object.fromEntries(
    statuses.map((status) => [String(status), { description: FAILURES[status], ...(status === WITHOUT_BODY ? {} : { content: PROBLEM }) }]),
  )

const SUCCESSES = { 200: 'Done', 201: 'Created', 202: 'In progress, or waiting for a confirmation', 204: 'Done; no body' } as const
type Success = keyof typeof SUCCESSES
type Answer = z.ZodType | { schema: z.ZodType; headers: Record<string, object> } | null

/** Null for an answer without a body. Elysia does not check the answer against it: the views' own schemas built it. */
export const answers = (declared: Partial<Record<Success, Answer>>) =>
  Object.fromEntries(
    Object.entries(declared).map(([status, answer]) => {
      const description = SUCCESSES[Number(status) as Success]
      if (answer === null) return [status, { description }]
      const { schema, headers } = answer instanceof z.ZodType ? { schema: answer, headers: {} } : answer
      return [status, { description, headers, content: { 'application/json': { schema: jsonSchema(schema, 'output') } } }]
    }),
  )

/** A body that the handler reads itself, because it takes more than its schema says or tells all problems of many
 *  documents at once. */
export const takes = (schema: z.ZodType, { required = true, example }: { required?: boolean; example?: object } = {}) => ({
  required,
  content: { 'application/json': { schema: jsonSchema(schema), ...(example === undefined ? {} : { example }) } },
})
