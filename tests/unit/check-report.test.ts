// What scripts/check adds up: a green closing line must be impossible when something did not run.
import { expect, test } from 'bun:test'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { quickJobs, slowJobs } from '../../scripts/check-jobs.ts'
import { countsLine, countsOf, durationsOf, evenParts, inLanes } from '../../scripts/check-report.ts'
import { auditMark, isList, parseAuditLog, readAuditLog } from '../../scripts/local-cluster/audit-log.ts'
import { tempDir } from '../support/temp-dir.ts'

const report = (attributes: string) =>
  `<?xml version="1.0"?>\n<testsuites name="bun test" ${attributes} time="0.1">\n<testsuite tests="99"></testsuite></testsuites>`

test.each([
  ['all passed', report('tests="3" assertions="9" failures="0" skipped="0"'), 0, { passed: 3, failed: 0, skipped: 0 }],
  ['one failed, one skipped', report('tests="5" assertions="9" failures="1" skipped="1"'), 1, { passed: 3, failed: 1, skipped: 1 }],
  [
    'an error between the tests fails the run without a failed test',
    report('tests="3" failures="0" skipped="0"'),
    1,
    { passed: 3, failed: 1, skipped: 0 },
  ],
  ['a crash leaves no report', null, 134, { passed: 0, failed: 1, skipped: 0 }],
  ['no test ran, with a green exit code', report('tests="0" failures="0" skipped="0"'), 0, { passed: 0, failed: 1, skipped: 0 }],
  ['no report at all, with a green exit code', null, 0, { passed: 0, failed: 1, skipped: 0 }],
] as const)('%s', (_, xml, exitCode, expected) => {
  expect(countsOf(xml, exitCode)).toEqual(expected)
})

test('the closing line has one form, whatever was skipped', () => {
  expect(countsLine({ passed: 12, failed: 1, skipped: 2 })).toBe('12 passed, 1 failed')
})

test('durations of files and tests are read from a report, names unescaped, suites inside files left out', () => {
  const xml = `<testsuites name="bun test" tests="2" time="3">
  <testsuite name="tests/unit/a.test.ts" file="tests/unit/a.test.ts" tests="2" time="2.5" hostname="vm">
    <testsuite name="SQLite" file="tests/unit/a.test.ts" tests="1" time="0.5">
      <testcase name="a &lt; b &amp;amp; c" classname="" time="0.25" file="tests/unit/a.test.ts" line="4" />
    </testsuite>
  </testsuite></testsuites>`
  expect(durationsOf(xml)).toEqual({
    files: [{ name: 'tests/unit/a.test.ts', seconds: 2.5 }],
    tests: [{ name: 'tests/unit/a.test.ts: a < b &amp; c', seconds: 0.25 }],
  })
})

test('files are dealt to parts of about the same duration, each to one', () => {
  const parts = evenParts(['a', 'b', 'c', 'd', 'e'], 2, { a: 9, b: 5, c: 4 })
  expect(parts).toEqual([
    ['a', 'd'],
    ['b', 'c', 'e'],
  ])
  expect(evenParts(['a'], 3, {})).toEqual([['a']])
})

const files = {
  structure: ['tests/tidy.test.ts'],
  unit: ['tests/unit/a.test.ts', 'tests/unit/b.test.ts'],
  contract: ['tests/contract/cluster-older.test.ts', 'tests/contract/pages.test.ts'],
  simulation: ['tests/sim/prune.test.ts'],
  endToEnd: ['tests/e2e/chain.test.ts', 'tests/e2e/idle.test.ts', 'tests/e2e/offline.test.ts'],
  seconds: { 'tests/sim/prune.test.ts': 100, 'tests/e2e/offline.test.ts': 50 },
}

/** A person who changes the dashboard waits for this. */
const BROWSER_SECONDS_MAX = 240

test('the tests that drive a browser take less than four minutes, by the recorded durations', async () => {
  const root = join(import.meta.dir, '../..')
  const seconds = (await Bun.file(join(root, 'tests/durations.json')).json()) as Record<string, number>
  const all = [...new Bun.Glob('tests/e2e/*.test.ts').scanSync({ cwd: root })]
  const driving = (
    await Promise.all(all.map(async (file) => ((await Bun.file(join(root, file)).text()).includes('startWatchedBrowser') ? [file] : [])))
  ).flat()
  expect(driving.length).toBeGreaterThan(2)
  expect(driving.filter((file) => seconds[file] === undefined)).toEqual([])
  const jobs = slowJobs({ structure: [], unit: [], contract: [], simulation: [], endToEnd: driving, seconds }, 'whole')
  // Files that mostly wait run beside the others, each in a lane of its own.
  const taken = (beside: boolean) =>
    jobs.filter((job) => job.files !== undefined && job.beside === beside).map(({ files: own = [] }) => seconds[own[0] ?? ''] ?? 0)
  expect(taken(false).reduce((sum, one) => sum + one, 0)).toBeLessThan(BROWSER_SECONDS_MAX)
  expect(Math.max(...taken(true))).toBeLessThan(BROWSER_SECONDS_MAX)
})

