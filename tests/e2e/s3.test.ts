// Archives of backups in a real S3-compatible storage, SeaweedFS: the compiled program stores, lists, verifies and
// restores them, with no more rights than the documentation names.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { openPlace } from '../../server/backup/archive/place.ts'
import { archiveName } from '../../server/backup/archive/stored.ts'
import { fillDataFolder } from '../support/data-folder-kit.ts'
import { type RealS3, startRealS3 } from '../support/real-s3.ts'
import { ROOT } from '../support/source-files.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(120_000)
const SKERRY = join(ROOT, 'dist/skerry')
const dataDir = tempDir()
const key = join(tempDir(), 'backup.key')
let storage: RealS3
let recipients = ''
beforeAll(async () => {
  storage = await startRealS3()
  await fillDataFolder(dataDir)
  const identity = await generateX25519Identity()
  writeFileSync(key, `${identity}\n`, { mode: 0o600 })
  recipients = await identityToRecipient(identity)
})
afterAll(() => storage?.stop())

const place = (prefix: string, bucket = storage.bucket) => `s3://${bucket}/${prefix}?endpoint=${encodeURIComponent(storage.endpoint)}`
function skerry(args: string[], env = storage.owner) {
  const ran = Bun.spawnSync([SKERRY, ...args], { stdin: 'ignore', env: { PATH: '/usr/bin', HOME: tempDir(), ...env } })
  return { code: ran.exitCode, out: ran.stdout.toString(), err: ran.stderr.toString() }
}
const create = (into: string, ...more: string[]) => [
  'backup',
  'create',
  '--data',
  dataDir,
  '--into',
  into,
  '--recipients',
  recipients,
  ...more,
]
const listed = (into: string): string[] =>
  skerry(['backup', 'list', into])
    .out.trim()
    .split('\n')
    .map((line) => line.split(' ')[0] ?? '')

test('BK8 BK9 archives are stored, listed, verified and restored, and the newest are kept', async () => {
  const into = place('oslo')
  for (let n = 0; n < 3; n++) {
    if (n > 0) await Bun.sleep(1_100) // the name has the second
    const made = skerry(create(into, '--keep', '2'))
    expect(made.code === 0 ? '' : made.err).toBe('')
  }
  const names = listed(into)
  expect(names).toHaveLength(2)
  const newest = into.replace('?', `/${names.at(-1)}?`)
  const verified = skerry(['backup', 'verify', newest, '--identity', key])
  expect(verified.code === 0 ? '' : verified.err).toBe('')
  const restored = join(tempDir(), 'restored')
  const done = skerry(['backup', 'restore', newest, '--identity', key, '--data', restored])
  expect(done.code === 0 ? '' : done.err).toBe('')
  expect(existsSync(join(restored, 'fleet.sqlite'))).toBe(true)
  expect(skerry(['backup', 'list', place('bergen')])).toMatchObject({ code: 0, out: '' })
})

test('BK8 an archive of several parts is read as it was written, and one that was broken off is not there', async () => {
  const at = openPlace(place('large'), storage.owner)
  const name = (day: number) => archiveName(Date.UTC(2026, 0, day), true)
  const chunks = Array.from({ length: 40 }, () => randomBytes(1_048_576))
  const sum = createHash('sha256')
  for (const chunk of chunks) sum.update(chunk)
  const expected = sum.digest('hex')
  expect(await at.write(name(1), from(chunks))).toBe(40 * 1_048_576)
  expect(await at.list()).toEqual([{ name: name(1), bytes: 40 * 1_048_576 }])
  const found = createHash('sha256')
  for await (const chunk of await at.read(name(1))) found.update(chunk)
  expect(found.digest('hex')).toBe(expected)
  await expect(at.write(name(1), from(chunks))).rejects.toMatchObject({ code: 'target_exists' })
  await expect(at.write(name(2), from(chunks, 25))).rejects.toThrow('broken off')
  expect((await at.list()).map((one) => one.name)).toEqual([name(1)])
  await at.remove(name(1))
  expect(await at.list()).toEqual([])
})

async function* from(chunks: readonly Uint8Array[], breakAt = chunks.length): AsyncGenerator<Uint8Array> {
  for (const [n, chunk] of chunks.entries()) {
    if (n === breakAt) throw new Error('broken off')
    yield chunk
  }
}

test.each<[what: string, into: () => string, env: () => Record<string, string>, named: RegExp]>([
  ['credentials that may only read', () => place('oslo'), () => storage.reader, /AccessDenied/],
  ['an unknown key', () => place('oslo'), () => ({ ...storage.owner, AWS_ACCESS_KEY_ID: 'nobody' }), /InvalidAccessKeyId/],
  ['a wrong secret', () => place('oslo'), () => ({ ...storage.owner, AWS_SECRET_ACCESS_KEY: 'wrong' }), /SignatureDoesNotMatch/],
  ['a bucket of somebody else', () => place('oslo', 'theirs'), () => storage.owner, /AccessDenied/],
])('BK9 %s: the error has the code of the storage, and earlier archives stay', (_, into, env, named) => {
  const before = listed(place('oslo'))
  const refused = skerry(create(into()), env())
  expect([refused.code, named.test(refused.err) ? '' : refused.err]).toEqual([1, ''])
  expect(listed(place('oslo'))).toEqual(before)
})
