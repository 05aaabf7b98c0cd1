// What scripts/check adds up: a green closing line must be impossible when something did not run.
import { expect, test } from 'bun:test'
import { countsLine, countsOf, inLanes } from '../../scripts/check-report.ts'
import { parseAuditLog } from '../../scripts/local-cluster/audit-log.ts'

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

test('the closing line names skipped tests only when there are any', () => {
  expect(countsLine({ passed: 12, failed: 0, skipped: 0 })).toBe('12 passed, 0 failed')
  expect(countsLine({ passed: 12, failed: 1, skipped: 2 })).toBe('12 passed, 1 failed, 2 skipped')
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

test('what lanes count beside each other is added up whole', async () => {
  const ends = Array.from({ length: 3 }, () => Promise.withResolvers<void>())
  const counting = inLanes([0, 1, 2], 2, async (item) => {
    await ends[item]?.promise
    return { passed: 10, failed: 1, skipped: item }
  })
  for (const item of [1, 2, 0]) {
    ends[item]?.resolve()
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
  }
  expect(await counting).toEqual({ passed: 30, failed: 3, skipped: 3 })
})
