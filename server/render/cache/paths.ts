// How a render of one service is found again: a tree of decisions. At each point it looks at one place, and what is there leads to the next point, until there is nothing more to
// look at; the last point names the render. A point is a MAC over everything that was seen on the way to it: so the tree needs no branches, only what is looked at next at each
// point, equal points mean equal values at all places so far, and nobody can guess a value from it.
import { z } from 'zod'
import { canonicalJson } from '../../../shared/kube/canonical.ts'
import type { Look } from '../inputs.ts'

/** IC9: of one service; beyond it those that were not passed lately are forgotten, and what they led to is rendered again. */
const STEPS_MAX = 500_000

export interface Step {
  look: Look
  text: string
}

export const lookText = (look: Look): string => canonicalJson('path' in look ? [look.source, look.path] : look)

export class LookPaths {
  /** Where all renders of the service begin. */
  readonly start: string
  private readonly key: string
  private readonly max: number
  /** Two generations: who is passed comes into the younger one, and when that one is half of all, the elder one goes. */
  private young = new Map<number, Step>()
  private old = new Map<number, Step>()
  /** Ten thousand clusters look at few places: each is held once. */
  private readonly byText = new Map<string, Step>()
  private unsaved = 0

  /** `mac`: 32 hex digits under a key of the server. */
  constructor(spec: string, mac: (text: string) => string, max: number = STEPS_MAX) {
    this.key = mac(canonicalJson(['paths', spec]))
    this.max = max
    this.start = this.macOf('')
  }

  get size(): number {
    return this.young.size + this.old.size
  }

  /** More than that part of it is not written down yet. Written whenever a third is new, it is written three times over at most, however it grows. */
  isDue(part = 1 / 3): boolean {
    return this.unsaved > this.size * part
  }

  /** What is looked at there; undefined: nothing more, as far as is known. */
  stepAt(point: string): Step | undefined {
    const key = keyOf(point)
    const step = this.young.get(key)
    if (step !== undefined) return step
    const elder = this.old.get(key)
    if (elder !== undefined) this.enter(key, elder)
    return elder
  }

  add(point: string, look: Look): Step {
    const step = this.stepOf(look, lookText(look))
    this.enter(keyOf(point), step)
    this.unsaved += 1
    return step
  }

  next(point: string, { text }: Step, value: string): string {
    return this.macOf(`${point}${text}\n${value}`)
  }

  toBytes(): Uint8Array {
    const places = new Map<string, number>()
    const steps: number[] = []
    for (const [key, { text }] of new Map([...this.old, ...this.young])) {
      const place = places.get(text) ?? places.size
      places.set(text, place)
      steps.push(key, place)
    }
    this.unsaved = 0
    return Bun.zstdCompressSync(`{"looks":[${[...places.keys()].join(',')}],"steps":[${steps.join(',')}]}`, { level: 1 })
  }

  /** Nothing, of bytes that are none of these. */
  fill(bytes: Uint8Array): void {
    const { looks, steps } = savedOf(bytes)
    const known = looks.map((look) => this.stepOf(look, lookText(look)))
    for (let index = 0; index < steps.length; index += 2) {
      const [key = 0, place = -1] = [steps[index], steps[index + 1]]
      const step = known[place]
      if (step !== undefined) this.enter(key, step)
    }
  }

  private enter(key: number, step: Step): void {
    if (this.young.size >= this.max / 2) {
      this.old = this.young
      this.young = new Map()
    }
    this.young.set(key, step)
  }

  /** An HMAC as that of the server, made here for its speed: a pass makes one for each cluster and look. */
  private macOf(text: string): string {
    return new Bun.CryptoHasher('sha256', this.key).update(text).digest('hex').slice(0, POINT_DIGITS)
  }

  private stepOf(look: Look, text: string): Step {
    if (this.byText.size > this.max) this.byText.clear()
    const step = this.byText.get(text) ?? { look, text }
    this.byText.set(text, step)
    return step
  }
}

const POINT_DIGITS = 32
/** Its first 48 bits are enough here: a point that is taken for another one is asked for a look that says nothing of it, and the whole MAC names the render. */
const KEY_DIGITS = 12
const keyOf = (point: string): number => Number.parseInt(point.slice(0, KEY_DIGITS), 16)

const name = z.string().max(4_096)
const lookSchema = z.union([z.tuple([z.number().int(), name]).transform(([source, path]) => ({ source, path })), z.array(name)])
const savedSchema = z.strictObject({ looks: z.array(lookSchema), steps: z.array(z.number().int()) })

function savedOf(bytes: Uint8Array): z.infer<typeof savedSchema> {
  try {
    return savedSchema.parse(JSON.parse(new TextDecoder().decode(Bun.zstdDecompressSync(bytes))))
  } catch {
    return { looks: [], steps: [] }
  }
}
