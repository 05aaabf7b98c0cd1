// The importer of js-yaml, and the only parser of manifests and resource files: YAML and JSON text → documents as
// kubectl reads them, with their lines. The library scans; values are built here, because only then does every warning
// and refusal know its line. Never throws on input.
import {
  DUMP_SCHEMA,
  defineScalarTag,
  dump,
  EVENT_ID,
  type Event,
  getScalarValue,
  NOT_RESOLVED,
  parseEvents,
  SCALAR_STYLE,
  YAMLException,
} from 'js-yaml'
import { keyText, type PlainScalar, resolvePlainScalar } from '../kube/yaml-scalars.ts'
import type { Problem } from '../runtime/error.ts'

export const YAML_BYTES_MAX = 16 * 1024 * 1024
export const YAML_DEPTH_MAX = 100
/** Counted with everything that aliases repeat: nine levels of nine aliases each are few bytes and a billion nodes. */
export const YAML_NODES_MAX = 500_000
export const YAML_ALIASES_MAX = 1_000

export interface YamlDocument {
  value: unknown
  /** 1-based line of its first node. */
  line: number
}

export interface ParsedYaml {
  /** Without documents that hold nothing but comments. Empty if there are problems that leave nothing to trust. */
  documents: YamlDocument[]
  /** `path` is `file:line:column` in both. */
  warnings: Problem[]
  problems: Problem[]
  /** 1-based line of a mapping or sequence of these documents; 1 for anything else. */
  lineOf(node: unknown): number
  /** `file:line:column` of what is at this path below a mapping or sequence of these documents: of its key, or of the
   *  nearest thing around it that has a place. */
  placeOf(node: unknown, path?: readonly PropertyKey[]): string
  /** A boolean as it was written: `no`. Null means that there is none at this path, or it is an item of a list. */
  wordAt(node: unknown, path: readonly PropertyKey[]): string | null
}

type Scalar = string | number | boolean | null

interface Frame {
  kind: 'document' | 'sequence' | 'mapping'
  value: unknown
  start: number
  anchor: string | null
  /** Nodes below and including this one, aliases counted in full. */
  nodes: number
  /** `text` null: refused; its value is read and dropped, so that what follows keeps its place. */
  key: { text: string | null; start: number; merge: boolean } | null
}

interface Anchored {
  value: unknown
  nodes: number
}

export function parseYamlDocuments(text: string, options: { file: string }): ParsedYaml {
  const source = text.startsWith('\ufeff') ? text.slice(1) : text
  const reader = new Reader(source, options.file)
  if (Buffer.byteLength(source) > YAML_BYTES_MAX) {
    reader.problem(0, `is larger than ${YAML_BYTES_MAX / 1024 / 1024} MiB; split it`)
    return reader.result()
  }
  try {
    reader.build(parseEvents(source, { maxDepth: YAML_DEPTH_MAX }))
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    // The documents before the error are not trusted either: a missing `---` or quote may have moved the borders.
    return { ...reader.result(), documents: [], problems: [reader.syntaxProblem(error)] }
  }
  return reader.result()
}

const UNCLOSED =
  /^unexpected end of the (stream|document) within a (flow collection|(single|double) quoted scalar)$|^deficient indentation$/
/** Characters that are read again, all in all, to find what is not closed. */
const OPENER_READ_MAX = 4_000_000

/** Where the quote, else the outermost `[` or `{`, is that is open at the end of a text, which the parser refuses for
 *  that reason. Null means not found. Only the parser knows what opens anything, so it is asked for the last of them
 *  before which everything is in order, or wrong for another reason. */
function openerIn(text: string): number | null {
  const failure = (length: number): string | null => {
    try {
      parseEvents(text.slice(0, length), { maxDepth: YAML_DEPTH_MAX })
      return null
    } catch (error) {
      if (error instanceof YAMLException) return error.reason
      throw error
    }
  }
  const reason = failure(text.trimEnd().length) // without an end of line, for which indentation would be blamed
  const isQuoted = reason?.endsWith('quoted scalar') ?? false
  let readable = OPENER_READ_MAX
  for (let at = text.length - 1; at >= 0; at--) {
    const sign = text.charAt(at)
    // The second of two quotes opens nothing.
    if (!'[{"\''.includes(sign) || (sign === "'" && text.charAt(at - 1) === sign)) continue
    readable -= at
    if (readable < 0) return null
    const before = failure(at)
    // A quote may be opened within a list or mapping, which for that reason is not closed either.
    if (isQuoted && before !== reason) return failure(at + 1) === reason ? at : null
    if (before === null) return UNCLOSED.test(failure(at + 1) ?? '') ? at : null
  }
  return null
}

