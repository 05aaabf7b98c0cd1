// Checks of a template before it is rendered: every unknown filter, every name that no template knows, and the partials
// that it renders. Also the words for errors of the library.

import { LiquidError, RenderTag, type Template, type Token, TypeGuards, Value } from 'liquidjs'
import type { Problem } from '../../../shared/runtime/error.ts'
import { DROPPED_FILTERS, LENIENT_FILTERS } from './filters.ts'
import { TEMPLATE_DEPTH_MAX, TEMPLATE_ERRORS_MAX, TEMPLATE_MEMORY_MAX, TemplateRefusal } from './limits.ts'
import { nearestName, shownName } from './problems.ts'

/** All that a template may use. */
export const TAGS: ReadonlySet<string> = new Set(
  'assign for capture case comment render decrement increment cycle if raw unless break continue echo liquid #'.split(' '),
)
const DROPPED_TAGS: Readonly<Record<string, string>> = {
  include: "render a partial with {% render 'name' %} and give it what it needs",
  layout: 'manifests do not support layouts',
  block: 'manifests do not support layouts',
  tablerow: 'this tag writes HTML; use for',
}

export interface Finding {
  /** Offset in the text. */
  at: number
  message: string
  needsCluster?: Problem['needsCluster']
  /** A name that no template knows; its inputs may have one that is like it. */
  missing?: string
}

interface Check {
  findings: Finding[]
  partials: string[]
  /** Their first filter takes what is not there for null. */
  lenient: Value[]
}

/** Members that inputs always have. */
const MEMBERS: Readonly<Record<string, readonly string[] | null>> = {
  cluster: ['name', 'labels', 'facts'],
  'cluster.facts': ['kubernetesVersion', 'apiVersions'],
  service: ['name', 'project', 'namespace'],
  source: ['version'],
  config: null,
}
const ROOTS = ['cluster', 'config', 'service', 'source']

const KNOWN_TOLD = 20

/** A partial has names of its own, which are given where it is rendered. A message is the template of a notification.
 */
export type TemplateKind = 'file' | 'partial' | 'message'

/** Findings are sorted by place, the first 50. */
export function checkTemplates(templates: readonly Template[], filters: ReadonlySet<string>, kind: TemplateKind): Check {
  const walk = new SyntaxWalk(filters)
  walk.visit(templates, 0)
  const names: KnownNames | null = kind === 'partial' ? null : knownNames(walk.locals, kind === 'message')
  const findings: Finding[] = []
  // Messages are made only for reported errors: each is compared with all existing names.
  for (const doubt of walk.doubts.sort((a, b) => a.at - b.at)) {
    if (findings.length >= TEMPLATE_ERRORS_MAX) break
    const finding = findingOf(doubt, names, walk.locals)
    if (finding !== null) findings.push(finding)
  }
  return { findings, partials: [...new Set(walk.partials)].sort(), lenient: walk.lenient }
}

interface KnownNames {
  all: ReadonlySet<string>
  /** For messages. */
  told: string
}

function knownNames(locals: ReadonlySet<string>, isMessage: boolean): KnownNames {
  const all = new Set([...(isMessage ? ['message'] : ROOTS), ...locals])
  if (locals.size === 0 && isMessage) return { all, told: 'templates of notifications have message' }
  if (locals.size === 0) return { all, told: 'templates have cluster, config, service and source' }
  const sorted = [...all].sort()
  const more = sorted.length > KNOWN_TOLD ? `, and ${sorted.length - KNOWN_TOLD} more` : ''
  return { all, told: `known are ${sorted.slice(0, KNOWN_TOLD).map(shownName).join(', ')}${more}` }
}

/** Something that may be wrong: a message that says so, or a name that is to be looked up when all names are known. */
type Doubt = { at: number; message: () => string } | { at: number; names: readonly string[]; token: Token }

function findingOf(doubt: Doubt, known: KnownNames | null, locals: ReadonlySet<string>): Finding | null {
  if ('message' in doubt) return { at: doubt.at, message: doubt.message() }
  const text = doubt.token.getText()
  const message = accessMessage(doubt.names, shownName(text), known, locals)
  return message === null ? null : { at: doubt.at, message, missing: text }
}

function accessMessage(names: readonly string[], text: string, known: KnownNames | null, locals: ReadonlySet<string>): string | null {
  const [root, ...members] = names
  if (root === undefined) return null
  if (known !== null && !known.all.has(root)) {
    const nearest = nearestName(root, known.all)
    return nearest === null
      ? `unknown name ${text}; ${known.told}`
      : `unknown name ${text}; did you mean ${nearest}${text.slice(root.length)}?`
  }
  if (locals.has(root) || known === null) return null
  let place = root
  for (const member of members) {
    const possible = MEMBERS[place]
    if (possible === undefined || possible === null) return null
    if (!possible.includes(member)) {
      const nearest = nearestName(member, possible)
      return `there is no ${place}.${shownName(member)}; ${nearest === null ? `${place} has ${possible.join(', ')}` : `did you mean ${place}.${nearest}?`}`
    }
    place = `${place}.${member}`
  }
  return null
}

