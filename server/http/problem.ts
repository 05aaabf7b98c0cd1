// Errors as answers (RFC 9457). Nothing of the input is repeated: paths and expectations only.
import type { ZodError, ZodType } from 'zod'
import { explainIssues } from '../../shared/model/explain.ts'
import { AppError, type Problem, problemBody, statusOf } from '../../shared/runtime/error.ts'

export function problemResponse(error: AppError): Response {
  const headers = new Headers({ 'content-type': 'application/problem+json', 'cache-control': 'no-store' })
  const status = statusOf(error)
  if (status === 401) headers.set('www-authenticate', 'Bearer')
  const allowed = error.data.extra?.['allowed']
  if (status === 405 && typeof allowed === 'string') headers.set('allow', allowed)
  if (error.retryAfterMs !== undefined) headers.set('retry-after', String(Math.ceil(error.retryAfterMs / 1_000)))
  return new Response(JSON.stringify(problemBody(error)), { status, headers })
}

/** AU2: the status of an answer that refuses what the caller may not do. */
export const isRefusal = (status: number): boolean => status === 401 || status === 403

export function invalidInput(schema: ZodType, input: unknown, error: ZodError, doing: string, prefix = ''): AppError {
  const problems = explainIssues(schema, input, error).map(({ path, message }) => ({ path: prefix + path, message }))
  return wrongFields(problems, doing)
}

export const wrongFields = (problems: Problem[], doing: string): AppError =>
  new AppError('invalid_resource', { doing, detail: `${problems.length} field${problems.length === 1 ? ' is' : 's are'} wrong`, problems })

/** `list`: the command that shows the names. */
export const notFound = (what: string, list: string): AppError =>
  new AppError('not_found', { detail: `there is no ${what}`, remedy: `\`${list}\` lists them.` })
