// Adds up the stages of scripts/check. Pure; scripts/check.ts runs them.

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

/** Counts one run of `bun test` from its JUnit report (null if it wrote none) and its exit code. A run that failed
 *  without a failed test (it crashed, or an error came between tests) counts as one failure, and so does one that ran
 *  nothing. */
export function countsOf(report: string | null, exitCode: number): Counts {
  const root = /<testsuites\b[^>]*>/.exec(report ?? '')?.[0] ?? ''
  const attribute = (name: string) => Number(new RegExp(`\\b${name}="(\\d+)"`).exec(root)?.[1] ?? 0)
  const tests = attribute('tests')
  const failed = attribute('failures') + attribute('errors')
  const skipped = attribute('skipped')
  const crashed = (exitCode !== 0 && failed === 0) || tests === 0
  return { passed: tests - failed - skipped, failed: failed + (crashed ? 1 : 0), skipped }
}

/** `N passed, N failed`: CI reads this form and no other, so skipped tests have a line of their own. */
export const countsLine = ({ passed, failed }: Counts): string => `${passed} passed, ${failed} failed`

/** How long one test, or all tests of one file with their hooks, took. */
export interface Duration {
  name: string
  seconds: number
}

export interface Durations {
  files: Duration[]
  tests: Duration[]
}

const UNESCAPED: Readonly<Record<string, string>> = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&apos;': "'", '&amp;': '&' }

/** Reads the durations from a JUnit report of `bun test`. A test is named `file: test`. */
export function durationsOf(report: string): Durations {
  const attribute = (tag: string, name: string) =>
    (new RegExp(`\\b${name}="([^"]*)"`).exec(tag)?.[1] ?? '').replace(/&\w+;/g, (entity) => UNESCAPED[entity] ?? entity)
  const seconds = (tag: string) => Number(attribute(tag, 'time'))
  const tags = (element: string) => report.match(new RegExp(`<${element}\\b[^>]*>`, 'g')) ?? []
  return {
    // A suite inside a file (`describe`) has the name of the suite; that of the file is its path.
    files: tags('testsuite').flatMap((tag) =>
      attribute(tag, 'name') === attribute(tag, 'file') ? [{ name: attribute(tag, 'file'), seconds: seconds(tag) }] : [],
    ),
    tests: tags('testcase').map((tag) => ({ name: `${attribute(tag, 'file')}: ${attribute(tag, 'name')}`, seconds: seconds(tag) })),
  }
}

export const slowest = (durations: readonly Duration[], count: number): Duration[] =>
  durations.toSorted((a, b) => b.seconds - a.seconds).slice(0, count)

/** Deals files out to `parts` lists of about the same sum of seconds. A file of unknown duration counts as one second.
 */
export function evenParts(files: readonly string[], parts: number, secondsOf: Readonly<Record<string, number>>): string[][] {
  const shares = Array.from({ length: parts }, () => ({ files: [] as string[], seconds: 0 }))
  const weight = (file: string) => secondsOf[file] ?? 1
  for (const file of files.toSorted((a, b) => weight(b) - weight(a))) {
    const least = shares.reduce((a, b) => (b.seconds < a.seconds ? b : a))
    least.files.push(file)
    least.seconds += weight(file)
  }
  return shares.map((share) => share.files.sort()).filter((share) => share.length > 0)
}

export interface Lane<T> {
  takes?: (item: T) => boolean
}

/**
 * Runs the items beside each other in lanes, roughly in their order: a free lane takes the first item that is ready. An
 * item becomes ready by the end of another one, in whichever lane that runs.
 */
export async function inLanes<T>(
  items: readonly T[],
  lanes: readonly Lane<T>[],
  runOne: (item: T, index: number) => Promise<Counts>,
  isReady: (item: T) => boolean = () => true,
): Promise<Counts> {
  let counts = NO_COUNTS
  let running = 0
  let ended = Promise.withResolvers<void>()
  const open = [...items.entries()]
  const lane = async ({ takes = () => true }: Lane<T>) => {
    while (open.some(([, item]) => takes(item))) {
      const at = open.findIndex(([, item]) => takes(item) && isReady(item))
      const [taken] = at < 0 ? [] : open.splice(at, 1)
      if (taken === undefined) {
        if (running === 0 && !open.some(([, item]) => isReady(item))) throw new Error('no running job makes the open jobs ready')
        await ended.promise
        continue
      }
      running += 1
      const counted = await runOne(taken[1], taken[0])
      running -= 1
      counts = addCounts(counts, counted) // read after the wait: another lane may have added to it meanwhile
      ended.resolve()
      ended = Promise.withResolvers<void>()
    }
  }
  await Promise.all(lanes.map(lane))
  return counts
}
