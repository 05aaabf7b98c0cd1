// Templates of `-o jsonpath=…` as kubectl reads them: text around {expressions}, fields, indexes, slices, unions,
// filters, `..`, range and end. Pure. Fields that are missing are empty, as with `kubectl get`.

type Step =
  | { kind: 'field'; name: string }
  | { kind: 'all' }
  | { kind: 'deep' }
  | { kind: 'index'; at: number }
  | { kind: 'slice'; from: number | null; to: number | null; by: number }
  | { kind: 'union'; of: Step[][] }
  | { kind: 'filter'; left: Operand; operator: string; right: Operand | null }
type Operand = { kind: 'value'; value: unknown } | { kind: 'path'; isRoot: boolean; steps: Step[] }

type Node =
  | { kind: 'text'; text: string }
  | { kind: 'path'; isRoot: boolean; steps: Step[] }
  | { kind: 'range'; isRoot: boolean; steps: Step[]; body: Node[] }

/** Compiled; ask `jsonPathText` and `jsonPathValues`. */
export interface JsonPath {
  nodes: readonly Node[]
}

export class JsonPathError extends Error {
  constructor(template: string, what: string, at: number) {
    super(`invalid JSONPath "${template}": ${what} at character ${at + 1}`)
    this.name = 'JsonPathError'
  }
}

/** `.a.b`, `a.b` and `[0]` are taken without braces, as `kubectl get --sort-by` and `custom-columns` take them. */
export function parseJsonPath(template: string): JsonPath {
  if (template === '') throw new JsonPathError(template, 'empty path', 0)
  const isBare = !template.includes('{')
  const parser = new Parser(isBare ? `{${/^[.[$@]/.test(template) ? '' : '.'}${template}}` : template, template)
  return { nodes: parser.template(false) }
}

class Parser {
  #at = 0
  readonly #text: string
  readonly #shown: string
  constructor(text: string, shown: string) {
    this.#text = text
    this.#shown = shown
  }

