// Durations as people write them: `90s`, `10m`, `2h`, `7d`.
import { z } from 'zod'

const DURATION = /^([1-9][0-9]*)(ms|s|m|h|d)$/
const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
/** `90s`, `10m`, `2h`, `7d`: a whole number and a unit. */
export const durationSchema = z
  .string('expected a whole number with ms, s, m, h or d, such as 60s')
  .regex(DURATION, { error: 'expected a whole number with ms, s, m, h or d, such as 60s', abort: true })
export function durationMs(text: string): number {
  const match = DURATION.exec(text)
  return match ? Number(match[1]) * (UNIT_MS[match[2] ?? ''] ?? 0) : Number.NaN
}
