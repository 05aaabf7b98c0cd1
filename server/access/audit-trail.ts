// Entries of the audit log that belong to no change of the store: denials, failed sign-ins, changes of key files.
// Anyone can be denied any number of times, so equal denials of a minute are one entry with their number, and the
// entries that one source can cause in a day are bounded.
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { Deed } from '../store/audit/audit-log.ts'
import { callerNow, STRANGER } from '../store/audit/caller.ts'
import type { Store } from '../store/store.ts'

export interface AuditTrail {
  /** Committed when it resolves; throws when the store cannot be written. For deeds outside of the store: before they
   *  are done. */
  record(deed: Deed): Promise<void>
  /** The first of its kind in a minute is committed when this resolves; others are counted. A store that cannot be
   *  written does not change the answer. */
  denied(deeds: readonly Deed[]): Promise<void>
  /** Commits what is counted. */
  flush(): Promise<void>
  /** Until the signal. */
  run(signal: AbortSignal): Promise<void>
}

export interface AuditTrailDeps {
  store: { audit: Pick<Store['audit'], 'append'> }
  /** Addresses of one caller. */
  networkOf(address: string): string
  clock: Clock
  log: Logger
}

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
/** Different denials of one source in a minute that get entries of their own. */
const GROUPS_MAX = 20
/** Entries of one source in a day; after that it gets one an hour. All callers without a credential are one source. */
export const DENIALS_A_DAY = 1_000
/** Maximum number of separate sources. */
const SOURCES_MAX = 1_000
const FLUSH_MS = 10_000

interface Group {
  deed: Deed
  sinceMs: number
  /** Not committed yet. */
  count: number
}

interface Source {
  dayMs: number
  entries: number
  groups: Map<string, Group>
  /** Denials beyond the bounds. */
  others: Group | null
}

export function createAuditTrail({ store, networkOf, clock, log }: AuditTrailDeps): AuditTrail {
  const sources = new Map<string, Source>()
  const append = async (deeds: readonly Deed[]) => {
    if (deeds.length > 0) await store.audit.append(deeds)
  }
  const quietly = (work: Promise<void>) =>
    work.catch((error: unknown) => log.error('the audit log cannot be written', { error: describeError(error) }))

  function sourceOf(key: string, nowMs: number): Source {
    const known = sources.get(key) ?? (sources.size < SOURCES_MAX ? undefined : sources.get(MANY))
    const source = known ?? { dayMs: nowMs, entries: 0, groups: new Map(), others: null }
    if (known === undefined) sources.set(sources.size < SOURCES_MAX ? key : MANY, source)
    if (nowMs - source.dayMs >= DAY_MS) Object.assign(source, { dayMs: nowMs, entries: 0 })
    return source
  }

  /** Entries of one source that are not written yet. */
  function settle(source: Source, nowMs: number, all: boolean): Deed[] {
    const due: Deed[] = []
    for (const [key, { deed, sinceMs, count }] of source.groups) {
      if (!all && nowMs - sinceMs < MINUTE_MS) continue
      source.groups.delete(key)
      if (count > 0) due.push({ ...deed, count })
    }
    const { others } = source
    if (others !== null && (all || nowMs - others.sinceMs >= (source.entries < DENIALS_A_DAY ? MINUTE_MS : HOUR_MS))) {
      source.others = null
      due.push({ ...others.deed, count: others.count })
    }
    source.entries += due.length
    return due
  }

  /** The entry to commit at once; null means that it is counted. */
  function count(asked: Deed, nowMs: number): Deed | null {
    const caller = callerNow()
    const actor = asked.actor ?? caller?.actor ?? STRANGER
    const from = asked.from ?? caller?.from ?? null
    const deed: Deed = { result: 'denied', ...asked, actor, from }
    const isStranger = actor.kind === 'stranger'
    const source = sourceOf(isStranger ? 'strangers' : `${actor.kind} ${actor.id}`, nowMs)
    const network = from === null ? '' : networkOf(from)
    // A stranger chooses every name, so only its address counts.
    const key = isStranger ? `${network} ${deed.verb}` : [deed.verb, deed.kind, deed.project, deed.name, deed.cluster].join(' ')
    const group = source.groups.get(key)
    if (group !== undefined) {
      group.count += 1
      return null
    }
    if (source.groups.size < GROUPS_MAX && source.entries < DENIALS_A_DAY) {
      source.groups.set(key, { deed, sinceMs: nowMs, count: 0 })
      source.entries += 1
      return deed
    }
    source.others ??= { deed: { result: 'denied', verb: 'any', kind: 'Request', actor, detail: OTHERS }, sinceMs: nowMs, count: 0 }
    source.others.count += 1
    return null
  }

  const flush = async (all: boolean) => {
    const nowMs = clock.nowMs()
    const due: Deed[] = []
    for (const [key, source] of sources) {
      for (const deed of settle(source, nowMs, all)) due.push(deed)
      if (source.groups.size === 0 && source.others === null && nowMs - source.dayMs >= DAY_MS) sources.delete(key)
    }
    await quietly(append(due))
  }

  return {
    record: (deed) => append([deed]),
    async denied(deeds) {
      if (deeds.length === 0) return
      const nowMs = clock.nowMs()
      await quietly(append(deeds.flatMap((deed) => count(deed, nowMs) ?? [])))
    },
    flush: () => flush(true),
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(FLUSH_MS, signal)
        await flush(signal.aborted)
      }
    },
  }
}

const MANY = 'many'
const OTHERS = 'further denials of this source, from any address'
