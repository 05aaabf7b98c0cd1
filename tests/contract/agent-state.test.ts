import { afterEach, describe, expect, test } from 'bun:test'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { entryOnPaper } from '../../agent/state/agent-state.ts'
import { OUTBOX_EVENT_BYTES_MAX, OUTBOX_EVENTS_MAX } from '../../agent/state/outbox-events.ts'
import { openAgentState } from '../../agent/state/sqlite-agent-state.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { REV_INCARNATION } from '../../shared/protocol/status.ts'

const dirs: string[] = []
const open = (dir = mkdtempSync(join(tmpdir(), 'skerry-state-'))) => {
  dirs.push(dir)
  return { dir, state: openAgentState(join(dir, 'agent.sqlite')) }
}
afterEach(() => {
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true, force: true })
})

const web = { project: 'default', service: 'web' }
const db = { project: 'default', service: 'db' }
const ref = (name: string) => ({ group: '', kind: 'ConfigMap', namespace: 'web', name })
const identity = { clusterId: 'c-0123456789abcdef', agentId: 'a-0123456789abcdef', incarnation: 1, serverKeys: ['k'] }
const healthy = { sync: 'Synced', health: 'Healthy', reason: 'Applied', message: '', sinceMs: 1 }

describe('inventory', () => {
  test('IV1 an object is on paper before it is applied, and recording one that is not is a bug', () => {
    const { state } = open()
    expect(state.widenInventory(web, [{ ref: ref('a'), apiVersion: 'v1' }])).toEqual([])
    expect(state.inventory(web)).toEqual([entryOnPaper({ ref: ref('a'), apiVersion: 'v1' })])
    const unknown = { ref: ref('b'), apiVersion: 'v1', uid: 'u', appliedDoc: '{}', ownedHash: 'h', digest: 'd', commit: 'c', revision: 'r' }
    expect(() => state.recordApplied(web, [unknown])).toThrow('IV1')
    state.recordApplied(web, [{ ...unknown, ref: ref('a') }])
    expect(state.inventory(web)).toEqual([{ ...unknown, ref: ref('a') }])
  })

  test('IV2 an object that two services want stays with the first', () => {
    const { state } = open()
    state.widenInventory(web, [{ ref: ref('a'), apiVersion: 'v1' }])
    expect(
      state.widenInventory(db, [
        { ref: ref('a'), apiVersion: 'v1' },
        { ref: ref('b'), apiVersion: 'v1' },
      ]),
    ).toEqual([ref('a')])
    expect(state.ownerOf('/ConfigMap/web/a')).toEqual(web)
    state.narrowInventory(db, [ref('a')])
    expect(state.ownerOf('/ConfigMap/web/a')).toEqual(web)
    expect(state.widenInventory(web, [{ ref: ref('a'), apiVersion: 'v1' }])).toEqual([])
  })

  test('IV11 heirs have what a service lets go, in the same write', () => {
    const { state } = open()
    const refs = [ref('a'), ref('b')]
    state.widenInventory(
      web,
      refs.map((one) => ({ ref: one, apiVersion: 'v1' })),
    )
    state.narrowInventory(web, refs, [{ service: db, ref: ref('b'), apiVersion: 'v1' }])
    expect([state.inventory(web), state.inventory(db)]).toEqual([[], [entryOnPaper({ ref: ref('b'), apiVersion: 'v1' })]])
    expect(state.services()).toContainEqual(db)
  })

  test('survives a restart; a forgotten service is gone whole', () => {
    const { dir, state } = open()
    state.widenInventory(web, [{ ref: ref('a'), apiVersion: 'v1' }])
    state.setServiceState(web, { applied: { digest: 'd', commit: 'c', atMs: 5 }, healthy: null })
    state.close()
    const again = openAgentState(join(dir, 'agent.sqlite'))
    expect(again.services()).toEqual([web])
    expect(again.serviceState(web)).toEqual({ applied: { digest: 'd', commit: 'c', atMs: 5 }, healthy: null })
    again.forgetService(web)
    expect([again.services(), again.inventory(web), again.ownerOf('/ConfigMap/web/a')]).toEqual([[], [], null])
  })
})

