// Finds a render of one service again by a tree of decisions. Each point reads one place, and the value there leads to
// the next point, until there is nothing more to read; the last point names the render. A point is a MAC over
// everything that was read on the way to it. So the tree needs no branches, only the next place of each point; equal
// points mean equal values at all places so far, and no value can be guessed from it. Places that one render added one
// after the other are held together, as a run: a cluster with a thousand variables of its own costs the thousand reads,
// and not a thousand entries.
import { z } from 'zod'
import { canonicalJson } from '../../../shared/kube/canonical.ts'
import type { Dependency } from '../inputs.ts'

/** IC9: of one service; beyond it those that were not passed lately are forgotten, and what they led to is rendered
 *  again. */
const STEPS_MAX = 500_000
/** IC9: what each further look of a run counts: it takes a reference and four digits. */
const FURTHER_DEPENDENCY = 1 / 8

export interface Step {
  dependency: Dependency
  text: string
}

/** Looks from one point on, with what tells the way of the render that made them from all others. */
interface Run {
  readonly key: number
  readonly steps: Step[]
  /**
   * A few digits of the value at each step; at the last one perhaps not yet. An equal mark of another value does no
   * harm: then more is read than necessary.
   */
  marks: string
}

/** The present place of a walk. */
export interface Spot {
  /** The last point that was named: where he came upon the run. */
  from: string
  /** The path that was seen since. */
  seen: string
  /** He goes along it, and stands before its step `index`. */
  run: Run | null
  index: number
}

/** Equal for equal looks only: the index of a source is a number, names of inputs are texts. */
export const dependencyText = (dependency: Dependency): string =>
  canonicalJson('path' in dependency ? [dependency.source, dependency.path] : dependency)

export class DependencyPaths {
  /** Where all renders of the service begin. */
  readonly start: Spot
  private readonly key: string
  private readonly max: number
  /**
   * Two generations: a passed run moves into the younger one. Beyond the bound the elder ones are removed, one by one;
   * when none is left, the younger ones become the elder ones.
   */
  private young = new Map<number, Run>()
  private old = new Map<number, Run>()
  private eldest = this.old.keys()
  private weight = 0
  /** Ten thousand clusters look at few places: each is held once. */
  private readonly byText = new Map<string, Step>()
  private unsaved = 0
  private readonly seed: number

  /** `mac`: 32 hex digits under a key of the server. */
  constructor(spec: string, mac: (text: string) => string, max: number = STEPS_MAX) {
    this.key = mac(canonicalJson(['paths', spec]))
    this.max = max
    this.seed = Number.parseInt(this.key.slice(0, 8), 16)
    this.start = spotAt(this.macOf(''))
  }

  /** In steps: a run is one, and an eighth of one for each look but the first. */
  get size(): number {
    return this.weight
  }

  /** More than that part of it is not written down yet. Written whenever a third is new, it is written three times over
   *  at most, however it grows. */
  isDue(part = 1 / 3): boolean {
    return this.unsaved > this.weight * part
  }

  /** Computed only when the walk leaves a run: a MAC for each read would take longer than all other work. */
  pointOf({ from, seen }: Spot): string {
    return seen === '' ? from : this.macOf(from + seen)
  }

  /** The place to read there. Undefined means none known. */
  stepAt(spot: Spot): Step | undefined {
    const { run, index } = this.along(spot)
    return run?.steps[index]
  }

  /** Where nothing was known. */
  add(spot: Spot, dependency: Dependency): Step {
    const { run, index } = spot
    const step = this.stepOf(dependency, dependencyText(dependency))
    // The end of a run continues the run: so the reads of one render stay together.
    const isEnd = run !== null && index === run.steps.length && this.held(run.key) === run
    if (isEnd) run.steps.push(step)
    else this.enter({ key: keyOf(this.pointOf(spot)), steps: [step], marks: '' })
    this.unsaved += isEnd ? FURTHER_DEPENDENCY : 1
    if (isEnd) this.weigh(FURTHER_DEPENDENCY)
    return step
  }

  next(spot: Spot, { text }: Step, value: string): Spot {
    const { from, seen, run, index } = this.along(spot)
    const all = `${seen}${text}\n${value.length} ${value}\n`
    const mark = this.markOf(value)
    const at = index * MARK_DIGITS
    if (run?.marks.length === at) run.marks += mark
    return run?.marks.startsWith(mark, at) ? { from, seen: all, run, index: index + 1 } : spotAt(this.macOf(from + all))
  }

