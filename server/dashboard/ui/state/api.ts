// Requests to the admin API: JSON in, JSON out, refusals as errors with what happened and what to do.
import type { REASON_HEADER } from '../../../../shared/model/audit-words.ts'
import { text } from '../words.ts'
import { serverUrl } from './place.ts'
import { authorization, session } from './session.ts'

/** Pages import only types of the server; the type keeps the two alike. */
const REASON: typeof REASON_HEADER = 'x-skerry-reason'

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

export type Query = Record<string, string | number | undefined | null>

export function apiPath(path: string, query: Query = {}): string {
  const given = Object.entries(query).flatMap(([key, value]) =>
    value === undefined || value === null || value === '' ? [] : [[key, String(value)] as [string, string]],
  )
  return serverUrl(`api/v1${path}${given.length === 0 ? '' : `?${new URLSearchParams(given)}`}`)
}

export async function send(
  method: string,
  url: string,
  body?: unknown,
  signal?: AbortSignal,
  accept = 'application/json',
  reason = '',
): Promise<Response> {
  const headers: Record<string, string> = { accept, ...authorization() }
  if (reason !== '') headers[REASON] = encodeURIComponent(reason)
  if (body !== undefined) headers['content-type'] = 'application/json'
  let response: Response
  try {
    response = await fetch(url, {
      method,
      headers,
      cache: 'no-store',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new ApiError({
      status: 0,
      code: 'unreachable',
      detail: text.errors.unreachable,
      remedy: text.errors.unreachableNext,
      problems: [],
    })
  }
  if (response.ok) return response
  const refusal = await refusalOf(response)
  if (refusal.status === 401 && session.peek().state === 'in') session.value = { state: 'out', why: text.signIn.ended }
  throw new ApiError(refusal)
}

async function refusalOf(response: Response): Promise<Refusal> {
  const body = (await response.json().catch(() => ({}))) as {
    code?: string
    detail?: string
    title?: string
    remedy?: string
    problems?: Refusal['problems']
  }
  return {
    status: response.status,
    code: body.code ?? 'unknown',
    detail: body.detail ?? body.title ?? text.errors.status(response.status),
    remedy: body.remedy ?? '',
    problems: body.problems ?? [],
  }
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
