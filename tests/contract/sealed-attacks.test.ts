// Somebody who writes the tables of a server, or speaks for it, moves what is sealed: it opens in its own place only.
import { describe, expect, spyOn, test } from 'bun:test'
import { join } from 'node:path'
import { agentFiles } from '../../agent/agent.ts'
import { statusText } from '../../agent/cli/print-status.ts'
import { type ConfigId, createConfigKeys } from '../../server/access/config-keys.ts'
import { openConfig, sealConfig } from '../../server/access/config-secrets.ts'
import { loadSealing } from '../../server/access/sealing.ts'
import { loadSecretBox } from '../../server/access/secret-box.ts'
import { createPageSeal } from '../../server/desired/page-seal.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { hashOfRows } from '../../shared/crdt/row-hash.ts'
import { canonicalJson, sha256Hex } from '../../shared/kube/canonical.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { sealObject } from '../../shared/model/sealed-object.ts'
import { clusterStatusSchema } from '../../shared/model/status.ts'
import { checkpointBytes, type Hello, type Row, rowLine } from '../../shared/protocol/frames.ts'
import { clusterIdSchema } from '../../shared/runtime/ids.ts'
import { fingerprint, generateKey } from '../../shared/runtime/keys.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { type ParsedPage, pullPage } from '../support/page-kit.ts'
import { ACCEPT, opened, rowId, sealedWorld, secretDoc } from '../support/sealed-world.ts'
import { CLUSTER, DB, NEIGHBOUR, openTestShards, serviceDoc, sign, WEB } from '../support/sync-kit.ts'
import { SyncServer } from '../support/sync-world.ts'
import { tempDir } from '../support/temp-dir.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'
import { startWholeSite } from '../support/whole-site.ts'

const keysOf = ({ text }: ParsedPage): string => text.split('\n')[1] ?? ''

/** A page that the server would sign: every digest in it is right. */
function signedPage({ hello, rows, keys }: { hello: Hello; rows: readonly Row[]; keys: string }): Buffer {
  const hash = hashOfRows(rows.map(({ id, doc }) => [id, doc ?? ''] as const))
  const lines = rows.map(rowLine).join('')
  const head: Hello = { ...hello, to: { ...hello.to, hash }, ...(hello.seal && { seal: { ...hello.seal, keys: sha256Hex(keys) } }) }
  const covered = { count: rows.length, rows: sha256Hex(lines) }
  const checkpoint = { t: 'checkpoint', ...covered, signature: sign(checkpointBytes(CLUSTER, head, covered)) }
  return Buffer.from(`${JSON.stringify(head)}\n${keys}\n${lines}${JSON.stringify(checkpoint)}\n`)
}