class SyntaxWalk {
  readonly doubts: Doubt[] = []
  readonly partials: string[] = []
  readonly lenient: Value[] = []
  readonly locals = new Set<string>()
  private readonly filters: ReadonlySet<string>

  constructor(filters: ReadonlySet<string>) {
    this.filters = filters
  }

  private find(token: Token, message: () => string): void {
    this.doubts.push({ at: token.begin, message })
  }

  visit(templates: readonly Template[], depth: number): void {
    for (const template of templates) {
      if (depth >= TEMPLATE_DEPTH_MAX) {
        this.find(template.token, () => `is more than ${TEMPLATE_DEPTH_MAX} blocks deep`)
        return
      }
      this.visitPartial(template)
      for (const name of template.localScope?.() ?? []) this.locals.add(name.content)
      for (const name of template.blockScope?.() ?? []) this.locals.add(name)
      for (const argument of template.arguments?.() ?? []) this.visitArgument(argument)
      this.visit(childrenOf(template), depth + 1)
    }
  }

  private visitPartial(template: unknown): void {
    if (!(template instanceof RenderTag)) return
    const name = template.partialScope()?.name
    if (name === undefined) this.find(template.token, () => "the name of a partial must be a literal: {% render 'partials/labels' %}")
    else this.partials.push(name)
  }

  private visitArgument(argument: unknown): void {
    if (argument instanceof Value) {
      const [first] = argument.filters
      if (first !== undefined && LENIENT_FILTERS.has(first.name)) this.lenient.push(argument)
      for (const token of postfixOf(argument)) this.visitToken(token)
      for (const filter of argument.filters) {
        if (!this.filters.has(filter.name)) this.find(tokenOf(filter), () => filterMessage(filter.name, this.filters))
        for (const arg of filter.args) this.visitToken(Array.isArray(arg) ? arg[1] : arg)
      }
    } else this.visitToken(argument)
  }

  private visitToken(token: unknown): void {
    if (TypeGuards.isRangeToken(token)) {
      this.visitToken(token.lhs)
      this.visitToken(token.rhs)
    }
    if (!TypeGuards.isPropertyAccessToken(token)) return
    const names: string[] = []
    let fixed = token.variable === undefined
    for (const prop of token.props) {
      if ('content' in prop && typeof prop.content === 'string') {
        if (fixed) names.push(prop.content)
      } else {
        fixed = false
        this.visitToken(prop)
      }
    }
    this.doubts.push({ at: token.begin, names, token })
  }
}

/** The library keeps both to itself; its own analysis reads them. */
const postfixOf = (value: Value): unknown[] => Reflect.get(value.initial, 'postfix') ?? []
const tokenOf = (filter: object): Token => Reflect.get(filter, 'token')

function childrenOf(template: Template): Template[] {
  const generator = template.children?.(false, true)
  if (generator === undefined) return []
  const { value } = generator.next()
  return Array.isArray(value) ? value : []
}

function filterMessage(name: string, filters: ReadonlySet<string>): string {
  const dropped = Object.hasOwn(DROPPED_FILTERS, name) ? DROPPED_FILTERS[name] : undefined
  if (dropped !== undefined) return `the filter ${name} is not supported: ${dropped}`
  const nearest = nearestName(name, filters)
  return nearest === null ? `unknown filter ${shownName(name)}` : `unknown filter ${shownName(name)}; did you mean ${nearest}?`
}

function tagMessage(name: string): string {
  const dropped = Object.hasOwn(DROPPED_TAGS, name) ? DROPPED_TAGS[name] : undefined
  if (dropped !== undefined) return `the tag ${name} is not supported: ${dropped}`
  const nearest = nearestName(name, TAGS)
  return nearest === null ? `unknown tag ${shownName(name)}` : `unknown tag ${shownName(name)}; did you mean ${nearest}?`
}

/** For the author of the template. What is said while it is rendered may hold values: only our own words are handed on.
 */
export function messageOf(error: unknown): string {
  if (error instanceof TemplateRefusal) return error.message
  if (!(error instanceof Error)) return 'cannot be evaluated'
  if (error instanceof RangeError) return 'is nested too deeply, or grows too large'
  const text = error.message.replace(/(, file:.*)?, line:\d+, col:\d+$/s, '')
  if (text.startsWith('Maximum call stack')) return 'is nested too deeply'
  if (text === 'memory alloc limit exceeded')
    return `makes more than ${TEMPLATE_MEMORY_MAX / 1024 / 1024} Mi characters and members of lists`
  const tag = /^tag "(.*)" not found$/s.exec(text)?.[1]
  if (tag !== undefined) return tagMessage(tag)
  if (LiquidError.is(error)) return text
  return 'cannot be evaluated: a value has the wrong type'
}
