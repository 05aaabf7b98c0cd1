// What the stages of scripts/check add up to. Pure; scripts/check.ts runs them.

export interface Counts {
  passed: number
  failed: number
  skipped: number
}

export const NO_COUNTS: Counts = { passed: 0, failed: 0, skipped: 0 }

export const addCounts = (a: Counts, b: Counts): Counts => ({
  passed: a.passed + b.passed,
  failed: a.failed + b.failed,
  skipped: a.skipped + b.skipped,
})

/** Of one run of `bun test`: its JUnit report (null: it wrote none) and its exit code. A run that failed without a failed test (it crashed, or
 *  an error came between tests) counts as one failure, and so does one that ran nothing: silence is never a success. */
export function countsOf(report: string | null, exitCode: number): Counts {
  const root = /<testsuites\b[^>]*>/.exec(report ?? '')?.[0] ?? ''
  const attribute = (name: string) => Number(new RegExp(`\\b${name}="(\\d+)"`).exec(root)?.[1] ?? 0)
  const tests = attribute('tests')
  const failed = attribute('failures') + attribute('errors')
  const skipped = attribute('skipped')
  const crashed = (exitCode !== 0 && failed === 0) || tests === 0
  return { passed: tests - failed - skipped, failed: failed + (crashed ? 1 : 0), skipped }
}

/** `N passed, N failed`, and `, N skipped` when there are any. */
export const countsLine = ({ passed, failed, skipped }: Counts): string =>
  `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`

/** As many at once as there are lanes; what comes first in the list begins first. */
export async function inLanes<T>(items: readonly T[], lanes: number, runOne: (item: T, index: number) => Promise<Counts>): Promise<Counts> {
  let counts = NO_COUNTS
  const open = items.entries()
  const lane = async () => {
    for (const [index, item] of open) {
      const counted = await runOne(item, index)
      counts = addCounts(counts, counted) // read after the wait: another lane may have added to it meanwhile
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return counts
}
