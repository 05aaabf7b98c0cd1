// Secrets that a line of a log states in words: `token "x"`, `password for the user app is x`. log-lines.ts handles
// assignments (`password=x`). Pure.
import { HOLE } from './marks.ts'
import { isBeforeSaid, isProseAfterKey, isQuotedSecret, isSecretKey, isVerbOfKey } from './secret-keys.ts'
import { isSafeToken, punctuated } from './words.ts'

/** Words between a key and its verb. */
const BETWEEN_MAX = 4
/** The last word of a longer key is what counts. */
const KEY_CHARS_MAX = 40
/** A line is read by words, with quotes apart: in a line of JSON a whole sentence stands in quotes. */
const WORDS = /\\*["`]|[^\s"`\\]+|\\+/g
const QUOTE = /^\\*["`]$/
/** Keys behind which a word of a language is a value, too: `token bucket` is none, `password hunter` is. */
const STRICT = /(?:pass(?:word|wd|phrase|code)s?|pwds?|pins?|keys?)$/i

type Expects = { kind: 'nothing' } | { kind: 'key'; key: string } | { kind: 'about'; words: number } | { kind: 'said' }
const NOTHING: Expects = { kind: 'nothing' }

/** The line with a hole for each value. `line` has its addresses and assignments out. */
export function withoutSaid(line: string, isName: (text: string) => boolean): string {
  let out = ''
  let from = 0
  let expects = NOTHING
  let lastWord = ''
  let opened = -1
  const drop = (start: number, end: number) => {
    out += line.slice(from, start) + HOLE
    from = end
    WORDS.lastIndex = end
    expects = NOTHING
  }
  WORDS.lastIndex = 0
  for (let match = WORDS.exec(line); match !== null; match = WORDS.exec(line)) {
    const [token] = match
    const start = match.index
    const end = start + token.length
    const opensHere = start === 0 || /[\s([{:=,]/.test(line[start - 1] ?? '')
    if (QUOTE.test(token) || (opensHere && token.startsWith("'") && expects.kind !== 'nothing')) {
      const quote = token.startsWith("'") ? "'" : token
      const inside = start + quote.length
      const close = opensHere && expects.kind !== 'nothing' ? line.indexOf(quote, inside) : inside
      const content = line.slice(inside, close < 0 ? line.length : close)
      if (opensHere && (expects.kind === 'said' || (expects.kind === 'key' && isQuotedSecret(expects.key, content))))
        drop(start, close < 0 ? line.length : close + quote.length)
      // `"token" "x"`: a key in quotes is a key, and any other quote ends a sentence.
      else if (opensHere || opened !== start - lastWord.length) expects = NOTHING
      opened = opensHere ? inside : -1
      if (quote === "'") WORDS.lastIndex = Math.max(WORDS.lastIndex, inside)
      continue
    }
    const { before, core, after } = punctuated(token)
    if (core === '') continue
    const isDropped = core !== HOLE && isValue(expects, core, isName)
    if (isDropped) drop(start + bracketsAtStart(before), end - stopsAtEnd(after))
    else expects = next(expects, lastWord, core, after)
    lastWord = after === '' ? core : ''
  }
  return out + line.slice(from)
}

function isValue(expects: Expects, core: string, isName: (text: string) => boolean): boolean {
  if (isProseAfterKey(core)) return false
  if (expects.kind === 'said') return !isBeforeSaid(core)
  if (expects.kind !== 'key' || isVerbOfKey(core)) return false
  return STRICT.test(expects.key) ? !isName(core) : !isSafeToken(core, isName)
}

function next(before: Expects, lastWord: string, core: string, after: string): Expects {
  if (after !== '') return NOTHING
  if (before.kind !== 'nothing' && isVerbOfKey(core)) return { kind: 'said' }
  if (before.kind === 'said' && isBeforeSaid(core)) return before
  const key = [core, `${lastWord} ${core}`].find((words) => isSecretKey(words.slice(-KEY_CHARS_MAX)))
  if (key !== undefined) return { kind: 'key', key }
  if (before.kind === 'key' && /^(?:for|of|to|in)$/i.test(core)) return { kind: 'about', words: BETWEEN_MAX }
  return before.kind === 'about' && before.words > 0 ? { kind: 'about', words: before.words - 1 } : NOTHING
}

/** Characters that surround a value and are not part of it. */
const bracketsAtStart = (text: string): number => /^[([{<]*/.exec(text)?.[0].length ?? 0
function stopsAtEnd(text: string): number {
  let stops = 0
  while (stops < text.length && /[,.;:)\]}>]/.test(text[text.length - stops - 1] ?? '')) stops += 1
  return stops
}