describe('SL13 a sealed row and its key', () => {
  test('of an earlier revision do not open in a page of a later one', async () => {
    const { shards, write, replicaOf } = sealedWorld()
    write(CLUSTER, { a: 'old' })
    const first = await pullPage(shards, CLUSTER, null, ACCEPT)
    write(CLUSTER, { a: 'new' })
    const second = await pullPage(shards, CLUSTER, null, ACCEPT)
    const replay = replicaOf('replay')
    const page = { ...second, rows: first.rows, keys: keysOf(first) }
    // All of the first revision, as if it were the newest; then the first encapsulation and the hello of the second.
    for (const hello of [
      { ...second.hello, seal: first.hello.seal },
      { ...second.hello, epoch: first.hello.epoch },
    ]) {
      expect(replay.applyPage(signedPage({ ...page, hello })).kind).toBe('applied')
      expect(await opened(replay, 'a')).toBeNull()
    }
    const honest = replicaOf('honest')
    honest.applyPage(signedPage({ ...second, keys: keysOf(second) }))
    expect(await opened(honest, 'a')).toBe(secretDoc('a', 'new'))
  })

  test('of an earlier epoch do not open in a later one', async () => {
    const { shards, write, replicaOf } = sealedWorld()
    write(CLUSTER, { a: '1' })
    const page = await pullPage(shards, CLUSTER, null, ACCEPT)
    const replica = replicaOf('one')
    expect(replica.applyPage(signedPage({ ...page, hello: { ...page.hello, epoch: 9 }, keys: keysOf(page) })).kind).toBe('applied')
    expect(await opened(replica, 'a')).toBeNull()
  })

  test('without their binding do not open, as if an earlier server had wrapped them', async () => {
    const { shards, write, replicaOf } = sealedWorld()
    write(CLUSTER, { a: '1' })
    const page = await pullPage(shards, CLUSTER, null, ACCEPT)
    const { bound: _, ...seal } = page.hello.seal ?? { enc: '', to: '', keys: '' }
    const replica = replicaOf('one')
    expect(replica.applyPage(signedPage({ ...page, hello: { ...page.hello, seal }, keys: keysOf(page) })).kind).toBe('applied')
    expect(await opened(replica, 'a')).toBeNull()
  })

  test('of a neighbour do not open, whether its keys or only its rows are taken', async () => {
    const { shards, write, replicaOf } = sealedWorld()
    write(CLUSTER, { a: '1' })
    write(NEIGHBOUR, { a: 'of the neighbour' })
    const [mine, theirs] = [await pullPage(shards, CLUSTER, null, ACCEPT), await pullPage(shards, NEIGHBOUR, null, ACCEPT)]
    for (const keys of [keysOf(mine), keysOf(theirs)]) {
      const replica = replicaOf(`thief-${keys.slice(0, 8).replace(/\W/g, '')}`)
      expect(replica.applyPage(signedPage({ ...mine, rows: theirs.rows, keys })).kind).toBe('applied')
      expect(await opened(replica, 'a')).toBeNull()
    }
  })

  test('of another service do not open, even when the server itself wraps the key of the moved row', async () => {
    const { shards, write, writeRows, replicaOf, pull } = sealedWorld()
    write(CLUSTER, { a: '1' })
    const stolen = (await pullPage(shards, CLUSTER, null, ACCEPT)).rows.find(({ id }) => id === rowId('a'))?.doc ?? ''
    writeRows(CLUSTER, DB, new Map([[rowId('a', DB), stolen]]))
    const replica = replicaOf('one')
    expect(replica.applyPage(await pull(replica)).kind).toBe('applied')
    await replica.unlock(DB)
    expect(replica.open(rowId('a', DB), stolen)).toBeNull()
    expect(await opened(replica, 'a')).toBe(secretDoc('a', '1'))
  })

  test('of another object of the service do not open', async () => {
    const { shards, write, writeRows, replicaOf, pull } = sealedWorld()
    write(CLUSTER, { a: '1', b: '2' })
    const docs = new Map((await pullPage(shards, CLUSTER, null, ACCEPT)).rows.map(({ id, doc }) => [id, doc ?? '']))
    const moved = new Map([
      [rowId('a'), docs.get(rowId('b')) ?? ''],
      [rowId('b'), docs.get(rowId('b')) ?? ''],
    ])
    writeRows(CLUSTER, { project: 'shop', service: 'web' }, moved)
    const replica = replicaOf('one')
    replica.applyPage(await pull(replica))
    expect([await opened(replica, 'a'), await opened(replica, 'b')]).toEqual([null, secretDoc('b', '2')])
  })
})

test('SL13 keys that an earlier agent kept still open, and an agent that is put back fetches its keys again', async () => {
  const { dir, shards, write, replicaOf } = sealedWorld()
  write(CLUSTER, { a: '1' })
  const unbound = await pullPage(shards, CLUSTER, null, { zstd: false, seal: true })
  expect(unbound.hello.seal?.bound).toBeUndefined()
  const replica = replicaOf('one')
  replica.applyPage(unbound.frames)
  replica.close()
  const db = openSqlite(join(dir, 'one.db'))
  db.run('CREATE TABLE row_key AS SELECT id, enc, recipient, wrapped FROM page_key')
  db.run('DROP TABLE page_key')
  db.close()
  const upgraded = replicaOf('one')
  expect([upgraded.verified(), await opened(upgraded, 'a')]).toEqual([true, secretDoc('a', '1')])
  upgraded.close()
  const after = openSqlite(join(dir, 'one.db'), { readonly: true })
  expect(after.query("SELECT name FROM sqlite_schema WHERE name = 'row_key'").all()).toEqual([])
  after.close()
})

