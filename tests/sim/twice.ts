// One seed is one history, whatever the machine does meanwhile: plays histories in a process of their own on a machine
// as it is, and again in another one, in the reverse order and beside loops that take the processor, and compares the
// traces byte by byte.
import { mkdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { Kind } from './kinds.ts'

export interface PartOfTwice {
  histories: ReadonlyArray<readonly [kind: Kind, seed: number]>
  steps?: number
  /** Where the traces go. */
  out: string
}

export interface TwiceOptions extends Omit<PartOfTwice, 'out'> {
  /** An empty folder. */
  dir: string
}

/** The first line by which two runs of one seed differ. */
export interface Difference {
  kind: Kind
  seed: number
  line: number
  alone: string
  underLoad: string
}

export interface TwiceReport {
  differences: Difference[]
  /** Calls in a history that read real time or throw dice that nobody seeded. */
  realUses: string[]
}

/** A loop ends by itself, should the process that started it be killed. */
const LOOP_MS_MAX = 600_000

/** Loops that take every processor in turns of `busyMs`, with pauses of `pauseMs` between them. The function ends them.
 */
export function startLoad({ busyMs, pauseMs, forMs = LOOP_MS_MAX }: { busyMs: number; pauseMs: number; forMs?: number }): () => void {
  const turn = `for (const until = Date.now() + ${busyMs}; Date.now() < until; );`
  const loop = `for (const end = Date.now() + ${forMs}; Date.now() < end; ) { ${turn} Bun.sleepSync(${pauseMs}) }`
  const loops = Array.from({ length: availableParallelism() }, () => Bun.spawn([process.execPath, '-e', loop]))
  return () => {
    for (const one of loops) one.kill()
  }
}
/** The load of the check: enough to be interrupted everywhere, without taking most of the check's own time. */
const LIGHT = { busyMs: 10, pauseMs: 20 }

export async function playTwice({ histories, steps, dir }: TwiceOptions): Promise<TwiceReport> {
  const [alone, underLoad] = [join(dir, 'alone'), join(dir, 'under-load')]
  const common = steps === undefined ? {} : { steps }
  const first = await playPart({ ...common, histories, out: alone })
  const endLoad = startLoad(LIGHT)
  let second: string[]
  try {
    second = await playPart({ ...common, histories: histories.toReversed(), out: underLoad })
  } finally {
    endLoad()
  }
  const differences = histories.flatMap(([kind, seed]) => {
    const read = (folder: string) => readFileSync(join(folder, `${kind}-${seed}`), 'utf8')
    const found = firstDifference(read(alone), read(underLoad))
    return found === null ? [] : [{ kind, seed, ...found }]
  })
  return { differences, realUses: [...new Set([...first, ...second])] }
}

async function playPart(part: PartOfTwice): Promise<string[]> {
  mkdirSync(part.out, { recursive: true })
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'twice-run.ts'), JSON.stringify(part)], {
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(err)
  return JSON.parse(out) as string[]
}

function firstDifference(alone: string, underLoad: string): Pick<Difference, 'line' | 'alone' | 'underLoad'> | null {
  if (alone === underLoad) return null
  const [a, b] = [alone.split('\n'), underLoad.split('\n')]
  const at = a.findIndex((line, index) => line !== b[index])
  const line = at < 0 ? a.length : at
  return { line: line + 1, alone: a[line] ?? 'the end', underLoad: b[line] ?? 'the end' }
}
