// The importer of liquidjs: templates are untrusted, so what they may do is a list, and what they may cost is counted.
// Text in, text or problems out; never throws on input.
import {
  CaseTag,
  type Context,
  defaultOperators,
  type Emitter,
  evalToken,
  type FilterImplOptions,
  ForTag,
  Liquid,
  LiquidError,
  filters as libraryFilters,
  Output,
  ParseError,
  Parser,
  TagToken,
  type Template,
  Tokenizer,
  type TopLevelToken,
  TypeGuards,
  toValue,
  toValueSync,
  Value,
} from 'liquidjs'
import type { Problem } from '../../../shared/runtime/error.ts'
import { SizedCache } from '../../sources/sized-cache.ts'
import type { RenderInputs } from '../inputs.ts'
import { LIQUID_FILTERS, OWN_FILTERS, SEARCHING_FILTERS, WHOLE_FILTERS } from './filters.ts'
import {
  Meter,
  sizeOf,
  TEMPLATE_BYTES_MAX,
  TEMPLATE_CODE_MAX,
  TEMPLATE_ERRORS_MAX,
  TEMPLATE_MEMORY_MAX,
  TemplateRefusal,
  TemplateStop,
} from './limits.ts'
import type { TemplatePlace } from './problems.ts'
import { causeOf, type Partials, Run, Scope, scopeOf, Walk } from './run.ts'
import { checkTemplates, type Finding, messageOf, TAGS, type TemplateKind } from './syntax.ts'
import { semverCompare } from './versions.ts'

export type RenderedText = { kind: 'rendered'; text: string } | { kind: 'failed'; problems: Problem[] }
export type EvaluatedValue = { kind: 'value'; value: unknown } | { kind: 'failed'; problems: Problem[] }
const NO_PARTIALS: Partials = new Map()

interface Parsed {
  text: string
  templates: Template[]
  findings: Finding[]
  /** Whether it can be rendered, if only to find more that is wrong. */
  readable: boolean
  /** Names that `{% render %}` gives. */
  partials: string[]
}

const TOO_MUCH_CODE = `has more than ${TEMPLATE_CODE_MAX / 1024} KiB within {{ … }} and {% … %}, the limit of a template; split it`

/** Parsing costs a hundred times what rendering costs. */
const parsed = new SizedCache<Parsed>(4 * 1024 * 1024, ({ text }) => 200 + text.length)

class Engine extends Liquid {
  override readonly renderer = new Walk()

  constructor() {
    super({
      templates: {},
      cache: false,
      strictVariables: true,
      // Unknown ones are found by checkTemplates, all at once.
      strictFilters: false,
      ownPropertyOnly: true,
      lenientIf: true,
      catchAllErrors: true,
      globals: {},
      operators: { ...defaultOperators, '==': countedEquals('=='), '!=': countedEquals('!='), contains: countedContains },
      memoryLimit: TEMPLATE_MEMORY_MAX,
      parseLimit: TEMPLATE_BYTES_MAX,
      timezoneOffset: 0,
      locale: 'en-US',
    })
    for (const name of Object.keys(this.tags)) if (!TAGS.has(name)) delete this.tags[name]
    for (const name of Object.keys(this.filters)) this.unregisterFilter(name)
    for (const [name, filter] of Object.entries(libraryFilters))
      if (LIQUID_FILTERS.has(name)) this.registerFilter(name, counted(name, filter))
    for (const [name, filter] of Object.entries({ ...OWN_FILTERS, semverCompare })) this.registerFilter(name, counted(name, filter))
    this.registerFilter('required', required)
    this.registerTag('for', CountedFor)
    this.registerTag('case', CountedCase)
  }

  // biome-ignore lint/correctness/useYield: the library expects a generator
  override *_parsePartialFile(name: string): Generator<unknown, Template[], string | Template[]> {
    const partial = rendering?.partials.get(name)
    if (partial === undefined)
      throw new TemplateRefusal(`partial ${name} not found: expected a file ${name}.liquid in the folder of the service`)
    const { templates, findings, text } = parse(partial.text, partial.file, 'partial')
    for (const finding of findings) rendering?.add(partial.file, text, finding)
    if (findings.length > 0) throw new TemplateStop(`the partial ${name} has errors`)
    return templates
  }

  override _parseLayoutFile(): never {
    throw new TemplateRefusal('layouts are not supported')
  }
}

// The library prints the lines around an error, and counts to them letter by letter, for each error again: with long
// texts that takes minutes. `problemsAt` finds places instead.
Object.defineProperty(LiquidError.prototype, 'update', { value: () => undefined })

