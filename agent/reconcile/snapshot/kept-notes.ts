// Notes in the agent's state that outlive the process and that plans read: what was deleted in order to recreate it,
// what a person confirmed at the site, and who holds changes there. Pure.
import { z } from 'zod'
import type { SuspendedScope } from '../../../shared/model/suspension.ts'

const recreateSchema = z.object({
  /** Which document it is deleted for. */
  sent: z.string(),
  /** UID of the deleted object; a repeated request is the same attempt. */
  uid: z.string(),
  /** Objects of this name that were deleted for this document. */
  count: z.number().int(),
  /** The answer of the API server to the new one, if it can never take it. */
  refused: z.string().optional(),
})
export type Recreate = z.infer<typeof recreateSchema>
const RECREATE_FACT = 'recreate/'

export function readRecreates(facts: ReadonlyMap<string, unknown>): Map<string, Recreate> {
  const notes = new Map<string, Recreate>()
  for (const [key, fact] of facts) {
    const parsed = key.startsWith(RECREATE_FACT) ? recreateSchema.safeParse(fact) : null
    if (parsed?.success) notes.set(key.slice(RECREATE_FACT.length), parsed.data)
  }
  return notes
}

export const recreateFacts = (notes: ReadonlyMap<string, Recreate | null>): ReadonlyMap<string, unknown> =>
  new Map([...notes].map(([key, note]) => [RECREATE_FACT + key, note]))

/** `names` absent: written by an agent that confirmed whole revisions. */
const confirmSchema = z.object({ digest: z.string(), by: z.string(), atMs: z.number(), names: z.array(z.string()).optional() })
export type SiteConfirmation = z.infer<typeof confirmSchema>
const CONFIRM_FACT = 'confirm/prune'

/** The confirmation given at the site, also before a restart. */
export const recallConfirmation = (facts: ReadonlyMap<string, unknown>): SiteConfirmation | null =>
  confirmSchema.safeParse(facts.get(CONFIRM_FACT)).data ?? null

export const confirmationFact = (confirmation: SiteConfirmation | null): ReadonlyMap<string, unknown> =>
  new Map([[CONFIRM_FACT, confirmation]])

export const holdSchema = z.object({
  by: z.string().max(256),
  why: z.string().max(1_024),
  sinceMs: z.number().int(),
  /** Absent means until a person lifts it. */
  untilMs: z.number().int().optional(),
})
export type Hold = z.infer<typeof holdSchema>
/** `scope`: the argument of `skerry-agent unhold` that lifts it. `suspended`: ordered on the server, for those. */
export type ActiveHold = Hold & { scope: string; suspended?: SuspendedScope }
