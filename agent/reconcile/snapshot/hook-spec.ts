// A hook in its revision, and one run of it: the stored form of both in the agent's state.
import { z } from 'zod'
import { canonicalJson, sha256Hex } from '../../../shared/kube/canonical.ts'
import { withoutNulls } from '../../../shared/kube/clean.ts'
import { type K8sObject, type ObjectRef, refKey, refOf } from '../../../shared/kube/object.ts'
import { HOOK_POLICIES, type HookPolicy, PHASES, type Phase } from '../../../shared/kube/waves.ts'

const refSchema = z.object({ group: z.string(), kind: z.string(), namespace: z.string(), name: z.string() })

export const specSchema = z.object({
  /** The key of its row. It names the row also where each run's object has a name of its own. */
  key: z.string(),
  ref: refSchema,
  apiVersion: z.string(),
  wave: z.number().int(),
  phases: z.array(z.enum(PHASES)),
  policies: z.array(z.enum(HOOK_POLICIES)),
  /** Clean, without marks, canonical JSON. */
  doc: z.string(),
  hash: z.string(),
  /** Null if its object is called as its row. Else what each run's name begins with. */
  generateName: z.string().nullable(),
})
export interface HookSpec extends Omit<z.infer<typeof specSchema>, 'phases' | 'policies' | 'ref'> {
  ref: ObjectRef
  phases: readonly Phase[]
  policies: readonly HookPolicy[]
}

export const runSchema = z.object({
  /** Names revision, manifest and phase. */
  run: z.string(),
  ref: refSchema,
  /** Null if its object is not known to exist. */
  uid: z.string().nullable(),
  outcome: z.enum(['running', 'succeeded', 'failed']),
  message: z.string(),
  /** When it ended; while it is running, when it began. */
  atMs: z.number(),
})
export type HookRun = z.infer<typeof runSchema>
export type HookEnd = Pick<HookRun, 'outcome' | 'message'>

/** The hook of a row, before the additions of a run. */
export const specOf = (
  cleaned: K8sObject,
  rowRef: ObjectRef,
  order: { wave: number; phases: readonly Phase[]; policies: HookSpec['policies'] },
): HookSpec => {
  const { name, generateName } = cleaned.metadata
  const doc = canonicalJson(cleaned)
  const ref = { ...refOf(cleaned), name: name ?? rowRef.name }
  return {
    key: refKey(ref),
    ref,
    apiVersion: cleaned.apiVersion,
    wave: order.wave,
    phases: order.phases,
    policies: order.policies,
    doc,
    // Nulls are left out, as they were before they were sent: an upgrade of the agent runs no hook again.
    hash: sha256Hex(canonicalJson(withoutNulls(cleaned))).slice(0, 20),
    generateName: name === undefined ? (generateName ?? '') : null,
  }
}

const RUNS_TO_AN_END: ReadonlySet<string> = new Set(['batch/Job', '/Pod'])
/** Its object runs again only after it was created anew. */
export const runsToAnEnd = ({ group, kind }: Pick<ObjectRef, 'group' | 'kind'>): boolean => RUNS_TO_AN_END.has(`${group}/${kind}`)

/** HK13: an object of its name that another service gives up is applied over, and stays until then. */
export const isAppliedOver = ({ ref, generateName, phases }: HookSpec): boolean =>
  generateName === null && !runsToAnEnd(ref) && phases.some((phase) => ['pre-sync', 'sync', 'post-sync'].includes(phase))

/** The obstacle to the end of a wave or phase. */
export interface Wait {
  ref: ObjectRef
  lacks: 'applied' | 'healthy' | 'finished'
  sinceMs: number
  /** Why it will not get there by itself. Null means that it may. */
  failed: string | null
  /** For the service's own row: further facts; '' after a failure that explains itself. */
  detail: string
}

type Stand = 'pre-sync' | 'sync' | 'post-sync' | 'done'
/** The phase and wave at which a revision is. */
export interface Position {
  digest: string
  phase: Stand
  wave: number
  /** Due and running hooks; none that failed. */
  hooks: readonly HookSpec[]
  /** Those of sync-fail, when something failed. */
  failHooks: readonly HookSpec[]
  /** Null at the end: there is nothing left to wait for. */
  waitsFor: Wait | null
  /** Everything of the sync phase is applied, its hooks have ended. */
  applied: boolean
  /** A hook failed: this revision gets no further. */
  hookFailed: boolean
  /** This is the last wave. */
  last?: true
}
