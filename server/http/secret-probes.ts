// CG14: a dry run of a Config says whether a value is the present one. So that nobody guesses values by it, a caller
// may try a few for each Config, and every try is in the audit log.
import type { Applicable } from '../../shared/model/resources.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { AuditTrail } from '../access/audit-trail.ts'
import { isSecretMark } from '../access/config-secrets.ts'
import type { Principal } from '../access/principal.ts'
import { keyOf, keyText } from './write-resource.ts'

/** Dry runs with values of secrets, of one caller for one Config. */
export const PROBES_MAX = 20
export const PROBES_WINDOW_MS = 10 * 60_000
/** Callers and Configs that are remembered; an older one that is forgotten begins anew. */
const REMEMBERED_MAX = 10_000

export interface SecretProbes {
  /** Before a dry run answers. Throws `too_many_requests`. Does nothing for documents without values of secrets. */
  note(by: Principal, resources: readonly Applicable[]): Promise<void>
}

export function createSecretProbes({ trail, clock }: { trail: AuditTrail; clock: Clock }): SecretProbes {
  const timesOf = new Map<string, number[]>()
  const take = (name: string, nowMs: number): number => {
    const times = (timesOf.get(name) ?? []).filter((atMs) => nowMs - atMs < PROBES_WINDOW_MS && atMs <= nowMs)
    timesOf.delete(name)
    const [oldest = nowMs] = times
    const waitMs = times.length < PROBES_MAX ? 0 : oldest + PROBES_WINDOW_MS - nowMs
    if (waitMs === 0) times.push(nowMs)
    timesOf.set(name, times)
    const [first] = timesOf.keys()
    if (timesOf.size > REMEMBERED_MAX && first !== undefined) timesOf.delete(first)
    return waitMs
  }
  return {
    async note(by, resources) {
      for (const resource of resources) {
        if (resource.kind !== 'Config') continue
        const values = Object.values(resource.spec.secrets).filter((value) => !isSecretMark(value)).length
        if (values === 0) continue
        const key = keyOf(resource)
        const deed = { verb: 'dry-run', ...key, detail: `${values} value${values === 1 ? '' : 's'} of secrets` }
        const waitMs = take(`${by.id} ${key.project}/${key.name}`, clock.nowMs())
        if (waitMs > 0) {
          await trail.denied([deed])
          const detail = `${keyText(key)}: more than ${PROBES_MAX} dry runs with values of secrets in ${PROBES_WINDOW_MS / 60_000} minutes`
          throw new AppError('too_many_requests', { doing: 'dry run', detail, retryAfterMs: waitMs })
        }
        await trail.record(deed)
      }
    },
  }
}
