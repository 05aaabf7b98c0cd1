// Archives of backups in a folder and in a bucket: stored, read back, opened again; what is damaged, cut off, encrypted
// to others or made up is refused.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { readArchive } from '../../server/backup/archive/archive.ts'
import { readTarget } from '../../server/backup/archive/options.ts'
import { openArchive, openPlace } from '../../server/backup/archive/place.ts'
import { shipBackup } from '../../server/backup/archive/ship.ts'
import { readBackupState } from '../../server/backup/archive/state.ts'
import { archiveName } from '../../server/backup/archive/stored.ts'
import { withUnpacked } from '../../server/backup/archive/unpack.ts'
import type { BackupDeps } from '../../server/backup/create.ts'
import { verifyBackup } from '../../server/backup/verify.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { fillDataFolder } from '../support/data-folder-kit.ts'
import { type S3Stub, startS3Stub } from '../support/s3-stub.ts'
import { tarOf } from '../support/tar-writer.ts'
import { tempDir } from '../support/temp-dir.ts'

const identity = await generateX25519Identity()
const recipients = [await identityToRecipient(identity)]
const env = { AWS_ACCESS_KEY_ID: 'AKIASTUB', AWS_SECRET_ACCESS_KEY: 'secret' }
const dataDir = tempDir()
let stub: S3Stub
beforeAll(async () => {
  await fillDataFolder(dataDir)
  stub = startS3Stub()
})
beforeEach(() => {
  stub.fail = null
  stub.damage = null
  stub.keepsAll = false
  stub.objects.clear()
})
afterAll(() => stub.stop())

/** Each backup is made a day later than the one before. */
let day = 0
const deps = (): BackupDeps => {
  const atMs = Date.UTC(2026, 0, ++day)
  return { clock: { ...systemClock, nowMs: () => atMs }, progress: () => {}, signal: new AbortController().signal }
}
const s3 = (prefix = 'fleet') => `s3://backups/${prefix}?endpoint=${encodeURIComponent(stub.endpoint)}`
const ship = (into: string, more: { recipients?: string[]; keep?: number } = {}) =>
  shipBackup({ dataDir, withoutKeys: false, postgres: false, place: openPlace(into, env), recipients, keep: 14, ...more }, deps())
const problemsOf = (archive: string, identities = [identity]) =>
  withUnpacked(
    { ...openArchive(archive, env), identities, near: tempDir() },
    deps(),
    async (folder) => (await verifyBackup(folder, deps())).problems,
  )
const archiveIn = (into: string, name: string) => (into.startsWith('s3') ? into.replace('?', `/${name}?`) : join(into, name))
const places = [
  ['a folder', () => tempDir()],
  ['a bucket', () => s3()],
] as const

describe.each(places)('BK8 %s', (_, place) => {
  test('takes an archive, gives it back whole, and keeps the newest', async () => {
    const into = place()
    const first = await ship(into, { keep: 2 })
    expect(await problemsOf(archiveIn(into, first.name))).toEqual([])
    const later = [await ship(into, { keep: 2 }), await ship(into, { keep: 2 })]
    expect(later.map(({ removed }) => removed)).toEqual([[], [first.name]])
    expect((await openPlace(into, env).list()).map(({ name }) => name)).toEqual(later.map(({ name }) => name))
    expect(readBackupState(dataDir)).toMatchObject({
      attempt: { error: null },
      last: { name: later[1]?.name, encrypted: true, kept: 2 },
    })
    expect(existsSync(join(dataDir, 'backup-work'))).toBe(false)
  })

  test.each([1_000, 40_000_000])('has nothing of an archive that broke off after %d bytes', async (bytes) => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      for (let left = bytes; left > 0; left -= 1_000_000) yield new Uint8Array(Math.min(left, 1_000_000))
      throw new Error('broken off')
    }
    const at = openPlace(place(), env)
    await expect(at.write(archiveName(Date.UTC(2026, 0, 1), true), broken())).rejects.toThrow('broken off')
    expect(await at.list()).toEqual([])
  })

  test('an archive without recipients needs no identity', async () => {
    const into = place()
    const { name } = await ship(into, { recipients: [] })
    expect(name).toEndWith('.tar.zst')
    expect(await problemsOf(archiveIn(into, name), [])).toEqual([])
  })

  test('an encrypted one is opened by its recipients alone', async () => {
    const into = place()
    const { name } = await ship(into)
    await expect(problemsOf(archiveIn(into, name), [])).rejects.toMatchObject({
      code: 'bad_options',
      remedy: expect.stringContaining('--identity'),
    })
    await expect(problemsOf(archiveIn(into, name), [await generateX25519Identity()])).rejects.toMatchObject({ code: 'backup_unusable' })
  })
})

