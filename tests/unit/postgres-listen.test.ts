// Listening for commits of other processes: whatever fails there is tried again, and ends nothing.
import { expect, test } from 'bun:test'
import { listenForChanges } from '../../server/store/engines/postgres-listen.ts'
import { systemClock } from '../../shared/runtime/clock.ts'

test('CF4 a connection that cannot even be described, because its certificate is just being replaced, is tried again', async () => {
  const stop = new AbortController()
  let tries = 0
  const newClient = () => {
    tries += 1
    if (tries === 3) stop.abort()
    throw new Error('sslrootcert=ca.pem cannot be read')
  }
  await listenForChanges(newClient, () => {}, { ...systemClock, sleep: async () => {} }, stop.signal)
  expect(tries).toBe(3)
})
