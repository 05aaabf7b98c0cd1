// The importer of the CEL library: the text of a health rule → something that judges an object in bounded time. It is
// loaded when the first rule is met, since an agent without rules shall not hold it. Its language has no budget of its
// own: a rule is written by users of the fleet and the object by anybody in the cluster, so what can grow is counted.
import type { CelText, CompiledVerdict, FleetRule } from '../kube/fleet-rule.ts'
import { VERDICTS, type Verdict } from '../kube/fleet-rule.ts'
import type { CelAnswer, CelTest, CompiledRule } from '../kube/health-rule.ts'
import { groupOf } from '../kube/object.ts'
import type { HealthRuleSpec, HealthVerdict, ServiceHealth } from '../model/health-rules.ts'

type Library = typeof import('@marcbachmann/cel-js')

/** Elements that the macros of one evaluation may visit; nested ones count for each round of the outer one. */
export const CEL_ELEMENTS_MAX = 2_000
/** Longest text that `matches` looks at, and how many elements one look counts for. */
export const CEL_MATCH_CHARS_MAX = 128
const MATCH_COST = 100
/** Each may double the ways that are tried. */
const CHOICES_MAX = 12
const CHOICES_BESIDE_REPEATS_MAX = 3
const LIMITS = { maxAstNodes: 400, maxDepth: 32, maxListElements: 100, maxMapEntries: 100, maxCallArguments: 8 }
/** With the guards around its parts. */
const GUARDED_LIMITS = { ...LIMITS, maxAstNodes: 4 * LIMITS.maxAstNodes, maxDepth: 4 * LIMITS.maxDepth }
/**
 * The limit of comparisons and functions in one evaluation: items of lists and maps, and texts of this length. A tenth
 * of a second.
 */
const CEL_PARTS_MAX = 1_000_000
const CHARS_A_PART = 64

/** Their first argument names a variable. */
const ITERATING: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'map', 'filter'])
/** The allowed functions. All others could make values that grow, or read something besides the object. */
const ALLOWED: ReadonlySet<string> = new Set([
  ...ITERATING,
  ...[
    'has',
    'size',
    'contains',
    'startsWith',
    'endsWith',
    'matches',
    'lowerAscii',
    'upperAscii',
    'trim',
    'substring',
    'indexOf',
    'lastIndexOf',
  ],
  ...['int', 'uint', 'double', 'string', 'bool', 'type', 'dyn', 'timestamp', 'duration', 'orValue', 'hasValue', 'value'],
])

interface Node {
  op: string
  args: unknown
  start: number
  end: number
}
const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'op' in value && 'args' in value

class Refused extends Error {}

type Guard = 'visit' | 'glance' | 'weigh'
const GUARDS: ReadonlySet<unknown> = new Set<Guard>(['visit', 'glance', 'weigh'])
const isGuard = ({ op, args }: Node): boolean => op === 'call' && Array.isArray(args) && GUARDS.has(args[0])
/** They look at both sides. */
const COMPARING: ReadonlySet<string> = new Set(['in', '==', '!=', '<', '<=', '>', '>=', '+'])
/** They look at nothing that could be large. */
const LIGHT: ReadonlySet<string> = new Set(['has', 'type', 'dyn', 'orValue', 'hasValue', 'value'])

/** Which of its parts count, and how. */
function guardsOf({ op, args }: Node): Array<[part: Node, guard: Guard]> {
  if (!Array.isArray(args)) return []
  const [name, ...others] = args as [string, ...unknown[]]
  const receiver = op === 'rcall' ? others[0] : null
  if (op === 'rcall' && ITERATING.has(name)) return isNode(receiver) ? [[receiver, 'visit']] : []
  if (name === 'matches') return isNode(receiver) ? [[receiver, 'glance']] : []
  const isCall = op === 'call' || op === 'rcall'
  const parts = COMPARING.has(op) ? args : isCall && !LIGHT.has(name) && !ITERATING.has(name) ? [receiver, others.at(-1)].flat() : []
  return parts.flatMap((part) => (isNode(part) && part.op !== 'value' ? [[part, 'weigh'] as [Node, Guard]] : []))
}

