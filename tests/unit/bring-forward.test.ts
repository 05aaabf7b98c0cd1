// What is told of a long migration, and when a file is worth writing anew.
import { expect, test } from 'bun:test'
import { migrationLog, worthVacuum } from '../../server/store/schema/bring-forward.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'

test('ST2 nothing is told of a migration in its first two seconds, then each five', () => {
  let nowMs = 1_000
  const told: unknown[] = []
  const tell = migrationLog({ ...silentLogger, info: (message, fields) => void told.push([nowMs, message, fields]) }, {
    nowMs: () => nowMs,
  } as Clock)
  for (const atMs of [1_000, 2_999, 3_000, 5_000, 7_999, 8_000]) {
    nowMs = atMs
    tell({ what: 'status rows', done: atMs, total: atMs === 8_000 ? null : 9_000 })
  }
  nowMs = 20_001
  tell({ what: 'schema', done: 3, total: 3 })
  const message = 'migrating the fleet store; the server starts after the migration'
  expect(told).toEqual([
    [3_000, message, { what: 'status rows', done: 3_000, total: 9_000 }],
    [8_000, message, { what: 'status rows', done: 8_000 }],
    [20_001, 'fleet store migrated', { schema: 3, ms: 19_001 }],
  ])
})

const MIB = 1_048_576
test.each([
  ['mostly empty', 200, 101, 1_000, true],
  ['half empty', 200, 100, 1_000, false],
  ['mostly empty, but small', 100, 63, 1_000, false],
  ['the least that is worth it', 127, 64, 1_000, true],
  ['no room for copy and log', 200, 101, 297, false],
  ['just enough room', 200, 101, 298, true],
] as const)('UK4 a file is written anew at a start when it is worth it: %s', (_, bytes, freeInside, freeOutside, expected) => {
  const space = { path: 'fleet.sqlite', bytes: bytes * MIB, freeInside: freeInside * MIB, freeOutside: freeOutside * MIB }
  expect(worthVacuum(space)).toBe(expected)
})