test('CG10 CG11 a secret that is moved to another Config, project or name does not open, nor with the data key of another', async () => {
  const keys = createConfigKeys(loadSecretBox(join(tempDir(), 'keys')))
  const own = { project: 'shop', name: 'vars' }
  const secrets = { password: 'hunter2', token: 'abc' }
  const seal = async (id: ConfigId) => {
    const sealed = await sealConfig(keys, id, { data: {}, secrets }, null)
    if (sealed.kind !== 'sealed') throw new Error('refused')
    return JSON.parse(sealed.spec)
  }
  const opened = (id: ConfigId, spec: unknown) => openConfig(keys, id, JSON.stringify(spec))
  const refused = { code: 'credential_missing' }
  const spec = await seal(own)
  expect((await opened(own, spec)).secrets).toEqual(secrets)
  for (const id of [
    { ...own, name: 'others' },
    { ...own, project: 'bank' },
  ]) {
    await expect(opened(id, spec)).rejects.toMatchObject(refused)
    await expect(opened(id, { ...spec, key: (await seal(id)).key })).rejects.toMatchObject(refused)
  }
  const swapped = { password: spec.secrets.token, token: spec.secrets.password }
  await expect(opened(own, { ...spec, secrets: swapped })).rejects.toMatchObject(refused)
  await expect(opened(own, { ...spec, key: undefined })).rejects.toMatchObject(refused)
})

/** A server that seals, and a whole agent with the Secret `a` applied. */
async function sealedSite() {
  const [dir, dataDir, clock, random] = [tempDir(), tempDir(), createVirtualClock(), seededRandom(7)]
  const server = new SyncServer({ dir, clock, random })
  await server.open()
  await server.createJoinToken(1)
  const { agents } = server
  const sealing = loadSealing(join(dir, 'sealing'))
  sealing.begin()
  const seal = createPageSeal({ sealing, recipientOf: (id) => agents.ofCluster(id)?.recipient ?? null })
  /** Fingerprints to which pages were sealed, without repetitions. */
  const sealedTo: string[] = []
  const { shards } = openTestShards(join(dir, 'sealed'), {
    ...{ clock, sign: server.keys.sign, epochOf: agents.epochOf, withoutThreads: true },
    seal: {
      wrap: async (...asked) => {
        const keys = await seal.wrap(...asked)
        if (sealedTo.at(-1) !== keys.head.to) sealedTo.push(keys.head.to)
        return keys
      },
    },
  })
  // The routes hold the shard files that the server opened, which do not seal.
  for (const name of Object.getOwnPropertyNames(Object.getPrototypeOf(shards))) {
    const member: unknown = Reflect.get(shards, name, shards)
    if (typeof member === 'function' && name !== 'constructor') Object.assign(server.shards, { [name]: member.bind(shards) })
  }
  const { agent, cluster, stop } = startWholeSite({ clock, random, dataDir, server: () => server, joinToken: server.joinToken })
  await clock.advance(5_000)
  const clusterId = clusterIdSchema.parse(agent.report().clusterId)
  const publish = async (value: string) => {
    const keys = sealing.keysFor(WEB)
    if (keys === null) throw new Error('no keys')
    const doc = secretDoc('a', value)
    const objects = new Map([[rowId('a'), sealObject(keys, rowId('a'), JSON.parse(doc), canonicalJson(JSON.parse(doc)))]])
    const row = serviceRowSchema.parse(JSON.parse(serviceDoc(objects)))
    await server.publishRows({ clusterId, ...WEB, doc: row, placedBy: '{}', objects })
  }
  /** Encryption needs real time too. */
  const until = async (check: () => unknown) => {
    for (let step = 0; step < 600 && !(await check()); step++) {
      await clock.advance(1_000)
      await Bun.sleep(1)
    }
  }
  const ref = { group: '', kind: 'Secret', namespace: 'default', name: 'a' }
  const live = () => {
    const { value } = (cluster.object(ref)?.['data'] ?? {}) as { value?: string }
    return value === undefined ? null : Buffer.from(value, 'base64').toString()
  }
  const problems = async () =>
    (await server.store.listStatus({ clusterId, kind: 'cluster' })).flatMap(({ doc }) => clusterStatusSchema.parse(doc).problems)
  const own = agent.report().recipient ?? ''
  await publish('1')
  await until(() => live() === '1' && agent.report().outboxDepth === 0)
  expect([live(), sealedTo, await problems()]).toEqual(['1', [own], []])
  const remove = () => cluster.deleteAs('kubectl', ref)
  return { dir, dataDir, clock, server, clusterId, agent, stop, publish, until, live, remove, problems, own, sealedTo }
}

