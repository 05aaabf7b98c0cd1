// Errors across the channel. An AppError arrives as an AppError with its code and data, any other error as a text.
import { z } from 'zod'
import { AppError, type AppErrorData, isErrorCode, problemSchema } from '../../../shared/runtime/error.ts'
import { describeError } from '../../../shared/runtime/loop.ts'

/** Longer texts are cut, because they go into messages for people. */
const TEXT_LENGTH_MAX = 10_000
const PROBLEMS_MAX = 1_000

const text = z.string().transform((value) => value.slice(0, TEXT_LENGTH_MAX))
const wireErrorSchema = z.object({
  code: z.string().refine(isErrorCode).nullable(),
  message: text,
  data: z
    .object({
      doing: text.optional(),
      detail: text.optional(),
      remedy: text.optional(),
      problems: z.array(problemSchema).max(PROBLEMS_MAX).optional(),
      retryAfterMs: z.number().nonnegative().optional(),
    })
    .optional(),
})

/** An unexpected failure of the other side: a bug, or a problem of its machine. */
export class FarError extends Error {}

export function toWire(error: unknown): string {
  if (!(error instanceof AppError)) return JSON.stringify({ code: null, message: describeError(error) })
  const { doing, detail, remedy, problems, retryAfterMs } = error.data
  return JSON.stringify({
    code: error.code,
    message: error.message,
    data: { doing, detail, remedy, problems: problems?.slice(0, PROBLEMS_MAX), retryAfterMs },
  })
}

/** Answers a FarError for JSON of another form. */
export function fromWire(json: string): AppError | FarError {
  const read = wireErrorSchema.safeParse(parsed(json))
  if (!read.success) return new FarError('the other side failed without a message')
  const { code, message, data = {} } = read.data
  if (code === null) return new FarError(message)
  return new AppError(code, Object.fromEntries(Object.entries(data).filter(([, value]) => value !== undefined)) as AppErrorData)
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return null
  }
}