class Reader {
  private readonly source: string
  private readonly file: string
  private readonly lineStarts: number[] = [0]
  private readonly documents: YamlDocument[] = []
  private readonly warnings: Problem[] = []
  private readonly problems: Problem[] = []
  private readonly starts = new WeakMap<object, number>()
  private events: readonly Event[] = []
  /**
   * Index of the event of each mapping, by its start. Built on the first request for the place of a key, which happens
   * only for errors.
   */
  private mappings: Map<number, number> | null = null
  private frames: Frame[] = []
  private anchors = new Map<string, Anchored>()
  private aliases = 0
  /** Members that `<<` copied in this document. Each counts as a node of the alias, so a document with too many is
   *  refused. */
  private copied = 0

  constructor(source: string, file: string) {
    this.source = source
    this.file = file
    for (let at = source.indexOf('\n'); at >= 0; at = source.indexOf('\n', at + 1)) this.lineStarts.push(at + 1)
  }

  result(): ParsedYaml {
    const lineOf = (node: unknown): number => (typeof node === 'object' && node !== null ? this.line(this.starts.get(node) ?? 0) : 1)
    const placeOf = (node: unknown, path: readonly PropertyKey[] = []): string => this.place(this.startOf(node, path))
    const wordAt = (node: unknown, path: readonly PropertyKey[]): string | null => this.wordAt(node, path)
    return { documents: this.documents, warnings: this.warnings, problems: this.problems, lineOf, placeOf, wordAt }
  }

  private startOf(node: unknown, path: readonly PropertyKey[]): number {
    if (typeof node !== 'object' || node === null) return 0
    let at = this.starts.get(node) ?? 0
    let current: object = node
    for (const segment of path) {
      const member: unknown = Object.hasOwn(current, segment) ? Reflect.get(current, segment) : undefined
      const isMap = typeof member === 'object' && member !== null
      if (!Array.isArray(current)) at = this.keyOf(current, String(segment))?.start ?? at
      else if (isMap) at = this.starts.get(member) ?? at
      if (!isMap) break
      current = member
    }
    return at
  }

  private wordAt(node: unknown, path: readonly PropertyKey[]): string | null {
    let parent: unknown = node
    for (const segment of path.slice(0, -1)) parent = typeof parent === 'object' && parent !== null ? Reflect.get(parent, segment) : null
    const name = path.at(-1)
    if (typeof parent !== 'object' || parent === null || Array.isArray(parent) || name === undefined) return null
    if (typeof Reflect.get(parent, name) !== 'boolean') return null
    const event = this.events[(this.keyOf(parent, String(name))?.index ?? Number.NaN) + 1]
    return event?.type === EVENT_ID.SCALAR ? getScalarValue(this.source, event) : null
  }

  /** Where a key stands, and its event, which that of its value follows. Undefined means that the mapping has no such
   *  key itself, but by `<<` or not at all. */
  private keyOf(mapping: object, name: string): { start: number; index: number } | undefined {
    this.mappings ??= new Map(this.events.flatMap((event, index) => (event.type === EVENT_ID.MAPPING ? [[event.start, index]] : [])))
    const first = this.mappings.get(this.starts.get(mapping) ?? -1)
    if (first === undefined) return undefined
    let [depth, isKey] = [0, true]
    for (let index = first + 1; depth >= 0; index++) {
      const event = this.events[index]
      if (event === undefined) return undefined
      if (depth === 0 && isKey && event.type === EVENT_ID.SCALAR && getScalarValue(this.source, event) === name)
        return { start: event.valueStart, index }
      if (event.type === EVENT_ID.SEQUENCE || event.type === EVENT_ID.MAPPING) depth += 1
      else if (event.type === EVENT_ID.POP) depth -= 1
      if (depth === 0) isKey = !isKey
    }
    return undefined
  }

  problem(at: number, message: string): void {
    this.problems.push({ path: this.place(at), message })
  }