/** As the library's, with limits of its own. */
class BoundedParser extends Parser {
  override parse(text: string, file?: string): Template[] {
    const tokens = new Tokenizer(text, engine.options.operators, file).readTopLevelTokens(engine.options)
    let code = 0
    for (const token of tokens) {
      if (token instanceof TagToken || TypeGuards.isOutputToken(token)) code += token.size()
      if (code <= TEMPLATE_CODE_MAX) continue
      throw new ParseError(new TemplateRefusal(TOO_MUCH_CODE), token)
    }
    return this.parseTokens(tokens)
  }

  override parseTokens(tokens: TopLevelToken[]): Template[] {
    const templates: Template[] = []
    const errors: unknown[] = []
    for (let token = tokens.shift(); token !== undefined && errors.length < TEMPLATE_ERRORS_MAX; token = tokens.shift()) {
      try {
        templates.push(this.parseToken(token, tokens))
      } catch (error) {
        errors.push(error)
      }
    }
    if (errors.length > 0) throw new ParseErrors(errors)
    return templates
  }
}

class ParseErrors extends Error {
  readonly errors: readonly unknown[]

  constructor(errors: readonly unknown[]) {
    super('invalid template')
    this.errors = errors
  }
}

function counted(name: string, filter: FilterImplOptions): FilterImplOptions {
  const handler = typeof filter === 'function' ? filter : filter.handler
  return function (value: unknown, ...args: unknown[]) {
    const { meter } = scopeOf(this.context).run
    const [first] = args
    meter.chargeFor(value, SEARCHING_FILTERS.has(name) ? sizeOf(first) : 0)
    if (name.startsWith('sort')) meter.charge(sizeOf(value) / 4)
    for (const arg of args) meter.chargeFor(arg)
    if (name === 'keys' || name === 'values') meter.chargeMembers(value)
    if (name === 'semverCompare') meter.charge(40 + sizeOf(first))
    const whole = Object.hasOwn(WHOLE_FILTERS, name) ? WHOLE_FILTERS[name] : undefined
    if (Array.isArray(value) && (SEARCHING_FILTERS.has(name) || name === 'uniq' || name === 'group_by')) meter.charge(value.length / 16)
    if (whole !== undefined) meter.chargeWhole(value, whole)
    const result: unknown = handler.call(this, value, ...args)
    meter.charge(sizeOf(result) / 64)
    if (typeof result === 'string') this.context.memoryLimit.use(result.length)
    return result
  }
}

/** The library lists all of a mapping before the first turn. */
class CountedFor extends ForTag {
  override *render(context: Context, emitter: Emitter): ReturnType<ForTag['render']> {
    if (!TypeGuards.isRangeToken(this.collection))
      scopeOf(context).run.meter.chargeMembers(toValueSync(evalToken(this.collection, context)))
    return yield* super.render(context, emitter)
  }
}

/** Lists are held against each other member by member, and the lists in them. */
const countedEquals = (name: '==' | '!=') => (left: unknown, right: unknown, context: Context) => {
  if (Array.isArray(left) && Array.isArray(right)) scopeOf(context).run.meter.chargeWhole(left, 1)
  return defaultOperators[name]?.(left, right, context) ?? false
}

class CountedCase extends CaseTag {
  override *render(context: Context, emitter: Emitter): ReturnType<CaseTag['render']> {
    const value = toValueSync(this.value.value(context, true))
    if (Array.isArray(value))
      for (const { values } of this.branches) for (const _ of values) scopeOf(context).run.meter.chargeWhole(value, 1)
    return yield* super.render(context, emitter)
  }
}

const countedContains = (left: unknown, right: unknown, context: Context) => {
  scopeOf(context).run.meter.chargeFor(left, sizeOf(right))
  return defaultOperators['contains']?.(left, right, context) ?? false
}

/** Its message is the author's when it stands there in quotes; computed ones might hold a value. */
const required: FilterImplOptions = function (value: unknown) {
  if (value !== undefined && value !== null && value !== '') return value
  const [message] = this.token.args
  const quoted = message !== undefined && 'content' in message && typeof message.content === 'string' ? message.content : ''
  throw new TemplateRefusal(quoted === '' ? 'required value is missing' : quoted)
}

const engine = new Engine()
/** Rendering is synchronous: there is one at a time. */
let rendering: Run | null = null

function parse(text: string, file: string, kind: TemplateKind): Parsed {
  const key = `${file}\0${kind}\0${text}`
  const held = parsed.get(key)
  if (held !== undefined) return held
  const made = parseAnew(text, file, kind)
  parsed.set(key, made)
  return made
}

