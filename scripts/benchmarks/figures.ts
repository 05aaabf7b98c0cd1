import { readFileSync } from 'node:fs'

/** The value below which `percent` of the samples lie (nearest rank). */
export function percentile(samples: readonly number[], percent: number): number {
  const sorted = [...samples].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1))] ?? Number.NaN
}

export const rounded = (value: number, digits = 1): number => Math.round(value * 10 ** digits) / 10 ** digits

/** Resident memory of a process in MB (1e6 bytes), as the kernel says now. */
export function residentMb(pid: number): number {
  const line = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return rounded((Number(line?.[1]) * 1_024) / 1e6)
}