  toBytes(): Uint8Array {
    const places = new Map<string, number>()
    const runs: string[] = []
    for (const { key, steps, marks } of [...this.old.values(), ...this.young.values()]) {
      const dependencies = steps.map(({ text }) => {
        const place = places.get(text) ?? places.size
        places.set(text, place)
        return place
      })
      runs.push(`[${key},"${marks}",[${dependencies.join(',')}]]`)
    }
    this.unsaved = 0
    return Bun.zstdCompressSync(`{"looks":[${[...places.keys()].join(',')}],"runs":[${runs.join(',')}]}`, { level: 1 })
  }

  /** Nothing, of bytes that are none of these. */
  fill(bytes: Uint8Array): void {
    const { looks: dependencies, runs } = savedOf(bytes)
    const known = dependencies.map((dependency) => this.stepOf(dependency, dependencyText(dependency)))
    for (const [key, marks, places] of runs) {
      const steps = places.flatMap((place) => known[place] ?? [])
      const isWhole = steps.length === places.length && marks.length % MARK_DIGITS === 0
      const open = steps.length - marks.length / MARK_DIGITS
      if (isWhole && steps.length > 0 && (open === 0 || open === 1)) this.enter({ key, steps, marks })
    }
  }

  /** With the run that continues: the one of the walk, or one that begins here. */
  private along(spot: Spot): Spot {
    if (spot.run !== null && spot.index < spot.run.steps.length) return spot
    const from = this.pointOf(spot)
    return { ...spotAt(from), run: this.held(keyOf(from)) ?? null }
  }

  private held(key: number): Run | undefined {
    const run = this.young.get(key)
    if (run !== undefined) return run
    const elder = this.old.get(key)
    if (elder === undefined) return undefined
    this.old.delete(key)
    this.young.set(key, elder)
    return elder
  }

  private enter(run: Run): void {
    const before = this.held(run.key)
    this.young.set(run.key, run)
    this.weigh(weightOf(run) - (before === undefined ? 0 : weightOf(before)))
  }

  private weigh(more: number): void {
    this.weight += more
    if (this.old.size === 0 && this.weight >= this.max / 2) this.growOld()
    while (this.weight > this.max) {
      const { value: key } = this.eldest.next()
      if (key === undefined) this.growOld()
      else {
        this.weight -= weightOf(this.old.get(key))
        this.old.delete(key)
      }
    }
  }

  private growOld(): void {
    this.old = this.young
    this.young = new Map()
    this.eldest = this.old.keys()
  }

  /** An HMAC like the server's, computed here for its speed: a reconciliation makes some for each cluster. */
  private macOf(text: string): string {
    return new Bun.CryptoHasher('sha256', this.key).update(text).digest('hex').slice(0, POINT_DIGITS)
  }

  private markOf(value: string): string {
    return (Bun.hash.xxHash32(value, this.seed) % 16 ** MARK_DIGITS).toString(16).padStart(MARK_DIGITS, '0')
  }

  private stepOf(dependency: Dependency, text: string): Step {
    if (this.byText.size > this.max) this.byText.clear()
    const step = this.byText.get(text) ?? { dependency, text }
    this.byText.set(text, step)
    return step
  }
}

const POINT_DIGITS = 32
/**
 * Its first 48 bits are enough here: a point that is mistaken for another one causes an unrelated read, and the whole
 * MAC names the render.
 */
const KEY_DIGITS = 12
const keyOf = (point: string): number => Number.parseInt(point.slice(0, KEY_DIGITS), 16)

const MARK_DIGITS = 4
const spotAt = (point: string): Spot => ({ from: point, seen: '', run: null, index: 0 })
const weightOf = (run: Run | undefined): number => (run === undefined ? 0 : 1 + (run.steps.length - 1) * FURTHER_DEPENDENCY)

// Names as long as those that renders read: the file is sealed and our own.
const name = z.string()
const dependencySchema = z.union([z.tuple([z.number().int(), name]).transform(([source, path]) => ({ source, path })), z.array(name)])
const savedSchema = z.strictObject({
  looks: z.array(dependencySchema),
  runs: z.array(z.tuple([z.number().int(), z.string().regex(/^[0-9a-f]*$/), z.array(z.number().int())])),
})

function savedOf(bytes: Uint8Array): z.infer<typeof savedSchema> {
  try {
    return savedSchema.parse(JSON.parse(new TextDecoder().decode(Bun.zstdDecompressSync(bytes))))
  } catch {
    return { looks: [], runs: [] }
  }
}