  /** Up to the end of the text or, inside a range, past its `{end}`. */
  template(inRange: boolean): Node[] {
    const nodes: Node[] = []
    while (this.#at < this.#text.length) {
      const open = this.#text.indexOf('{', this.#at)
      if (open !== this.#at) {
        nodes.push({ kind: 'text', text: this.#text.slice(this.#at, open < 0 ? undefined : open) })
        this.#at = open < 0 ? this.#text.length : open
        continue
      }
      this.#at += 1
      this.#blanks()
      if (this.#takes(/end\s*\}/y) !== null) {
        if (inRange) return nodes
        throw this.#error('{end} without {range}')
      }
      if (this.#takes(/range\b/y) !== null) {
        this.#blanks()
        const path = this.#path()
        this.#close()
        nodes.push({ kind: 'range', ...path, body: this.template(true) })
      } else nodes.push(...this.#action())
    }
    if (inRange) throw this.#error('{range} has no {end}')
    return nodes
  }

  /** `.a "text" .b`: one after the other. */
  #action(): Node[] {
    const nodes: Node[] = []
    for (;;) {
      this.#blanks()
      const quote = this.#text[this.#at]
      if (this.#takes(/\}/y) !== null) return nodes
      if (quote === '"' || quote === "'") nodes.push({ kind: 'text', text: this.#quoted() })
      else nodes.push({ kind: 'path', ...this.#path() })
    }
  }

  #path(): { isRoot: boolean; steps: Step[] } {
    const start = this.#at
    const root = this.#takes(/[$@]/y)
    const steps = this.#steps()
    if (this.#at === start) throw this.#error(`unexpected "${this.#text[this.#at] ?? 'end'}"`)
    return { isRoot: root === '$', steps }
  }

  #steps(): Step[] {
    const steps: Step[] = []
    for (;;) {
      if (this.#takes(/\.\./y) !== null) {
        steps.push({ kind: 'deep' })
        if (this.#text[this.#at] !== '[') steps.push(this.#name())
      } else if (this.#takes(/\.(?=\[)/y) !== null) continue
      else if (this.#takes(/\./y) !== null) {
        // `{.}` is the whole.
        if (!/[\s})\]=!<>,]|^$/.test(this.#text[this.#at] ?? '')) steps.push(this.#name())
      } else if (this.#takes(/\[/y) !== null) steps.push(this.#brackets())
      else return steps
    }
  }

  #name(): Step {
    if (this.#takes(/\*/y) !== null) return { kind: 'all' }
    const name = this.#takes(/(?:\\.|[^\s.[\]{}()'"=!<>,*$@?])+/y)
    if (name === null) throw this.#error('missing field name')
    return { kind: 'field', name: name.replaceAll(/\\(.)/g, '$1') }
  }

  #brackets(): Step {
    this.#blanks()
    if (this.#takes(/\?\(/y) !== null) return this.#filter()
    const of: Step[][] = []
    do {
      this.#blanks()
      of.push([this.#bracketItem()])
      this.#blanks()
    } while (this.#takes(/,/y) !== null)
    if (this.#takes(/\]/y) === null) throw this.#error('"]" is missing')
    const [first] = of
    return of.length === 1 && first?.[0] !== undefined ? first[0] : { kind: 'union', of }
  }

  #bracketItem(): Step {
    const quote = this.#text[this.#at]
    if (quote === "'" || quote === '"') return { kind: 'field', name: this.#quoted() }
    if (this.#takes(/\*/y) !== null) return { kind: 'all' }
    const slice = this.#takes(/-?\d*:-?\d*(?::-?\d*)?/y)
    if (slice !== null) {
      const [from, to, by] = slice.split(':').map((part) => (part === '' ? null : Number(part)))
      if (by !== undefined && by !== null && by <= 0) throw this.#error('the step of a slice must be positive')
      return { kind: 'slice', from: from ?? null, to: to ?? null, by: by ?? 1 }
    }
    const index = this.#takes(/-?\d+/y)
    if (index !== null) return { kind: 'index', at: Number(index) }
    if (/[.@$]/.test(quote ?? '')) {
      const { steps } = this.#path()
      return { kind: 'union', of: [steps] }
    }
    throw this.#error('expected an index, a slice, a quoted name, * or ?(…) in brackets')
  }

  #filter(): Step {
    this.#blanks()
    const left = this.#operand()
    this.#blanks()
    const operator = this.#takes(/==|!=|<=|>=|<|>/y)
    this.#blanks()
    const right = operator === null ? null : this.#operand()
    this.#blanks()
    if (this.#takes(/\)\s*\]/y) === null) throw this.#error('")]" is missing')
    return { kind: 'filter', left, operator: operator ?? '', right }
  }

  #operand(): Operand {
    const quote = this.#text[this.#at]
    if (quote === '"' || quote === "'") return { kind: 'value', value: this.#quoted() }
    const number = this.#takes(/-?\d+(?:\.\d+)?/y)
    if (number !== null) return { kind: 'value', value: Number(number) }
    const word = this.#takes(/true\b|false\b/y)
    if (word !== null) return { kind: 'value', value: word === 'true' }
    return { kind: 'path', ...this.#path() }
  }

  #quoted(): string {
    const quoted = this.#takes(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/sy)
    if (quoted === null) throw this.#error('unclosed quote')
    return quoted.slice(1, -1).replaceAll(/\\(.)/gs, (_, char: string) => ESCAPES[char] ?? char)
  }

  #close(): void {
    this.#blanks()
    if (this.#takes(/\}/y) === null) throw this.#error('"}" is missing')
  }
  #blanks(): void {
    this.#takes(/\s*/y)
  }
  #takes(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0] ?? null
    this.#at += found?.length ?? 0
    return found
  }
  #error(what: string): JsonPathError {
    return new JsonPathError(this.#shown, what, this.#at)
  }
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' }

/** Output of the template. Spaces separate the results of one expression; objects and lists are JSON. */
export function jsonPathText({ nodes }: JsonPath, root: unknown): string {
  return printed(nodes, root, root)
}

const printed = (nodes: readonly Node[], at: unknown, root: unknown): string =>
  nodes
    .map((node) => {
      if (node.kind === 'text') return node.text
      const values = walk(node.steps, [node.isRoot ? root : at], root)
      return node.kind === 'path' ? values.map(valueText).join(' ') : values.map((value) => printed(node.body, value, root)).join('')
    })
    .join('')

/** The values that the first expression finds. */
export function jsonPathValues({ nodes }: JsonPath, root: unknown): unknown[] {
  const [first] = nodes
  return first === undefined || first.kind === 'text' ? [] : walk(first.steps, [root], root)
}

export const valueText = (value: unknown): string =>
  typeof value === 'object' && value !== null ? goJson(value) : value === null || value === undefined ? 'null' : String(value)

/** As Go writes it: keys in order, and three characters escaped. */
const goJson = (value: unknown): string =>
  JSON.stringify(value, (_, member: unknown) =>
    isMap(member) ? Object.fromEntries(Object.entries(member).sort(byKey)) : member,
  ).replaceAll(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
const byKey = ([a]: [string, unknown], [b]: [string, unknown]): number => (a < b ? -1 : 1)

const isMap = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)
const childrenOf = (value: unknown): unknown[] =>
  Array.isArray(value)
    ? value
    : isMap(value)
      ? Object.entries(value)
          .sort(byKey)
          .map(([, child]) => child)
      : []

function walk(steps: readonly Step[], from: readonly unknown[], root: unknown): unknown[] {
  let values = [...from]
  for (const [i, step] of steps.entries()) {
    if (step.kind === 'deep') {
      const next = steps.slice(i + 1)
      return everyBelow(values)
        .flatMap((value) => walk(next.slice(0, 1), [value], root))
        .flatMap((value) => walk(next.slice(1), [value], root))
    }
    // As kubectl: all results of the first member, then all of the second.
    values =
      step.kind === 'union'
        ? step.of.flatMap((member) => walk(member, values, root))
        : values.flatMap((value) => stepped(step, value, root))
  }
  return values
}

const everyBelow = (values: readonly unknown[]): unknown[] => values.flatMap((value) => [value, ...everyBelow(childrenOf(value))])

function stepped(step: Exclude<Step, { kind: 'deep' | 'union' }>, value: unknown, root: unknown): unknown[] {
  switch (step.kind) {
    case 'field':
      return isMap(value) && Object.hasOwn(value, step.name) ? [value[step.name]] : []
    case 'all':
      return childrenOf(value)
    case 'index': {
      const list = Array.isArray(value) ? value : []
      const at = step.at < 0 ? list.length + step.at : step.at
      return at in list ? [list[at]] : []
    }
    case 'slice': {
      if (!Array.isArray(value)) return []
      const { from, to, by } = step
      return value.slice(from ?? 0, to ?? undefined).filter((_, i) => i % by === 0)
    }
    case 'filter':
      return (Array.isArray(value) ? value : [value]).filter((item) => holds(step, item, root))
  }
}

function holds({ left, operator, right }: Extract<Step, { kind: 'filter' }>, item: unknown, root: unknown): boolean {
  const of = (operand: Operand): unknown[] =>
    operand.kind === 'value' ? [operand.value] : walk(operand.steps, [operand.isRoot ? root : item], root)
  const lefts = of(left)
  if (right === null) return lefts.length > 0
  const [a, b] = [lefts[0], of(right)[0]]
  if (a === undefined || b === undefined) return false
  switch (operator) {
    case '==':
      return a === b
    case '!=':
      return a !== b
    default:
      return compares(operator, a, b)
  }
}

function compares(operator: string, a: unknown, b: unknown): boolean {
  if (typeof a !== typeof b || (typeof a !== 'number' && typeof a !== 'string')) return false
  const order = compareValues(a, b)
  return operator === '<' ? order < 0 : operator === '<=' ? order <= 0 : operator === '>' ? order > 0 : order >= 0
}

/** Numbers by size, texts with numbers in them as people count: `node-2` before `node-10`. Missing values come first.
 */
export function compareValues(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  const [left, right] = [a, b].map((value) => (value === undefined || value === null ? '' : valueText(value)))
  return NATURAL.compare(left ?? '', right ?? '')
}
const NATURAL = new Intl.Collator('en', { numeric: true })
