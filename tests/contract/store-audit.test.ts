// The audit log on both databases: an entry commits with its change, entries form a chain, and whoever tampers with it
// is found.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { sql } from 'kysely'
import { actAs, actAsSystem, actForRequest, identifyCaller } from '../../server/store/audit/caller.ts'
import { createAuditStore } from '../../server/store/audit/store-audit.ts'
import type { Store } from '../../server/store/store.ts'
import { createStoreDb, type StoreDb } from '../../server/store/store-db.ts'
import { type AuditAnchor, type AuditBreak, AuditChain, auditAnchorBytes, isSignedAnchor } from '../../shared/model/audit.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { generateKey, signBytes } from '../../shared/runtime/keys.ts'
import { STORES, type StorePlace } from '../support/stores.ts'

const DAY_MS = 86_400_000
const ada = { kind: 'user', id: 'u-ada', name: 'ada', provider: 'dex', verified: true } as const
const bob = { kind: 'token', id: 't-bob', name: 'bob', verified: true } as const

describe.each(STORES)('$name', (kind) => {
  let place: StorePlace
  let store: Store
  const time = { nowMs: Date.parse('2026-01-10T00:00:00Z') }
  const clock: Clock = { nowMs: () => time.nowMs, monotonicMs: () => time.nowMs, sleep: async () => {} }

  beforeEach(async () => {
    place = await kind.place()
    time.nowMs = Date.parse('2026-01-10T00:00:00Z')
    store = await place.open({ clock })
  })
  afterEach(() => store.close())

  const service = (name: string, spec: unknown = { a: 1 }) =>
    store.applyResource({ kind: 'Service', project: 'web', name }, { labels: {}, spec: JSON.stringify(spec), nowMs: 1 })
  const entries = async () => (await store.audit.list({ limit: 100 })).items.toReversed()

  async function verify(): Promise<AuditBreak | null> {
    const head = await store.audit.head()
    const chain = new AuditChain(head.anchor)
    for (const row of await store.audit.read({ after: 0, limit: 1_000 })) {
      const { seq, prev } = JSON.parse(row.doc)
      if (!row.columnsMatch) return { seq: row.seq, problem: 'columns' }
      const found = chain.take({ seq, prev, hash: row.hash, doc: row.doc })
      if (found !== null) return found
    }
    return chain.end(head)
  }

  async function tamper(statement: ReturnType<typeof sql>): Promise<void> {
    const connections = await place.connect()
    await statement.execute(connections.writer)
    await connections.close()
  }

  test('AU1 a change and its entry are one: who, what, why, from where, digests, changed fields', async () => {
    const answer = await actForRequest({ requestId: 'req-1', from: '192.0.2.7' }, async (caller) => {
      identifyCaller(ada)
      caller.reason = 'incident 7'
      await service('shop', { replicas: 1, config: { password: 'one' } })
      return service('shop', { replicas: 2, config: { password: 'two' } })
    })
    expect(answer).toMatchObject({ kind: 'configured' })
    const [created, updated] = await entries()
    expect(created).toMatchObject({ seq: 1, verb: 'create', kind: 'Service', project: 'web', name: 'shop', result: 'done', actor: ada })
    expect(updated).toMatchObject({
      ...{ seq: 2, verb: 'update', actor: ada, reason: 'incident 7', from: '192.0.2.7', requestId: 'req-1' },
      ...{ at: '2026-01-10T00:00:00.000Z', before: created?.after, prev: created?.hash },
      fields: ['spec.config.password', 'spec.replicas'],
    })
    expect(JSON.stringify(updated)).not.toContain('two')
    await service('shop', { replicas: 2, config: { password: 'two' } })
    expect(await entries()).toHaveLength(2) // nothing changed
  })

  test('AU1 a change that fails leaves no entry, and one beside it keeps its own caller', async () => {
    const connections = await place.connect()
    const db: StoreDb = createStoreDb(connections, clock)
    const write = (name: string, fails: boolean) =>
      actAs({ ...bob, name }, {}, () =>
        db.write(async ({ sql: trx, audit }) => {
          audit.add({ verb: 'test', kind: 'Thing', name })
          await trx.insertInto('meta').values({ key: name, value: '' }).execute()
          if (fails) throw new Error('undone')
        }),
      )
    const names = Array.from({ length: 40 }, (_, index) => `w${index}`)
    await Promise.allSettled(names.map((name, index) => write(name, index % 4 === 1)))
    const { items } = await createAuditStore(db).audit.list({ limit: 100 })
    expect(items.map(({ actor, name }) => actor.name === name)).not.toContain(false)
    const kept = names.filter((_, index) => index % 4 !== 1)
    expect(items.map(({ name }) => name).toReversed()).toEqual(kept)
    const { rows } = await sql<{ key: string }>`select key from meta where key like 'w%'`.execute(db.read)
    expect(rows.map(({ key }) => key).sort()).toEqual([...kept].sort())
    expect(await verify()).toBeNull()
    await db.destroy()
  })

  test('AU3 what goes on after the answer of a request is the server’s, with the request as its cause', async () => {
    const started = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    let after: Promise<unknown> = Promise.resolve()
    await actForRequest({ requestId: 'req-2', from: '192.0.2.7' }, async () => {
      identifyCaller(ada)
      after = started.promise.then(() => goOn.promise).then(() => service('late'))
      started.resolve()
      await actAsSystem('service/web/now', () => service('now'))
    })
    goOn.resolve()
    await after
    const [now, late] = await entries()
    expect(now).toMatchObject({ name: 'now', actor: { kind: 'system' }, cause: 'service/web/now', requestId: 'req-2' })
    expect(late).toMatchObject({ name: 'late', actor: { kind: 'system' }, cause: 'request of ada', requestId: 'req-2' })
  })

  const TAMPERED: Array<[string, () => Promise<void>, AuditBreak]> = [
    ['changed', () => tamper(sql`update audit set doc = replace(doc, 's3', 'x3') where seq = 3`), { seq: 3, problem: 'columns' }],
    [
      'changed with its columns',
      () => tamper(sql`update audit set doc = replace(doc, 's3', 'x3'), name = 'x3' where seq = 3`),
      { seq: 3, problem: 'changed: its content does not match its hash' },
    ],
    ['dropped', () => tamper(sql`delete from audit where seq = 3`), { seq: 3, problem: 'missing' }],
    [
      'dropped at the beginning',
      () => tamper(sql`delete from audit where seq <= 2`),
      { seq: 1, problem: 'missing, and so are those up to 2' },
    ],
    ['truncated', () => tamper(sql`delete from audit where seq >= 4`), { seq: 4, problem: 'missing: the log has entries up to 5' }],
    [
      'swapped',
      async () => {
        const [a, b] = await store.audit.read({ after: 1, limit: 2 })
        await tamper(sql`update audit set doc = ${b?.doc}, hash = ${b?.hash}, name = 's3' where seq = 2`)
        await tamper(sql`update audit set doc = ${a?.doc}, hash = ${a?.hash}, name = 's2' where seq = 3`)
      },
      { seq: 2, problem: 'columns' },
    ],
  ]
  test.each(TAMPERED)('AU4 verification finds entries that were %s', async (_, change, expected) => {
    for (const name of ['s1', 's2', 's3', 's4', 's5']) await service(name)
    expect(await verify()).toBeNull()
    await change()
    expect(await verify()).toEqual(expected)
  })

  test('AU5 retention deletes a beginning of the log and leaves a signed anchor that the rest follows from', async () => {
    const key = generateKey('ed25519')
    const anchorOf = (last: { seq: number; hash: string; deleted: number }): AuditAnchor => {
      const anchor = { ...last, at: '2026-02-01T00:00:00.000Z', key: key.publicKey }
      return { ...anchor, signature: signBytes(key.privateKey, auditAnchorBytes(anchor)) }
    }
    for (let day = 0; day < 6; day++) {
      await service(`s${day}`)
      time.nowMs += DAY_MS
    }
    const before = Date.parse('2026-01-13T00:00:00Z')
    expect(await store.audit.drop(before, 2, anchorOf)).toBe(2)
    expect(await store.audit.drop(before, 2, anchorOf)).toBe(1)
    expect(await store.audit.drop(before, 2, anchorOf)).toBe(0)
    const { anchor } = await store.audit.head()
    expect(anchor).toMatchObject({ seq: 3, deleted: 3 })
    expect(anchor !== null && isSignedAnchor(anchor)).toBe(true)
    expect(anchor !== null && isSignedAnchor({ ...anchor, deleted: 2 })).toBe(false)
    expect((await entries()).map(({ verb, name }) => name ?? verb)).toEqual(['s3', 's4', 's5', 'expire', 'expire'])
    expect(await verify()).toBeNull()
    await service('s6')
    expect(await verify()).toBeNull()
    await tamper(sql`delete from audit where seq = 4`)
    expect(await verify()).toMatchObject({ seq: 4 })
  })

  test('AU6 lists by page, time, actor, verb, kind, project, name and result', async () => {
    for (let index = 0; index < 6; index++) {
      await actAs(index % 2 === 0 ? ada : bob, {}, () => service(`s${index}`))
      time.nowMs += 1_000
    }
    await store.audit.append([{ verb: 'sync', kind: 'Service', project: 'web', name: 's1', result: 'denied', actor: bob, from: '::1' }])
    const names = async (query: Partial<Parameters<typeof store.audit.list>[0]>) =>
      (await store.audit.list({ limit: 10, ...query })).items.map(({ name }) => name)
    expect(await names({ actor: 'ada' })).toEqual(['s4', 's2', 's0'])
    expect(await names({ result: 'denied' })).toEqual(['s1'])
    expect(await names({ name: 's1' })).toEqual(['s1', 's1'])
    expect(await names({ verb: 'sync', projects: ['web'], kind: 'Service' })).toEqual(['s1'])
    expect(await names({ projects: ['other'] })).toEqual([])
    const startMs = Date.parse('2026-01-10T00:00:00Z')
    expect(await names({ sinceMs: startMs + 1_000, untilMs: startMs + 3_000 })).toEqual(['s2', 's1'])
    const first = await store.audit.list({ limit: 3 })
    expect(first.items.map(({ seq }) => seq)).toEqual([7, 6, 5])
    expect((await store.audit.list({ limit: 9, before: first.next ?? 0 })).items.map(({ seq }) => seq)).toEqual([4, 3, 2, 1])
  })
})
