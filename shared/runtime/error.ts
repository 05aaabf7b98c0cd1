// Errors as values, and as RFC 9457 problems: the bodies of answers that are no success.
import { z } from 'zod'
import { ERRORS } from './error-table.ts'

export type ErrorCode = keyof typeof ERRORS

export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(ERRORS, code)

export interface AppErrorData {
  /** The failed activity in a few words: "pull", "apply resources". */
  doing?: string
  /** The particular case: names, places, limits. Never a secret, never an echo of a whole input. */
  detail?: string
  /** The next step in this particular case; otherwise the table's. */
  remedy?: string
  /** Paths and messages of several problems found at once. */
  problems?: readonly Problem[]
  retryAfterMs?: number
  /** Replaces the status of the table: 412 for a conflict that the request itself made a condition. */
  status?: number
  /** Further members of the problem body. */
  extra?: Record<string, unknown>
}

/** One thing that is wrong in an input: where, and what was expected. */
export const problemSchema = z.object({
  path: z.string(),
  message: z.string(),
  /** The line of the file that it is about, as its author wrote it; never of what a template made, which may hold
   *  secrets. */
  excerpt: z.string().max(400).optional(),
  /** RD10: of a render for no cluster: a cluster may solve it (`may`), or the content asks for the cluster itself
   *  (`asks`). */
  needsCluster: z.enum(['may', 'asks']).optional(),
})
export type Problem = z.infer<typeof problemSchema>

/** Without members that are undefined, which some parsers set. */
export const plainProblem = ({ path, message, excerpt, needsCluster }: z.input<typeof problemSchema>): Problem => ({
  ...{ path, message },
  ...(excerpt === undefined ? {} : { excerpt }),
  ...(needsCluster === undefined ? {} : { needsCluster }),
})

/** An expected failure at an edge. Wrapped once, at the adapter, with what was being done. */
export class AppError extends Error {
  readonly code: ErrorCode
  readonly data: AppErrorData
  constructor(code: ErrorCode, data: AppErrorData = {}, options?: { cause?: unknown }) {
    super([data.doing, data.detail ?? ERRORS[code].cause].filter(Boolean).join(': '), options)
    this.name = 'AppError'
    this.code = code
    this.data = data
  }
  get retryAfterMs(): number | undefined {
    return this.data.retryAfterMs
  }
  get remedy(): string {
    return this.data.remedy ?? ERRORS[this.code].remedy
  }
}

/** Body of every answer that is not a success (RFC 9457), media type application/problem+json. Absent members: not
 *  known to the sender. */
export const problemBodySchema = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.number().int(),
  code: z.string(),
  detail: z.string().optional(),
  remedy: z.string().optional(),
  problems: z.array(problemSchema).optional(),
  retryAfterMs: z.number().int().nonnegative().optional(),
})
export type ProblemBody = z.infer<typeof problemBodySchema>

export const statusOf = ({ code, data }: AppError): number => data.status ?? ERRORS[code].status

export function problemBody(error: AppError): ProblemBody {
  const { cause } = ERRORS[error.code]
  const status = statusOf(error)
  return {
    type: `https://skerry.dev/errors/${error.code}`,
    title: cause,
    status,
    code: error.code,
    ...(error.data.detail === undefined ? {} : { detail: error.data.detail }),
    remedy: error.remedy,
    ...(error.data.problems === undefined ? {} : { problems: [...error.data.problems] }),
    ...(error.data.retryAfterMs === undefined ? {} : { retryAfterMs: error.data.retryAfterMs }),
    ...error.data.extra,
  }
}

/** The AppError that a problem body of another process stands for; an unknown code falls back by status. */
export function errorFromProblem(status: number, body: unknown, doing: string): AppError {
  const parsed = problemBodySchema.safeParse(body)
  const fallback: ErrorCode =
    status === 401
      ? 'unauthorized'
      : status === 404
        ? 'not_found'
        : status === 429
          ? 'too_many_requests'
          : status >= 500
            ? 'unavailable'
            : 'bad_request'
  if (!parsed.success) return new AppError(fallback, { doing, detail: `HTTP ${status}` })
  const { code, detail, remedy, problems, retryAfterMs, title } = parsed.data
  const {
    type: _,
    title: __,
    status: ___,
    remedy: ____,
    code: _____,
    detail: ______,
    problems: _______,
    retryAfterMs: ________,
    ...extra
  } = parsed.data
  return new AppError(isErrorCode(code) ? code : fallback, {
    doing,
    detail: detail ?? title,
    ...(remedy === undefined ? {} : { remedy }),
    ...(problems === undefined ? {} : { problems }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    extra,
  })
}
