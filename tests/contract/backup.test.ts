// Backups of a data folder: made while it is written to, looked through, put back; what is damaged, cut off or not to
// be trusted.
import { afterEach, describe, expect, test } from 'bun:test'
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type BackupDeps, createBackup } from '../../server/backup/create.ts'
import { holdingsOf } from '../../server/backup/holdings.ts'
import { type Manifest, readManifest } from '../../server/backup/manifest.ts'
import { restoreBackup } from '../../server/backup/restore.ts'
import { RESTORE_MARK, refuseUnfinishedRestore } from '../../server/backup/restore-mark.ts'
import { recordRestore } from '../../server/backup/restored-note.ts'
import { verifyBackup } from '../../server/backup/verify.ts'
import { contentPath } from '../../server/store/content/content-names.ts'
import { openStoreFile } from '../../server/store/engines/store-file.ts'
import { openSqliteStore } from '../../server/store/kysely-store.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { sha256Hex } from '../../shared/kube/canonical.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { fillDataFolder, openDataFolderServer, WEB } from '../support/data-folder-kit.ts'
import { naming } from '../support/naming.ts'
import { canMountSmallDisk, mountSmallDisk } from '../support/small-disk.ts'
import { tempDir } from '../support/temp-dir.ts'

const deps = (overrides: Partial<BackupDeps> = {}): BackupDeps => ({
  clock: systemClock,
  progress: () => {},
  signal: new AbortController().signal,
  ...overrides,
})
const create = (dataDir: string, to: string, more: { withoutKeys?: boolean; postgres?: boolean } = {}, using = deps()) =>
  createBackup({ dataDir, to, withoutKeys: false, postgres: false, ...more }, using)
const openFolder = (path: string) => {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  return { path, place: null, unlock: () => {} }
}
const restore = (folder: string, dataDir: string, more: { keysFrom?: string | null; newKeys?: boolean } = {}, using = deps()) =>
  restoreBackup({ folder, dataDir, keysFrom: null, newKeys: false, ...more }, { ...using, openFolder })

let template: { dir: string; clusters: ClusterId[] } | undefined
async function makeTemplate() {
  const dir = tempDir()
  return { dir, clusters: await fillDataFolder(dir) }
}

/** A filled data folder and where a backup of it goes. */
async function filled() {
  const base = tempDir()
  const [dataDir, to] = [join(base, 'data'), join(base, 'backup')]
  template ??= await makeTemplate()
  const { clusters } = template
  cpSync(template.dir, dataDir, { recursive: true })
  return { base, dataDir, to, clusters }
}
const desiredOf = async (dataDir: string, clusterId: ClusterId) => {
  const store = await openSqliteStore(join(dataDir, 'fleet.sqlite'), { clock: systemClock, random: seededRandom(1) })
  const rows = await store.desiredInCluster(clusterId)
  await store.close()
  return rows
}
const shaInUse = async (dataDir: string, clusterId: ClusterId): Promise<string> => {
  const row = (await desiredOf(dataDir, clusterId)).find(({ service }) => service === 'web')
  if (row?.setSha == null) throw new Error('no revision')
  return row.setSha
}

const untilKilled = (verb: 'create' | 'restore', from: string, to: string, step: number): Promise<number> => {
  const script = join(import.meta.dir, '../support/backup-until-killed.ts')
  return Bun.spawn([process.execPath, script, verb, from, to, String(step)], { stdout: 'ignore', stderr: 'inherit' }).exited
}

