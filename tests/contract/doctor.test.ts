// The doctor on a data folder that the server's own parts made: nothing is wrong with it, and each thing that is made
// wrong is found, named and told what to do about.
import { afterEach, describe, expect, test } from 'bun:test'
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadSecretBox } from '../../server/access/secret-box.ts'
import { loadServerKeys } from '../../server/access/server-keys.ts'
import { RESTORE_MARK } from '../../server/backup/restore-mark.ts'
import { publishRevisions } from '../../server/desired/publisher.ts'
import { SHARD_COUNT, shardOf } from '../../server/desired/shard-files.ts'
import type { ServiceRevision } from '../../server/desired/shards.ts'
import { examine } from '../../server/doctor/examine.ts'
import { doctorReportSchema, FINDINGS } from '../../server/doctor/findings.ts'
import { contentPath } from '../../server/store/content/content-names.ts'
import { runDoctor } from '../../server/verbs/doctor-verb.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { HEALTH_RULES } from '../../shared/model/desired.ts'
import { type Clock, systemClock } from '../../shared/runtime/clock.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { fillDataFolder, openDataFolderServer, WEB } from '../support/data-folder-kit.ts'
import { naming } from '../support/naming.ts'
import { objectRows, serviceDoc } from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

const NOW: Clock = { ...systemClock, sleep: async () => {} }
let template: { dir: string; clusters: ClusterId[] } | undefined
let dir = ''
let clusters: ClusterId[] = []
async function start() {
  if (template === undefined) {
    const made = tempDir()
    template = { dir: made, clusters: await fillDataFolder(made) }
  }
  dir = join(tempDir(), 'data')
  clusters = template.clusters
  cpSync(template.dir, dir, { recursive: true })
  chmodSync(dir, 0o700)
}
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const look = (clock = NOW) => examine({ dataDir: dir, store: null }, { clock, progress: () => {} })
const first = (): ClusterId => clusters[0] as ClusterId
const changeStore = (...statements: string[]) => {
  const db = openSqlite(join(dir, 'fleet.sqlite'))
  for (const statement of statements) db.run(statement)
  db.close()
}
const shardPath = (clusterId: string) => join(dir, 'shards', `shard-${String(shardOf(clusterId, SHARD_COUNT)).padStart(2, '0')}.db`)
const shaOf = (service: string): string => {
  const db = openSqlite(join(dir, 'fleet.sqlite'), { readonly: true })
  const row = db.query<{ sha: string }, [string]>('SELECT set_sha AS sha FROM desired WHERE service = ? LIMIT 1').get(service)
  db.close()
  return row?.sha ?? ''
}
const withServer = async (work: (server: Awaited<ReturnType<typeof openDataFolderServer>>) => Promise<void>) => {
  const server = await openDataFolderServer(dir)
  await work(server)
  await server.close()
}

