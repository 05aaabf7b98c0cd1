// scripts/bench sync: the replica's way from server to agent and back, in bytes and in milliseconds.
import { benchMerge } from './merge.ts'
import { runParts, type Say } from './parts.ts'
import { benchBytes } from './sync-bytes.ts'
import { benchFanout, benchFloor, benchWake } from './sync-fanout.ts'
import { benchFlaps } from './sync-flaps.ts'
import { benchIdle } from './sync-idle.ts'

const PARTS = {
  merge: benchMerge,
  bytes: benchBytes,
  flaps: benchFlaps,
  idle: benchIdle,
  floor: benchFloor,
  wake: benchWake,
  fanout: benchFanout,
}

export const benchSync = (say: Say, only: string | null): Promise<Record<string, number>> => runParts('sync', PARTS, say, only)
