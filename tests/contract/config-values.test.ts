// CG13: values of Configs from outside: files of a real folder, and readers that fail when they are told to.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createConfigKeys } from '../../server/access/config-keys.ts'
import { openConfig } from '../../server/access/config-secrets.ts'
import { loadSecretBox } from '../../server/access/secret-box.ts'
import { createOutboundGuard } from '../../server/notify/outbound.ts'
import { createFileValues } from '../../server/values/file-values.ts'
import { createValueKeeper, type ValueKeeper } from '../../server/values/value-keeper.ts'
import { ValueError, type ValueReader } from '../../server/values/value-source.ts'
import { createVaultValues } from '../../server/values/vault-values.ts'
import type { ValueSource } from '../../shared/model/render.ts'
import type { ConfigView } from '../../shared/model/views.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { createTestAdmin, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { eventually } from '../support/kube-cluster.ts'
import { loopbackGuard } from '../support/source-guard.ts'
import { tempDir } from '../support/temp-dir.ts'
import { startVault, type TestVault } from '../support/vault.ts'

const keys = createConfigKeys(loadSecretBox(tempDir()))
let admin: TestAdmin
let keeper: ValueKeeper
let folder: string
let changed: string[]
let stop: AbortController
let vault: ValueReader

beforeEach(async () => {
  folder = tempDir()
  changed = []
  stop = new AbortController()
  vault = { read: async (_, sources) => new Map(sources.map(({ name }) => [name, new ValueError('cannot reach vault.example.com')])) }
  admin = await createTestAdmin({ secrets: keys })
  keeper = createValueKeeper({
    ...{ store: admin.store, keys, clock: systemClock, random: seededRandom(1), log: silentLogger },
    readers: { vault: { read: (...of) => vault.read(...of) }, kubernetesSecret: null, file: createFileValues(folder) },
    onChanged: ({ project, name }) => void changed.push(`${project}/${name}`),
  })
  void keeper.run(stop.signal)
})
afterEach(async () => {
  stop.abort()
  await admin.store.close()
})

const put = (name: string, content: string, project = 'default') => {
  mkdirSync(join(folder, project), { recursive: true })
  writeFileSync(join(folder, project, name), content)
}
const doc = (name: string, spec: Record<string, unknown>) => ({ apiVersion: 'skerry.dev/v1', kind: 'Config', metadata: { name }, spec })
const apply = async (...resources: unknown[]) => {
  const { body } = await admin.call('POST', '/api/v1/apply', { resources })
  keeper.changed([{ kind: 'Config', project: 'default', name: 'shop' }])
  return body as { results?: { action: string }[]; problems?: { path: string; message: string }[] }
}
const view = async () => (await admin.call('GET', '/api/v1/projects/default/configs/shop')).body as ConfigView
const stateOf = async (name: string) => (await view()).status.sources?.find((source) => source.name === name)
const until = (name: string, state: string) =>
  eventually(`${name} ${state}`, async () => {
    const found = await stateOf(name)
    if (found?.state !== state) throw new Error(JSON.stringify(found))
    return found
  })
const secrets = async () => {
  const held = await admin.store.getResource({ kind: 'Config', project: 'default', name: 'shop' })
  return (await openConfig(keys, { project: 'default', name: 'shop' }, held?.spec ?? '')).secrets
}
const reasons = async () => (await admin.store.listEvents({ limit: 100 })).map(({ reason }) => reason)

const FROM_FILE = { valueFrom: [{ name: 'license', file: 'license.txt' }], secrets: { other: 'x' } }

