// The jobs of scripts/check, in the order in which its lanes take them. Pure; scripts/check.ts runs them.
import { evenParts } from './check-report.ts'
import { LONG_ONLY, ON_EACH_STORE, WITH_SERVER } from './end-to-end.ts'

export type Extent = 'fast' | 'whole' | 'long'

/** One process: a command that passes by its exit code, or `bun test` with some files. */
export interface Job {
  name: string
  command?: readonly string[]
  files?: readonly string[]
  env?: Readonly<Record<string, string>>
  timeoutMs: number
  /** Needs dist/, which the job `build` makes. */
  needsBuild?: boolean
  /** Runs in a lane of its own, because it mostly waits. */
  beside?: boolean
}

/** Test files by stage, as paths from the root (`tests/unit/a.test.ts`), and the measured seconds of files of an
 *  earlier run. */
export interface TestFiles {
  structure: readonly string[]
  unit: readonly string[]
  contract: readonly string[]
  simulation: readonly string[]
  endToEnd: readonly string[]
  seconds: Readonly<Record<string, number>>
}

const MINUTE_MS = 60_000
/** So many processes share the unit tests and the contract tests: few, because each starts Bun and compiles what it
 *  imports. */
const UNIT_PARTS = 2
const CONTRACT_PARTS = 12

/**
 * The time of random requests to the API (`scripts/fuzz-api`); reading the document and shrinking failures come on top.
 */
const FUZZ_SECONDS = 60
const LONG_FUZZ_SECONDS = 600

/**
 * Files whose tests wait for real time (watches that expire, tokens that end) and use less than half of a processor
 * meanwhile.
 */
const MOSTLY_WAIT: readonly string[] = ['idle', 'dashboard', 'cluster-real', 'cluster-older', 'catalogue-access', 'catalogue-held']

/** End-to-end tests run what is shipped. It also starts with half the work: sources are compiled at each of a thousand
 *  starts. */
const COMPILED = { SKERRY_PROGRAMS: 'dist' } as const

export const nameOf = (file: string): string => file.slice(file.lastIndexOf('/') + 1, -'.test.ts'.length)

/** Findings of unchanged files are kept beside the tools: that saves half a minute of a processor. */
const TSC = ['tsc', '--noEmit', '-p', '.', '--incremental', '--tsBuildInfoFile', 'build/types.tsbuildinfo']

/** The jobs before whose end nothing else begins: they are quick and find most mistakes. */
export function quickJobs(files: TestFiles): Job[] {
  const unit = evenParts(files.unit, UNIT_PARTS, files.seconds)
  return [
    { name: 'types', command: TSC, timeoutMs: 15 * MINUTE_MS },
    { name: 'format and lint', command: ['biome', 'ci', '--error-on-warnings', '--colors=off'], timeoutMs: 15 * MINUTE_MS },
    { name: 'unused code', command: ['bun', '--bun', 'run', 'knip'], timeoutMs: 15 * MINUTE_MS },
    { name: 'structure', files: files.structure, timeoutMs: MINUTE_MS },
    ...partsNamed('unit', unit).map((part) => ({ ...part, timeoutMs: 6 * MINUTE_MS })),
  ]
}

/** All other jobs, longest first, so that all lanes end at about the same time. The build is the first: the end-to-end
 *  tests wait for it. */
export function slowJobs(files: TestFiles, extent: Exclude<Extent, 'fast'>): Job[] {
  const isLong = extent === 'long'
  const due = (file: string) => isLong || !LONG_ONLY.includes(nameOf(file))
  const onPostgres = new Set(isLong ? WITH_SERVER : ON_EACH_STORE)
  const waits = (file: string) => MOSTLY_WAIT.includes(nameOf(file))
  const contract = files.contract.filter(due)
  const endToEnd = files.endToEnd.filter(due)
  const alone = (stage: string, file: string, rest: Partial<Job> = {}): Job => ({
    name: `${stage}: ${nameOf(file)}`,
    files: [file],
    timeoutMs: 10 * MINUTE_MS,
    beside: waits(file),
    ...rest,
  })
  const jobs: Job[] = [
    ...partsNamed(
      'contract',
      evenParts(
        contract.filter((file) => !waits(file)),
        CONTRACT_PARTS,
        files.seconds,
      ),
    ).map((part) => ({
      ...part,
      timeoutMs: 10 * MINUTE_MS,
    })),
    ...contract.filter(waits).map((file) => alone('contract', file)),
    ...files.simulation.map((file) => alone('simulation', file)),
    ...endToEnd.map((file) => alone('end to end', file, { needsBuild: true, env: COMPILED })),
    ...endToEnd
      .filter((file) => onPostgres.has(nameOf(file)))
      .map((file) => alone('end to end on PostgreSQL', file, { needsBuild: true, env: { ...COMPILED, SKERRY_TEST_STORE: 'postgres' } })),
  ]
  const seconds = ({ files: own = [] }: Job) => own.reduce((sum, file) => sum + (files.seconds[file] ?? 1), 0)
  const damage: Job = { name: 'damaged data folders', command: ['scripts/damage', '--histories', '2000'], timeoutMs: 60 * MINUTE_MS }
  const fuzzSeconds = isLong ? LONG_FUZZ_SECONDS : FUZZ_SECONDS
  const fuzz: Job = { name: 'random requests', command: ['scripts/fuzz-api', '--seconds', String(fuzzSeconds)], timeoutMs: 15 * MINUTE_MS }
  return [
    { name: 'build', command: ['scripts/build', '--check'], timeoutMs: 15 * MINUTE_MS },
    ...(isLong ? [damage] : []),
    { ...fuzz, needsBuild: true },
    ...jobs.toSorted((a, b) => seconds(b) - seconds(a)),
  ]
}

const partsNamed = (name: string, parts: readonly (readonly string[])[]) =>
  parts.map((files, index) => ({ name: parts.length === 1 ? name : `${name} ${index + 1} of ${parts.length}`, files }))
