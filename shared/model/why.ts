// Why a service is not as it should be: causes with their evidence and the next step, the most likely one first.
import { z } from 'zod'

const ms = z.number().int()

/** Before the lines of a log in the message of an object: what follows are words of a program, and no facts about the
 *  cluster. */
export const LAST_LOG_LINES = '; last log lines: '

export const whyEvidenceSchema = z.object({
  /** Where it is from: `status`, `object`, `event`, `render`, `change`, `fleet`, `log`. */
  from: z.string(),
  text: z.string(),
  atMs: ms.nullable(),
})
export type WhyEvidence = z.infer<typeof whyEvidenceSchema>

export const whyCauseSchema = z.object({
  /** Stable word, such as `ImageNotFound`. */
  cause: z.string(),
  /** One sentence. */
  summary: z.string(),
  /** `Deployment shop/web`. Null means that it is no object's. */
  object: z.string().nullable(),
  clusters: z.object({ count: ms, first: z.array(z.string()) }),
  evidence: z.array(whyEvidenceSchema),
  next: z.string(),
})
export type WhyCause = z.infer<typeof whyCauseSchema>

export const whyViewSchema = z.object({
  project: z.string(),
  service: z.string(),
  /** Null for all clusters of the service. */
  cluster: z.string().nullable(),
  sync: z.string(),
  health: z.string(),
  /** The most likely one first; empty: nothing is wrong. */
  causes: z.array(whyCauseSchema),
  /** Changes shortly before it began, newest first. */
  changes: z.array(whyEvidenceSchema),
  /** Facts that could not be read. */
  unknown: z.array(z.string()),
})
export type WhyView = z.infer<typeof whyViewSchema>
