// What the agent's state file holds of documents.
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openAgentState } from '../../agent/state/sqlite-agent-state.ts'
import { createStateBox } from '../../agent/state/state-box.ts'
import { NO_LOG } from '../../shared/adapters/log-sync.ts'
import { tempDir } from '../support/temp-dir.ts'

const SHOP = { project: 'web', service: 'shop' }
const ref = { group: '', kind: 'Secret', namespace: 'web', name: 'db' }
const CANARY = 'canary-of-state-99d1'
const entry = {
  ref,
  apiVersion: 'v1',
  uid: 'u',
  appliedDoc: `{"data":"${CANARY}"}`,
  ownedHash: `hash-${CANARY}`,
  digest: 'd',
  commit: 'c',
  revision: 'r',
}
const box = (digit: number) => createStateBox(Buffer.alloc(32, digit).toString('base64url'))

test('SL8 documents are encrypted, also those that an earlier version wrote, and nothing else opens them', () => {
  const path = join(tempDir(), 'agent.sqlite')
  const files = () => Buffer.concat([path, `${path}-wal`].flatMap((name) => (Bun.file(name).size > 0 ? [readFileSync(name)] : [])))
  const before = openAgentState(path, undefined, NO_LOG)
  before.widenInventory(SHOP, [entry])
  before.recordApplied(SHOP, [entry])
  before.setFacts(SHOP, new Map([['hook/a', { said: CANARY }]]))
  before.close()
  expect(files().includes(CANARY)).toBe(true)
  const now = openAgentState(path, undefined, NO_LOG, box(1))
  expect(files().includes(CANARY)).toBe(false)
  expect(now.inventory(SHOP)).toEqual([entry])
  expect(now.facts(SHOP, 'hook/').get('hook/a')).toEqual({ said: CANARY })
  now.recordApplied(SHOP, [{ ...entry, digest: 'e' }])
  now.setFacts(SHOP, new Map([['hook/b', CANARY]]))
  expect(now.factsOf('hook/b')).toEqual(new Map([['web/shop', CANARY]]))
  expect(files().includes(CANARY)).toBe(false)
  now.close()
  const stranger = openAgentState(path, undefined, NO_LOG, box(2))
  expect(stranger.inventory(SHOP)).toEqual([{ ...entry, appliedDoc: null, ownedHash: null, digest: 'e' }])
  expect(stranger.facts(SHOP, '').size).toBe(0)
  stranger.close()
})
