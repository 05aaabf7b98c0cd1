// One render of one template: what names mean, what is written, what is found to be wrong, and what all of it costs.
import { Context, Drop, type Emitter, LiquidError, type Template, UndefinedVariableError } from 'liquidjs'
import type { Problem } from '../../../shared/runtime/error.ts'
import type { RenderInputs } from '../inputs.ts'
import { ownMember } from './filters.ts'
import { type Meter, TEMPLATE_ERRORS_MAX, TemplateRefusal, TemplateStop } from './limits.ts'
import { inputNames, missingMessage, misspelledMessage, problemsAt, type TemplatePlace, type TextFault } from './problems.ts'
import { type Finding, messageOf } from './syntax.ts'

/** Texts of partials by the name that `{% render %}` gives. */
export type Partials = ReadonlyMap<string, { file: string; text: string }>

/** One render of one template. */
export class Run {
  readonly meter: Meter
  readonly found = new Map<string, TextFault>()
  /** Findings of the template itself; the blocks around them add nothing when it is rendered. */
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
    const said =
      ownText && error instanceof UndefinedVariableError
        ? missingMessage(token.getText(), this.inputs, this.inputNames(), this.place.message)
        : { message: this.messageOf(error, ownText) }
    this.add(token.file ?? this.place.file, token.input, { at: token.begin, ...said })
    this.failures += 1
    if (this.failures >= TEMPLATE_ERRORS_MAX && !(error instanceof TemplateStop)) throw new TemplateStop('too many errors')
  }

  private messageOf(error: unknown, ownText: boolean): string {
    if (LiquidError.is(error) && !ownText) return 'reads a name that the members of the list do not have'
    return messageOf(error)
  }

  all(): Problem[] {
    return problemsAt(this.found.values(), this.place, TEMPLATE_ERRORS_MAX)
  }

  add(file: string, text: string, { at, message, missing, needsCluster }: Finding): void {
    const said = missing === undefined ? message : (misspelledMessage(missing, this.inputNames()) ?? message)
    this.found.set(`${file} ${at} ${said}`, { file, text, at, message: said, needsCluster })
  }

  private inputNames(): readonly string[] {
    this.names ??= inputNames(this.inputs, this.place.message)
    return this.names
  }
}

/** Looks up names and counts it; only own members of plain data. */
export class Scope extends Context {
  readonly run: Run

  constructor(run: Run, ...rest: ConstructorParameters<typeof Context>) {
    super(...rest)
    this.run = run
  }

  override spawn(scope: object = {}): Scope {
    const { sync, globals, strictVariables, ownPropertyOnly, renderLimit, memoryLimit, liquid } = this
    return new Scope(this.run, scope, this.opts, { sync, globals, strictVariables, ownPropertyOnly }, { renderLimit, memoryLimit, liquid })
  }

  /** Without reading what is between: the library asks every value whether it is an iterator. */
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
/** Members of forloop, which is an object of the library. */
const LOOP_MEMBERS = new Set(['index', 'index0', 'rindex', 'rindex0', 'first', 'last', 'length'])

/** The library knows by this name that `default` may step in. */
class MissingName extends Error {
  override name = 'InternalUndefinedVariableError'
}

/** True for the data that templates see; forloop is an object of the library. */
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
        `expected text, not a ${Array.isArray(value) ? 'list' : 'mapping'}; write it with | toJson, or | toYaml and nindent`,
      )
    if (typeof value === 'number' && !Number.isFinite(value)) throw new TemplateRefusal('the result is not a number')
    const text = String(value)
    this.meter.write(text)
    this.buffer += text
  }
}

/** The library's loop stops at the first error and has a clock; this one continues and counts. */
export class Walk {
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
    throw new Error('templates must render synchronously')
  }
}

/** The library takes whatever happens at a name for a name that is not there. */
export function causeOf(error: unknown): unknown {
  const cause = LiquidError.is(error) ? error.originalError : undefined
  return cause === undefined || cause instanceof MissingName ? error : cause
}

const isFatal = (error: unknown): boolean =>
  error instanceof TemplateStop || error instanceof RangeError || (error instanceof Error && error.message.includes('limit exceeded'))

/** Throws for a context that the library made, whose work would not be counted. */
export function scopeOf(context: Context): Scope {
  if (!(context instanceof Scope)) throw new Error('a context without limits')
  return context
}