interface Wrap {
  at: number
  text: string
}

const TEXTS_AND_PARENTHESES = /"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[()]/g

/** The place of a part leaves out parentheses at its ends: with them. */
function placeOf(text: string, { start, end }: Node): { start: number; end: number } {
  let [depth, lowest] = [0, 0]
  for (const [token] of text.slice(start, end).matchAll(TEXTS_AND_PARENTHESES)) {
    if (token === '(') depth += 1
    if (token === ')') depth -= 1
    lowest = Math.min(lowest, depth)
  }
  let [from, to] = [start, end]
  for (let missing = -lowest; missing > 0 && from > 0; ) if (text[--from] === '(') missing -= 1
  for (let missing = depth - lowest; missing > 0 && to < text.length; ) if (text[to++] === ')') missing -= 1
  return { start: from, end: to }
}

/** The wrappers around parts of a rule, so that they count. Throws the problem of a wrong rule. */
function wrapsOf(rule: string, root: Node): Wrap[] {
  const wraps: Wrap[] = []
  const walk = (node: unknown, inMacro: boolean): void => {
    if (Array.isArray(node)) for (const item of node) walk(item, inMacro)
    if (!isNode(node)) return
    const { op, args } = node
    for (const [part, guard] of guardsOf(node)) {
      const { start, end } = placeOf(rule, part)
      wraps.push({ at: start, text: `${guard}(` }, { at: end, text: ')' })
    }
    if ((op !== 'call' && op !== 'rcall') || !Array.isArray(args)) {
      if (op === '+' && inMacro) throw new Refused('"+" inside of map, filter, all, exists or exists_one is not allowed: values could grow')
      walk(args, inMacro)
      return
    }
    const [name, ...others] = args as [string, ...unknown[]]
    if (!ALLOWED.has(name)) throw new Refused(`the function ${name} is not supported`)
    const given = others.at(-1)
    if (name === 'matches') checkPattern(given, op)
    walk(op === 'rcall' ? others[0] : null, inMacro)
    walk(given, inMacro || ITERATING.has(name))
  }
  walk(root, false)
  return wraps
}

/** Whether each guard is around the very part that it is for: one that is around less of it counts nothing. Throws if
 *  one is not. */
function checkGuards(node: unknown): void {
  if (Array.isArray(node)) for (const item of node) checkGuards(item)
  if (!isNode(node)) return
  if (!isGuard(node) && guardsOf(node).some(([part]) => !isGuard(part)))
    throw new Refused('it cannot be split into parts; remove unneeded parentheses and comments')
  checkGuards(node.args)
}

/** A pattern that cannot take longer than the cube of its text: the engine behind it goes back and tries again. */
function checkPattern(args: unknown, op: string): void {
  const [first] = Array.isArray(args) ? args : []
  if (op !== 'rcall' || !isNode(first) || first.op !== 'value' || typeof first.args !== 'string') {
    throw new Refused('the pattern of matches must be a literal')
  }
  const bare = first.args.replace(/\\[^0-9]/g, 'x').replace(/\[\^?\]?[^\]]*\]/g, 'x')
  if (/\\[0-9]|\(\?(?!:)/.test(bare)) throw new Refused('patterns do not support back references, or (?…) groups other than (?:…)')
  if (/\)[*+?{]/.test(bare)) throw new Refused('a group of a pattern cannot be repeated; repeat single characters or classes')
  const flat = bare.replaceAll('(?:', '(')
  const repeats = flat.match(/[*+{]/g)?.length ?? 0
  const choices = flat.replace(/([*+}])\?/g, '$1').match(/[?|]/g)?.length ?? 0
  const mostRepeats = flat.startsWith('^') && !flat.includes('|') ? 3 : 2
  if (repeats > mostRepeats) {
    throw new Refused(
      `a pattern has at most ${mostRepeats} of * + {n,m} (3 if it begins with ^ and has no |); use several, or ==, startsWith, in`,
    )
  }
  const mostChoices = repeats === 0 ? CHOICES_MAX : CHOICES_BESIDE_REPEATS_MAX
  if (choices > mostChoices) {
    throw new Refused(
      `a pattern has at most ${CHOICES_MAX} of ? and |, or ${CHOICES_BESIDE_REPEATS_MAX} beside * + {n,m}; use several, or in`,
    )
  }
  try {
    new RegExp(first.args)
  } catch (error) {
    throw new Refused(`its pattern is invalid: ${error instanceof Error ? error.message : String(error)}`)
  }
}

