// scripts/bench sync: the replica's way from server to agent and back, in bytes and in milliseconds. Each part stands alone: `--only NAME`.
import { benchMerge } from './merge.ts'
import { benchBytes } from './sync-bytes.ts'
import { benchFanout, benchFloor, benchWake } from './sync-fanout.ts'
import { benchFlaps } from './sync-flaps.ts'
import { benchIdle } from './sync-idle.ts'

type Say = (text: string) => void
type Part = (say: Say) => Promise<Record<string, number>>

const PARTS: Record<string, Part> = {
  merge: benchMerge,
  bytes: benchBytes,
  flaps: benchFlaps,
  idle: benchIdle,
  floor: benchFloor,
  wake: benchWake,
  fanout: benchFanout,
}

export async function benchSync(say: Say, only: string | null): Promise<Record<string, number>> {
  if (only !== null && !Object.hasOwn(PARTS, only)) throw new Error(`no such part: ${only}; there are ${Object.keys(PARTS).join(', ')}`)
  const figures: Record<string, number> = {}
  for (const [name, part] of Object.entries(PARTS)) {
    if (only !== null && name !== only) continue
    const startMs = performance.now()
    Object.assign(figures, await part((text) => say(`${name}: ${text}`)))
    say(`${name}: took ${Math.round((performance.now() - startMs) / 1_000)} s`)
  }
  return figures
}