describe('outbox', () => {
  test('PU5 the outbox keeps the last state of each key and is emptied only by acknowledgement', () => {
    const { dir, state } = open()
    state.setIdentity(identity)
    state.report([{ kind: 'service', key: 'default/web', doc: { ...healthy, sinceMs: 1 } }])
    state.report([{ kind: 'service', key: 'default/web', doc: { ...healthy, sinceMs: 2 } }])
    state.report([{ kind: 'object', key: 'x', doc: healthy }])
    state.close()
    const again = openAgentState(join(dir, 'agent.sqlite'))
    expect(again.outbox(10).map((row) => [row.kind, row.rev - REV_INCARNATION])).toEqual([
      ['service', 2],
      ['object', 3],
    ])
    again.acknowledge(REV_INCARNATION + 2)
    expect(again.outbox(10).map((row) => row.kind)).toEqual(['object'])
    again.acknowledge(REV_INCARNATION + 3)
    expect(again.outboxDepth()).toBe(0)
  })

  test('PU6 the same document again writes nothing, also after it was acknowledged', () => {
    const { state } = open()
    let woken = 0
    state.onOutbox(() => {
      woken += 1
    })
    state.report([{ kind: 'object', key: 'x', doc: { b: 1, a: 2 } }])
    state.acknowledge(state.outbox(1)[0]?.rev ?? 0)
    state.report([{ kind: 'object', key: 'x', doc: { a: 2, b: 1 } }])
    expect([state.outboxDepth(), woken]).toEqual([0, 1])
    state.report([{ kind: 'object', key: 'never', doc: null }])
    expect(state.outboxDepth()).toBe(0)
  })

  test('PU1 a rev never falls below what the server acknowledged, and a new incarnation outranks all of it', () => {
    const { state } = open()
    state.setIdentity(identity)
    state.acknowledge(REV_INCARNATION + 500)
    state.report([{ kind: 'object', key: 'x', doc: healthy }])
    expect(state.outbox(1)[0]?.rev).toBe(REV_INCARNATION + 501)
    state.setIdentity({ ...identity, incarnation: 2 })
    expect(state.outbox(1)[0]?.rev).toBe(2 * REV_INCARNATION + 1)
  })

  test('SE4 whatever end its log loses, an agent knows its incarnation, and that it asked for the next one', () => {
    const { dir, state } = open()
    state.setIdentity(identity)
    const copies = [1, 2].map((incarnation) => {
      if (incarnation === 2) state.setIdentity({ ...identity, incarnation })
      state.wantNextIncarnation()
      state.widenInventory(web, [{ ref: ref(`a${incarnation}`), apiVersion: 'v1' }])
      const copy = join(dir, `copy-${incarnation}.sqlite`)
      copyFileSync(join(dir, 'agent.sqlite'), copy) // a log that is cut at its very beginning is none
      return copy
    })
    const held = copies.map((copy) => {
      const without = openAgentState(copy)
      return [without.identity()?.incarnation, without.wantsNextIncarnation(), without.inventory(web).length]
    })
    expect(held).toEqual([
      [1, true, 0],
      [2, true, 1],
    ])
  })

  test('PU1 a new incarnation sends every row again, acknowledged ones too, in their order, and an inventory is due', () => {
    const { state } = open()
    state.setIdentity(identity)
    state.inventoryDone()
    for (const key of ['x', 'y']) state.report([{ kind: 'object', key, doc: healthy }])
    state.acknowledge(state.lastRev())
    state.report([{ kind: 'object', key: 'z', doc: healthy }])
    expect(state.outboxDepth()).toBe(1)
    state.setIdentity({ ...identity, serverKeys: ['l'] })
    expect([state.outboxDepth(), state.inventoryDue()]).toEqual([1, false])
    state.setIdentity({ ...identity, incarnation: 3 })
    expect(state.outbox(9).map(({ key, rev }) => [key, rev - 3 * REV_INCARNATION])).toEqual([
      ['x', 1],
      ['y', 2],
      ['z', 3],
    ])
    expect([state.inventoryDue(), state.acknowledgedRev()]).toEqual([true, 0])
  })

  test('a removed key is reported as null and leaves once the server has it', () => {
    const { state } = open()
    state.report([{ kind: 'object', key: 'x', doc: healthy }])
    state.report([{ kind: 'object', key: 'x', doc: null }])
    expect(state.outbox(10).map((row) => row.doc)).toEqual([null])
    state.acknowledge(10)
    expect(state.lastReported('object', 'x')).toBeNull()
    state.report([{ kind: 'object', key: 'x', doc: null }])
    expect(state.outboxDepth()).toBe(0)
  })

  test(`PU5 at most ${OUTBOX_EVENTS_MAX} events wait, the oldest go first, states are never dropped`, () => {
    const { state } = open()
    state.report([{ kind: 'service', key: 'default/web', doc: healthy }])
    const event = (n: number) => ({
      kind: 'event' as const,
      key: String(n),
      doc: { atMs: n, type: 'Normal', reason: 'R', message: `m${n}` },
    })
    state.report(Array.from({ length: OUTBOX_EVENTS_MAX }, (_, n) => event(n)))
    expect(state.outboxDepth()).toBe(OUTBOX_EVENTS_MAX + 1)
    state.report([event(OUTBOX_EVENTS_MAX)])
    const waiting = state.outbox(OUTBOX_EVENTS_MAX + 10)
    expect(waiting.length).toBe(OUTBOX_EVENTS_MAX + 1)
    expect(waiting.filter((row) => row.kind === 'event')[0]?.key).toBe('1')
    expect(waiting.some((row) => row.kind === 'service')).toBe(true)
    state.acknowledge(state.lastRev()) // makes room for as many
    state.report(Array.from({ length: OUTBOX_EVENTS_MAX }, (_, n) => event(10_000 + n)))
    expect(state.outboxDepth()).toBe(OUTBOX_EVENTS_MAX)
    state.report([event(20_000)])
    expect(state.outbox(OUTBOX_EVENTS_MAX).map(({ key }) => key)).toEqual([
      ...Array.from({ length: OUTBOX_EVENTS_MAX - 1 }, (_, n) => String(10_001 + n)),
      '20000',
    ])
  })
})