  /**
   * For input that the library cannot read. It never names a line after the last one with text, which does not help a
   * reader.
   */
  syntaxProblem({ mark, reason }: YAMLException): Problem {
    const end = this.source.trimEnd().length
    const at = mark?.position ?? 0
    const opener = UNCLOSED.test(reason) ? openerIn(this.source.slice(0, at)) : null
    const place = this.place(Math.min(at, end))
    if (opener === null) return { path: place, message: reason }
    const sign = this.source.charAt(opener)
    if (at >= end) return { path: this.place(opener), message: `this ${sign} is never closed` }
    return {
      path: place,
      message: `the ${sign} of line ${this.line(opener)} is not closed before this line; close it, or indent this line`,
    }
  }

  build(events: Event[]): void {
    this.events = events
    for (const event of events) {
      switch (event.type) {
        case EVENT_ID.DOCUMENT:
          this.anchors = new Map()
          this.aliases = 0
          this.copied = 0
          this.open('document', undefined, -1, null)
          break
        case EVENT_ID.SEQUENCE:
        case EVENT_ID.MAPPING: {
          const kind = event.type === EVENT_ID.SEQUENCE ? 'sequence' : 'mapping'
          this.checkCollectionTag(kind, event)
          this.open(kind, kind === 'sequence' ? [] : {}, event.start, this.anchorOf(event))
          break
        }
        case EVENT_ID.SCALAR:
          this.addScalar(event)
          break
        case EVENT_ID.ALIAS:
          this.addAlias(event)
          break
        case EVENT_ID.POP:
          this.close()
          break
      }
    }
  }

  private open(kind: Frame['kind'], value: unknown, start: number, anchor: string | null): void {
    if (typeof value === 'object' && value !== null) this.starts.set(value, start)
    this.frames.push({ kind, value, start, anchor, nodes: 1, key: null })
  }

  private close(): void {
    const frame = this.frames.pop()
    if (frame === undefined) return
    if (frame.kind === 'document') {
      // Comments alone, `---` alone and an explicit null are nothing to apply.
      if (frame.value !== undefined && frame.value !== null) this.documents.push({ value: frame.value, line: this.line(frame.start) })
      return
    }
    if (frame.anchor !== null) this.anchors.set(frame.anchor, { value: frame.value, nodes: frame.nodes })
    this.add(frame.value, frame.nodes, frame.start)
  }

  private addScalar(event: Extract<Event, { type: typeof EVENT_ID.SCALAR }>): void {
    const text = getScalarValue(this.source, event)
    const tag = event.tagStart < 0 ? '' : this.source.slice(event.tagStart, event.tagEnd)
    const plain = event.style === SCALAR_STYLE.PLAIN
    const at = event.valueStart < 0 ? Math.max(event.tagStart, event.anchorStart, 0) : event.valueStart
    const resolved = resolveTagged(tag, text, plain)
    if (resolved.kind === 'refused') this.problem(at, resolved.why)
    const value = resolved.kind === 'refused' ? null : resolved.value
    const anchor = this.anchorOf(event)
    if (anchor !== null) this.anchors.set(anchor, { value, nodes: 1 })
    const frame = this.frames.at(-1)
    if (frame?.kind === 'mapping' && frame.key === null) this.openKey(frame, value, at, resolved.kind === 'refused' ? null : text, plain)
    else this.add(value, 1, at)
  }

  /** `text` null: the key was refused already. */
  private openKey(frame: Frame, value: Scalar, at: number, text: string | null, plain: boolean): void {
    const key = text === null ? null : keyText(value, text)
    if (text !== null && key === null)
      this.problem(
        at,
        value === null ? 'a key must not be null; quote it, or give it a name' : `quote the key ${text}: it is read as a number`,
      )
    if (key === '__proto__') this.problem(at, 'the key "__proto__" is refused')
    if (key !== null && typeof value !== 'string' && key !== text)
      this.warnings.push({
        path: this.place(at),
        message: `the key ${text} is read as "${key}", as by kubectl; quote it if that is not intended`,
      })
    frame.key = { text: key === '__proto__' ? null : key, start: at, merge: plain && text === '<<' }
  }