describe('a folder as a server leaves it', () => {
  test('DO1 nothing is wrong, and nothing is changed', async () => {
    await start()
    const before = readdirSync(dir, { recursive: true }).map(String).sort()
    const bytes = readFileSync(join(dir, 'fleet.sqlite'))
    const report = await look()
    expect(report.findings).toEqual([])
    expect(report).toMatchObject({ server: 'stopped', store: 'sqlite', fine: true, facts: { clusters: 3, shardRows: 13 } })
    expect(readFileSync(join(dir, 'fleet.sqlite'))).toEqual(bytes)
    const after = readdirSync(dir, { recursive: true }).map(String)
    expect(after.filter((name) => !/-(shm|wal)$/.test(name)).sort()).toEqual(before)
  })

  test('DO1 the document is of its schema, and words and exit codes are for people', async () => {
    await start()
    const run = async (flags: Record<string, string>) => {
      const said = { out: '', err: '' }
      const io = {
        env: {},
        errIsTty: true,
        onStop: () => {},
        clock: NOW,
        out: (t: string) => (said.out += t),
        err: (t: string) => (said.err += t),
      }
      return { code: await runDoctor(flags, { ...io, out: (t) => void io.out(t), err: (t) => void io.err(t) }), ...said }
    }
    const fine = await run({ data: dir, output: 'json' })
    expect([fine.code, doctorReportSchema.parse(JSON.parse(fine.out)).fine]).toEqual([0, true])
    chmodSync(join(dir, 'keys', 'mac.key'), 0o644)
    const bad = await run({ data: dir })
    expect(bad.code).toBe(1)
    for (const text of ['error: Other users of this machine can read a key', 'keys/mac.key has mode 644', 'chmod 600', 'Problems found'])
      expect(bad.out).toContain(text)
    expect(bad.err).toContain('checking the fleet store')
    for (const data of [join(dir, 'nowhere'), tempDir()]) expect((await run({ data })).code).toBe(2)
    expect((await run({ data: dir, store: 'mysql://x' })).code).toBe(2)
  })

  test('DO1 every finding says what it is, what it means and what to do', () => {
    for (const { what, means, remedy } of Object.values(FINDINGS))
      for (const text of [what, means, remedy]) expect(text).toMatch(/^([A-Z`]|chmod ).{10,}[.)]$/)
  })
})

const shifted = (column: string, table: string, where = '') => `UPDATE ${table} SET ${column} = ${column} + 1 ${where}`
const STORE_CASES: Array<[what: string, code: string, where: RegExp, statements: string[]]> = [
  [
    'desired rows of no cluster',
    'row_without_owner',
    /^desired c-1+9\/shop\/web$/,
    ["UPDATE desired SET cluster_id = 'c-1111111111111119' WHERE cluster_id = 'c-1111111111111111' AND service = 'web'"],
  ],
  [
    'an agent of no cluster',
    'row_without_owner',
    /^agents /,
    ["UPDATE agents SET cluster_id = 'c-9' WHERE agent_id = 'a-1111111111111111'"],
  ],
  ['a cluster without its agent', 'row_missing', /the agent of cluster-1/, ["DELETE FROM agents WHERE agent_id = 'a-1111111111111111'"]],
  [
    'a cluster without its resource',
    'row_missing',
    /the Cluster resource of cluster-2/,
    ["DELETE FROM resources WHERE name = 'cluster-2'"],
  ],
  [
    'a resource without its cluster',
    'row_without_owner',
    /^Cluster ghost$/,
    ["UPDATE resources SET name = 'ghost' WHERE name = 'cluster-2'"],
  ],
  [
    'reports of no cluster',
    'row_without_owner',
    /^status_rows of cluster 99/,
    ['UPDATE status_rows SET cluster_no = 99 WHERE cluster_no = 1'],
  ],
  ['reports of no name', 'row_without_owner', /^status_rows of name 99/, ['UPDATE status_rows SET name_id = 99 WHERE cluster_no = 1']],
  ['reports in no state', 'row_without_owner', /^status_rows in state 99/, ['UPDATE status_rows SET state_id = 99 WHERE cluster_no = 1']],
  ['references of a name', 'count_wrong', /^names \d+: 4, not 3$/, [shifted('refs', 'names')]],
  ['references of a state', 'count_wrong', /^states \d+: 4, not 3$/, [shifted('refs', 'states', 'WHERE refs = 3')]],
  ['rows of a cluster', 'count_wrong', /^rows of cluster-1: 2, not 1$/, [shifted('row_count', 'clusters', "WHERE name = 'cluster-1'")]],
  [
    'words that are not those of the row',
    'count_wrong',
    /^words of shop\/web in c-1+: Synced\/Healthy, not /,
    ["UPDATE desired SET sync = 'Synced', health = 'Healthy' WHERE cluster_id = 'c-1111111111111111' AND service = 'web'"],
  ],
  [
    'a count of services that lost one',
    'count_wrong',
    /^service shop\/web .*: \d, not \d$/,
    ["UPDATE rollups SET n = n - 1 WHERE dimension = 'service' AND key = 'shop/web'"],
  ],
  [
    'a negative count',
    'count_wrong',
    /^placement {2}Synced\/Odd: -1, not 0$/,
    ["INSERT INTO rollups (dimension, key, value, n) VALUES ('placement', '', 'Synced/Odd', -1)"],
  ],
  [
    'versions that would come twice',
    'number_wrong',
    /^resource_version 0 < /,
    ["UPDATE counters SET value = 0 WHERE name = 'resource_version'"],
  ],
  ['changes that would come twice', 'number_wrong', /^change 0 < /, ["UPDATE counters SET value = 0 WHERE name = 'change'"]],
  [
    'numbers of clusters that would come twice',
    'number_wrong',
    /^cluster_no 0 < 3/,
    ["UPDATE counters SET value = 0 WHERE name = 'cluster_no'"],
  ],
  [
    'an ordinal below its rows',
    'number_wrong',
    /^ordinal of cluster-1: 1 < /,
    ["UPDATE clusters SET ordinal = 1 WHERE name = 'cluster-1'"],
  ],
  [
    'an ordinal twice',
    'number_wrong',
    /^ordinal 7 twice in c-2/,
    ["UPDATE desired SET ordinal = 7 WHERE cluster_id = 'c-2222222222222222'", "UPDATE clusters SET ordinal = 7 WHERE name = 'cluster-2'"],
  ],
  [
    'a number above 2^53',
    'integer_range',
    /^clusters: epoch 9007199254740992/,
    ["UPDATE clusters SET epoch = 9007199254740992 WHERE name = 'cluster-1'"],
  ],
  ['a fraction', 'integer_range', /^counters: value 1000.5/, ["UPDATE counters SET value = 1000.5 WHERE name = 'event_id'"]],
]

describe('a fleet store', () => {
  test.each(STORE_CASES)('DO2 %s', async (_, code, where, statements) => {
    await start()
    changeStore(...statements)
    const { findings, fine } = await look()
    expect(fine).toBe(false)
    expect(findings.find((found) => found.code === code)?.where.join('\n')).toMatch(new RegExp(where.source, 'm'))
  })

  test('DO2 RP2 a restore that waits for a person is told, with the clusters that know more', async () => {
    await start()
    changeStore(`INSERT INTO restore_proofs (cluster_id, epoch, ordinal, at_ms) VALUES ('${first()}', 1, 99, 1)`)
    expect(await look()).toMatchObject({ fine: false, findings: [{ code: 'restore_waits', where: ['cluster-1'] }] })
  })

  test('DO2 PJ5 a Project without a rule for ServiceAccounts is told, and no error', async () => {
    await start()
    const insert = (name: string, spec: object) =>
      'INSERT INTO resources (kind, project, name, uid, generation, version, labels, spec, created_ms, updated_ms) ' +
      `VALUES ('Project', '', '${name}', '${name}', 1, 1, '{}', '${JSON.stringify({ sources: [], destinations: [], ...spec })}', 1, 1)`
    changeStore(insert('web', {}), insert('shop', { serviceAccounts: 'agent' }))
    expect(await look()).toMatchObject({ fine: true, findings: [{ code: 'project_as_agent', where: ['web'] }] })
  })

  test('DO2 a damaged page, a file that is none, a newer schema, and what can still be looked through', async () => {
    await start()
    const path = join(dir, 'fleet.sqlite')
    const whole = readFileSync(path)
    const bytes = Buffer.from(whole)
    for (let page = 4; page < 40; page++) bytes.fill(0xff, page * 4_096 + 8, page * 4_096 + 100)
    writeFileSync(path, bytes)
    chmodSync(join(dir, 'keys', 'mac.key'), 0o644)
    expect((await look()).findings.map(({ code }) => code).sort()).toEqual(['key_open', 'store_damaged'])
    writeFileSync(path, 'no database at all, and long enough to be read as the head of one, which has a hundred bytes or so'.repeat(50))
    expect((await look()).findings.map(({ code }) => code)).toContain('store_damaged')
    writeFileSync(path, whole)
    changeStore("UPDATE meta SET value = '999' WHERE key = 'schema'")
    expect(await look()).toMatchObject({
      schema: 999,
      findings: expect.arrayContaining([expect.objectContaining({ code: 'store_newer' })]),
    })
  })
})

test('DO2 a log of the fleet store that is damaged before commits is told, with the place', async () => {
  await start()
  const path = join(dir, 'fleet.sqlite')
  const writer = openSqlite(path)
  for (let n = 0; n < 4; n++) writer.run('INSERT INTO meta VALUES (?, ?)', [`note-${n}`, 'x'])
  const log = readFileSync(`${path}-wal`)
  writer.close()
  log[100] = (log[100] ?? 0) ^ 1
  writeFileSync(`${path}-wal`, log)
  const { findings } = await look()
  expect(findings.find(({ code }) => code === 'store_damaged')?.where[0]).toMatch(/^fleet\.sqlite-wal at byte 32: /)
})

describe('shard files', () => {
  const codes = async (clock = NOW) => (await look(clock)).findings.map(({ code, where }) => `${code} ${where[0]}`)

  test('DO3 a missing one is a note, a damaged one is named', async () => {
    await start()
    rmSync(shardPath(first()))
    const report = await look()
    expect([report.fine, report.findings.map(({ code }) => code)]).toEqual([true, ['shard_missing']])
    writeFileSync(shardPath(first()), 'damaged')
    for (const end of ['-wal', '-shm']) rmSync(shardPath(first()) + end, { force: true })
    expect(await codes()).toEqual([expect.stringMatching(/^shard_damaged shard-\d\d\.db: /)])
  })

  test('DO3 a file that cannot be opened is not called damaged', async () => {
    await start()
    rmSync(shardPath(first()))
    mkdirSync(shardPath(first()))
    expect(await codes()).toEqual([expect.stringMatching(/^shard_unreadable shard-\d\d\.db: /)])
  })

  test('DO3 a file of another time, behind and ahead of the store, and one of clusters that are gone', async () => {
    await start()
    const before = join(dir, '..', 'before')
    cpSync(dir, before, { recursive: true })
    await withServer((server) => server.publish(clusters, WEB, { a: '3' }))
    const put = (name: string) => {
      for (const file of readdirSync(join(dir, name === 'shards' ? 'shards' : '.')))
        if (name !== 'shards' && file.startsWith('fleet.sqlite')) rmSync(join(dir, file))
      if (name === 'shards') rmSync(join(dir, 'shards'), { recursive: true })
      for (const file of readdirSync(before)) if (file.startsWith(name)) cpSync(join(before, file), join(dir, file), { recursive: true })
    }
    const after = join(dir, '..', 'after')
    cpSync(dir, after, { recursive: true })
    put('shards')
    const behind = await look()
    expect([behind.fine, behind.findings[0]?.count, behind.findings[0]?.where[0]]).toEqual([
      true,
      3,
      expect.stringContaining(', the store at '),
    ])
    expect(behind.findings[0]?.code).toBe('shard_behind')
    rmSync(join(dir, 'shards'), { recursive: true })
    cpSync(join(after, 'shards'), join(dir, 'shards'), { recursive: true })
    put('fleet.sqlite')
    expect((await look()).findings[0]).toMatchObject({ code: 'shard_ahead', count: 3, severity: 'warning' })
    changeStore(`UPDATE meta SET value = 'other' WHERE key LIKE 'shard %'`)
    expect((await look()).findings.map(({ code }) => code)).toContain('shard_stranger')
    for (const made of [before, after]) rmSync(made, { recursive: true })
  })

  test('DO3 rows that are not what the store says, though file and log agree', async () => {
    const objects = objectRows(WEB, { a: '2', b: '2' })
    const doc = serviceDoc(objects)
    const none = new Map<string, string>()
    const cases: Array<[Partial<ServiceRevision>, string]> = [
      [{ objects: objectRows(WEB, { a: '2' }) }, 'shop/web: 1 objects, not 2'],
      [{ objects: objectRows(WEB, { a: '2', b: 'other' }) }, 'shop/web: .*hash.*digest'],
      [{ serviceDoc: serviceDoc(objects, 'decade') }, 'shop/web: .*row differs'],
      [{ serviceDoc: null, objects: none }, 'shop/web: .*row.*missing'],
      [{ service: 'none', objects: none, serviceDoc: serviceDoc(none) }, 'shop/none: unexpected'],
    ]
    for (const [change, told] of cases) {
      await start()
      await withServer(async ({ shards }) => {
        const revision = { clusterId: first(), ...WEB, ordinal: shards.ordinal(first()), serviceDoc: doc, objects, withdraw: false }
        expect(shards.writeRevisions([{ ...revision, ...change }])).toEqual([{ changed: true }])
      })
      expect(await codes()).toEqual([expect.stringMatching(new RegExp(`^shard_rows shard-.*: ${first()}, ${told}`))])
    }
  })

  test('DO3 health rules that are not those of the store are told', async () => {
    await start()
    const objects = new Map([['healthrule//thing', '{"group":"","kind":"Pod"}']])
    await withServer(async ({ store, content, shards }) => {
      const rows = clusters.map((clusterId) => ({ ...HEALTH_RULES, clusterId, doc: null, placedBy: '', objects }))
      await publishRevisions({ store, content, shards }, rows)
    })
    expect(await codes()).toEqual([])
    await withServer(async ({ shards }) => {
      const revision = { clusterId: first(), ...HEALTH_RULES, ordinal: shards.ordinal(first()), serviceDoc: null, objects: new Map() }
      expect(shards.writeRevisions([revision])).toEqual([{ changed: true }])
    })
    expect(await codes()).toEqual([expect.stringMatching(new RegExp(`^shard_rows shard-.*: ${first()}, .*health rules`))])
  })

  test('DO3 while the server runs a difference that passes is none, and one that stays is told', async () => {
    await start()
    const server = await openDataFolderServer(dir)
    const lock = openSqlite(join(dir, 'lock.sqlite'), { journal: 'DELETE' })
    lock.run('BEGIN EXCLUSIVE')
    const shards = server.shards.writeRevisions.bind(server.shards)
    const late: Array<() => void> = []
    server.shards.writeRevisions = (revisions) => {
      late.push(() => shards(revisions))
      return revisions.map(() => ({ changed: true }))
    }
    await server.publish(clusters, WEB, { a: '3' })
    let sleeps = 0
    const passing = await look({
      ...NOW,
      sleep: async () => {
        if (++sleeps === 2) for (const write of late) write()
      },
    })
    expect([passing.server, passing.findings]).toEqual(['running', []])
    await server.publish(clusters, WEB, { a: '4' })
    sleeps = 0
    const staying = await look({ ...NOW, sleep: async () => void sleeps++ })
    expect(staying.findings[0]).toMatchObject({ code: 'shard_behind_running', count: 3 })
    expect(sleeps).toBeGreaterThanOrEqual(4)
    lock.close()
    await server.close()
  })

  test('DO3 a cluster that the store does not know is a note', async () => {
    await start()
    changeStore(
      `DELETE FROM desired WHERE cluster_id = '${first()}'`,
      `DELETE FROM agents WHERE cluster_id = '${first()}'`,
      `DELETE FROM status_rows WHERE cluster_no = 1`,
      `UPDATE names SET refs = 2`,
      `UPDATE states SET refs = 2 WHERE refs = 3`,
      `DELETE FROM clusters WHERE cluster_id = '${first()}'`,
      `DELETE FROM resources WHERE name = 'cluster-1'`,
    )
    expect((await look()).findings.filter(({ code }) => code.startsWith('shard')).map(({ code, severity }) => [code, severity])).toEqual([
      ['shard_unknown_cluster', 'note'],
    ])
  })
})

describe('content, keys and the folder', () => {
  const found = async () => (await look()).findings.map(({ code, where }) => `${code} ${where[0]}`)

  test('DO4 content that is lost, damaged, of the past, unused or foreign', async () => {
    await start()
    const [web, db] = [join('content', contentPath(shaOf('web'))), join('content', contentPath(shaOf('db')))]
    rmSync(join(dir, web))
    writeFileSync(join(dir, db), 'damaged')
    changeStore(`INSERT INTO revisions (project, service, number, commit_id, generation, digest, object_count, set_sha, rendered_ms)
      VALUES ('shop', 'old', 1000, 'c', 1, 'd', 1, '${'ab'.repeat(32)}', 1)`)
    mkdirSync(join(dir, 'content', '00'), { recursive: true })
    writeFileSync(join(dir, 'content', '00', 'ab'.repeat(31)), 'unused')
    writeFileSync(join(dir, 'content', '00', `${'cd'.repeat(31)}.aside`), 'unused')
    writeFileSync(join(dir, 'content', '00', `${'cd'.repeat(31)}.1-2`), 'half')
    writeFileSync(join(dir, 'content', 'README'), 'mine')
    const { findings, facts } = await look()
    expect(findings.map(({ code, where }) => `${code} ${where[0]}`).sort()).toEqual([
      expect.stringMatching(new RegExp(`^content_damaged ${db} of shop/db hashes to `)),
      'content_foreign content/README',
      `content_lost ${web} of shop/web is missing`,
      expect.stringMatching(/^content_past_lost content\/ab\/.* of shop\/old is missing$/),
    ])
    await start()
    const before = (await look()).facts
    expect(facts['contentUnused']).toBe(Number(before['contentUnused']) + 2)
    expect(Number(facts['contentUnusedBytes']) - Number(before['contentUnusedBytes'])).toBe(12)
    expect(facts['contentLeftovers']).toBe(1)
  })

  test('DO4 keys that are gone, no keys, or open to others; an open folder; a restore that was cut off', async () => {
    await start()
    rmSync(join(dir, 'keys', 'mac.key'))
    expect(await found()).toEqual(['key_missing keys/mac.key'])
    await start()
    chmodSync(join(dir, 'keys', 'mac.key'), 0o640)
    chmodSync(dir, 0o770)
    const group = await look()
    expect([group.fine, group.findings.map(({ code }) => code)]).toEqual([true, ['key_group']])
    await start()
    rmSync(join(dir, 'keys', 'mac.key'))
    writeFileSync(join(dir, 'keys', 'mac.key'), 'short', { mode: 0o600 })
    expect(await found()).toEqual([naming('key_bad keys/mac.key ', '32 bytes')])
    await start() // of before there were Configs: it has no keys of secrets, and none is missed
    expect(await found()).toEqual([])
    loadSecretBox(join(dir, 'keys'))
    expect(await found()).toEqual([])
    writeFileSync(join(dir, 'keys', 'secrets.json'), '{}', { mode: 0o600 })
    expect(await found()).toEqual([naming('key_bad keys/secrets.json ')])
    await start()
    const path = join(dir, 'keys', 'signing.json')
    const key = JSON.parse(readFileSync(path, 'utf8'))
    const other = JSON.parse(readFileSync(join(tempKeys(), 'signing.json'), 'utf8'))
    writeFileSync(path, JSON.stringify({ ...key, publicKey: other.publicKey }))
    expect(await found()).toEqual([naming('key_bad keys/signing.json ')])
    await start()
    const keys = loadServerKeys(join(dir, 'keys'))
    keys.rotate(1)
    keys.rotateMac()
    const secrets = loadSecretBox(join(dir, 'keys'))
    secrets.rotate()
    const told = [`keys_trusted 1 before ${keys.fingerprint}`, 'mac_earlier keys/mac.key', 'rotation_open keys/secrets.json holds 2 keys']
    expect(await found()).toEqual(expect.arrayContaining(told))
    keys.revoke(null, 2)
    keys.rotate(3)
    expect(await found()).toContain(`keys_trusted 1 before ${keys.fingerprint}`)
    keys.revoke(null, 4)
    secrets.forgetEarlier()
    expect(await found()).toEqual(['mac_earlier keys/mac.key'])
    await start()
    chmodSync(dir, 0o755)
    writeFileSync(join(dir, RESTORE_MARK), '')
    expect(await found()).toEqual([`folder_open ${dir}`, `restore_unfinished ${join(dir, RESTORE_MARK)}`])
  })
})

const tempKeys = (): string => {
  const folder = tempDir()
  loadServerKeys(folder)
  return folder
}
