// What a simulation finds is worth something only when the seed that found it finds it again. `scripts/sim --twice`
// plays more.
import { expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inLong } from '../support/extent.ts'
import { KIND_NAMES, type Kind } from './kinds.ts'
import { playTwice } from './twice.ts'

const SEEDS_OF_SYNC = inLong(50, 20)
/** The steps of a history of sync: enough for each fault to occur in some of the histories. */
const STEPS = inLong(12, 6)
const SEEDS_OF_OTHERS = inLong(8, 4)

test('a seed is one history, byte for byte, on an idle machine and on a busy one, in any order of a process', async () => {
  const dir = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'skerry-twice-'))
  const seeds = (kind: Kind) => Array.from({ length: kind === 'sync' ? SEEDS_OF_SYNC : SEEDS_OF_OTHERS }, (_, i) => [kind, i + 1] as const)
  try {
    expect(await playTwice({ histories: KIND_NAMES.flatMap(seeds), steps: STEPS, dir })).toEqual({ differences: [], realUses: [] })
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}, 240_000)
