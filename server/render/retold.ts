// The texts of a render that read a secret: programs and templates write error messages of others, and these may hold
// what a filter made of the secret. They are told by a second render with marks in place of secrets, or not at all.
// Pure.
import { AppError, type Problem } from '../../shared/runtime/error.ts'
import type { RenderResult } from './object-rows.ts'

export const HIDDEN =
  'the message may hold a secret and is not shown, because the same content renders with other texts in place of the secrets; check how the templates use the values of secrets'
const HIDDEN_PROBLEM: Problem = { path: 'render', message: HIDDEN }

/** Whether it has texts that may hold a secret. */
export const hasTexts = (result: RenderResult | AppError): boolean =>
  result instanceof AppError || result.kind === 'failed' || result.warnings.length > 0

/** `marked`: the same render with marks. */
export function retold(result: RenderResult | AppError, marked: RenderResult | AppError): RenderResult | AppError {
  if (result instanceof AppError) {
    if (marked instanceof AppError && marked.code === result.code) return marked
    const { retryAfterMs, doing } = result.data
    return new AppError(result.code, {
      detail: HIDDEN,
      ...(doing === undefined ? {} : { doing }),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    })
  }
  if (result.kind === 'failed')
    return !(marked instanceof AppError) && marked.kind === 'failed' && marked.code === result.code
      ? marked
      : { ...result, message: HIDDEN, problems: [HIDDEN_PROBLEM] }
  return { ...result, warnings: !(marked instanceof AppError) && marked.kind === 'rendered' ? marked.warnings : [HIDDEN_PROBLEM] }
}