describe('values from files', () => {
  test('CG13 a value is read, sealed and versioned; another one is another generation, an equal one is not', async () => {
    put('license.txt', 'first\n')
    await apply(doc('shop', FROM_FILE))
    await until('license', 'ready')
    expect(await secrets()).toEqual({ license: 'first', other: 'x' })
    const [before, held] = [await view(), await admin.store.getResource({ kind: 'Config', project: 'default', name: 'shop' })]
    expect(before.status.sources?.[0]?.value).toEqual({
      mark: expect.stringMatching(/^hmac:/),
      version: expect.any(String),
      atMs: expect.any(Number),
    })
    expect([held?.spec, JSON.stringify(before)].some((text) => text?.includes('first'))).toBe(false)
    expect(changed).toEqual(['default/shop'])

    put('license.txt', 'first') // another version of the same value
    keeper.changed([{ kind: 'Config', project: 'default', name: 'shop' }])
    await eventually(
      'a newer version',
      async () => (await stateOf('license'))?.value?.version !== before.status.sources?.[0]?.value?.version,
    )
    expect((await view()).metadata.generation).toBe(before.metadata.generation)
    put('license.txt', 'second')
    keeper.changed([{ kind: 'Config', project: 'default', name: 'shop' }])
    await eventually('the second value', async () => (await secrets())['license'] === 'second')
    expect((await view()).metadata.generation).toBe(before.metadata.generation + 1)
    expect(changed).toEqual(['default/shop', 'default/shop'])
  })

  test('CG13 a source that fails leaves its last value, says so once, and recovers', async () => {
    put('license.txt', 'first')
    await apply(doc('shop', FROM_FILE))
    await until('license', 'ready')
    writeFileSync(join(folder, 'default', 'license.txt'), new Uint8Array([0xff, 0xfe]))
    keeper.changed([{ kind: 'Config', project: 'default', name: 'shop' }])
    expect(await until('license', 'failed')).toMatchObject({
      message: expect.stringContaining('UTF-8'),
      value: { version: expect.any(String) },
    })
    keeper.changed([{ kind: 'Config', project: 'default', name: 'shop' }])
    await Bun.sleep(50)
    expect(await secrets()).toEqual({ license: 'first', other: 'x' })
    expect((await reasons()).filter((reason) => reason === 'ValueSourceFailed')).toHaveLength(1)
    expect((await runTestCli(admin, ['describe', 'config', 'shop'])).out).toMatch(
      /license \(file license\.txt\): +failed since .*UTF-8.*; value hmac:/,
    )
    put('license.txt', 'first')
    keeper.changed([{ kind: 'Config', project: 'default', name: 'shop' }])
    await until('license', 'ready')
    expect(await reasons()).toContain('ValueSourceRecovered')
  })

  test('CG13 a file of another project, or behind a link that leads out, is not read', async () => {
    put('license.txt', 'theirs', 'other')
    put('a.txt', 'mine')
    symlinkSync(join(folder, 'other', 'license.txt'), join(folder, 'default', 'link'))
    symlinkSync(join(folder, 'default', 'a.txt'), join(folder, 'default', 'inside'))
    const sources = (file: string) => [{ name: 'x', file }]
    const read = async (file: string) => (await createFileValues(folder).read({ project: 'default', name: 'shop' }, sources(file))).get('x')
    expect(await read('license.txt')).toBeInstanceOf(ValueError)
    expect(await read('link')).toBeInstanceOf(ValueError)
    expect(await read('inside')).toMatchObject({ value: 'mine' })
    expect((await apply(doc('shop', { valueFrom: sources('../other/license.txt') }))).problems).toMatchObject([
      { path: 'resources[0].spec.valueFrom[0].file' },
    ])
  })
})

test('CG13 a value that was never read is an error, not an empty text; a server that reads no Secrets says how to allow it', async () => {
  await apply(doc('shop', { valueFrom: [{ name: 'token', kubernetesSecret: { name: 'shop', key: 'token' } }] }))
  expect(await until('token', 'failed')).toMatchObject({ message: expect.stringContaining('--value-secrets'), value: null })
  await expect(secrets()).rejects.toMatchObject({ code: 'values_missing' })
})

test('CG13 a written secret keeps the values that were read; a source that becomes another one drops its value', async () => {
  put('license.txt', 'first')
  await apply(doc('shop', FROM_FILE))
  await until('license', 'ready')
  await apply(doc('shop', { ...FROM_FILE, secrets: { other: 'y', third: 'z' } }))
  expect(await secrets()).toEqual({ license: 'first', other: 'y', third: 'z' })
  await admin.call('POST', '/api/v1/apply', { resources: [doc('shop', { valueFrom: [{ name: 'license', file: 'elsewhere.txt' }] })] })
  await expect(secrets()).rejects.toMatchObject({ code: 'values_missing' })
})

test('CG13 a name that is a secret as well, two places in one source, and an interval below ten seconds are refused', async () => {
  const source = { name: 'license', file: 'license.txt' }
  const problemOf = async (spec: Record<string, unknown>) => (await apply(doc('shop', spec))).problems?.[0]?.path
  expect(await problemOf({ valueFrom: [source], secrets: { license: 'x' } })).toBe('resources[0].spec.valueFrom[0].name')
  expect(await problemOf({ valueFrom: [{ ...source, kubernetesSecret: { name: 'a', key: 'b' } }] })).toBe('resources[0].spec.valueFrom[0]')
  expect(await problemOf({ valueFrom: [source, source] })).toBe('resources[0].spec.valueFrom')
  expect(await problemOf({ valueFrom: [source], refresh: '9s' })).toBe('resources[0].spec.refresh')
})

