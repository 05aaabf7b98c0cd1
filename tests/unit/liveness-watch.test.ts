// Clusters that go offline and come back: one event for each change, none for what was so at the start.
import { expect, test } from 'bun:test'
import { LIVENESS_LOOK_MS, type LivenessDeps, watchLiveness } from '../../server/access/liveness-watch.ts'
import { onlineWithinMs } from '../../server/fleet/liveness.ts'
import type { ClusterRecord } from '../../server/fleet/records.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { naming } from '../support/naming.ts'
import { clusterId } from '../support/store-fixtures.ts'

const DAY_MS = 86_400_000
const within = onlineWithinMs(0)

/** `script`: the last contacts by cluster at each look; the watch ends after the last one. */
async function watch(script: ReadonlyArray<Record<string, number>>): Promise<string[]> {
  const said: string[] = []
  const ended = new AbortController()
  let look = 0
  const clock: Clock = {
    nowMs: () => 10 * DAY_MS + look * LIVENESS_LOOK_MS,
    monotonicMs: () => 0,
    sleep: async () => {
      look += 1
      if (look === script.length) ended.abort()
    },
  }
  const store: LivenessDeps['store'] = {
    listClusters: async () =>
      Object.entries(script[look] ?? {}).map(
        ([name, agoMs]) =>
          ({ name, clusterId: clusterId(name), revoked: false, lastSeenMs: clock.nowMs() - agoMs, waitSeconds: 0 }) as ClusterRecord,
      ),
    appendEvents: async (events) => void said.push(...events.map(({ reason, cluster, message }) => `${reason} ${cluster}: ${message}`)),
  }
  await watchLiveness({ store, clock }, ended.signal)
  return said
}

test('a cluster that goes offline and comes back is told of once each way, with how long it was away', async () => {
  const away = { a: 3 * DAY_MS + 4 * 3_600_000, b: 1_000 }
  expect(await watch([away, away, { a: 1_000, b: within + 1 }, { a: 1_000, b: within + 20_001 }, { a: 1_000, b: 0 }])).toEqual([
    naming('ClusterOnline a:', '3 d 4 h'),
    naming('ClusterOffline b:', '2 min'),
    naming('ClusterOnline b:', '3 min'),
  ])
})

test('what is offline when the server starts is no news', async () => {
  expect(await watch([{ a: DAY_MS }, { a: DAY_MS }])).toEqual([])
})