describe('create', () => {
  test('BK1 killed at any moment, no folder has the backup’s name that is not a whole one', async () => {
    const { base, dataDir } = await filled()
    let killed = 0
    for (let step = 0, code = -1; code !== 0; step++) {
      const to = join(base, `backup-${step}`)
      code = await untilKilled('create', dataDir, to, step)
      if (code === 0) expect((await verifyBackup(to, deps())).problems).toEqual([])
      else {
        killed++
        expect([existsSync(to), existsSync(`${to}.partial`)]).toEqual([false, true])
        await expect(create(dataDir, to)).rejects.toMatchObject({ code: 'target_exists', remedy: expect.stringContaining('remove it') })
      }
    }
    expect(killed).toBeGreaterThan(2)
  }, 60_000)

  test('BK1 BK3 BK5 what was backed up comes back: store, content and keys, for its owner alone', async () => {
    const { base, dataDir, to, clusters } = await filled()
    const manifest = await create(dataDir, to)
    expect([manifest.counts['clusters'], manifest.content.length]).toEqual([3, 2])
    expect(await verifyBackup(to, deps())).toMatchObject({ problems: [], warnings: [] })
    const again = join(base, 'again')
    await restore(to, again)
    for (const clusterId of clusters) expect(await desiredOf(again, clusterId)).toEqual(await desiredOf(dataDir, clusterId))
    for (const path of ['keys/signing.json', 'keys/mac.key']) {
      expect(readFileSync(join(again, path), 'utf8')).toBe(readFileSync(join(dataDir, path), 'utf8'))
      for (const folder of [to, again]) expect(statSync(join(folder, path)).mode & 0o777).toBe(0o600)
    }
    for (const folder of [to, join(to, 'keys'), again, join(again, 'keys')]) expect(statSync(folder).mode & 0o777).toBe(0o700)
    expect(readdirSync(again).filter((name) => name.startsWith('shards') || name === RESTORE_MARK)).toEqual([])
    const server = await openDataFolderServer(again)
    expect((await server.content.get(await shaInUse(dataDir, clusters[0] as ClusterId)))?.length).toBeGreaterThan(0)
    await server.close()
  })

  test('AU9 a restored server records the restore once, at its next start', async () => {
    const { base, dataDir, to } = await filled()
    await create(dataDir, to)
    const again = join(base, 'again')
    await restore(to, again)
    const store = await openSqliteStore(join(again, 'fleet.sqlite'), { clock: systemClock, random: seededRandom(3) })
    for (let start = 0; start < 2; start++) await recordRestore(again, store)
    const { items } = await store.audit.list({ verb: 'restore', limit: 9 })
    expect(items).toMatchObject([{ kind: 'FleetStore', actor: { kind: 'local', verified: false }, result: 'done' }])
    await store.close()
  })

  test('BK1 while the server commits and collects, a backup holds every set that its own store refers to', async () => {
    const { base, dataDir, clusters } = await filled()
    const server = await openDataFolderServer(dataDir)
    let commits = 0
    let stop = false
    const committing = (async () => {
      for (; !stop; commits++) await server.publish(clusters, WEB, { a: String(commits), b: String(commits) })
    })()
    const states = new Set<string>()
    // Until enough was committed meanwhile, on a slow disk as on a quick one.
    for (let n = 0; n < 5 || (n < 200 && (commits <= 5 || states.size < 2)); n++) {
      const manifest = await create(dataDir, join(base, `backup-${n}`))
      states.add(JSON.stringify(manifest.content))
      expect((await verifyBackup(join(base, `backup-${n}`), deps())).problems).toEqual([])
    }
    stop = true
    await committing
    await server.close()
    expect([commits > 5, states.size > 1]).toEqual([true, true])
  })

  test('BK1 a folder that is there, or that another backup fills, is refused and stays as it is', async () => {
    const { dataDir, to } = await filled()
    mkdirSync(to)
    await expect(create(dataDir, to)).rejects.toMatchObject({ code: 'target_exists' })
    expect(readdirSync(to)).toEqual([])
    rmSync(to, { recursive: true })
    mkdirSync(`${to}.partial`)
    await expect(create(dataDir, to)).rejects.toMatchObject({ code: 'target_exists' })
    expect([existsSync(`${to}.partial`), existsSync(to)]).toEqual([true, false])
  })

  test('BK1 a folder without a fleet store makes no backup', async () => {
    const base = tempDir()
    await expect(create(base, join(base, 'backup'))).rejects.toMatchObject({ code: 'not_found' })
    expect(readdirSync(base)).toEqual([])
  })

  test('BK1 told to stop, it leaves nothing behind', async () => {
    const { base, dataDir, to } = await filled()
    const stopping = new AbortController()
    const progress = (what: string) => what === 'copying content' && stopping.abort()
    await expect(create(dataDir, to, {}, deps({ signal: stopping.signal, progress }))).rejects.toMatchObject({ code: 'unavailable' })
    expect(readdirSync(base)).toEqual(['data'])
  })

  test('BK1 a set that clusters shall have and that is damaged makes no backup, and names the service', async () => {
    const { base, dataDir, to, clusters } = await filled()
    writeFileSync(join(dataDir, 'content', contentPath(await shaInUse(dataDir, clusters[0] as ClusterId))), 'damaged')
    await expect(create(dataDir, to)).rejects.toThrow('shop/web')
    expect(readdirSync(base)).toEqual(['data'])
  })

  test('BK1 a lost set of the past is told, and keeps nobody from a backup', async () => {
    const { dataDir, to } = await filled()
    const lost = 'ab'.repeat(32)
    const db = openSqlite(join(dataDir, 'fleet.sqlite'))
    db.run(`INSERT INTO revisions (project, service, number, commit_id, generation, digest, object_count, set_sha, rendered_ms)
      VALUES ('shop', 'web', 1000, 'c', 1, 'd', 1, '${lost}', 1)`)
    db.close()
    expect((await create(dataDir, to)).missing).toEqual([lost])
    expect(await verifyBackup(to, deps())).toMatchObject({ problems: [], warnings: [expect.stringContaining('1 revision of')] })
  })

  test('BK2 without keys it says so, and comes back with keys from elsewhere or with none at all, as a person chose', async () => {
    const { base, dataDir, to } = await filled()
    expect((await create(dataDir, to, { withoutKeys: true })).fingerprint).toBeNull()
    expect(existsSync(join(to, 'keys'))).toBe(false)
    expect((await verifyBackup(to, deps())).warnings[0]).toEqual(naming('no keys'))
    await expect(restore(to, join(base, 'a'))).rejects.toMatchObject({ code: 'bad_options' })
    expect(existsSync(join(base, 'a'))).toBe(false)
    for (const keysFrom of [join(base, 'none'), to]) {
      await expect(restore(to, join(base, 'a'), { keysFrom })).rejects.toMatchObject({ code: 'bad_options' })
      expect(existsSync(join(base, 'a'))).toBe(false)
    }
    await restore(to, join(base, 'b'), { keysFrom: join(dataDir, 'keys') })
    expect(readFileSync(join(base, 'b', 'keys', 'mac.key'), 'utf8')).toBe(readFileSync(join(dataDir, 'keys', 'mac.key'), 'utf8'))
    await restore(to, join(base, 'c'), { newKeys: true })
    expect(existsSync(join(base, 'c', 'keys'))).toBe(false)
  })

  test('BK7 a backup says what it holds that somebody who takes it can use', async () => {
    const { dataDir, to } = await filled()
    const ofStore = ['config_secrets_sealed', 'join_tokens_usable', 'api_token_hashes'] as const
    expect(holdingsOf(await create(dataDir, to))).toEqual(['manifests_clear', ...ofStore, 'private_keys'])
    expect(holdingsOf(await create(dataDir, `${to}-2`, { withoutKeys: true }))).toEqual(['manifests_clear', ...ofStore])
    expect(holdingsOf(await create(dataDir, `${to}-3`, { postgres: true }))).toEqual(['manifests_clear', 'private_keys'])
  })

  test('BK6 of a server on PostgreSQL it holds all content, set aside or not, and keys; the database is not in it', async () => {
    const { base, dataDir, to } = await filled()
    const unused = new TextEncoder().encode('set aside')
    const path = contentPath(sha256Hex(unused))
    mkdirSync(join(dataDir, 'content', path.slice(0, 2)), { recursive: true })
    writeFileSync(join(dataDir, 'content', `${path}.aside`), unused)
    const damaged = 'cd'.repeat(32)
    mkdirSync(join(dataDir, 'content', 'cd'), { recursive: true })
    writeFileSync(join(dataDir, 'content', contentPath(damaged)), 'damaged')
    const manifest = await create(dataDir, to, { postgres: true })
    expect(manifest.missing).toEqual([damaged])
    expect([manifest.store, manifest.schema, manifest.content.some(([sha]) => sha === sha256Hex(unused))]).toEqual(['postgres', null, true])
    expect(manifest.content.length).toBeGreaterThan(3)
    expect((await verifyBackup(to, deps())).warnings).toEqual([expect.stringContaining('PostgreSQL'), expect.stringContaining('1 files')])
    await restore(to, join(base, 'again'))
    expect(readdirSync(join(base, 'again')).sort()).toEqual(['content', 'keys', 'restored.json'])
  })

  test.skipIf(!canMountSmallDisk)('BK1 BK5 a full disk leaves nothing behind and says where space is missing', async () => {
    const { base, dataDir, to } = await filled()
    await create(dataDir, to)
    const disk = mountSmallDisk(2)
    try {
      disk.fill()
      const place = join(disk.path, 'backup')
      const before = readdirSync(disk.path).length
      await expect(create(dataDir, place)).rejects.toMatchObject({ code: 'disk_full', message: expect.stringContaining(place) })
      expect(readdirSync(disk.path).length).toBe(before)
      disk.free()
      writeFileSync(join(disk.path, 'ballast'), new Uint8Array(1_990_000))
      await expect(restore(to, join(disk.path, 'data'))).rejects.toMatchObject({ code: 'disk_full' })
      expect(readdirSync(join(disk.path, 'data'))).toEqual([])
      rmSync(join(disk.path, 'ballast'))
      await restore(to, join(disk.path, 'data'))
    } finally {
      disk.remove()
    }
    expect(readdirSync(base).sort()).toEqual(['backup', 'data'])
  })
})