describe('events', () => {
  const event = (n: number, change: object = {}) => ({
    kind: 'event' as const,
    key: `${n}`,
    doc: { atMs: n, type: 'Warning', reason: 'Degraded', message: 'm', service: 'shop/web', ...change },
  })
  const kept = (state: ReturnType<typeof open>['state']) => state.outbox(99).map(({ key, doc }) => [key, (doc as { count?: number }).count])

  test('PU5 events that say the same are one with a count and the last time, until they were sent', () => {
    const { state } = open()
    for (const n of [1, 2, 3]) state.report([event(n)])
    state.report([
      event(4, { message: 'other' }),
      event(5),
      event(6, { service: 'shop/db' }),
      event(7, { object: 'o' }),
      event(8, { reason: 'r' }),
    ])
    expect(kept(state)).toEqual([
      ['4', undefined],
      ['5', 4],
      ['6', undefined],
      ['7', undefined],
      ['8', undefined],
    ])
    expect(state.outbox(99)[1]?.doc).toMatchObject({ atMs: 5, count: 4 })
    state.report([event(9), event(10)]) // what was handed out may be on the server
    expect(kept(state).filter(([key]) => key === '5' || key === '10')).toEqual([
      ['5', 4],
      ['10', 2],
    ])
  })

  test('PU6 the same event once more under its key counts once', () => {
    const { state } = open()
    state.report([event(1)])
    state.report([event(2)])
    const depth = state.lastRev()
    state.report([event(2)])
    expect([state.lastRev(), kept(state)]).toEqual([depth, [['2', 2]]])
  })

  test('PU5 a restart begins new counts', () => {
    const { dir, state } = open()
    state.report([event(1)])
    state.report([event(2)])
    state.close()
    const again = openAgentState(join(dir, 'agent.sqlite'))
    again.report([event(3)])
    expect(again.outbox(9).map(({ key }) => key)).toEqual(['2', '3'])
  })

  test('PU5 at most so many bytes of events wait, to the byte, the oldest go first', () => {
    const { state } = open()
    const bytes = (n: number, size: number) => {
      const { kind, key, doc } = event(n, { message: '' })
      const rest = JSON.stringify(doc).length
      return { kind, key, doc: { ...doc, message: String(n).padEnd(size - rest, 'x') } }
    }
    const [size, count] = [4_096, OUTBOX_EVENT_BYTES_MAX / 4_096]
    state.report(Array.from({ length: count }, (_, n) => bytes(1_000 + n, size)))
    expect(state.outboxDepth()).toBe(count)
    state.report([bytes(5_000, 100)])
    expect(state.outboxDepth()).toBe(count)
    expect(state.outbox(1)[0]?.key).toBe('1001')
  })
})

