import { expect, test } from 'bun:test'
import { createCipheriv } from 'node:crypto'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadSecretBox } from '../../server/access/secret-box.ts'
import { tempDir } from '../support/temp-dir.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const text = (found: Uint8Array | null) => (found === null ? null : new TextDecoder().decode(found))

test('CG1 what was sealed opens after a restart, is another text each time, and shows nothing of what is in it', () => {
  const folder = tempDir()
  const box = loadSecretBox(folder)
  const [a, b] = [box.seal(bytes('hunter2')), box.seal(bytes('hunter2'))]
  expect(Buffer.from(a).equals(Buffer.from(b))).toBe(false)
  for (const sealed of [a, b]) {
    expect(Buffer.from(sealed).includes('hunter2')).toBe(false)
    expect(text(loadSecretBox(folder).open(sealed))).toBe('hunter2')
  }
  expect(text(box.open(box.seal(bytes(''))))).toBe('')
  expect(statSync(join(folder, 'secrets.json')).mode & 0o777).toBe(0o600)
})

test('CG1 whatever byte of it was changed, cut off or added, it does not open', () => {
  const box = loadSecretBox(tempDir())
  const sealed = box.seal(bytes('hunter2'))
  for (let at = 0; at < sealed.length; at++) {
    const changed = Uint8Array.from(sealed, (byte, index) => (index === at ? byte ^ 1 : byte))
    expect(box.open(changed)).toBeNull()
    expect(box.open(sealed.subarray(0, at))).toBeNull()
  }
  expect(box.open(new Uint8Array([...sealed, 0]))).toBeNull()
  expect(loadSecretBox(tempDir()).open(sealed)).toBeNull()
})

test('CG1 with a new key in front of the file, older texts open, new ones are sealed under it, and marks stay', () => {
  const folder = tempDir()
  const path = join(folder, 'secrets.json')
  const before = loadSecretBox(folder)
  const old = before.seal(bytes('old'))
  const file = JSON.parse(readFileSync(path, 'utf8'))
  const added = { id: '0000abcd', key: Buffer.alloc(32, 7).toString('base64url') }
  writeFileSync(path, JSON.stringify({ ...file, keys: [added, ...file.keys] }))
  const after = loadSecretBox(folder)
  expect(text(after.open(old))).toBe('old')
  expect(Buffer.from(after.seal(bytes('new')).subarray(1, 5)).toString('hex')).toBe('0000abcd')
  expect(before.open(after.seal(bytes('new')))).toBeNull()
  expect(after.macOf('x')).toBe(before.macOf('x'))
})

test('CG10 what was sealed for one place opens nowhere else; what an earlier version sealed opens until the rotation', () => {
  const folder = tempDir()
  const box = loadSecretBox(folder)
  const sealed = box.seal(bytes('hunter2'), 'config/web/db/password')
  expect(text(box.open(sealed, 'config/web/db/password'))).toBe('hunter2')
  for (const place of ['config/web/db/token', 'config/web/spare/password', 'config/other/db/password', ''])
    expect(box.open(sealed, place)).toBeNull()
  expect(
    box.open(
      Uint8Array.from(sealed, (byte, at) => (at === 0 ? 1 : byte)),
      'config/web/db/token',
    ),
  ).toBeNull()
  const [{ id, key }] = JSON.parse(readFileSync(join(folder, 'secrets.json'), 'utf8')).keys
  const [head, nonce] = [Buffer.concat([Buffer.from([1]), Buffer.from(id, 'hex')]), Buffer.alloc(12, 5)]
  const cipher = createCipheriv('aes-256-gcm', Buffer.from(key, 'base64url'), nonce).setAAD(head)
  const earlier = Buffer.concat([head, nonce, cipher.update('old'), cipher.final(), cipher.getAuthTag()])
  expect([text(box.open(earlier, 'config/web/db/password')), box.isCurrent(earlier), box.isCurrent(sealed)]).toEqual(['old', false, true])
  box.rotate()
  box.forgetEarlier()
  expect(box.open(earlier, 'config/web/db/password')).toBeNull()
})

test('CG1 marks are equal for equal texts only, 16 hex digits, and of this server', () => {
  const [one, other] = [loadSecretBox(tempDir()), loadSecretBox(tempDir())]
  expect(one.macOf('a')).toMatch(/^[0-9a-f]{16}$/)
  expect(one.macOf('a')).toBe(one.macOf('a'))
  expect(one.macOf('a')).not.toBe(one.macOf('b'))
  expect(one.macOf('a')).not.toBe(other.macOf('a'))
})

test('CG1 a file of keys that is damaged stops the start: a new one in its place would lose every secret', () => {
  const folder = tempDir()
  loadSecretBox(folder)
  writeFileSync(join(folder, 'secrets.json'), '{"mac":"AA","keys":[]}')
  expect(() => loadSecretBox(folder)).toThrow()
})