const rewritten = (text: string, wraps: readonly Wrap[]): string =>
  // The first found of two at one place is the outer one: it opens first and closes last.
  wraps
    .map((wrap, order) => ({ ...wrap, order: wrap.text === ')' ? order : -order }))
    .sort((a, b) => b.at - a.at || b.order - a.order)
    .reduce((result, { at, text: added }) => result.slice(0, at) + added + result.slice(at), text)

type Refusal = { kind: 'refused'; why: string }

export interface Cel {
  compile(text: string): { kind: 'test'; test: CelTest } | Refusal
  compileText(text: string): { kind: 'text'; make: CelText } | Refusal
}

function createCel({ Environment }: Library): Cel {
  let left = 0
  let partsLeft = 0
  /** Work that exceeded the limit once fails at once the next time: `||` and macros continue after an error. */
  const spend = (cost: () => number) => {
    if (left >= 0) left -= cost()
    if (left < 0) throw new Error(`it reads more than ${CEL_ELEMENTS_MAX} elements`)
  }
  const weigh = (value: unknown): void => {
    if (typeof value === 'string') partsLeft -= Math.floor(value.length / CHARS_A_PART)
    else if (typeof value === 'object' && value !== null && partsLeft >= 0) {
      const items = Array.isArray(value) ? value : Object.values(value)
      partsLeft -= items.length
      // Counting stops at the limit.
      if (partsLeft >= 0) for (const item of items) weigh(item)
    }
    if (partsLeft < 0) throw new Error(`its comparisons and functions read more than ${CEL_PARTS_MAX} parts`)
  }
  const options = { unlistedVariablesAreDyn: true, homogeneousAggregateLiterals: false, enableOptionalTypes: true }
  const bare = new Environment({ ...options, limits: LIMITS })
  const env = new Environment({ ...options, limits: GUARDED_LIMITS })
    .registerFunction('weigh(dyn): dyn', (value: unknown) => {
      weigh(value)
      return value
    })
    .registerFunction('visit(dyn): dyn', (value: unknown) => {
      spend(() => sizeOf(value))
      return value
    })
    .registerFunction('glance(dyn): dyn', (value: unknown) => {
      spend(() => MATCH_COST)
      if (typeof value === 'string' && value.length > CEL_MATCH_CHARS_MAX)
        throw new Error(`matches reads at most ${CEL_MATCH_CHARS_MAX} characters`)
      return value
    })

  type Parsed = ReturnType<typeof env.parse>
  /** Throws what is wrong with it. */
  const evaluate = (parsed: Parsed, members: Record<string, unknown>): unknown => {
    left = CEL_ELEMENTS_MAX
    partsLeft = CEL_PARTS_MAX
    return parsed(members)
  }
  const test = (parsed: Parsed, members: Record<string, unknown>): CelAnswer => {
    try {
      const value = evaluate(parsed, members)
      return typeof value === 'boolean' ? { kind: 'answer', value } : { kind: 'error', why: 'it is neither true nor false' }
    } catch (error) {
      return { kind: 'error', why: summaryOf(error) }
    }
  }
  const makeText = (parsed: Parsed, members: Record<string, unknown>): string | null => {
    try {
      const value = evaluate(parsed, members)
      return typeof value === 'string' ? value : null
    } catch {
      return null
    }
  }
  const parse = (text: string, type: 'bool' | 'string', meant: string): { kind: 'parsed'; parsed: Parsed } | Refusal => {
    try {
      const plain = bare.parse(text)
      const wraps = wrapsOf(text, plain.ast as unknown as Node)
      const checked = plain.check()
      const parsed = env.parse(rewritten(text, wraps))
      checkGuards(parsed.ast)
      if (!checked.valid) return { kind: 'refused', why: summaryOf(checked.error) }
      if (checked.type !== type && checked.type !== 'dyn') return { kind: 'refused', why: `it has type ${checked.type}, not ${meant}` }
      return { kind: 'parsed', parsed }
    } catch (error) {
      return { kind: 'refused', why: summaryOf(error) }
    }
  }

  return {
    compile(text) {
      const found = parse(text, 'bool', 'true or false')
      return found.kind === 'refused' ? found : { kind: 'test', test: (members) => test(found.parsed, members) }
    },
    compileText(text) {
      const found = parse(text, 'string', 'a text')
      return found.kind === 'refused' ? found : { kind: 'text', make: (members) => makeText(found.parsed, members) }
    },
  }
}