  private addAlias(event: Extract<Event, { type: typeof EVENT_ID.ALIAS }>): void {
    const name = this.source.slice(event.anchorStart, event.anchorEnd)
    const anchored = this.anchors.get(name)
    const frame = this.frames.at(-1)
    this.aliases += 1
    if (this.aliases === YAML_ALIASES_MAX + 1) this.problem(event.anchorStart, `more than ${YAML_ALIASES_MAX} aliases in one document`)
    if (anchored === undefined) this.problem(event.anchorStart, `*${name} refers to no anchor before it`)
    const value = this.aliases > YAML_ALIASES_MAX ? null : (anchored?.value ?? null)
    if (frame?.kind === 'mapping' && frame.key === null) {
      const scalar = isScalar(value)
      if (!scalar) this.problem(event.anchorStart, 'a key must be text, not a mapping or a list')
      this.openKey(frame, scalar ? value : '', event.anchorStart, scalar ? String(value) : null, false)
    } else this.add(value, anchored?.nodes ?? 1, event.anchorStart)
  }

  private add(value: unknown, nodes: number, at: number): void {
    const frame = this.frames.at(-1)
    if (frame === undefined) return
    const before = frame.nodes
    frame.nodes += nodes
    if (before <= YAML_NODES_MAX && frame.nodes > YAML_NODES_MAX)
      this.problem(at, `more than ${YAML_NODES_MAX} nodes in one document, with aliases expanded`)
    if (frame.nodes > YAML_NODES_MAX) return
    if (frame.kind === 'document') {
      frame.value = value
      frame.start = at
    } else if (frame.kind === 'sequence') (frame.value as unknown[]).push(value)
    else if (frame.key === null) {
      this.problem(at, 'a key must be text, not a mapping or a list')
      frame.key = { text: null, start: at, merge: false }
    } else {
      const { text, start, merge } = frame.key
      frame.key = null
      if (merge) this.merge(frame, value, start)
      else if (text !== null) this.addMember(frame, text, value, start)
    }
  }

  private addMember(frame: Frame, key: string, value: unknown, at: number): void {
    const target = frame.value as Record<string, unknown>
    const merged = this.mergedKeys.get(target)
    if (Object.hasOwn(target, key) && !merged?.delete(key)) this.problem(at, `the key "${key}" appears twice in one mapping`)
    target[key] = value
  }

  /** Keys that came by `<<` and may still be overridden, for each mapping. */
  private readonly mergedKeys = new WeakMap<object, Set<string>>()

  /**
   * `<<: *a` or `<<: [*a, *b]`: keys of the mapping itself take precedence, then the earlier source. YAML and kubectl
   * disagree about a merge after a key that it holds too: refused.
   */
  private merge(frame: Frame, value: unknown, at: number): void {
    const target = frame.value as Record<string, unknown>
    if (this.mergedKeys.has(target)) this.problem(at, '<< appears twice in one mapping; give it a list')
    const merged = new Set<string>()
    this.mergedKeys.set(target, merged)
    for (const source of Array.isArray(value) ? value : [value]) {
      if (source === null || typeof source !== 'object' || Array.isArray(source)) {
        this.problem(at, '<< expects an alias of a mapping, or a list of them')
        return
      }
      if (this.copied > YAML_NODES_MAX) return
      for (const [key, member] of Object.entries(source)) {
        this.copied += 1
        if (merged.has(key)) continue
        if (Object.hasOwn(target, key)) this.problem(at, `<< comes after the key "${key}", which it also has; put << first`)
        target[key] = member
        merged.add(key)
      }
    }
  }

  private checkCollectionTag(kind: 'sequence' | 'mapping', event: { tagStart: number; tagEnd: number }): void {
    if (event.tagStart < 0) return
    const tag = this.source.slice(event.tagStart, event.tagEnd)
    if (tag !== '!' && tag !== (kind === 'sequence' ? '!!seq' : '!!map'))
      this.problem(event.tagStart, `the tag ${tag} has no meaning in a manifest`)
  }

  private anchorOf(event: { anchorStart: number; anchorEnd: number }): string | null {
    return event.anchorStart < 0 ? null : this.source.slice(event.anchorStart, event.anchorEnd)
  }

  private line(at: number): number {
    let [low, high] = [0, this.lineStarts.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((this.lineStarts[middle] ?? 0) <= at) low = middle
      else high = middle - 1
    }
    return low + 1
  }