function parseAnew(text: string, file: string, kind: TemplateKind): Parsed {
  if (Buffer.byteLength(text) > TEMPLATE_BYTES_MAX) {
    const message = `is larger than ${TEMPLATE_BYTES_MAX / 1024} KiB, the limit of a template; split it`
    return { text, templates: [], findings: [{ at: 0, message }], readable: false, partials: [] }
  }
  try {
    const templates = new BoundedParser(engine).parse(text, file)
    const { findings, partials, lenient } = checkTemplates(templates, new Set(Object.keys(engine.filters)), kind)
    for (const value of lenient) value.value = (context) => Value.prototype.value.call(value, context, true)
    return { text, templates, findings, readable: true, partials }
  } catch (error) {
    return { text, templates: [], findings: syntaxFindings(error), readable: false, partials: [] }
  }
}

function syntaxFindings(error: unknown): Finding[] {
  const errors: unknown[] = error instanceof Error && 'errors' in error && Array.isArray(error.errors) ? error.errors : [error]
  const findings = errors.map((one) => ({ at: LiquidError.is(one) ? one.token.begin : 0, message: messageOf(one) }))
  // The end of a block that could not be read is not an error of its own.
  const [first, ...rest] = findings
  return first === undefined ? [] : [first, ...rest.filter(({ message }) => !/^unknown tag (end\w+|else|elsif|when)\b/.test(message))]
}

/** Names of the partials that a template renders; those of a text with errors are none. */
export const partialsOf = (text: string, file: string, partial: boolean): readonly string[] =>
  parse(text, file, partial ? 'partial' : 'file').partials

/** `meter`: of the render that the text is part of. Past the limits of limits.ts, and for everything that is wrong, it
 *  is `failed`; nothing is thrown. */
export function renderText(
  text: string,
  place: TemplatePlace,
  inputs: RenderInputs,
  partials: Partials = NO_PARTIALS,
  meter = new Meter(),
): RenderedText {
  const run = new Run(place, text, inputs, partials, meter)
  const result = carryOut(run, (templates, scope) => engine.renderer.renderTemplates(templates, scope))
  return result.kind === 'failed' ? result : { kind: 'rendered', text: String(result.value) }
}

/** A text that is exactly one `{{ … }}` is what is in it, with its type; anything else is text. */
export function evaluate(text: string, place: TemplatePlace, inputs: RenderInputs, meter = new Meter()): EvaluatedValue {
  const run = new Run(place, text, inputs, NO_PARTIALS, meter)
  return carryOut(run, (templates, scope) => {
    const [only, ...others] = templates.filter((template) => template instanceof Output || template.token.getText().trim() !== '')
    if (!(only instanceof Output) || others.length > 0) return engine.renderer.renderTemplates(templates, scope)
    return evaluateOne(only, scope)
  })
}

function* evaluateOne(output: Output, scope: Scope): Generator<unknown, unknown, unknown> {
  try {
    const value = yield output.value.value(scope, false)
    return plainCopy(toValue(value))
  } catch (error) {
    scope.run.note(causeOf(error), output)
    return null
  }
}

/** Inputs are read through proxies, and passed values are plain copies. */
function plainCopy(value: unknown): unknown {
  if (value === undefined || value === null) return null
  if (typeof value !== 'object') return value
  return JSON.parse(JSON.stringify(value))
}

function carryOut(run: Run, render: (templates: Template[], scope: Scope) => Generator<unknown, unknown, unknown>): EvaluatedValue {
  const { templates, findings, readable } = parse(run.text, run.place.file, run.place.message === undefined ? 'file' : 'message')
  for (const finding of findings) run.add(run.place.file, run.text, finding)
  run.findings = findings
  let value: unknown = null
  if (readable) {
    const { inputs } = run
    // Getters: an unnamed input is not read.
    const globals: object = Object.create(null, {
      ...(run.place.message === undefined ? {} : { message: { value: run.place.message } }),
      cluster: { get: () => inputs.cluster },
      config: { get: () => inputs.config },
      service: { get: () => inputs.service },
      source: { get: () => inputs.source },
    })
    const scope = new Scope(run, Object.create(null), engine.options, { sync: true, globals }, { liquid: engine })
    rendering = run
    try {
      value = toValueSync(render(templates, scope))
    } catch (error) {
      if (run.found.size === 0) run.add(run.place.file, run.text, { at: 0, message: messageOf(error) })
    } finally {
      rendering = null
    }
  }
  return run.found.size > 0 ? { kind: 'failed', problems: run.all() } : { kind: 'value', value }
}
