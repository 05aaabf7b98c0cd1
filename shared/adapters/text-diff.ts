// Differences between two texts, line by line, as `diff -u` prints them.
import { createTwoFilesPatch } from 'diff'

/** Lines around each change. */
const CONTEXT = 3
/** Edits after which the whole text counts as replaced: the time of a comparison grows with the square of them. */
const EDITS_MAX = 5_000

/** Without the heading of `diff`. '' means that the texts are equal. */
export function unifiedDiff(before: string, after: string, from: string, to: string): string {
  if (before === after) return ''
  const patch = createTwoFilesPatch(from, to, before, after, undefined, undefined, { context: CONTEXT, maxEditLength: EDITS_MAX })
  if (patch === undefined) return `--- ${from}\n+++ ${to}\n${lines('-', before)}${lines('+', after)}`
  return patch.slice(patch.indexOf('--- '))
}

const lines = (mark: string, text: string): string =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => `${mark}${line}\n`)
    .join('')
