// What the agent's file has to know of outlives a power loss before anybody else hears of it. The disk here is done
// when the test says so.
import { expect, test } from 'bun:test'
import type { SessionKeeper } from '../../agent/link/session-keeper.ts'
import { openAgentState } from '../../agent/state/sqlite-agent-state.ts'
import { pushBatch } from '../../agent/sync/push.ts'
import { systemClock as clock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { configMap, createReconcileKit } from '../support/reconcile-kit.ts'
import { tempDir } from '../support/temp-dir.ts'
import { turnOfTheLoop } from '../support/virtual-clock.ts'

async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await turnOfTheLoop()
}

test('IV1 nothing is applied before the inventory is on the disk', async () => {
  const cluster = createFakeCluster({ clock })
  const disk = Promise.withResolvers<void>()
  const watched = (state: ReturnType<typeof openAgentState>) => ({ ...state, settled: () => disk.promise })
  const kit = createReconcileKit({ cluster, clock, watched })
  kit.desire([configMap('o', { a: '1' })])
  kit.start()
  try {
    while (kit.state.services().length === 0) await turnOfTheLoop()
    await someTurns()
    expect(cluster.requests.filter(({ verb, ref }) => verb === 'apply' && ref?.name === 'o')).toEqual([])
    disk.resolve()
    while (kit.service()?.sync !== 'Synced') await turnOfTheLoop()
  } finally {
    disk.resolve()
    await kit.stop()
  }
})

test('PU1 nothing is pushed before its revs are on the disk', async () => {
  const disk: Array<() => void> = []
  const logFile = { sync: (done: (error: null) => void) => void disk.push(() => done(null)), syncNow: () => {}, close: () => {} }
  const state = openAgentState(`${tempDir()}/agent.sqlite`, undefined, logFile)
  state.setIdentity({ clusterId: 'c-0123456789abcdef', agentId: 'a-0123456789abcdef', serverKeys: [], incarnation: 1 })
  state.report([{ kind: 'object', key: 'default/web/x', doc: { word: 'Synced' } }])
  const sent: unknown[] = []
  const call = async ({ json }: { json: unknown }) => {
    sent.push(json)
    return { status: 200, body: Buffer.from(JSON.stringify({ ack: state.lastRev(), reject: [] })) }
  }
  const limits = { sentRev: 0, bytesMax: 1_000_000 }
  const pushed = pushBatch({ call } as unknown as SessionKeeper, state, limits, silentLogger, new AbortController().signal)
  await someTurns()
  expect([sent.length, disk.length, state.sentRev()]).toEqual([0, 1, state.lastRev()])
  for (const done of disk.splice(0)) done()
  expect(await pushed).toBe('settled')
  expect(sent).toHaveLength(1)
  state.close()
})
