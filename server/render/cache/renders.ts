// Earlier renders by their dependencies: the paths of a service lead from dependency to dependency to the key of a
// render. In memory and on the disk, both bounded. A key is a MAC under a key of the server, so that no file name lets
// anybody guess a secret.
import { canonicalJson } from '../../../shared/kube/canonical.ts'
import type { RenderedObjects, RenderResult } from '../object-rows.ts'
import type { CacheFiles } from './files.ts'
import { DependencyPaths } from './paths.ts'
import { type KeptRender, renderFromBytes, renderToBytes } from './results.ts'

/** IC9: of rows of rendered objects. */
export const CACHE_MEMORY_BYTES_MAX = 64 * 1024 * 1024
/** The weight of an entry beside its text. */
const ENTRY_BYTES = 256
/** IC9: of all services. */
const STEPS_MEMORY_MAX = 1_000_000
/** The weight of a service beside its steps. */
const SERVICE_STEPS = 100

export interface RenderCacheDeps {
  /** 32 hex digits. */
  mac(text: string): string
  /** Null if it is kept in memory only. */
  files: CacheFiles | null
  memoryBytesMax?: number
}

export interface RenderCache {
  /** `spec` names all that is the same for every cluster of the service: its render options, its own name, the build of
   *  this server. */
  paths(spec: string): Promise<DependencyPaths>
  /** Writes them down, if there are new ones. */
  savePaths(spec: string, paths: DependencyPaths): Promise<void>
  /** Names what a render was made of. */
  mac(text: string): string
  /** `known`: rows in memory that it may share. */
  get(key: string, known?: ReadonlyMap<string, string>): Promise<KeptRender | null>
  /** Reads from memory only. */
  peek(key: string): RenderResult | null
  put(key: string, render: KeptRender, secret: boolean): Promise<void>
  /** A failed render is dropped, so that it is tried again. */
  drop(key: string): void
  readonly answers: RenderAnswers
}

/** Outputs of programs, by a digest of their whole input; compressed as they come and go. */
export interface RenderAnswers {
  get(parts: string): Promise<Uint8Array | null>
  put(parts: string, answer: Uint8Array, secret: boolean): Promise<undefined>
}

export function createRenderCache(deps: RenderCacheDeps): RenderCache {
  return new TwoStepCache(deps)
}

class TwoStepCache implements RenderCache {
  private readonly deps: RenderCacheDeps
  private readonly results: Weighed<KeptRender>
  private readonly pathsBySpec = new Weighed<Promise<DependencyPaths>>(STEPS_MEMORY_MAX)

  constructor(deps: RenderCacheDeps) {
    this.deps = deps
    this.results = new Weighed(deps.memoryBytesMax ?? CACHE_MEMORY_BYTES_MAX)
  }

  paths(spec: string): Promise<DependencyPaths> {
    const held = this.pathsBySpec.use(spec)
    if (held !== undefined) return held
    const paths = this.readPaths(spec)
    this.pathsBySpec.set(spec, paths, SERVICE_STEPS)
    return paths
  }

  async savePaths(spec: string, paths: DependencyPaths): Promise<void> {
    this.pathsBySpec.set(spec, Promise.resolve(paths), SERVICE_STEPS + paths.size)
    // Sealed: a name of a file may have been made with a secret.
    if (paths.isDue(0)) await this.deps.files?.put(this.pathsKey(spec), paths.toBytes(), true).catch(() => {})
  }

  mac(text: string): string {
    return this.deps.mac(text)
  }

  async get(key: string, known?: ReadonlyMap<string, string>): Promise<KeptRender | null> {
    const held = this.results.use(key)
    if (held !== undefined) return held
    const bytes = await this.deps.files?.get(key)
    const render = bytes == null ? null : renderFromBytes(bytes, known)
    if (render !== null) this.results.set(key, render, weightOf(render.result))
    return render
  }

  peek(key: string): RenderResult | null {
    return this.results.peek(key)?.result ?? null
  }

  /** IC7: what failed is kept in memory only: a limit that was met on a busy machine is tried again by the next
   *  process. */
  async put(key: string, render: KeptRender, secret: boolean): Promise<void> {
    const { result } = render
    this.results.set(key, render, weightOf(result))
    if (result.kind === 'rendered') await this.deps.files?.put(key, renderToBytes(result, render), secret).catch(() => {})
  }

  drop(key: string): void {
    this.results.drop(key)
  }

  readonly answers: RenderAnswers = {
    get: async (parts) => (await this.deps.files?.get(this.answerKey(parts))) ?? null,
    // Sealed whatever it was made of: a chart may make a password by itself.
    put: async (parts, answer) => {
      await this.deps.files?.put(this.answerKey(parts), answer, true).catch(() => {})
      return undefined
    },
  }

  private async readPaths(spec: string): Promise<DependencyPaths> {
    const paths = new DependencyPaths(spec, this.deps.mac)
    const bytes = await this.deps.files?.get(this.pathsKey(spec))
    if (bytes != null) paths.fill(bytes)
    return paths
  }

  private answerKey(parts: string): string {
    return this.deps.mac(canonicalJson(['answer', parts]))
  }

  private pathsKey(spec: string): string {
    return this.deps.mac(canonicalJson(['saved paths', spec]))
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
    if (this.weight <= this.max) return // a look at the first one passes over all that went before it
    for (const [oldest, entry] of this.held) {
      if (this.weight <= this.max || oldest === key) return
      this.held.delete(oldest)
      this.weight -= entry.weight
    }
  }
}
