// Found by the simulation: an agent that was set back, reached nobody, and was started again took the numbers that it
// had given out meanwhile for those that the server has, and what it said under them was never heard.
import { expect, test } from 'bun:test'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SessionKeeper } from '../../agent/link/session-keeper.ts'
import { openAgentState } from '../../agent/state/sqlite-agent-state.ts'
import { compareRevs } from '../../agent/sync/push.ts'
import { REV_INCARNATION } from '../../shared/protocol/status.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { tempDir } from '../support/temp-dir.ts'

const row = (key: string) => ({ kind: 'object' as const, key, doc: { key } })
const identity = { clusterId: 'c-0123456789abcdef', agentId: 'a-0123456789abcdef', serverKeys: [], incarnation: 1 } as never

test('PU7 what was given out since and never went up is no proof of what the server has', async () => {
  const dir = tempDir()
  const [now, older] = [join(dir, 'now.sqlite'), join(dir, 'older.sqlite')]
  const first = openAgentState(now)
  first.setIdentity(identity)
  first.report([row('a')])
  first.noteSent(first.lastRev())
  first.acknowledge(first.lastRev())
  first.close()
  copyFileSync(now, older)
  const ack = REV_INCARNATION + 2 // the server was told of another one before the snapshot came back

  const offline = openAgentState(older)
  offline.report([row('b'), row('c'), row('d')])
  offline.close()
  const again = openAgentState(older)
  expect([again.lastRev() > ack, again.sentRev()]).toEqual([true, REV_INCARNATION + 1])
  let asked = 0
  const session = {
    call: async () => ({ status: 200, body: Buffer.from(JSON.stringify({ ack, reject: [] })) }),
    takeNextIncarnation: async () => void asked++,
  } as unknown as SessionKeeper
  expect(await compareRevs(session, again, again.sentRev(), silentLogger, new AbortController().signal)).toBe('doubted')
  expect(asked).toBe(1)
  again.close()
})
