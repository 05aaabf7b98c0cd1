// The routes below /auth/ in the OpenAPI document, from the schemas that check their bodies. They run before the
// framework of the API (`sign-in-routes.ts`), which therefore does not know them.
import { z } from 'zod'
import {
  deviceAnswerSchema,
  deviceRequestSchema,
  exchangeAnswerSchema,
  exchangeRequestSchema,
  logoutAnswerSchema,
  providersAnswerSchema,
  SIGN_IN,
  signInLinkCodeSchema,
  signInLinkTokenSchema,
  tokenAnswerSchema,
  tokenRequestSchema,
} from '../../shared/model/sign-in.ts'
import { type Failure, failures, jsonSchema } from './declared.ts'

const JSON_TYPE = 'application/json'
const TAGS = ['sign-in']
/** These routes take callers without a credential. */
const OPEN = { tags: TAGS, security: [] }

const answer = (schema: z.ZodType, description = 'Done') => ({
  '200': { description, content: { [JSON_TYPE]: { schema: jsonSchema(schema, 'output') } } },
})
const takesBody = (schema: z.ZodType) => ({ requestBody: { required: true, content: { [JSON_TYPE]: { schema: jsonSchema(schema) } } } })
/** Each of these routes limits attempts, and may wait for an identity provider. */
const fails = (...statuses: readonly Failure[]) => failures(...statuses, 429, 500, 503)
const redirect = (status: '302' | '303', description: string) => ({
  [status]: { description, headers: { Location: { description: 'Where to go', schema: { type: 'string' } } } },
})

function parametersOf(schema: z.ZodObject): object[] {
  const { properties = {}, required = [] } = jsonSchema(schema) as {
    properties?: Record<string, { description?: string }>
    required?: string[]
  }
  return Object.entries(properties).map(([name, { description = '', ...rest }]) => ({
    ...{ in: 'query', name, required: required.includes(name), description, schema: rest },
  }))
}

/** The parameters of `GET /auth/login`, as `targetOf` reads them. */
const loginQuery = z.object({
  provider: z.string().optional().describe('Name of the identity provider; needed where there are several'),
  next: z.string().max(1_000).optional().describe('Path of this server to open after the sign-in; default /'),
  cli_port: z
    .string()
    .regex(/^\d{4,5}$/)
    .optional()
    .describe('Port of a command line that waits on 127.0.0.1 for a code'),
  cli_challenge: z
    .string()
    .regex(/^[\w-]{43}$/)
    .optional()
    .describe('PKCE challenge (S256) of that command line'),
  cli_state: z
    .string()
    .regex(/^[\w-]{20,128}$/)
    .optional()
    .describe('State of that command line, which it gets back'),
})
const callbackQuery = z.object({
  state: z.string().optional().describe('State of the sign-in'),
  code: z.string().optional().describe('Code of the identity provider'),
  error: z.string().optional().describe('Error of the identity provider'),
})

export const SIGN_IN_PATHS = {
  [`${SIGN_IN}/providers`]: {
    get: { operationId: 'getAuthProviders', ...OPEN, summary: 'List the identity providers', responses: answer(providersAnswerSchema) },
  },
  [`${SIGN_IN}/login`]: {
    get: {
      operationId: 'getAuthLogin',
      ...OPEN,
      summary: 'Send a browser to an identity provider',
      parameters: parametersOf(loginQuery),
      responses: {
        '200': {
          description: 'A page with the identity providers to choose from',
          content: { 'text/html': { schema: { type: 'string' } } },
        },
        ...redirect('302', 'The page of the identity provider'),
        ...fails(400, 404),
      },
    },
  },
  [`${SIGN_IN}/callback`]: {
    get: {
      operationId: 'getAuthCallback',
      ...OPEN,
      summary: 'End the sign-in of a browser; identity providers send it here',
      parameters: parametersOf(callbackQuery),
      responses: {
        ...redirect('303', 'The page that was asked for, with the cookie of a session'),
        ...fails(400, 403),
      },
    },
  },
  [`${SIGN_IN}/logout`]: {
    post: {
      operationId: 'postAuthLogout',
      tags: TAGS,
      summary: 'End the session of this credential',
      responses: { ...answer(logoutAnswerSchema), ...redirect('303', 'For browsers (Accept: text/html)'), ...fails(401, 403) },
    },
  },
  [`${SIGN_IN}/token`]: {
    post: {
      operationId: 'postAuthToken',
      ...OPEN,
      summary: 'Get a token of the command line, for a code, a device code or a refresh token',
      ...takesBody(tokenRequestSchema),
      responses: { ...answer(tokenAnswerSchema), ...fails(400, 401, 403, 404, 409, 413, 422) },
    },
  },
  [`${SIGN_IN}/device`]: {
    post: {
      operationId: 'postAuthDevice',
      ...OPEN,
      summary: 'Begin a sign-in by device code',
      ...takesBody(deviceRequestSchema),
      responses: { ...answer(deviceAnswerSchema), ...fails(400, 404, 413, 422) },
    },
  },
  [`${SIGN_IN}/exchange`]: {
    post: {
      operationId: 'postAuthExchange',
      ...OPEN,
      summary: 'Exchange a JWT of a trusted issuer for a short token of a pipeline',
      ...takesBody(exchangeRequestSchema),
      responses: { ...answer(exchangeAnswerSchema), ...fails(400, 401, 403, 413, 422) },
    },
  },
  [`${SIGN_IN}/link`]: {
    post: {
      operationId: 'postAuthLink',
      ...OPEN,
      summary: 'Exchange the code of a sign-in link for an API token, once',
      ...takesBody(signInLinkCodeSchema),
      responses: { ...answer(signInLinkTokenSchema), ...fails(400, 401, 413, 422) },
    },
  },
}