test('a whole check runs every file but those of --long, the build and then the longest first; a long one runs all, on both stores', () => {
  const quick = quickJobs(files).flatMap((job) => job.files ?? [])
  expect(quick.toSorted()).toEqual([...files.structure, ...files.unit].toSorted())
  const names = (extent: 'whole' | 'long') => slowJobs(files, extent).map((job) => job.name)
  expect(names('whole').slice(0, 4)).toEqual(['build', 'random requests', 'simulation: prune', 'end to end: offline'])
  const filesOf = (extent: 'whole' | 'long') => new Set(slowJobs(files, extent).flatMap((job) => job.files ?? []))
  const slow = [...files.contract, ...files.simulation, ...files.endToEnd]
  expect(slow.filter((file) => !filesOf('whole').has(file))).toEqual(['tests/contract/cluster-older.test.ts'])
  expect(slow.filter((file) => !filesOf('long').has(file))).toEqual([])
  expect(names('long')).toContain('end to end on PostgreSQL: offline')
  expect(names('whole')).not.toContain('end to end on PostgreSQL: offline')
  expect(
    slowJobs(files, 'whole')
      .filter((job) => job.beside)
      .map((job) => job.name),
  ).toEqual(['end to end: idle'])
  // End-to-end tests run the compiled programs, because those are shipped.
  const endToEnd = slowJobs(files, 'long').filter((job) => job.name.startsWith('end to end'))
  expect(endToEnd.map((job) => [job.needsBuild, job.env?.['SKERRY_PROGRAMS']])).toEqual(endToEnd.map(() => [true, 'dist']))
})

test('audit lines are told apart by their user agent, not by other fields that name it', () => {
  const lines = [
    { verb: 'get', userAgent: 'skerry-agent/1' },
    { verb: 'patch', userAgent: 'skerry-agent/1' },
    { verb: 'get', userAgent: 'kubectl', objectRef: { name: 'skerry-agent' } },
    { verb: 'list' },
  ]
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  expect(parseAuditLog(text, { userAgent: 'skerry-agent' })).toHaveLength(2)
  expect(parseAuditLog(text, { userAgent: 'skerry-agent', verbs: ['patch'] })).toHaveLength(1)
  expect(parseAuditLog(text, {})).toHaveLength(4)
})

test('the audit log is read on over the files that the API server rotated', async () => {
  const folder = tempDir()
  const path = join(folder, 'audit.log')
  const line = (verb: string) => `${JSON.stringify({ verb, userAgent: 'skerry-agent' })}\n`
  await Bun.write(path, line('get') + line('list'))
  const mark = auditMark(path)
  await Bun.write(path, line('get') + line('list') + line('patch'))
  renameSync(path, join(folder, 'audit-2026-11-28T10-00-00.000.log'))
  await Bun.write(path, line('delete'))
  expect(readAuditLog(path, { since: mark }).map(({ verb }) => verb)).toEqual(['patch', 'delete'])
  expect(auditMark(path)).toBe(mark + line('patch').length + line('delete').length)
})

test.each([
  ['a list', 'ResponseComplete', 'list', '/api/v1/pods?limit=500', true],
  ['a watch that continues', 'ResponseStarted', 'watch', '/api/v1/pods?resourceVersion=7&watch=true', false],
  ['a watch that lists first', 'ResponseStarted', 'watch', '/api/v1/pods?sendInitialEvents=true&watch=true', true],
  ['a watch of one object', 'ResponseStarted', 'watch', '/api/v1/a?sendInitialEvents=true&fieldSelector=metadata.name%3Db', false],
  ['the end of a watch that listed first', 'ResponseComplete', 'watch', '/api/v1/pods?sendInitialEvents=true&watch=true', false],
] as const)('%s counts as a list or not', (_, stage, verb, requestURI, expected) => {
  expect(isList({ stage, verb, requestURI })).toBe(expected)
})

test('what lanes count beside each other is added up whole', async () => {
  const ends = Array.from({ length: 3 }, () => Promise.withResolvers<void>())
  const counting = inLanes([0, 1, 2], [{}, {}], async (item) => {
    await ends[item]?.promise
    return { passed: 10, failed: 1, skipped: item }
  })
  for (const item of [1, 2, 0]) {
    ends[item]?.resolve()
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
  }
  expect(await counting).toEqual({ passed: 30, failed: 3, skipped: 3 })
})

test('lanes pass over items that are not ready, and take them in order when another item made them so', async () => {
  const begun: string[] = []
  const build = Promise.withResolvers<void>()
  let isBuilt = false
  const run = async (item: string) => {
    begun.push(item)
    if (item !== 'build') return { passed: 1, failed: 0, skipped: 0 }
    await build.promise
    isBuilt = true
    return { passed: 0, failed: 0, skipped: 0 }
  }
  const isBeside = (item: string) => item === 'needs-build-beside'
  const running = inLanes(
    ['build', 'needs-build', 'free', 'needs-build-beside', 'free-too'],
    [{ takes: isBeside }, { takes: (item: string) => !isBeside(item) }, { takes: (item: string) => !isBeside(item) }],
    run,
    (item) => isBuilt || !item.startsWith('needs'),
  )
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  expect(begun).toEqual(['build', 'free', 'free-too'])
  build.resolve()
  expect(await running).toEqual({ passed: 4, failed: 0, skipped: 0 })
  expect(begun.slice(3).sort()).toEqual(['needs-build', 'needs-build-beside'])
})