const sizeOf = (value: unknown): number =>
  Array.isArray(value) ? value.length : typeof value === 'object' && value !== null ? Object.keys(value).length : 0

/** Without the rule's text around it: the rule was rewritten. */
function summaryOf(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'summary' in error && typeof error.summary === 'string') return error.summary
  return error instanceof Error ? error.message : String(error)
}

let loading: Promise<Cel> | null = null
/** Once a process. */
export const loadCel = (): Promise<Cel> => {
  loading ??= import('@marcbachmann/cel-js').then(createCel)
  return loading
}

const PARTS = ['current', 'inProgress', 'failed'] as const

/**
 * Null if the rule can be used; otherwise the wrong expression and the reason. For the server, when a service is
 * written.
 */
export async function checkServiceHealth(rule: ServiceHealth): Promise<string | null> {
  const compiled = await compileServiceHealth(rule)
  return typeof compiled === 'string' ? compiled : null
}

/** A text: it cannot be used, and why. */
export async function compileServiceHealth(rule: ServiceHealth): Promise<CompiledRule | string> {
  const cel = await loadCel()
  const tests: Partial<Record<(typeof PARTS)[number], CelTest>> = {}
  for (const part of PARTS) {
    const text = rule[part]
    if (text === undefined) continue
    const compiled = cel.compile(text)
    if (compiled.kind === 'refused') return `${part} of the health rule for ${rule.kind} of ${rule.apiVersion}: ${compiled.why}`
    tests[part] = compiled.test
  }
  const { current, inProgress = null, failed = null } = tests
  if (current === undefined) return `the health rule for ${rule.kind} of ${rule.apiVersion} has no expression for current`
  return { group: groupOf(rule.apiVersion), kind: rule.kind, current, inProgress, failed }
}

export interface RefusedRule {
  /** Below the spec: `degraded.when`. */
  path: string
  why: string
}

/** A HealthRule, ready to judge objects, or which of its expressions cannot be used, and why. */
export async function compileFleetRule(id: string, spec: HealthRuleSpec): Promise<FleetRule | RefusedRule> {
  const cel = await loadCel()
  const verdicts: Partial<Record<Verdict, CompiledVerdict>> = {}
  for (const verdict of VERDICTS) {
    const written = spec[verdict]
    if (written === undefined) continue
    const when = cel.compile(written.when)
    if (when.kind === 'refused') return { path: `${verdict}.when`, why: when.why }
    const message = messageOf(cel, written)
    if (message !== null && 'why' in message) return { path: `${verdict}.messageExpression`, why: message.why }
    verdicts[verdict] = { when: when.test, message }
  }
  return { id, group: spec.group, kind: spec.kind, versions: spec.versions ?? null, verdicts }
}

function messageOf(cel: Cel, { message, messageExpression }: HealthVerdict): CelText | Refusal | null {
  if (messageExpression === undefined) return message === undefined ? null : () => message
  const compiled = cel.compileText(messageExpression)
  return compiled.kind === 'text' ? compiled.make : compiled
}
