// Regular expressions of untrusted people: a subset (common to RE2 and JavaScript, without anchors inside) that is
// matched in time proportional to the text, by following all ways at once. Pure. Other syntax is refused when it is
// read, never interpreted differently.
import { PatchError } from './merge.ts'

const PATTERN_LENGTH_MAX = 253
const STATES_MAX = 5_000
const REPEAT_MAX = 253

type Test = (code: number) => boolean
/** A state tests one character and continues, or (`test` null) is at all of `next` at once. */
interface State {
  test: Test | null
  next: number[]
}
type Node =
  | { kind: 'test'; test: Test }
  | { kind: 'all'; nodes: Node[] }
  | { kind: 'any'; nodes: Node[] }
  | { kind: 'repeat'; node: Node; least: number; most: number | null }

/** Whether it matches a whole text. Throws PatchError for what is no pattern of the subset. */
export function compilePattern(pattern: string, lengthMax = PATTERN_LENGTH_MAX): (text: string) => boolean {
  if (/^[-A-Za-z0-9_/]*$/.test(pattern)) return (text) => text === pattern
  if (pattern.length > lengthMax) throw new PatchError(`a pattern has at most ${lengthMax} characters`)
  const states: State[] = []
  const end = push(states, { test: null, next: [] })
  const start = build(states, new Reader(pattern).read(), end)
  return (text) => matches(states, start, end, text)
}

function push(states: State[], state: State): number {
  if (states.length >= STATES_MAX) throw new PatchError('the pattern has too many repetitions')
  return states.push(state) - 1
}

/** The first state of a node that continues to `next`. */
function build(states: State[], node: Node, next: number): number {
  switch (node.kind) {
    case 'test':
      return push(states, { test: node.test, next: [next] })
    case 'all':
      return node.nodes.reduceRight((after, one) => build(states, one, after), next)
    case 'any':
      return push(states, { test: null, next: node.nodes.map((one) => build(states, one, next)) })
    case 'repeat': {
      let after = next
      if (node.most === null) {
        const loop: State = { test: null, next: [next] }
        after = push(states, loop)
        loop.next.push(build(states, node.node, after))
      } else
        for (let extra = node.least; extra < node.most; extra++)
          after = push(states, { test: null, next: [next, build(states, node.node, after)] })
      for (let count = 0; count < node.least; count++) after = build(states, node.node, after)
      return after
    }
  }
}

function matches(states: readonly State[], start: number, end: number, text: string): boolean {
  let current = closure(states, [start])
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0
    const next: number[] = []
    for (const at of current) {
      const state = states[at]
      if (state?.test?.(code)) next.push(...state.next)
    }
    if (next.length === 0) return false
    current = closure(states, next)
  }
  return current.has(end)
}

function closure(states: readonly State[], from: number[]): Set<number> {
  const found = new Set<number>()
  for (let at = from.pop(); at !== undefined; at = from.pop()) {
    if (found.has(at)) continue
    found.add(at)
    const state = states[at]
    if (state?.test === null) from.push(...state.next)
  }
  return found
}

const between =
  (low: string, high: string): Test =>
  (code) =>
    code >= (low.codePointAt(0) ?? 0) && code <= (high.codePointAt(0) ?? 0)
const is =
  (character: string): Test =>
  (code) =>
    code === character.codePointAt(0)
const DIGIT = between('0', '9')
const WORD: Test = (code) => DIGIT(code) || between('a', 'z')(code) || between('A', 'Z')(code) || code === 95
const SPACE: Test = (code) => code === 32 || (code >= 9 && code <= 13)
const not =
  (test: Test): Test =>
  (code) =>
    !test(code)
const CLASSES: Readonly<Record<string, Test>> = { d: DIGIT, D: not(DIGIT), w: WORD, W: not(WORD), s: SPACE, S: not(SPACE) }
const GROUP_DEPTH_MAX = 20

class Reader {
  private readonly characters: readonly string[]
  private at = 0
  private depth = 0
  constructor(pattern: string) {
    // Anchored anyway: people write the anchors, too.
    this.characters = [...pattern.replace(/^\^/, '').replace(/(?<!\\)((?:\\\\)*)\$$/, '$1')]
  }

  read(): Node {
    const node = this.alternatives()
    if (this.at < this.characters.length) throw new PatchError('")" without "("')
    return node
  }