describe('a backup that is not what it was', () => {
  let to = ''
  let base = ''
  let sha = ''
  const start = async () => {
    const made = await filled()
    base = made.base
    to = made.to
    await create(made.dataDir, to)
    sha = await shaInUse(made.dataDir, made.clusters[0] as ClusterId)
    rmSync(made.dataDir, { recursive: true })
  }
  afterEach(() => rmSync(base, { recursive: true, force: true }))
  const edit = (change: (manifest: Manifest & Record<string, unknown>) => void) => {
    const manifest = JSON.parse(readFileSync(join(to, 'manifest.json'), 'utf8'))
    change(manifest)
    writeFileSync(join(to, 'manifest.json'), JSON.stringify(manifest))
  }
  /** The manifest says what the file is now: only what is in it can tell. */
  const admit = (path: string) =>
    edit(({ files }) => {
      const bytes = readFileSync(join(to, path))
      for (const file of files) if (file.path === path) Object.assign(file, { bytes: bytes.length, sha256: sha256Hex(bytes) })
    })
  const changeStore = (sql: string) => {
    const db = openSqlite(join(to, 'fleet.sqlite'), { journal: 'DELETE' })
    db.run(sql)
    db.close()
    admit('fleet.sqlite')
  }

  const CASES: Array<[what: string, change: () => void, told: string | RegExp]> = [
    ['a missing file', () => rmSync(join(to, 'content', contentPath(sha))), 'is missing'],
    ['a flipped byte of content', () => writeFileSync(join(to, 'content', contentPath(sha)), 'x'), 'is damaged'],
    [
      'a shorter store',
      () => writeFileSync(join(to, 'fleet.sqlite'), readFileSync(join(to, 'fleet.sqlite')).subarray(0, 9_000)),
      'is damaged',
    ],
    ['another key', () => writeFileSync(join(to, 'keys', 'mac.key'), 'x'), 'is damaged'],
    [
      'half of the keys',
      () => {
        rmSync(join(to, 'keys', 'mac.key'))
        edit((m) => (m.files = m.files.filter(({ path }) => path !== 'keys/mac.key')))
      },
      'only keys/signing.json',
    ],
    ['another signing key', () => edit((m) => (m.fingerprint = '0'.repeat(32))), 'not the key'],
    [
      'a store without its content',
      () => {
        rmSync(join(to, 'content', sha.slice(0, 2)), { recursive: true })
        edit((m) => (m.content = m.content.filter(([name]) => name !== sha)))
      },
      'of shop/web is missing',
    ],
    ['a store that refers to more', () => changeStore(`UPDATE desired SET set_sha = '${'cd'.repeat(32)}'`), 'is missing'],
    ['a store of a newer schema', () => changeStore("UPDATE meta SET value = '999' WHERE key = 'schema'"), 'schema 999'],
    [
      'a store with a trigger',
      () => changeStore('CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END'),
      'no version made',
    ],
    ['a store with a view', () => changeStore('CREATE VIEW v AS SELECT 1'), 'no version made'],
    [
      'another database',
      () => {
        rmSync(join(to, 'fleet.sqlite'))
        changeStore('CREATE TABLE t (x)')
      },
      /fleet\.sqlite/,
    ],
    [
      'a store that was not closed',
      () => {
        const db = openSqlite(join(to, 'fleet.sqlite'))
        db.run('CREATE TABLE t (x)')
        db.close()
        for (const end of ['-wal', '-shm']) rmSync(join(to, `fleet.sqlite${end}`), { force: true })
        admit('fleet.sqlite')
      },
      'closed',
    ],
    [
      'no store',
      () => {
        rmSync(join(to, 'fleet.sqlite'))
        edit((m) => (m.files = m.files.filter(({ path }) => path !== 'fleet.sqlite')))
      },
      'no fleet.sqlite',
    ],
    ['a foreign file', () => writeFileSync(join(to, 'keys', 'x'), 'x'), 'not belong'],
    [
      'a linked file',
      () => {
        rmSync(join(to, 'keys', 'mac.key'))
        symlinkSync('/etc/hostname', join(to, 'keys', 'mac.key'))
      },
      'is a link',
    ],
    [
      'a linked folder',
      () => {
        cpSync(join(to, 'content'), join(base, 'elsewhere'), { recursive: true })
        rmSync(join(to, 'content'), { recursive: true })
        symlinkSync(join(base, 'elsewhere'), join(to, 'content'))
      },
      'is a link',
    ],
    [
      'a folder for a file',
      () => {
        rmSync(join(to, 'fleet.sqlite'))
        mkdirSync(join(to, 'fleet.sqlite'))
      },
      'not belong',
    ],
    ['a name that leads out', () => edit((m) => m.content.push(['../../../etc/passwd', 1])), 'manifest.json: content'],
    ['a name that is no hash', () => edit((m) => m.content.push(['AB'.repeat(32), 1])), 'manifest.json: content'],
    [
      'a file of another name',
      () => edit((m) => m.files.push({ path: '../x', bytes: 1, sha256: '0'.repeat(64) } as never)),
      'manifest.json: files',
    ],
    ['a newer format', () => edit((m) => (m.format = 2 as 1)), 'format 2'],
    ['a manifest that is no JSON', () => writeFileSync(join(to, 'manifest.json'), '{'), 'not JSON'],
    [
      'a linked manifest',
      () => {
        rmSync(join(to, 'manifest.json'))
        symlinkSync('/etc/hostname', join(to, 'manifest.json'))
      },
      'not a file',
    ],
    ['a huge manifest', () => writeFileSync(join(to, 'manifest.json'), Buffer.alloc(65 * 1_024 * 1_024, ' ')), 'is larger than'],
    ['no manifest', () => rmSync(join(to, 'manifest.json')), 'has no manifest.json'],
  ]
  test.each(CASES)('BK3 BK4 %s is named, and nothing of it is restored', async (_, change, told) => {
    await start()
    change()
    const problems = await verifyBackup(to, deps()).then(
      (found) => found.problems.join('\n'),
      (error: unknown) => String(error),
    )
    expect(problems).toMatch(told)
    await expect(restore(to, join(base, 'again'))).rejects.toMatchObject({ code: 'backup_unusable' })
    expect(existsSync(join(base, 'again'))).toBe(false)
  })

  test('BK3 keys that others can read are told, and are restored for their owner alone', async () => {
    await start()
    chmodSync(join(to, 'keys', 'mac.key'), 0o644)
    expect((await verifyBackup(to, deps())).warnings).toEqual([expect.stringContaining('chmod 600')])
    await restore(to, join(base, 'again'))
    expect(statSync(join(base, 'again', 'keys', 'mac.key')).mode & 0o777).toBe(0o600)
  })

  test('BK5 a folder with anything in it is refused and stays as it is', async () => {
    await start()
    const dir = join(base, 'used')
    mkdirSync(dir)
    writeFileSync(join(dir, 'fleet.sqlite'), 'mine')
    await expect(restore(to, dir)).rejects.toMatchObject({ code: 'target_exists', remedy: expect.stringContaining('mv ') })
    expect([readdirSync(dir), readFileSync(join(dir, 'fleet.sqlite'), 'utf8')]).toEqual([['fleet.sqlite'], 'mine'])
  })

  test('CF3 numbers of changes go on far beyond those of the backup: whoever followed the server that was is told to look again', async () => {
    const { dataDir, to } = await filled()
    await create(dataDir, to)
    const position = async (at: string) => {
      const store = await openSqliteStore(join(at, 'fleet.sqlite'), { clock: systemClock, random: seededRandom(1) })
      try {
        const newest = await store.changes.position()
        return { newest, soon: (await store.changes.read(newest - 10, { limit: 1 })).kind }
      } finally {
        await store.close()
      }
    }
    const before = await position(dataDir)
    const dir = join(tempDir(), 'restored')
    await restore(to, dir)
    const after = await position(dir)
    expect(after.newest).toBeGreaterThanOrEqual(before.newest + 1_000_000)
    expect(after.soon).toBe('gone')
  })

  test('BK5 killed at any moment, it leaves a folder that no server starts with, or a whole one; the next restore begins anew', async () => {
    await start()
    const manifest = readManifest(to)
    const seen = { nothing: 0, marked: 0, whole: 0 }
    for (let step = 0; seen.whole === 0; step++) {
      const dir = join(base, `killed-${step}`)
      const code = await untilKilled('restore', to, dir, step)
      if (!existsSync(dir) || readdirSync(dir).every((name) => name.startsWith('lock.sqlite'))) seen.nothing++
      else if (existsSync(join(dir, RESTORE_MARK))) {
        seen.marked++
        expect(() => refuseUnfinishedRestore(dir)).toThrow('was interrupted')
        await expect(create(dir, join(base, 'none'))).rejects.toMatchObject({ code: 'data_unusable' })
      } else {
        expect(code).toBe(0)
        seen.whole++
      }
      await restore(to, dir).catch((error: unknown) => {
        if (seen.whole === 0) throw error
      })
      // The store's numbers of changes leap (CF3): all else is as it was.
      for (const { path, sha256 } of manifest.files.filter(({ path }) => path !== 'fleet.sqlite'))
        expect(sha256Hex(readFileSync(join(dir, path)))).toBe(sha256)
      openStoreFile(join(dir, 'fleet.sqlite'), { whole: true }).close()
      for (const [name] of manifest.content) expect(sha256Hex(readFileSync(join(dir, 'content', contentPath(name))))).toBe(name)
      expect(existsSync(join(dir, RESTORE_MARK))).toBe(false)
    }
    expect(seen.marked).toBeGreaterThan(4)
  }, 60_000)
})
