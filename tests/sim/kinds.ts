// The simulations by name. Each plays a history that follows from its seed alone.
import type { Trace } from '../support/trace.ts'
import { gatesLife } from './gates-life.ts'
import { hooksLife } from './hooks-life.ts'
import { pruneHistory } from './prune-sim.ts'
import { reconcileLife } from './reconcile-life.ts'
import { simulate } from './simulate.ts'

export interface Played {
  problems: string[]
  trace: Trace
}

/** `dir`: an empty folder. `steps`: of a history of sync; the others have their own number. */
type Play = (seed: number, dir: string, steps?: number) => Promise<Played>

export const KINDS = {
  sync: async (seed, dir, steps) => {
    const { broken, trace } = await simulate({ seed, dir, ...(steps === undefined ? {} : { steps }) })
    return { problems: broken.map(({ kind, what }) => `${kind}: ${what}`), trace }
  },
  prune: async (seed, dir) => {
    const { broken, trace } = await pruneHistory(seed, dir)
    return { problems: broken, trace }
  },
  gates: gatesLife,
  hooks: hooksLife,
  reconcile: (seed) => reconcileLife(seed),
} as const satisfies Record<string, Play>

export type Kind = keyof typeof KINDS
export const KIND_NAMES = Object.keys(KINDS) as Kind[]
export const isKind = (name: string): name is Kind => Object.hasOwn(KINDS, name)