  private place(at: number): string {
    const line = this.line(at)
    return `${this.file}:${line}:${at - (this.lineStarts[line - 1] ?? 0) + 1}`
  }
}

/** A document as it is written: members in their order, scalars as text. */
export type YamlNode =
  | { kind: 'map'; members: Array<readonly [key: string, value: YamlNode]> }
  | { kind: 'list'; items: YamlNode[] }
  | { kind: 'scalar'; text: string; isPlain: boolean; tag: string }

/** For what depends on the order of members. Null means not YAML, or it has aliases or members without a scalar name.
 */
export function readYamlNodes(text: string): YamlNode[] | null {
  if (Buffer.byteLength(text) > YAML_BYTES_MAX) return null
  try {
    const source = text.startsWith('\ufeff') ? text.slice(1) : text
    return nodesOf(source, parseEvents(source, { maxDepth: YAML_DEPTH_MAX }))
  } catch (error) {
    if (error instanceof YAMLException) return null
    throw error
  }
}

function nodesOf(source: string, events: readonly Event[]): YamlNode[] | null {
  const documents: YamlNode[] = []
  const open: Array<{ node: YamlNode | null; key: string | null }> = []
  const add = (node: YamlNode): boolean => {
    const parent = open.at(-1)
    if (parent?.node?.kind === 'list') parent.node.items.push(node)
    else if (parent?.node?.kind !== 'map') documents.push(node)
    else if (parent.key === null) {
      if (node.kind !== 'scalar') return false
      parent.key = node.text
    } else {
      parent.node.members.push([parent.key, node])
      parent.key = null
    }
    return true
  }
  for (const event of events) {
    if (event.type === EVENT_ID.ALIAS) return null
    else if (event.type === EVENT_ID.DOCUMENT) open.push({ node: null, key: null })
    else if (event.type === EVENT_ID.POP) open.pop()
    else if (event.type === EVENT_ID.SCALAR) {
      const tag = event.tagStart < 0 ? '' : source.slice(event.tagStart, event.tagEnd)
      if (!add({ kind: 'scalar', text: getScalarValue(source, event), isPlain: event.style === SCALAR_STYLE.PLAIN, tag })) return null
    } else if (event.type === EVENT_ID.MAPPING || event.type === EVENT_ID.SEQUENCE) {
      const node: YamlNode = event.type === EVENT_ID.MAPPING ? { kind: 'map', members: [] } : { kind: 'list', items: [] }
      if (!add(node)) return null
      open.push({ node, key: null })
    }
  }
  return documents
}

const isScalar = (value: unknown): value is Scalar => value === null || typeof value !== 'object'

function resolveTagged(tag: string, text: string, plain: boolean): PlainScalar {
  if (tag === '') return plain ? resolvePlainScalar(text) : { kind: 'value', value: text }
  if (tag === '!' || tag === '!!str') return { kind: 'value', value: text }
  const expected = { '!!int': 'number', '!!float': 'number', '!!bool': 'boolean', '!!null': 'object' }[tag]
  if (expected === undefined) return { kind: 'refused', why: `the tag ${tag} has no meaning in a manifest` }
  const resolved = resolvePlainScalar(text)
  const fits = resolved.kind === 'value' && typeof resolved.value === expected && (tag !== '!!int' || Number.isInteger(resolved.value))
  return fits || resolved.kind === 'refused' ? resolved : { kind: 'refused', why: `${JSON.stringify(text)} is no ${tag.slice(2)}` }
}

/** Quotes every string that any reader of YAML 1.1 or 1.2, or `parseYamlDocuments`, would take for something else. */
const quotingSchema = DUMP_SCHEMA.withTags(
  defineScalarTag('tag:skerry.dev,2025:not-text', {
    implicit: true,
    resolve: (source) => {
      const resolved = resolvePlainScalar(source)
      return source === '<<' || source === '=' || resolved.kind === 'refused' || typeof resolved.value !== 'string' ? source : NOT_RESOLVED
    },
    identify: () => false,
  }),
)

/** One YAML document for people; `undefined` members are left out. */
export function toYaml(value: unknown): string {
  const plain: unknown = JSON.parse(JSON.stringify(value ?? null))
  return dump(plain, { schema: quotingSchema, lineWidth: -1, noRefs: true })
}