describe('PU4 ranges of the inventory', () => {
  const report = (state: ReturnType<typeof open>['state'], keys: string[]) =>
    state.report(keys.map((key) => ({ kind: 'object' as const, key, doc: { key } })))
  const ranges = (state: ReturnType<typeof open>['state'], limit: number, bytesMax = 1e9) => {
    const found: Array<[string[], string | null]> = []
    for (let after: string | null = null; found.length < 20; ) {
      const { rows, upTo } = state.inventoryRange(after, limit, bytesMax)
      found.push([rows.map(({ key }) => key), upTo])
      if (upTo === null) break
      after = upTo
    }
    return found
  }

  test('they follow each other from end to end, in code unit order, whatever order they were reported in', () => {
    const { state } = open()
    report(state, ['c', 'a', '\u{1f600}', 'b', '\uffee', 'd'])
    state.report([{ kind: 'event', key: 'e', doc: { atMs: 1 } }])
    expect(ranges(state, 4)).toEqual([
      [['a', 'b', 'c', 'd'], 'object/d'],
      [['\u{1f600}', '\uffee'], null],
    ])
    expect(ranges(state, 6)).toHaveLength(1)
    expect(ranges(state, 1)).toHaveLength(6)
  })
  test('a row that is larger than a push goes alone', () => {
    const { state } = open()
    report(state, ['a', 'b'])
    expect(ranges(state, 9, 1).map(([keys]) => keys)).toEqual([['a'], ['b']])
  })
  test('nothing at all is one empty range', () => expect(ranges(open().state, 9)).toEqual([[[], null]]))
})

test('SY6 a service that became Degraded or Healthy is urgent, until it was acknowledged', () => {
  const { state } = open()
  const service = (health: string) => state.report([{ kind: 'service', key: 'shop/web', doc: { ...healthy, health } }])
  service('Progressing')
  expect(state.outboxUrgent()).toBe(false)
  service('Degraded')
  expect(state.outboxUrgent()).toBe(true)
  state.acknowledge(state.lastRev())
  expect(state.outboxUrgent()).toBe(false)
})

test('a state file of a newer version is refused and left as it is', () => {
  const { dir, state } = open()
  state.close()
  const raw = openSqlite(join(dir, 'agent.sqlite'))
  raw.run('PRAGMA user_version=99')
  raw.close()
  expect(() => openAgentState(join(dir, 'agent.sqlite'))).toThrow('newer')
})
