// What was rendered before, by what it depended on. A render is known again in two steps: the shapes of a service say where to look, and the values there make its key.
// In memory and on the disk, both bounded; a key is a MAC under a key of the server, so that no file name lets anybody guess a secret.
import { canonicalJson, sha256Hex } from '../../../shared/kube/canonical.ts'
import type { RenderedObjects, RenderResult } from '../object-rows.ts'
import type { CacheFiles } from './files.ts'
import { resultFromBytes, resultToBytes } from './results.ts'
import { type Shape, shapesFromBytes, shapesToBytes, shapeText, withShape } from './shapes.ts'

/** IC9: of rows of rendered objects. */
export const CACHE_MEMORY_BYTES_MAX = 64 * 1024 * 1024
/** Of what programs said. */
const OUTPUT_MEMORY_BYTES_MAX = 16 * 1024 * 1024
/** Of what holds little, beside its text. */
const ENTRY_BYTES = 256
const SHAPES_KEPT_MAX = 10_000

export interface RenderCacheDeps {
  /** 32 hex digits. */
  mac(text: string): string
  /** Null: in memory only. */
  files: CacheFiles | null
  memoryBytesMax?: number
}

export interface RenderCache {
  /** `spec` names all that is the same for every cluster of the service: its render options, its own name, the build of this server. */
  shapes(spec: string): Promise<readonly Shape[]>
  /** Enters where a render looked; answers the shape under which it is known. */
  addShape(spec: string, looked: Shape): Promise<Shape>
  /** Of one shape, so that it is named once for ten thousand clusters. */
  keysOf(spec: string, shape: Shape): (values: readonly string[]) => string
  /** `known`: rows in memory that it may share. */
  get(key: string, known?: ReadonlyMap<string, string>): Promise<RenderResult | null>
  /** Of what is in memory. */
  peek(key: string): RenderResult | null
  put(key: string, result: RenderResult, secret: boolean): Promise<void>
  /** What failed is to be tried again. */
  drop(key: string): void
  /** What `run` answers for exactly these parts; run once at a time, and not again while its answer is kept. */
  once(parts: readonly string[], run: () => Promise<Uint8Array>, secret: () => boolean): Promise<Uint8Array>
}

export function createRenderCache(deps: RenderCacheDeps): RenderCache {
  return new TwoStepCache(deps)
}

class TwoStepCache implements RenderCache {
  private readonly deps: RenderCacheDeps
  private readonly results: Weighed<RenderResult>
  private readonly outputs = new Weighed<Uint8Array>(OUTPUT_MEMORY_BYTES_MAX)
  private readonly shapesBySpec = new Map<string, readonly Shape[]>()
  private readonly running = new Map<string, Promise<Uint8Array>>()

  constructor(deps: RenderCacheDeps) {
    this.deps = deps
    this.results = new Weighed(deps.memoryBytesMax ?? CACHE_MEMORY_BYTES_MAX)
  }

  async shapes(spec: string): Promise<readonly Shape[]> {
    const held = this.shapesBySpec.get(spec)
    if (held !== undefined) return held
    const bytes = await this.deps.files?.get(this.shapesKey(spec))
    const entered = this.shapesBySpec.get(spec) // by another one who asked meanwhile
    const shapes = entered ?? (bytes == null ? [] : (shapesFromBytes(bytes) ?? []))
    this.keepShapes(spec, shapes)
    return shapes
  }

  async addShape(spec: string, looked: Shape): Promise<Shape> {
    await this.shapes(spec)
    const before = this.shapesBySpec.get(spec) ?? [] // as of now: another render may have entered one meanwhile
    const { shapes, shape } = withShape(before, looked)
    this.keepShapes(spec, shapes)
    const isNew = before.length !== shapes.length || !before.some((one) => shapeText(one) === shapeText(shape))
    if (isNew) await this.deps.files?.put(this.shapesKey(spec), shapesToBytes(shapes), false).catch(() => {})
    return shape
  }

