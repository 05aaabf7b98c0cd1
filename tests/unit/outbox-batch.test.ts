import { expect, test } from 'bun:test'
import { bytesAfterCut, bytesAfterPush, outboxBatch, PUSH_BYTES_MAX, PUSH_BYTES_MIN, settledRev } from '../../agent/sync/outbox-batch.ts'

const row = (rev: number, key = `k${rev}`, doc: unknown = null) => ({ kind: 'service' as const, key, rev, doc })

test.each([
  ['everything known', [1, 2, 3], 3, [], 3],
  ['an answer to an older push settles what it knows', [1, 2, 3], 2, [], 2],
  ['an answer to an older push settles nothing', [4, 5], 3, [], 3],
  ['the last was refused', [1, 2, 3], 2, ['k3'], 3],
  ['all were refused', [4, 5], 0, ['k4', 'k5'], 5],
  ['one in the middle was refused', [1, 2, 3], 3, ['k2'], 3],
  ['refused behind one that is missing stays', [1, 2, 3], 1, ['k3'], 1],
] as const)('PU5 %s', (_, revs, ack, refused, expected) => {
  expect(
    settledRev(
      revs.map((rev) => row(rev)),
      ack,
      new Set(refused),
    ),
  ).toBe(expected)
})

test('PU5 a batch is the beginning of the outbox, up to its bytes, and never empty', () => {
  const rows = [row(1, 'a', 'x'.repeat(100)), row(2, 'b'), row(3, 'c')]
  const bytes = rows.map((each) => Buffer.byteLength(JSON.stringify(each)))
  const [first = 0, second = 0] = bytes
  const revs = (bytesMax: number) => outboxBatch(rows, bytesMax).map(({ rev }) => rev)
  expect(revs(first + second)).toEqual([1, 2])
  expect(revs(first + second - 1)).toEqual([1])
  expect(revs(1)).toEqual([1])
  expect(revs(1e9)).toEqual([1, 2, 3])
  expect(outboxBatch([])).toEqual([])
})

test('PU5 a push is halved by a cut down to its least, and doubled by success up to its most', () => {
  expect([bytesAfterCut(PUSH_BYTES_MAX), bytesAfterCut(PUSH_BYTES_MIN + 1)]).toEqual([PUSH_BYTES_MAX / 2, PUSH_BYTES_MIN])
  expect([bytesAfterPush(PUSH_BYTES_MIN), bytesAfterPush(PUSH_BYTES_MAX - 1)]).toEqual([2 * PUSH_BYTES_MIN, PUSH_BYTES_MAX])
})
