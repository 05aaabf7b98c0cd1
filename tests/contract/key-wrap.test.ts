// CG12: what every key wrap keeps to: the master key of the data folder, and the transit engine of a real Vault.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createFileWrap, type KeyWrap } from '../../server/access/key-wrap.ts'
import { loadSecretBox } from '../../server/access/secret-box.ts'
import { readKeyService } from '../../server/key-service.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { tempDir } from '../support/temp-dir.ts'
import { startVault, type TestVault } from '../support/vault.ts'

let vault: TestVault
beforeAll(async () => {
  vault = await startVault()
}, 30_000)
afterAll(() => vault.stop())

const RULES = `path "transit/encrypt/skerry" { capabilities = ["update"] }
path "transit/decrypt/skerry" { capabilities = ["update"] }`
const MAY_ROTATE = `${RULES}\npath "transit/keys/skerry/rotate" { capabilities = ["update"] }`

function service(files: Record<string, string>, transit: Record<string, unknown>, more: Record<string, unknown> = {}): KeyWrap {
  const folder = tempDir()
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), `${text}\n`, { mode: 0o600 })
  writeFileSync(join(folder, 'keys.json'), JSON.stringify({ transit: { url: vault.url, key: 'skerry', ...transit }, ...more }))
  return readKeyService(join(folder, 'keys.json'), systemClock, fetch).wrap
}
const withToken = async (rules: string) => service({ token: await vault.tokenFor('skerry', rules) }, { auth: { tokenFile: 'token' } })

const WRAPS: Array<[name: string, create: () => Promise<KeyWrap>]> = [
  ['the data folder', async () => createFileWrap(loadSecretBox(tempDir()))],
  ['Vault transit', () => withToken(MAY_ROTATE)],
]

describe.each(WRAPS)('key wrap of %s', (_, create) => {
  test('CG11 a wrapped key opens for its place alone, and not when a character of it was changed', async () => {
    const wrap = await create()
    const key = randomBytes(32)
    const wrapped = await wrap.wrap(key, 'shop/vars')
    expect(wrapped).toStartWith(`${wrap.kind}:`)
    expect(Buffer.from((await wrap.unwrap(wrapped, 'shop/vars')) ?? []).equals(key)).toBe(true)
    expect(await wrap.unwrap(wrapped, 'shop/others')).toBeNull()
    const middle = Math.floor(wrapped.length / 2) + 5
    const changed = wrapped.slice(0, middle) + (wrapped[middle] === 'A' ? 'B' : 'A') + wrapped.slice(middle + 1)
    expect(await wrap.unwrap(changed, 'shop/vars')).toBeNull()
    expect(Buffer.from(wrapped).includes(key.toString('base64'))).toBe(false)
  })

  test('CG11 the same key is wrapped to another text each time', async () => {
    const wrap = await create()
    const key = randomBytes(32)
    expect(await wrap.wrap(key, 'a/b')).not.toBe(await wrap.wrap(key, 'a/b'))
  })

  test('CG7 after a rotation earlier texts still open, and new ones are of the new master key', async () => {
    const wrap = await create()
    const key = randomBytes(32)
    const before = await wrap.wrap(key, 'a/b')
    expect(await wrap.rotate()).toBeNull()
    const after = await wrap.wrap(key, 'a/b')
    for (const wrapped of [before, after]) expect(Buffer.from((await wrap.unwrap(wrapped, 'a/b')) ?? []).equals(key)).toBe(true)
  })
})

describe('CG12 Vault transit', () => {
  test('with AppRole it signs in by itself, again after its token was revoked', async () => {
    await vault.call('POST', 'sys/policies/acl/skerry-role', { policy: RULES })
    await vault.call('POST', 'auth/approle/role/skerry', { token_policies: ['skerry-role'] })
    const { data: role } = (await vault.call('GET', 'auth/approle/role/skerry/role-id')) as { data: { role_id: string } }
    const { data: secret } = (await vault.call('POST', 'auth/approle/role/skerry/secret-id')) as { data: { secret_id: string } }
    const wrap = service(
      { role: role.role_id, secret: secret.secret_id },
      { auth: { appRole: { roleIdFile: 'role', secretIdFile: 'secret' } } },
    )
    const wrapped = await wrap.wrap(randomBytes(32), 'a/b')
    await vault.call('POST', 'sys/leases/revoke-prefix/auth/approle/login', { sync: true })
    expect(await wrap.unwrap(wrapped, 'a/b')).not.toBeNull()
  })

  test('a token that may not rotate leaves the master key, and says where to do it', async () => {
    const wrap = await withToken(RULES)
    expect(await wrap.rotate()).toContain('transit/keys/skerry/rotate')
    expect(wrap.name).toBe(`transit/skerry at ${new URL(vault.url).host}`)
  })

  test.each([
    ['a policy that allows nothing', async () => withToken('path "secret/*" { capabilities = ["read"] }')],
    ['an address where nothing listens', async () => service({ token: 'x' }, { url: 'http://127.0.0.1:9', auth: { tokenFile: 'token' } })],
    ['a credential file that is gone', async () => service({}, { auth: { tokenFile: 'token' } })],
  ])('%s is an error that may pass, and holds no credential', async (_, create) => {
    const wrap = await create()
    const failure = await wrap.wrap(randomBytes(32), 'a/b').catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'key_service_unavailable' })
    expect(String(failure)).not.toContain('hvs.')
  })

  test.each([
    ['an unknown field', { transit: { url: 'https://vault', key: 'k', auth: { tokenFile: 't' }, nmae: 1 } }, 'transit'],
    ['plain http to another machine', { transit: { url: 'http://vault.example.com', key: 'k', auth: { tokenFile: 't' } } }, 'transit.url'],
    ['no way to sign in', { transit: { url: 'https://vault', key: 'k', auth: {} } }, 'transit.auth'],
  ])('a file with %s is refused with its field', (_, settings, field) => {
    const path = join(tempDir(), 'keys.json')
    writeFileSync(path, JSON.stringify(settings))
    expect(() => readKeyService(path, systemClock, fetch)).toThrow(field)
    expect(readFileSync(path, 'utf8')).toContain('transit')
  })
})