test('BK8 archives and their folder are readable by their owner alone', async () => {
  const into = join(tempDir(), 'new')
  const { name } = await ship(into)
  expect([statSync(into).mode & 0o777, statSync(join(into, name)).mode & 0o777]).toEqual([0o700, 0o600])
})

test('BK9 a storage that damages what it keeps is found at once, and earlier archives stay', async () => {
  const { name } = await ship(s3(), { keep: 1 })
  stub.damage = flipped
  await expect(ship(s3(), { keep: 1 })).rejects.toMatchObject({
    code: 'backup_unusable',
    remedy: expect.stringContaining('Check the storage'),
  })
  expect([...stub.objects.keys()]).toEqual([`backups/fleet/${name}`])
  const { attempt, last, unverified } = readBackupState(dataDir)
  expect([attempt?.error !== null, last?.name, unverified]).toEqual([true, name, []])
})

const flipped = (bytes: Uint8Array) => bytes.with(bytes.length - 100, (bytes.at(-100) ?? 0) ^ 1)

test('BK9 archives that failed the read and cannot be removed push no good one out, and do not grow without end', async () => {
  const good = [await ship(s3(), { keep: 3 }), await ship(s3(), { keep: 3 })].map(({ name }) => name)
  stub.keepsAll = true
  stub.damage = flipped
  for (let n = 0; n < 8; n++) await expect(ship(s3(), { keep: 3 })).rejects.toMatchObject({ code: 'backup_unusable' })
  await expect(ship(s3(), { keep: 3 })).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('8 archives') })
  expect(stub.objects.size).toBe(10)
  stub.keepsAll = false
  stub.damage = null
  const { name, kept } = await ship(s3(), { keep: 3 })
  expect([kept, [...stub.objects.keys()]]).toEqual([3, [...good, name].map((one) => `backups/fleet/${one}`)])
})

test('BK9 an archive that was stored by a process that ended before its read counts for no retention', async () => {
  const { name: good } = await ship(s3(), { keep: 1 })
  const place = openPlace(s3(), env)
  const write: typeof place.write = async (name, chunks) => {
    await place.write(name, chunks)
    throw new Error('killed')
  }
  const options = { dataDir, withoutKeys: false, postgres: false, recipients, keep: 1 }
  await expect(shipBackup({ ...options, place: { ...place, write } }, deps())).rejects.toThrow('killed')
  expect(stub.objects.size).toBe(2)
  const { name, kept } = await ship(s3(), { keep: 2 })
  expect([kept, [...stub.objects.keys()]]).toEqual([2, [good, name].map((one) => `backups/fleet/${one}`)])
})

test('BK9 an error of the storage is named, and leaves nothing in the data folder', async () => {
  stub.fail = { status: 403, code: 'AccessDenied' }
  await expect(ship(s3())).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('s3://backups/fleet/') })
  expect(readBackupState(dataDir).attempt?.error).toContain('backups')
  expect(existsSync(join(dataDir, 'backup-work'))).toBe(false)
})

test('BK8 a bucket with many objects is listed page by page, and other objects are none of ours', async () => {
  const names = Array.from({ length: 7 }, (_, n) => archiveName(Date.UTC(2025, 0, n + 1), true))
  for (const name of [...names, 'notes.txt']) stub.objects.set(`backups/fleet/${name}`, new Uint8Array(3))
  stub.pageSize = 3
  expect((await openPlace(s3(), env).list()).map(({ name }) => name)).toEqual(names)
  const { removed } = await ship(s3(), { keep: 3 })
  expect(removed).toEqual(names.slice(0, 5))
  expect(stub.objects.has('backups/fleet/notes.txt')).toBe(true)
  expect(stub.unsigned).toBe(0)
})

