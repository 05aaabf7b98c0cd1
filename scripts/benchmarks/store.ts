// scripts/bench store: the fleet store under ten thousand clusters, on both engines.
import { type Part, runParts, type Say } from './parts.ts'
import { benchStorm } from './store-storm.ts'

const PARTS: Record<string, Part> = {
  storm: benchStorm,
}

export const benchStore = (say: Say, only: string | null): Promise<Record<string, number>> => runParts(PARTS, say, only)