  private alternatives(): Node {
    const nodes = [this.sequence()]
    while (this.characters[this.at] === '|') {
      this.at++
      nodes.push(this.sequence())
    }
    return nodes.length === 1 && nodes[0] !== undefined ? nodes[0] : { kind: 'any', nodes }
  }

  private sequence(): Node {
    const nodes: Node[] = []
    for (let next = this.characters[this.at]; next !== undefined && next !== '|' && next !== ')'; next = this.characters[this.at])
      nodes.push(this.repeated(this.one(next)))
    return { kind: 'all', nodes }
  }

  private one(character: string): Node {
    this.at++
    switch (character) {
      case '.':
        return { kind: 'test', test: not(is('\n')) }
      case '[':
        return { kind: 'test', test: this.set() }
      case '(':
        return this.group()
      case '\\':
        return { kind: 'test', test: this.escaped() }
      case '*':
      case '+':
      case '?':
      case '{':
        throw new PatchError(`"${character}" repeats nothing`)
      case '^':
      case '$':
        throw new PatchError(`"${character}" is allowed only at the ends: a pattern matches the whole text`)
      default:
        return { kind: 'test', test: is(character) }
    }
  }

  private group(): Node {
    if (this.characters[this.at] === '?') {
      if (this.characters[this.at + 1] !== ':') throw new PatchError('only "(?:" groups are supported')
      this.at += 2
    }
    if (++this.depth > GROUP_DEPTH_MAX) throw new PatchError(`groups are more than ${GROUP_DEPTH_MAX} levels deep`)
    const node = this.alternatives()
    if (this.characters[this.at++] !== ')') throw new PatchError('")" is missing')
    this.depth--
    return node
  }

  private escaped(): Test {
    const character = this.characters[this.at++]
    if (character === undefined) throw new PatchError('"\\" at the end')
    const known = CLASSES[character]
    if (known !== undefined) return known
    if (/[A-Za-z0-9]/.test(character)) throw new PatchError(`"\\${character}" is not supported`)
    return is(character)
  }

  private set(): Test {
    const isNegated = this.characters[this.at] === '^'
    if (isNegated) this.at++
    const tests: Test[] = []
    for (let first = true; ; first = false) {
      const character = this.characters[this.at++]
      if (character === undefined) throw new PatchError('"]" is missing')
      if (character === ']' && !first) break
      if (character === '[' && this.characters[this.at] === ':') throw new PatchError('"[:…:]" is not supported')
      if (character === '\\') tests.push(this.escaped())
      else if (this.characters[this.at] === '-' && this.characters[this.at + 1] !== ']') tests.push(this.range(character))
      else tests.push(is(character))
    }
    const inSet: Test = (code) => tests.some((test) => test(code))
    return isNegated ? not(inSet) : inSet
  }

  private range(low: string): Test {
    const high = this.characters[this.at + 1]
    this.at += 2
    if (high === undefined || high === '\\' || high < low) throw new PatchError(`"${low}-${high ?? ''}" is not a range`)
    return between(low, high)
  }

  private repeated(node: Node): Node {
    const counts = this.counts()
    if (counts === null) return node
    if (this.characters[this.at] === '?') this.at++ // lazy: of a whole text that is the same
    if (this.counts() !== null) throw new PatchError('repeated quantifier: use a group')
    return { kind: 'repeat', node, ...counts }
  }

  private counts(): { least: number; most: number | null } | null {
    switch (this.characters[this.at]) {
      case '*':
        this.at++
        return { least: 0, most: null }
      case '+':
        this.at++
        return { least: 1, most: null }
      case '?':
        this.at++
        return { least: 0, most: 1 }
      case '{': {
        const match = /^\{(\d{1,3})(?:(,)(\d{1,3})?)?\}/.exec(this.characters.slice(this.at, this.at + 10).join(''))
        if (match === null) throw new PatchError('expected {3}, {3,} or {3,5}; a brace itself is \\{')
        const [text, low = '', comma, high] = match
        const [least, most] = [Number(low), comma === undefined ? Number(low) : high === undefined ? null : Number(high)]
        if (least > REPEAT_MAX || (most !== null && (most > REPEAT_MAX || most < least))) throw new PatchError(`${text} repeats too often`)
        this.at += text.length
        return { least, most }
      }
      default:
        return null
    }
  }
}
