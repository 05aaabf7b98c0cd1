// The actions of a Go template as tokens: enough to see which functions and fields a chart names, and where. Comments
// and plain text give nothing.

export interface TemplateToken {
  /** `open` and `close` are the borders of an action; `name` a function or keyword; `chain` `.Values.a`, `$`, `$x.b`;
   *  `text` a quoted text, whose `text` is what it holds. */
  kind: 'open' | 'close' | 'name' | 'chain' | 'text' | 'mark'
  text: string
  at: number
  end: number
}

const NAME = /[\p{L}_][\p{L}\p{N}_]*/uy
const CHAIN = /\$?(?:[\p{L}_][\p{L}\p{N}_]*)?(?:\.[\p{L}_][\p{L}\p{N}_]*)*/uy
const NUMBER = /[+-]?[0-9][\w.+-]*/y
const QUOTED = /"(?:[^"\\\n]|\\.)*"/y
const RAW = /`[^`]*`/y
const CHARACTER = /'(?:[^'\\\n]|\\.)*'/y
const MARK = /:=|[^\s]/uy

/** The tokens within `{{ }}`, in their order. */
export function templateTokens(source: string): TemplateToken[] {
  const tokens: TemplateToken[] = []
  for (let at = source.indexOf('{{'); at >= 0; at = source.indexOf('{{', at)) at = readAction(source, at, tokens)
  return tokens
}

/** Answers where the action ends; one that does not end is helm's to refuse. */
function readAction(source: string, start: number, tokens: TemplateToken[]): number {
  const comment = /\{\{(?:- ?\s*)?\/\*/y
  comment.lastIndex = start
  if (comment.test(source)) {
    const end = source.indexOf('*/', comment.lastIndex)
    const close = end < 0 ? -1 : source.indexOf('}}', end)
    return close < 0 ? source.length : close + 2
  }
  tokens.push({ kind: 'open', text: '{{', at: start, end: start + 2 })
  let at = start + 2
  while (at < source.length) {
    if (source.startsWith('}}', at)) {
      tokens.push({ kind: 'close', text: '}}', at, end: at + 2 })
      return at + 2
    }
    const token = readToken(source, at)
    if (token.text !== '') tokens.push(token)
    at = token.end
  }
  return at
}

function readToken(source: string, at: number): TemplateToken {
  const char = source.charAt(at)
  const taken = (pattern: RegExp): string => {
    pattern.lastIndex = at
    return pattern.exec(source)?.[0] ?? ''
  }
  const token = (kind: TemplateToken['kind'], whole: string, text = whole): TemplateToken => ({ kind, text, at, end: at + whole.length })
  if (/\s/.test(char)) return token('mark', char, '')
  // One that does not end is helm's to refuse. What is left of it is passed over at once: looking for an end from each
  // quote in it would take for ever.
  const restOf = (end: number): TemplateToken => token('mark', source.slice(at, end < 0 ? source.length : end), char)
  if (char === '`') {
    const whole = taken(RAW)
    return whole === '' ? restOf(-1) : token('text', whole, whole.slice(1, -1))
  }
  if (char === '"') {
    const whole = taken(QUOTED)
    return whole === '' ? restOf(source.indexOf('\n', at)) : token('text', whole, unescaped(whole))
  }
  if (char === "'") {
    const whole = taken(CHARACTER)
    return whole === '' ? restOf(source.indexOf('\n', at)) : token('mark', whole, char)
  }
  if (char === '$' || char === '.') {
    const whole = taken(CHAIN)
    if (whole !== '') return token('chain', whole)
  }
  const number = taken(NUMBER)
  if (number !== '') return token('mark', number)
  const name = taken(NAME)
  if (name !== '') return token('name', name)
  const mark = taken(MARK)
  return token('mark', mark === '' ? char : mark)
}

function unescaped(quoted: string): string {
  try {
    return String(JSON.parse(quoted))
  } catch {
    return quoted.slice(1, -1)
  }
}

/** Line `line`, from 1, without its indent; at most 200 characters. */
export const lineText = (source: string, line: number): string => (source.split('\n', line)[line - 1] ?? '').trim().slice(0, 200)