test.each([
  ['cut off', (path: string) => truncateSync(path, statSync(path).size - 20)],
  [
    'changed',
    (path: string) => {
      const bytes = readFileSync(path)
      bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 4
      writeFileSync(path, bytes)
    },
  ],
  ['something else', (path: string) => writeFileSync(path, 'hello')],
] as const)('BK8 an archive that was %s is refused, encrypted or not', async (_, harm) => {
  for (const to of [recipients, []]) {
    const into = tempDir()
    const { name } = await ship(into, { recipients: [...to] })
    harm(join(into, name))
    await expect(problemsOf(join(into, name))).rejects.toMatchObject({ code: 'backup_unusable' })
    expect(readdirSync(into)).toEqual([name])
  }
})

describe('BK8 an archive that somebody made up', () => {
  const stream = (items: Parameters<typeof tarOf>[0]) => new Blob([zstdCompressSync(tarOf(items))]).stream()
  const manifest = (content: Array<[string, number]> = []) =>
    JSON.stringify({ format: 1, skerry: '0', store: 'sqlite', schema: 1, createdMs: 0, fingerprint: null, counts: {}, files: [], content })
  test.each([
    ['without a manifest', [{ name: 'fleet.sqlite', bytes: 'x' }]],
    [
      'with a name that leads elsewhere',
      [
        { name: 'manifest.json', bytes: manifest() },
        { name: '../evil', bytes: 'x' },
      ],
    ],
    [
      'with a link',
      [
        { name: 'manifest.json', bytes: manifest() },
        { name: 'content/aa', type: '2', link: '/etc/passwd' },
      ],
    ],
    ['with less than its manifest', [{ name: 'manifest.json', bytes: manifest([['a'.repeat(64), 1]]) }]],
    [
      'with other content',
      [
        { name: 'manifest.json', bytes: manifest([['a'.repeat(64), 1]]) },
        { name: `content/aa/${'a'.repeat(62)}`, bytes: 'x' },
      ],
    ],
  ])('%s is refused and leaves nothing outside of its folder', async (_, items) => {
    const folder = tempDir()
    const to = join(folder, 'in')
    await Bun.write(join(to, '.keep'), '')
    await expect(readArchive(stream(items), to)).rejects.toMatchObject({ code: 'backup_unusable' })
    expect(readdirSync(folder)).toEqual(['in'])
  })
})

test.each([
  ['s3://', {}, /expected s3:/],
  ['s3://b/p?endpoint=ftp://x', {}, /endpoint/],
  ['s3://b/p?acl=public', {}, /acl/],
  ['s3://key:secret@b/p', {}, /expected s3:/],
  ['s3://b/p', { AWS_SECRET_ACCESS_KEY: '' }, /no credentials/],
] as const)('BK8 the place %p is refused by name', (text, more, named) => {
  expect(() => openPlace(text, { ...env, ...more })).toThrow(named)
})

test.each([
  ['a bucket without recipients', { into: 's3://b/p', unencrypted: false }, /no recipients/],
  ['recipients and --unencrypted', { into: 's3://b/p', unencrypted: true, recipients: recipients.join() }, /exclude each other/],
  ['half a recipient', { into: '/x', unencrypted: false, recipients: 'age1abc' }, /not a recipient/],
  ['a missing file', { into: '/x', unencrypted: false, recipients: join(dataDir, 'none') }, /ENOENT/],
  ['a private key', { into: '/x', unencrypted: false, recipients: `${recipients[0]},${identity}` }, /private key/],
] as const)('BK8 %s is refused before anything is read', (_, options, named) => {
  let said = ''
  try {
    readTarget(options, env)
  } catch (error) {
    said = String(error)
  }
  expect(said).toMatch(named)
  expect(said).not.toContain(identity)
})
