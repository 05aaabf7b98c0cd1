// Deletes the oldest whole days of the audit log. A signed anchor stands in their place, so that what is left can still
// be verified.
import { type AuditAnchor, auditAnchorBytes } from '../../shared/model/audit.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { Random } from '../../shared/runtime/random.ts'
import type { ServerKeys } from '../access/server-keys.ts'
import type { Store } from '../store/store.ts'

export const AUDIT_DAYS_DEFAULT = 400

export interface AuditRetentionDeps {
  store: { audit: Pick<Store['audit'], 'drop'> }
  keys: Pick<ServerKeys, 'sign' | 'publicKeys'>
  /** 0 means that nothing is deleted. */
  days: number
  clock: Clock
  random: Random
  log: Logger
}

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
/** A server that is started again and again does not begin with this each time. */
const FIRST_AFTER_MS = 60_000
const ROWS_A_TIME = 2_000
const PAUSE_MS = 20

/** Until the signal. */
export async function keepAuditShort(deps: AuditRetentionDeps, signal: AbortSignal): Promise<void> {
  const { clock, random, log } = deps
  await clock.sleep(FIRST_AFTER_MS * (1 + random()), signal)
  while (!signal.aborted) {
    const deleted = await dropOldDays(deps, signal).catch((error: unknown) => {
      if (!signal.aborted) log.warn('retention of the audit log failed', { error: describeError(error) })
      return 0
    })
    if (deleted > 0) log.info('old entries of the audit log deleted', { entries: deleted })
    await clock.sleep(HOUR_MS * (0.75 + random() / 2), signal)
  }
}

/** How many entries went. */
export async function dropOldDays({ store, keys, days, clock }: AuditRetentionDeps, signal: AbortSignal): Promise<number> {
  if (days === 0) return 0
  const beforeMs = (Math.floor(clock.nowMs() / DAY_MS) - days) * DAY_MS
  const anchorOf = (last: { seq: number; hash: string; deleted: number }): AuditAnchor => {
    const anchor = { ...last, at: new Date(clock.nowMs()).toISOString(), key: keys.publicKeys[0] }
    return { ...anchor, signature: keys.sign(auditAnchorBytes(anchor)) }
  }
  let deleted = 0
  while (!signal.aborted) {
    const count = await store.audit.drop(beforeMs, ROWS_A_TIME, anchorOf)
    deleted += count
    if (count < ROWS_A_TIME) break
    await clock.sleep(PAUSE_MS, signal)
  }
  return deleted
}
