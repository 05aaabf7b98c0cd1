// Jobs with a TTL that have ended. Kubernetes removes such a Job some time after its end, and a missing object is
// otherwise created again: the Job would run without end. The result is stored when it is seen, so that neither the
// removal nor a restart of the agent runs the Job once more.
import { z } from 'zod'
import type { InventoryEntry } from '../../state/agent-state.ts'
import type { HookEnd } from './hook-spec.ts'
import type { LiveView } from './watch/live-object.ts'

const FACT = 'job/'
const MESSAGE_CHARS_MAX = 500

const finishedSchema = z.object({
  /** The UID of the Job that ended. Another Job under its name has not ended. */
  uid: z.string(),
  /** `running`: it has a TTL that its manifest does not have, and no end is known. */
  outcome: z.enum(['succeeded', 'failed', 'running']),
  message: z.string(),
})
type FinishedJob = z.infer<typeof finishedSchema>

export class FinishedJobs {
  readonly #byKey = new Map<string, FinishedJob>()
  /** UIDs of Jobs whose end was searched in Events. */
  readonly #asked = new Set<string>()

  constructor(facts: ReadonlyMap<string, unknown> = new Map()) {
    for (const [key, fact] of facts) {
      const read = key.startsWith(FACT) ? finishedSchema.safeParse(fact) : null
      if (read?.success) this.#byKey.set(key.slice(FACT.length), read.data)
    }
  }

  /** Null if the Job that was applied last is not known to have ended. */
  endOf(key: string, uid: string | null): HookEnd | null {
    const job = this.#byKey.get(key)
    return job === undefined || job.uid !== uid || job.outcome === 'running' ? null : { outcome: job.outcome, message: job.message }
  }

  /** True the first time for this Job. */
  ask(uid: string): boolean {
    if (this.#asked.has(uid)) return false
    this.#asked.add(uid)
    return true
  }

  /** The fact to keep. Null means that it is kept already. */
  note(key: string, uid: string, { outcome, message }: HookEnd): ReadonlyMap<string, unknown> | null {
    if (outcome === 'running' || this.endOf(key, uid) !== null) return null
    return this.#keep(key, { uid, outcome, message: message.slice(0, MESSAGE_CHARS_MAX) })
  }

  /** The fact to keep about a Job that has a TTL although its manifest has none. Null means that it is kept already. */
  mayEnd(key: string, uid: string): ReadonlyMap<string, unknown> | null {
    return this.hasTtl(key, uid) ? null : this.#keep(key, { uid, outcome: 'running', message: '' })
  }

  /** This Job was seen with a TTL. */
  hasTtl(key: string, uid: string): boolean {
    return this.#byKey.get(key)?.uid === uid
  }

  #keep(key: string, job: FinishedJob): ReadonlyMap<string, unknown> {
    this.#byKey.set(key, job)
    return new Map([[FACT + key, job]])
  }

  /** The fact to drop. Null means that there is none. */
  forget(key: string): ReadonlyMap<string, unknown> | null {
    return this.#byKey.delete(key) ? new Map([[FACT + key, null]]) : null
  }
}

/** JB1: a Job that is gone and had ended is not missing. */
export function withEnd(
  view: LiveView,
  jobs: Pick<FinishedJobs, 'endOf'>,
  key: string,
  entry: Pick<InventoryEntry, 'uid'> | undefined,
): LiveView {
  if (view.kind !== 'absent' || entry === undefined || !isJob(key)) return view
  const ended = jobs.endOf(key, entry.uid)
  return ended === null ? view : { kind: 'absent', ended }
}

export const isJob = (key: string): boolean => key.startsWith('batch/Job/')
