// Denials in the audit log are bounded: whoever is refused without an end cannot fill the disk, and is still on the
// record.
import { expect, test } from 'bun:test'
import { createAuditTrail, DENIALS_A_DAY } from '../../server/access/audit-trail.ts'
import { networkOf } from '../../server/http/caller-address.ts'
import type { Deed } from '../../server/store/audit/audit-log.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

function createTrail() {
  const written: Deed[] = []
  const time = { nowMs: 0 }
  const clock = { nowMs: () => time.nowMs, monotonicMs: () => time.nowMs, sleep: async () => {} }
  const store = { audit: { append: async (deeds: readonly Deed[]) => void written.push(...deeds) } }
  const trail = createAuditTrail({ store, networkOf, clock, log: silentLogger })
  return { trail, written, time }
}

test('AU2 strangers from any number of addresses cause a bounded number of entries, and each attempt is counted', async () => {
  const { trail, written, time } = createTrail()
  let attempts = 0
  for (; time.nowMs < DAY_MS; time.nowMs += 10 * MINUTE_MS) {
    for (let index = 0; index < 100; index++, attempts++) {
      const from = `192.0.2.${index}`
      await trail.denied([{ verb: 'GET', kind: 'Route', name: `/api/v1/${attempts}`, from }])
    }
    await trail.flush()
  }
  expect(written.length).toBeGreaterThan(100)
  expect(written.length).toBeLessThanOrEqual(DENIALS_A_DAY + 200)
  expect(written.reduce((sum, { count = 1 }) => sum + count, 0)).toBe(attempts)
})

test('AU2 one source that is beyond its bounds does not silence another', async () => {
  const { trail, written } = createTrail()
  const ofToken = (id: string, name: string): Deed => ({
    ...{ verb: 'delete', kind: 'Service', name },
    actor: { kind: 'token', id, name: id, verified: true },
  })
  for (let index = 0; index < 500; index++) await trail.denied([ofToken('t-1', `s${index}`)])
  expect(written).toHaveLength(20)
  await trail.denied([ofToken('t-2', 'web')])
  expect(written.at(-1)).toMatchObject({ name: 'web', actor: { id: 't-2' }, result: 'denied' })
})
