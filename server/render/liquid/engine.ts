// The importer of liquidjs: templates are untrusted, so what they may do is a list, and what they may cost is counted. Text in, text or problems out; never throws on input.
import {
  CaseTag,
  Context,
  Drop,
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
  UndefinedVariableError,
  Value,
} from 'liquidjs'
import type { Problem } from '../../../shared/protocol/error.ts'
import { SizedCache } from '../../sources/sized-cache.ts'
import type { RenderInputs } from '../inputs.ts'
import { LIQUID_FILTERS, OWN_FILTERS, ownMember, SEARCHING_FILTERS, WHOLE_FILTERS } from './filters.ts'
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
import { inputNames, missingMessage, misspelledMessage, problemsAt, type TemplatePlace, type TextFault } from './problems.ts'
import { checkTemplates, type Finding, messageOf, TAGS } from './syntax.ts'
import { semverCompare } from './versions.ts'

export type RenderedText = { kind: 'rendered'; text: string } | { kind: 'failed'; problems: Problem[] }
export type EvaluatedValue = { kind: 'value'; value: unknown } | { kind: 'failed'; problems: Problem[] }
/** Texts of partials by the name that `{% render %}` gives. */
export type Partials = ReadonlyMap<string, { file: string; text: string }>
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

const TOO_MUCH_CODE = `has more than ${TEMPLATE_CODE_MAX / 1024} KiB within {{ … }} and {% … %}, which is what a template may have; split it`

/** Parsing costs a hundred times what rendering costs. */
const parsed = new SizedCache<Parsed>(4 * 1024 * 1024, ({ text }) => 200 + text.length)

/** One render of one template. */
class Run {
  readonly meter: Meter
  readonly found = new Map<string, TextFault>()
  /** Of the template itself; what they lie in says nothing new when it is rendered. */
  findings: readonly Finding[] = []
  private failures = 0
  private names: readonly string[] | null = null
  readonly place: TemplatePlace
  readonly text: string
  readonly inputs: RenderInputs
  readonly partials: Partials

  constructor(place: TemplatePlace, text: string, inputs: RenderInputs, partials: Partials, meter: Meter) {
    this.meter = meter
    meter.begin()
    this.place = place
    this.text = text
    this.inputs = inputs
    this.partials = partials
  }

  note(error: unknown, template: Template): void {
    const { begin, end, input } = template.token
    if (input === this.text && this.findings.some(({ at }) => at >= begin && at < end)) return
    // A name that was put together while rendering may be a value.
    const ownText = LiquidError.is(error) && error.token.input === input
    const token = ownText ? error.token : template.token
    const message =
      ownText && error instanceof UndefinedVariableError
        ? missingMessage(token.getText(), this.inputs, this.inputNames())
        : this.messageOf(error, ownText)
    this.add(token.file ?? this.place.file, token.input, { at: token.begin, message })
    this.failures += 1
    if (this.failures >= TEMPLATE_ERRORS_MAX && !(error instanceof TemplateStop)) throw new TemplateStop('too many errors')
  }

  private messageOf(error: unknown, ownText: boolean): string {
    if (LiquidError.is(error) && !ownText) return 'looks for a name in a list that its members do not have'
    return messageOf(error)
  }

  all(): Problem[] {
    return problemsAt(this.found.values(), this.place, TEMPLATE_ERRORS_MAX)
  }

  add(file: string, text: string, { at, message, missing }: Finding): void {
    const said = missing === undefined ? message : (misspelledMessage(missing, this.inputNames()) ?? message)
    this.found.set(`${file} ${at} ${said}`, { file, text, at, message: said })
  }

  private inputNames(): readonly string[] {
    this.names ??= inputNames(this.inputs)
    return this.names
  }
}

/** What names mean, counted; only own members of plain data. */
class Scope extends Context {
  readonly run: Run

  constructor(run: Run, ...rest: ConstructorParameters<typeof Context>) {
    super(...rest)
    this.run = run
  }

  override spawn(scope: object = {}): Scope {
    const { sync, globals, strictVariables, ownPropertyOnly, renderLimit, memoryLimit, liquid } = this
    return new Scope(this.run, scope, this.opts, { sync, globals, strictVariables, ownPropertyOnly }, { renderLimit, memoryLimit, liquid })
  }

  /** Without a look at what lies between: the library asks every value that it is handed whether it is an iterator. */
  // biome-ignore lint/correctness/useYield: the library expects a generator
  override *_getFromScope(scope: unknown, paths: unknown, strict = this.strictVariables): Generator<unknown, unknown, unknown> {
    let value = scope
    for (const name of Array.isArray(paths) ? paths : String(paths).split('.')) {
      value = this.readProperty(Object(value ?? EMPTY), name)
      if (value === undefined && strict) throw new MissingName()
    }
    return value
  }

  override readProperty(object: object, key: Parameters<Context['readProperty']>[1]): unknown {
    const value = this.member(object, key)
    this.run.meter.chargeFor(value)
    return value
  }

  private member(object: object, key: Parameters<Context['readProperty']>[1]): unknown {
    if (object instanceof Drop && !LOOP_MEMBERS.has(String(key))) return undefined
    if (!isPlain(object)) return super.readProperty(object, key)
    const value = ownMember(object, String(key))
    if (value !== undefined || key !== 'size' || object === EMPTY) return value
    this.run.meter.chargeMembers(object)
    return Object.keys(object).length
  }
}

const EMPTY = Object.freeze({})
/** Of forloop, which is an object of the library. */
const LOOP_MEMBERS = new Set(['index', 'index0', 'rindex', 'rindex0', 'first', 'last', 'length'])

/** The library knows by this name that `default` may step in. */
class MissingName extends Error {
  override name = 'InternalUndefinedVariableError'
}

