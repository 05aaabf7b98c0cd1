// The burst of those who come back: the server lives on between the slices.
import { expect, test } from 'bun:test'
import { createHmac, randomBytes } from 'node:crypto'
import { createSessions } from '../../server/access/sessions.ts'
import type { AgentRecord } from '../../server/fleet/records.ts'
import { createFairPace } from '../../server/http/fair-pace.ts'
import { sessionProofBytes } from '../../shared/protocol/session.ts'
import { agentIdSchema, clusterIdSchema } from '../../shared/runtime/ids.ts'
import { generateKey, signBytes } from '../../shared/runtime/keys.ts'

const SLICE_MS = 5
const BURST = 200

/** Each session that is opened takes a millisecond of its clock. */
function sessionsKit() {
  const key = generateKey('ed25519')
  const agentId = agentIdSchema.parse('a-0123456789abcdef')
  const agent: AgentRecord = {
    ...{ agentId, clusterId: clusterIdSchema.parse('c-0123456789abcdef'), clusterName: 'site', publicKey: key.publicKey, recipient: '' },
    ...{ incarnation: 1, epoch: 1, revoked: false, joinedMs: 0 },
  }
  const kit = { agent, opened: [] as number[], nowMs: 1_000 }
  const clock = { nowMs: () => kit.nowMs, monotonicMs: () => kit.nowMs, sleep: async () => {} }
  const sign = () => {
    kit.nowMs += 1
    return ''
  }
  const mac = (_purpose: string, bytes: Uint8Array) => createHmac('sha256', 'key').update(bytes).digest().subarray(0, 16)
  const agents = { agent: (id: string) => ({ ...kit.agent, agentId: id }) } as unknown as Parameters<typeof createSessions>[0]['agents']
  const store = {
    changeRecipient: async () => {},
    raiseIncarnation: () => Promise.reject(new Error('nobody asked for one')),
    removedCluster: async () => null,
  }
  const sessions = createSessions({
    keys: { fingerprint: '00', generation: '', revocation: undefined, links: [], sign, mac },
    agents,
    store,
    clock,
    randomBytes,
  })
  const pace = createFairPace(clock, SLICE_MS)
  const proof = (nonce = sessions.nonce(), id = agentId) => ({
    ...{ agentId: id, incarnation: 1, nonce, signature: signBytes(key.privateKey, sessionProofBytes(id, 1, nonce)) },
  })
  const open = async (order: number, given = proof()) => {
    await sessions.open(given, pace)
    kit.opened.push(order)
  }
  return { kit, open, proof, pace }
}

test('AR3 a burst of session openings lets a timer run in between, and has its turns in the order of asking', async () => {
  const { kit, open, proof } = sessionsKit()
  const proofs = Array.from({ length: BURST }, (_, n) => proof(undefined, agentIdSchema.parse(`a-${n.toString(16).padStart(16, '0')}`)))
  let openedBefore = -1
  setTimeout(() => {
    openedBefore = kit.opened.length
  }, 0)
  await Promise.all(proofs.map((given, order) => open(order, given)))
  expect(openedBefore).toBeGreaterThanOrEqual(0)
  expect(openedBefore).toBeLessThan(BURST / 2)
  expect(kit.opened).toEqual(Array.from({ length: BURST }, (_, order) => order))
})

test('AR3 SE1 SE3 what changed while a session waited for its turn counts', async () => {
  const { kit, open, proof } = sessionsKit()
  const [once, ...others] = Array.from({ length: 3 * SLICE_MS }, () => proof())
  const twice = [open(0, once), ...others.map((given, order) => open(order + 1, given)), open(-1, once)]
  const outcomes = (await Promise.allSettled(twice)).map(({ status }) => status)
  expect(outcomes.indexOf('rejected')).toBe(3 * SLICE_MS)
  const late = Array.from({ length: 3 * SLICE_MS }, (_, order) => open(order, proof()))
  setImmediate(() => {
    kit.agent = { ...kit.agent, revoked: true }
  })
  const refused = (await Promise.allSettled(late)).filter((outcome) => outcome.status === 'rejected')
  expect(refused.length).toBeGreaterThan(0)
  expect(refused.length).toBeLessThan(3 * SLICE_MS)
  expect(refused.every(({ reason }) => reason.code === 'revoked')).toBe(true)
})

test('AR3 who asks alone does not wait, whoever waits comes before whoever asks later, and a clock that was set back holds nobody up', async () => {
  let nowMs = 1_000
  const pace = createFairPace({ nowMs: () => nowMs }, SLICE_MS)
  expect([pace(), pace()]).toEqual([undefined, undefined])
  nowMs += SLICE_MS
  const order: string[] = []
  const first = pace()?.then(() => order.push('first'))
  nowMs -= SLICE_MS
  const second = pace()?.then(() => order.push('second'))
  nowMs -= 500
  await Promise.all([first, second])
  expect(order).toEqual(['first', 'second'])
  await new Promise((resolve) => setImmediate(resolve))
  nowMs += 60_000
  expect(pace()).toBeUndefined()
})
