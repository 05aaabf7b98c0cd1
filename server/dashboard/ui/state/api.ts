// Requests to the admin API: JSON in, JSON out, refusals as errors with what happened and what to do.
import {
  type CallOptions as ClientCallOptions,
  createSkerryClient,
  pathOf,
  type Query,
  queryText,
  SkerryProblem,
} from '../../../../client/client.ts'
import type { Route, Routes } from '../../../../client/routes.ts'
import { text } from '../words/first.ts'
import { authorization } from './credential.ts'
import { takeSent } from './first-requests.ts'
import { serverUrl } from './place.ts'
import { session } from './session.ts'

export interface Refusal {
  status: number
  code: string
  detail: string
  remedy: string
  problems: ReadonlyArray<{ path: string; message: string }>
}

export class ApiError extends Error {
  readonly refusal: Refusal
  constructor(refusal: Refusal) {
    super(refusal.detail)
    this.refusal = refusal
  }
}

export type { Query, Route }

/** Addresses are those of the page. */
const client = createSkerryClient({
  url: '',
  authorization: () => authorization()['authorization'] ?? null,
  fetch: (url, init) => takeSent(url, init) ?? fetch(url, init),
})

export const apiPath = (path: string, query: Query = {}): string => `${serverUrl(`api/v1${path}`)}${queryText(query)}`

export async function send(
  method: string,
  url: string,
  body?: unknown,
  signal?: AbortSignal,
  accept = 'application/json',
  reason = '',
): Promise<Response> {
  try {
    return await client.send(method, url, { body, signal, accept, reason })
  } catch (error) {
    if (!(error instanceof SkerryProblem)) throw error
    const refusal = refusalOf(error)
    if (refusal.status === 401 && session.peek().state === 'in') session.value = { state: 'out', why: text.signIn.ended }
    throw new ApiError(refusal)
  }
}

function refusalOf({ status, code, detail, remedy, problems, body }: SkerryProblem): Refusal {
  if (status === 0) return { status, code, detail: text.errors.unreachable, remedy: text.errors.unreachableNext, problems }
  return { status, code, detail: body === undefined ? text.errors.status(status) : detail, remedy, problems }
}

export type CallOptions<R extends Route> = Pick<ClientCallOptions<R>, 'params' | 'query' | 'body' | 'signal' | 'reason'>

/** Answers are typed by the schemas by which the server of this very build checks them. */
export async function call<R extends Route>(route: R, options: CallOptions<R> = {}): Promise<Routes[R]['answer']> {
  const { params, query, body, signal, reason } = options
  const [method = '', pattern = ''] = route.split(' ')
  const response = await send(method, apiPath(pathOf(pattern, params), query), body, signal, undefined, reason)
  return (response.status === 204 ? null : await response.json()) as Routes[R]['answer']
}

export interface Page<T> {
  items: T[]
  continue: string | null
}
