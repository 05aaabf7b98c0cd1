// Events of the last 24 hours as bars of half an hour: how much happened when, and how much of it was a warning. It is
// drawn with elements of the page, so that it follows the theme, prints, and is read out.
import { useEffect } from 'preact/hooks'
import { timeOfDay } from '../format.ts'
import { call } from '../state/api.ts'
import { nowMs } from '../state/now.ts'
import { useResource } from '../state/resource.ts'
import { more } from '../words/later.ts'
import { agedClass } from './states.tsx'

const words = more.series
const SLOT_MS = 1_800_000
const SLOTS = 48

export interface Slot {
  fromMs: number
  all: number
  warnings: number
}

/** One slot for each half hour that ends with the present one; rows are [slot, type, number]. Pure. */
export function slotsOf(rows: readonly (readonly (string | number | null)[])[], now: number): Slot[] {
  const last = Math.floor(now / SLOT_MS)
  const slots = Array.from({ length: SLOTS }, (_, index): Slot => ({ fromMs: (last - SLOTS + 1 + index) * SLOT_MS, all: 0, warnings: 0 }))
  for (const [at, type, n] of rows) {
    const slot = slots[Number(at) - (last - SLOTS + 1)]
    if (slot === undefined) continue
    slot.all += Number(n)
    if (type === 'Warning') slot.warnings += Number(n)
  }
  return slots
}

export function Series() {
  // Read again when the page ticks into another minute, not with each event: the whole stream is counted.
  const minute = Math.floor(nowMs.value / 60_000)
  const { value, atMs, refresh } = useResource(
    'series',
    async (signal) => {
      const now = nowMs.peek()
      const from = (Math.floor(now / SLOT_MS) - SLOTS + 1) * SLOT_MS
      const sql = `SELECT at_ms / ${SLOT_MS} AS slot, type, count(*) AS n FROM events WHERE at_ms >= ${from} GROUP BY 1, 2`
      return slotsOf((await call('POST /query', { body: { sql, limit: 500 }, signal })).rows, now)
    },
    () => false,
    true,
  )
  useEffect(() => {
    if (atMs !== null) refresh()
  }, [minute])
  if (value === null) return <div class="series" aria-hidden="true" />
  const most = Math.max(1, ...value.map(({ all }) => all))
  const sum = (of: (slot: Slot) => number) => value.reduce((all, slot) => all + of(slot), 0)
  const label = words.label(
    sum(({ all }) => all),
    sum(({ warnings }) => warnings),
  )
  return (
    <figure class={`series aged ${agedClass()}`} aria-label={label}>
      <figcaption class="small muted">{label}</figcaption>
      <ol>
        {value.map(({ fromMs, all, warnings }) => (
          <li key={fromMs} title={words.slot(timeOfDay(fromMs), all, warnings)}>
            <i style={{ height: `${(100 * (all - warnings)) / most}%` }} />
            <i class="is-warn" style={{ height: `${(100 * warnings) / most}%` }} />
            <span class="hidden">{words.slot(timeOfDay(fromMs), all, warnings)}</span>
          </li>
        ))}
      </ol>
    </figure>
  )
}
