// The importer of the CEL library: the text of a health rule → something that judges an object in bounded time. It is loaded when the first rule is met, since an agent without
// rules shall not hold it. Its language has no budget of its own: a rule is written by users of the fleet and the object by anybody in the cluster, so what can grow is counted.
import type { CelAnswer, CelTest, CompiledRule } from '../kube/health-rule.ts'
import { groupOf } from '../kube/object.ts'
import type { HealthRule } from '../model/resources.ts'

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

/** Their first argument names a variable. */
const ITERATING: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'map', 'filter'])
/** Whatever is not here could make values that grow, or reads what is no part of an object. */
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

interface Wrap {
  at: number
  text: string
}

/** What is put around the receivers of macros and of `matches`, so that they count. Throws what is wrong with the rule. */
function wrapsOf(root: Node): Wrap[] {
  const wraps: Wrap[] = []
  const walk = (node: unknown, inMacro: boolean): void => {
    if (Array.isArray(node)) for (const item of node) walk(item, inMacro)
    if (!isNode(node)) return
    const { op, args } = node
    if ((op !== 'call' && op !== 'rcall') || !Array.isArray(args)) {
      if (op === '+' && inMacro) throw new Refused('"+" inside of map, filter, all, exists or exists_one is not allowed: values could grow')
      walk(args, inMacro)
      return
    }
    const [name, ...others] = args as [string, ...unknown[]]
    if (!ALLOWED.has(name)) throw new Refused(`the function ${name} is not known here`)
    const receiver = op === 'rcall' ? others[0] : null
    const given = others.at(-1)
    if (name === 'matches') checkPattern(given, op)
    const counted = op === 'rcall' && ITERATING.has(name) ? 'visit' : name === 'matches' ? 'glance' : null
    if (counted !== null && isNode(receiver)) wraps.push({ at: receiver.start, text: `${counted}(` }, { at: receiver.end, text: ')' })
    walk(receiver, inMacro)
    walk(given, inMacro || ITERATING.has(name))
  }
  walk(root, false)
  return wraps
}

/** A pattern that cannot take longer than the cube of its text: the engine behind it goes back and tries again. */
function checkPattern(args: unknown, op: string): void {
  const [first] = Array.isArray(args) ? args : []
  if (op !== 'rcall' || !isNode(first) || first.op !== 'value' || typeof first.args !== 'string') {
    throw new Refused('matches takes a pattern that is written in the rule')
  }
  const bare = first.args.replace(/\\[^0-9]/g, 'x').replace(/\[\^?\]?[^\]]*\]/g, 'x')
  if (/\\[0-9]|\(\?(?!:)/.test(bare)) throw new Refused('patterns have no back references and no (?…) groups but (?:…)')
  if (/\)[*+?{]/.test(bare)) throw new Refused('a group of a pattern is not repeated; repeat single characters or classes')
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
    throw new Refused(`its pattern is none: ${error instanceof Error ? error.message : String(error)}`)
  }
}

const rewritten = (text: string, wraps: readonly Wrap[]): string =>
  // Of two at one place the one that was found first is the outer one: it opens first and closes last.
  wraps
    .map((wrap, order) => ({ ...wrap, order: wrap.text === ')' ? order : -order }))
    .sort((a, b) => b.at - a.at || b.order - a.order)
    .reduce((result, { at, text: added }) => result.slice(0, at) + added + result.slice(at), text)

export interface Cel {
  compile(text: string): { kind: 'test'; test: CelTest } | { kind: 'refused'; why: string }
}

function createCel({ Environment }: Library): Cel {
  let left = 0
  const spend = (cost: number) => {
    left -= cost
    if (left < 0) throw new Error(`it looks at more than ${CEL_ELEMENTS_MAX} elements`)
  }
  const env = new Environment({
    unlistedVariablesAreDyn: true,
    homogeneousAggregateLiterals: false,
    enableOptionalTypes: true,
    limits: LIMITS,
  })
    .registerFunction('visit(dyn): dyn', (value: unknown) => {
      spend(sizeOf(value))
      return value
    })
    .registerFunction('glance(dyn): dyn', (value: unknown) => {
      spend(MATCH_COST)
      if (typeof value === 'string' && value.length > CEL_MATCH_CHARS_MAX)
        throw new Error(`matches looks at ${CEL_MATCH_CHARS_MAX} characters at most`)
      return value
    })

  const run = (parsed: ReturnType<typeof env.parse>, members: Record<string, unknown>): CelAnswer => {
    left = CEL_ELEMENTS_MAX
    try {
      const value: unknown = parsed(members)
      return typeof value === 'boolean' ? { kind: 'answer', value } : { kind: 'error', why: 'it is neither true nor false' }
    } catch (error) {
      return { kind: 'error', why: summaryOf(error) }
    }
  }

  return {
    compile(text) {
      try {
        const wraps = wrapsOf(env.parse(text).ast as unknown as Node)
        const parsed = env.parse(rewritten(text, wraps))
        const { valid, type, error } = parsed.check()
        if (!valid) return { kind: 'refused', why: summaryOf(error) }
        if (type !== 'bool' && type !== 'dyn') return { kind: 'refused', why: `it is of type ${type}, not true or false` }
        return { kind: 'test', test: (members) => run(parsed, members) }
      } catch (error) {
        return { kind: 'refused', why: summaryOf(error) }
      }
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

/** Null: the rule can be used. Else which expression is wrong, and why. For the server, when a service is written. */
export async function checkHealthRule(rule: HealthRule): Promise<string | null> {
  const compiled = await compileHealthRule(rule)
  return typeof compiled === 'string' ? compiled : null
}

/** A text: it cannot be used, and why. */
export async function compileHealthRule(rule: HealthRule): Promise<CompiledRule | string> {
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
