// A problem that a server tells, with the line it is about and a caret: of what it says nothing moves the cursor.
import { problemText } from '../../shared/adapters/render-text.ts'
import type { Problem } from '../../shared/runtime/error.ts'
import { plainText } from './columns.ts'

/** Ends with a line feed. */
export const shownProblem = (problem: Problem): string =>
  problemText(problem)
    .split('\n')
    .map((line) => plainText(line))
    .join('\n')
