// Finds texts for people in the source: they belong to a catalogue of messages.
import { withoutComments } from './source-files.ts'

/** Text before a literal that goes to a log, an assertion or an AppError. */
const ASIDE = /(?:\blog\.\w+|\bassert\w*|Error)\((?:[^()]|\([^()]*\))*$|\b(?:doing|detail|remedy|next)(?::| =) $|\.includes\($/

/** Literals with three words in a row, by line. */
export function sentences({ path, text }: { path: string; text: string }): string[] {
  const code = withoutComments(text)
  return [...code.matchAll(/'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g)]
    .filter(({ 0: literal, index }) => {
      const words = literal.slice(1, -1).replaceAll(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, '…')
      return /[A-Za-z]+[,;:]? [a-z]+[,;:]? [a-z]+/.test(words) && !ASIDE.test(code.slice(Math.max(0, index - 200), index))
    })
    .map(({ 0: literal, index }) => `${path}:${code.slice(0, index).split('\n').length}: ${literal.slice(0, 80)}`)
}