  keysOf(spec: string, shape: Shape): (values: readonly string[]) => string {
    const place = sha256Hex(canonicalJson(['render', spec, shapeText(shape)]))
    return (values) => this.deps.mac(canonicalJson([place, ...values]))
  }

  async get(key: string, known?: ReadonlyMap<string, string>): Promise<RenderResult | null> {
    const held = this.results.use(key)
    if (held !== undefined) return held
    const bytes = await this.deps.files?.get(key)
    const result = bytes == null ? null : resultFromBytes(bytes, known)
    if (result !== null) this.results.set(key, result, weightOf(result))
    return result
  }

  peek(key: string): RenderResult | null {
    return this.results.peek(key) ?? null
  }

  /** IC7: what failed is kept in memory only: a limit that was met on a busy machine is tried again by the next process. */
  async put(key: string, result: RenderResult, secret: boolean): Promise<void> {
    this.results.set(key, result, weightOf(result))
    if (result.kind === 'rendered') await this.deps.files?.put(key, resultToBytes(result), secret).catch(() => {})
  }

  drop(key: string): void {
    this.results.drop(key)
  }

  async once(parts: readonly string[], run: () => Promise<Uint8Array>, secret: () => boolean): Promise<Uint8Array> {
    const key = this.deps.mac(canonicalJson(['output', ...parts]))
    const under = this.running.get(key)
    if (under !== undefined) return under
    const found = this.findOrRun(key, run, secret).finally(() => this.running.delete(key))
    this.running.set(key, found)
    return found
  }

  private async findOrRun(key: string, run: () => Promise<Uint8Array>, secret: () => boolean): Promise<Uint8Array> {
    const held = this.outputs.use(key) ?? (await this.deps.files?.get(key).then((bytes) => (bytes === null ? null : inflate(bytes))))
    const bytes = held ?? (await run())
    this.outputs.set(key, bytes, bytes.byteLength)
    if (held == null) await this.deps.files?.put(key, Bun.zstdCompressSync(bytes, { level: 1 }), secret()).catch(() => {})
    return bytes
  }

  private keepShapes(spec: string, shapes: readonly Shape[]): void {
    this.shapesBySpec.delete(spec)
    this.shapesBySpec.set(spec, shapes)
    for (const [oldest] of this.shapesBySpec) {
      if (this.shapesBySpec.size <= SHAPES_KEPT_MAX) return
      this.shapesBySpec.delete(oldest)
    }
  }

  private shapesKey(spec: string): string {
    return this.deps.mac(canonicalJson(['shapes', spec]))
  }
}

function inflate(bytes: Uint8Array): Uint8Array | null {
  try {
    return Bun.zstdDecompressSync(bytes)
  } catch {
    return null
  }
}

function weightOf(result: RenderResult): number {
  if (result.kind === 'failed') return JSON.stringify(result).length + ENTRY_BYTES
  return rowsWeight(result)
}

function rowsWeight({ objects }: RenderedObjects): number {
  let bytes = 0
  for (const [id, doc] of objects) bytes += id.length + doc.length
  return bytes
}

/** By what it weighs; the longest unused go first. */
class Weighed<Value> {
  private readonly held = new Map<string, { value: Value; weight: number }>()
  private readonly max: number
  private weight = 0

  constructor(max: number) {
    this.max = max
  }

  peek(key: string): Value | undefined {
    return this.held.get(key)?.value
  }

  use(key: string): Value | undefined {
    const entry = this.held.get(key)
    if (entry === undefined) return undefined
    this.held.delete(key)
    this.held.set(key, entry)
    return entry.value
  }

  drop(key: string): void {
    this.weight -= this.held.get(key)?.weight ?? 0
    this.held.delete(key)
  }

  set(key: string, value: Value, weight: number): void {
    this.weight += weight - (this.held.get(key)?.weight ?? 0)
    this.held.delete(key)
    this.held.set(key, { value, weight })
    for (const [oldest, entry] of this.held) {
      if (this.weight <= this.max || oldest === key) return
      this.held.delete(oldest)
      this.weight -= entry.weight
    }
  }
}
