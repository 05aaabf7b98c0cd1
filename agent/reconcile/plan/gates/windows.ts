// When a service may be changed: windows of allow and deny, each a cron line of openings, a duration, and a time zone.
// Pure in `nowMs`. The wall clock of the zone counts: an opening in the hour that is skipped in spring happens after
// the jump, one in the hour that is repeated in autumn happens once, the first time.

import { type CronTimes, firstAfter, nextOpening, parseCron } from '../../../../shared/kube/cron-times.ts'
import { createZone, type Zone } from '../../../../shared/kube/zone.ts'
import { durationMs } from '../../../../shared/model/resources.ts'
import { servicePart, serviceText } from '../../../messages/service-messages.ts'

export interface ChangeWindow {
  kind: 'allow' | 'deny'
  /** Five fields: minute, hour, day of month, month, day of week. */
  schedule: string
  /** As `90m`, `8h`, `2d`. */
  duration: string
  /** IANA name. Absent means of the machine that the agent runs on. */
  timeZone?: string
}

export interface WindowVerdict {
  /**
   * The reason, for people, why changes are not allowed; the same text while nothing changes. Null if they are allowed.
   */
  closed: string | null
  /** When that changes. Null means never, as far as a year can tell. */
  changesAtMs: number | null
  /** It changes later than this, and has to be asked again then. */
  checkedAgainAtMs?: number
}

const OPEN_FOR_EVER: WindowVerdict = { closed: null, changesAtMs: null }
const MINUTE_MS = 60_000
const EDGES_MAX = 200
/** No opening is longer, so that the search backwards ends. */
const DURATION_MAX_MS = 35 * 86_400_000

interface ReadWindow {
  window: ChangeWindow
  zone: Zone
  times: CronTimes
  durationMs: number
}

/**
 * An open deny window closes the gate. With allow windows, one of them must be open. An unreadable window closes the
 * gate, because ignoring it could not be intended.
 */
export function judgeWindows(windows: readonly ChangeWindow[], nowMs: number): WindowVerdict {
  if (windows.length === 0) return OPEN_FOR_EVER
  const read: ReadWindow[] = []
  for (const window of windows) {
    const parsed = readWindow(window)
    if (typeof parsed === 'string') return { closed: serviceText('OutsideWindow.invalid', { what: parsed }), changesAtMs: null }
    read.push(parsed)
  }
  const closed = closedBy(read, nowMs)
  const next = nextChange(read, nowMs, closed !== null)
  if (next?.kind === 'later')
    return { closed: closed && serviceText('OutsideWindow.later', { closed }), changesAtMs: null, checkedAgainAtMs: next.atMs }
  const changesAtMs = next?.atMs ?? null
  if (closed === null) return { closed: null, changesAtMs }
  if (changesAtMs === null) return { closed: serviceText('OutsideWindow.never', { closed }), changesAtMs }
  const at = `${new Date(changesAtMs).toISOString().slice(0, 16)}Z`
  return { closed: serviceText('OutsideWindow.opens', { closed, at }), changesAtMs }
}

function readWindow(window: ChangeWindow): ReadWindow | string {
  const times = parseCron(window.schedule)
  if (times === null) return servicePart('window_schedule', { schedule: JSON.stringify(window.schedule) })
  const length = durationMs(window.duration)
  if (!(length >= MINUTE_MS && length <= DURATION_MAX_MS))
    return servicePart('window_duration', { duration: JSON.stringify(window.duration) })
  const zone = createZone(window.timeZone)
  if (zone === null) return servicePart('window_time_zone', { timeZone: JSON.stringify(window.timeZone) })
  return { window, zone, times, durationMs: length }
}

function closedBy(windows: readonly ReadWindow[], atMs: number): string | null {
  const denied = windows.find(({ window, ...rest }) => window.kind === 'deny' && isOpen(rest, atMs))
  if (denied !== undefined) return serviceText('OutsideWindow.denied', { window: windowText(denied) })
  const allows = windows.filter(({ window }) => window.kind === 'allow')
  if (allows.length === 0 || allows.some((one) => isOpen(one, atMs))) return null
  return serviceText(allows.length === 1 ? 'OutsideWindow.one' : 'OutsideWindow', { windows: allows.map(windowText).sort().join(', ') })
}

const windowText = ({ window, zone }: ReadWindow): string =>
  servicePart('window', { schedule: window.schedule, duration: window.duration, zone: zone.name })

const isOpen = (one: Omit<ReadWindow, 'window'>, atMs: number): boolean => {
  const openedMs = lastOpening(one, atMs)
  return openedMs !== null && atMs < openedMs + one.durationMs
}

/** From edge to edge: overlapping windows hide each other's. Null means none. */
function nextChange(windows: readonly ReadWindow[], nowMs: number, isClosed: boolean): { kind: 'at' | 'later'; atMs: number } | null {
  let atMs = nowMs
  for (let edge = 0; edge < EDGES_MAX; edge += 1) {
    atMs = Math.min(...windows.map((one) => nextEdge(one, atMs)))
    if (!Number.isFinite(atMs)) return null
    if ((closedBy(windows, atMs) !== null) !== isClosed) return { kind: 'at', atMs }
  }
  return { kind: 'later', atMs }
}

function nextEdge(one: ReadWindow, atMs: number): number {
  const openedMs = lastOpening(one, atMs)
  if (openedMs !== null && openedMs + one.durationMs > atMs) return openedMs + one.durationMs
  return nextOpening(one, atMs) ?? Number.POSITIVE_INFINITY
}

/** The latest opening at or before `atMs` that could still be open. */
function lastOpening({ zone, times, durationMs: length }: Omit<ReadWindow, 'window'>, atMs: number): number | null {
  const earliest = atMs - length
  for (let day = zone.dayOf(atMs); day >= zone.dayOf(earliest); day -= 1) {
    if (!times.isDay(day)) continue
    const at = firstAfter(zone, day, times.minutes, atMs) - 1
    const minute = times.minutes[at]
    const openedMs = minute === undefined ? null : zone.instantOf(day, minute)
    if (openedMs !== null) return openedMs > earliest ? openedMs : null
  }
  return null
}