test('CG4 CG13 the credential of a source stays while a Config names it, and its sources are read again with another one', async () => {
  const asked: string[] = []
  vault = {
    async read({ name }, sources) {
      asked.push(name)
      return new Map(sources.map((source) => [source.name, { value: 'from-vault', version: '3' }]))
    },
  }
  const source = { name: 'token', vault: { url: 'https://vault.example.com:8200', path: 'shop', key: 'token', secretRef: 'vault' } }
  await apply(doc('vault', { secrets: { token: 't' } }), doc('shop', { valueFrom: [source] }))
  expect(await until('token', 'ready')).toMatchObject({
    from: 'vault secret/shop#token at vault.example.com:8200',
    value: { version: '3' },
  })
  expect((await admin.call('DELETE', '/api/v1/projects/default/configs/vault')).status).toBe(409)
  const before = asked.length
  keeper.changed([{ kind: 'Config', project: 'default', name: 'vault' }])
  await eventually('it is read again', async () => asked.length > before)
})

describe('values in a real Vault', () => {
  let real: TestVault
  beforeAll(async () => {
    real = await startVault()
  }, 30_000)
  afterAll(() => real.stop())

  const reader = (secrets: Record<string, string>, addresses = loopbackGuard()) =>
    createVaultValues({ configs: { credentials: async () => secrets }, addresses, clock: systemClock })
  const source = (vault: Partial<NonNullable<ValueSource['vault']>>): ValueSource[] => [
    {
      name: 'v',
      vault: {
        ...{ url: real.url, mount: 'secret', engine: 'kv2', path: 'shop/db', key: 'password', secretRef: 'vault', authMount: 'approle' },
        ...vault,
      },
    },
  ]
  const read = async (values: ValueReader, sources: ValueSource[]) => {
    const found = (await values.read({ project: 'default', name: 'shop' }, sources)).get('v')
    return found instanceof ValueError ? found.message : found
  }
  const RULES = ['secret/data/shop/*', 'old/shop/*'].map((path) => `path "${path}" { capabilities = ["read"] }`).join('\n')

  test('CG13 a key of a secret is read with its version, from both kinds of engines, by token and by AppRole', async () => {
    await real.call('POST', 'secret/data/shop/db', { data: { password: 'one', port: 5432 } })
    await real.call('POST', 'old/shop/db', { password: 'of-kv1' })
    const token = await real.tokenFor('values', RULES)
    expect(await read(reader({ token }), source({}))).toEqual({ value: 'one', version: '1' })
    await real.call('POST', 'secret/data/shop/db', { data: { password: 'two' } })
    expect(await read(reader({ token }), source({}))).toEqual({ value: 'two', version: '2' })
    expect(await read(reader({ token }), source({ mount: 'old', engine: 'kv1' }))).toEqual({ value: 'of-kv1', version: '' })
    await real.call('POST', 'auth/approle/role/values', { token_policies: ['values'] })
    const { data: role } = (await real.call('GET', 'auth/approle/role/values/role-id')) as { data: { role_id: string } }
    const { data: secret } = (await real.call('POST', 'auth/approle/role/values/secret-id')) as { data: { secret_id: string } }
    const byRole = reader({ roleId: role.role_id, secretId: secret.secret_id })
    expect(await read(byRole, source({}))).toEqual({ value: 'two', version: '2' })
    expect(await read(reader({ token }), source({ path: 'shop/none' }))).toContain('does not exist')
    expect(await read(reader({ token }), source({ key: 'none' }))).toContain('no key none')
    expect(await read(reader({ token }), source({ path: 'other' }))).toContain('may not read')
    expect(await read(reader({}), source({}))).toContain('neither token')
  })

  test('CG13 SO1 an address that the operator did not allow is not asked, and a failure shows no credential', async () => {
    expect(await read(reader({ token: 'hvs.secret' }, createOutboundGuard('', {})), source({}))).toContain('127.0.0.1')
    const failure = await read(reader({ token: 'hvs.secret' }), source({ url: 'http://127.0.0.1:9' }))
    expect(failure).toContain('cannot reach 127.0.0.1:9')
    expect(String(failure)).not.toContain('hvs.')
  })
})