/** Of the data that templates see; forloop is an object of the library. */
const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

class Text implements Emitter {
  buffer = ''
  private readonly meter: Meter

  constructor(meter: Meter) {
    this.meter = meter
  }

  write(value: unknown): void {
    if (value === null || value === undefined) return
    if (typeof value === 'object')
      throw new TemplateRefusal(
        `this is a ${Array.isArray(value) ? 'list' : 'mapping'}, not text; write it with | toJson, or | toYaml and nindent`,
      )
    if (typeof value === 'number' && !Number.isFinite(value)) throw new TemplateRefusal('the result is no number')
    const text = String(value)
    this.meter.write(text)
    this.buffer += text
  }
}

/** The library's loop stops at the first error and has a clock; this one goes on and counts. */
class Walk {
  *renderTemplates(templates: Template[], context: Context, emitter?: Emitter): Generator<unknown, string, unknown> {
    const { run } = scopeOf(context)
    const out = emitter ?? new Text(run.meter)
    run.meter.charge(1)
    run.meter.enter()
    for (const template of templates) {
      run.meter.charge(1)
      try {
        const text = yield template.render(context, out)
        if (text) out.write(text)
      } catch (caught) {
        const error = causeOf(caught)
        if (error instanceof TemplateStop && run.found.size > 0) throw error
        run.note(error, template)
        if (isFatal(error)) throw new TemplateStop('stopped')
      }
      if (context.breakCalled || context.continueCalled) break
    }
    run.meter.leave()
    return out.buffer
  }

  renderTemplatesToNodeStream(): never {
    throw new Error('templates are rendered at once')
  }
}

/** The library takes whatever happens at a name for a name that is not there. */
function causeOf(error: unknown): unknown {
  const cause = LiquidError.is(error) ? error.originalError : undefined
  return cause === undefined || cause instanceof MissingName ? error : cause
}

const isFatal = (error: unknown): boolean =>
  error instanceof TemplateStop || error instanceof RangeError || (error instanceof Error && error.message.includes('limit exceeded'))

function scopeOf(context: Context): Scope {
  if (!(context instanceof Scope)) throw new Error('a context that nobody counts')
  return context
}

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
      throw new TemplateRefusal(`there is no partial ${name}: expected a file ${name}.liquid in the folder of the service`)
    const { templates, findings, text } = parse(partial.text, partial.file, true)
    for (const finding of findings) rendering?.add(partial.file, text, finding)
    if (findings.length > 0) throw new TemplateStop(`the partial ${name} has errors`)
    return templates
  }

  override _parseLayoutFile(): never {
    throw new TemplateRefusal('there are no layouts')
  }
}

// The library writes the lines around an error, and counts to them letter by letter, for each error anew: with long texts that takes minutes. Places are told by `problemsAt`.
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
    super('a template cannot be read')
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
  throw new TemplateRefusal(quoted === '' ? 'this is required, and it is not there' : quoted)
}

const engine = new Engine()
/** Rendering is synchronous: there is one at a time. */
let rendering: Run | null = null

function parse(text: string, file: string, partial = false): Parsed {
  const key = `${file}\0${partial}\0${text}`
  const held = parsed.get(key)
  if (held !== undefined) return held
  const made = parseAnew(text, file, partial)
  parsed.set(key, made)
  return made
}

function parseAnew(text: string, file: string, partial: boolean): Parsed {
  if (Buffer.byteLength(text) > TEMPLATE_BYTES_MAX) {
    const message = `is larger than ${TEMPLATE_BYTES_MAX / 1024} KiB, which is what a template may be; split it`
    return { text, templates: [], findings: [{ at: 0, message }], readable: false, partials: [] }
  }
  try {
    const templates = new BoundedParser(engine).parse(text, file)
    const { findings, partials, lenient } = checkTemplates(templates, new Set(Object.keys(engine.filters)), partial)
    for (const value of lenient) value.value = (context) => Value.prototype.value.call(value, context, true)
    return { text, templates, findings, readable: true, partials }
  } catch (error) {
    return { text, templates: [], findings: syntaxFindings(error), readable: false, partials: [] }
  }
}

function syntaxFindings(error: unknown): Finding[] {
  const errors: unknown[] = error instanceof Error && 'errors' in error && Array.isArray(error.errors) ? error.errors : [error]
  const findings = errors.map((one) => ({ at: LiquidError.is(one) ? one.token.begin : 0, message: messageOf(one) }))
  // What ends a block that could not be read is no error of its own.
  const [first, ...rest] = findings
  return first === undefined ? [] : [first, ...rest.filter(({ message }) => !/^there is no tag (end\w+|else|elsif|when)\b/.test(message))]
}

/** Names of the partials that a template renders; those of a text with errors are none. */
export const partialsOf = (text: string, file: string, partial: boolean): readonly string[] => parse(text, file, partial).partials

/** `meter`: of the render that the text is part of. Past the limits of limits.ts, and for everything that is wrong, it is `failed`; nothing is thrown. */
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

/** Inputs are looked at through proxies, and what is handed on is not theirs. */
function plainCopy(value: unknown): unknown {
  if (value === undefined || value === null) return null
  if (typeof value !== 'object') return value
  return JSON.parse(JSON.stringify(value))
}

function carryOut(run: Run, render: (templates: Template[], scope: Scope) => Generator<unknown, unknown, unknown>): EvaluatedValue {
  const { templates, findings, readable } = parse(run.text, run.place.file)
  for (const finding of findings) run.add(run.place.file, run.text, finding)
  run.findings = findings
  let value: unknown = null
  if (readable) {
    const { inputs } = run
    // Getters: what is not named is not looked at.
    const globals: object = Object.create(null, {
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