describe('a server with another recipient key than that of the agent', () => {
  const foreign = generateKey('x25519').publicKey
  const other = fingerprint(foreign)

  test('SL15 gets the key of the agent with the next session, after the agent refused a page', async () => {
    const { dir, server, clusterId, agent, stop, publish, until, live, problems, own, sealedTo } = await sealedSite()
    const db = openSqlite(join(dir, 'fleet.sqlite'))
    db.query('UPDATE agents SET recipient = ?').run(foreign)
    db.close()
    await server.agents.refresh()
    await publish('2')
    await until(() => live() === '2')
    expect([live(), sealedTo, agent.report().foreignRecipient, await problems()]).toEqual(['2', [own, other, own], null, []])
    expect(fingerprint(server.agents.ofCluster(clusterId)?.recipient ?? '')).toBe(own)
    await stop()
  })

  test('SL15 that keeps it is reported with both fingerprints, no page of it is taken, and what is in force stays', async () => {
    const { dataDir, clock, server, agent, stop, publish, until, live, remove, problems, own, sealedTo } = await sealedSite()
    const said = spyOn(silentLogger, 'error')
    const { agent: honest, ofCluster } = server.agents
    const substituted = (record: ReturnType<typeof honest>) => record && { ...record, recipient: foreign }
    Object.assign(server.agents, {
      agent: (id: string) => substituted(honest(id)),
      ofCluster: (id: typeof CLUSTER) => substituted(ofCluster(id)),
    })
    await publish('2')
    await until(async () => (await problems()).length > 0)
    const found = await problems()
    expect(found.map(({ code, message }) => [code, message.includes(own), message.includes(other)])).toEqual([
      ['recipient_substituted', true, true],
    ])
    expect(agent.report()).toMatchObject({ recipient: own, foreignRecipient: other, enforcement: { state: 'enforcing' } })
    expect(statusText(agent.report(), clock.nowMs())).toContain(other)
    expect(said.mock.calls.filter(([, fields]) => fields?.['own'] === own && fields['other'] === other)).toHaveLength(1)
    remove()
    await until(() => live() !== null)
    expect([live(), sealedTo]).toEqual(['1', [own, other]])
    const replica = openSqlite(agentFiles(dataDir).replica, { readonly: true })
    expect(replica.query('SELECT DISTINCT recipient FROM page_key').all()).toEqual([{ recipient: own }])
    replica.close()
    Object.assign(server.agents, { agent: honest, ofCluster })
    await until(async () => live() === '2' && (await problems()).length === 0)
    expect([live(), agent.report().foreignRecipient, await problems()]).toEqual(['2', null, []])
    said.mockRestore()
    await stop()
  })
})
