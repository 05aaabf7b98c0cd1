// Requests to the admin API: JSON in, JSON out, refusals as errors with what happened and what to do.
import { createSkerryClient, type Query, queryText, SkerryProblem } from '../../../../client/client.ts'
import { text } from '../words/first.ts'
import { serverUrl } from './place.ts'
import { authorization, session } from './session.ts'

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

export type { Query }

/** Addresses are those of the page. */
const client = createSkerryClient({ url: '', authorization: () => authorization()['authorization'] ?? null })

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

/** T is what the server of this very build answers; it checks its answers by the same schemas. */
export async function call<T>(
  method: string,
  path: string,
  options: { query?: Query; body?: unknown; signal?: AbortSignal; reason?: string } = {},
): Promise<T> {
  const response = await send(method, apiPath(path, options.query), options.body, options.signal, undefined, options.reason)
  return (response.status === 204 ? null : await response.json()) as T
}

export interface Page<T> {
  items: T[]
  continue: string | null
}
