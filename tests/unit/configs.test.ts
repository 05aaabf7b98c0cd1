// Configs from apply to the store and back: what people see of their secrets, and what is kept of them.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { decideHost, type HostBinding, type HostDecision, hostOf } from '../../server/access/config-hosts.ts'
import { createConfigKeys } from '../../server/access/config-keys.ts'
import { createConfigs } from '../../server/access/configs.ts'
import { loadSecretBox } from '../../server/access/secret-box.ts'
import { createFleetActions } from '../../server/actions/fleet-actions.ts'
import { credentialsOf } from '../../server/control/workers/remote-sources.ts'
import { PROBES_MAX, PROBES_WINDOW_MS } from '../../server/http/secret-probes.ts'
import { CONFIG_DATA_LENGTH_MAX, CONFIG_SECRETS_MAX } from '../../shared/model/render.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { naming } from '../support/naming.ts'
import { tempDir } from '../support/temp-dir.ts'

const keys = tempDir()
const keysOf = (folder = keys) => createConfigKeys(loadSecretBox(folder))
let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin({ secrets: keysOf() })
})
afterEach(() => admin.store.close())

const configDoc = (name: string, secrets: Record<string, unknown>, data: Record<string, unknown> = {}, project = 'default') => ({
  apiVersion: 'skerry.dev/v1',
  kind: 'Config',
  metadata: { name, project },
  spec: { data, secrets },
})
const apply = async (...resources: unknown[]) => (await admin.call('POST', '/api/v1/apply', { resources })).body as Answer
const dryRun = async (...resources: unknown[]) => (await admin.call('POST', '/api/v1/apply', { resources, dryRun: true })).body as Answer
interface Answer {
  code?: string
  results?: { action: string; name: string }[]
  problems?: { path: string; message: string }[]
}
const actions = ({ results = [] }: Answer) => results.map(({ action }) => action)
const secretsOf = async (name: string, project = 'default') => {
  const { body } = await admin.call('GET', `/api/v1/projects/${project}/configs/${name}`)
  return (body as { spec: { secrets: Record<string, string> } }).spec.secrets
}
const FORGE = { url: 'https://git.example.com/team/apps.git' }
const opened = (name: string, project = 'default') => createConfigs(admin.store, keysOf()).read(project, name)

test('CG2 a secret is never shown again: reads have a mark, equal for equal values of that secret only', async () => {
  await apply(configDoc('a', { token: 'hunter2', other: 'hunter2', third: 'x' }), configDoc('b', { token: 'hunter2' }))
  const [a, b] = [await secretsOf('a'), await secretsOf('b')]
  for (const mark of [...Object.values(a), ...Object.values(b)]) expect(mark).toMatch(/^hmac:[0-9a-f]{16}$/)
  expect(new Set([a['token'], a['other'], a['third'], b['token']]).size).toBe(4)
  await apply(configDoc('a', { token: 'changed' }))
  expect((await secretsOf('a'))['token']).not.toBe(a['token'])
  await apply(configDoc('a', { token: 'hunter2' }))
  expect((await secretsOf('a'))['token']).toBe(a['token'])
  const list = await admin.call('GET', '/api/v1/configs')
  expect(JSON.stringify(list.body)).not.toContain('hunter2')
  expect(await opened('a')).toEqual({ data: {}, secrets: { token: 'hunter2' } })
})

test('CG2 what the store holds of a secret is sealed, and differs from one write to the next', async () => {
  await apply(configDoc('a', { token: 'hunter2' }, { color: 'blue' }))
  const held = await admin.store.getResource({ kind: 'Config', project: 'default', name: 'a' })
  expect(held?.spec).toMatch(
    /^\{"data":\{"color":"blue"\},"key":"file:[A-Za-z0-9_-]+","secrets":\{"token":"sealed:[0-9a-f]{16}:[A-Za-z0-9_-]+"\}\}$/,
  )
  expect(held?.spec).not.toContain('hunter2')
})

test('CG3 a mark written back keeps what is there, the same value again changes nothing, and a plan says so before', async () => {
  await apply(configDoc('a', { token: 'hunter2', other: 'x' }))
  const marks = await secretsOf('a')
  for (const same of [configDoc('a', marks), configDoc('a', { token: 'hunter2', other: 'x' }), configDoc('a', { ...marks, other: 'x' })]) {
    expect(actions(await dryRun(same))).toEqual(['unchanged'])
    expect(actions(await apply(same))).toEqual(['unchanged'])
  }
  const changed = configDoc('a', { token: marks['token'], other: 'y' })
  expect(actions(await dryRun(changed))).toEqual(['configured'])
  expect((await opened('a'))?.secrets).toEqual({ token: 'hunter2', other: 'x' })
  expect(actions(await apply(changed))).toEqual(['configured'])
  expect((await opened('a'))?.secrets).toEqual({ token: 'hunter2', other: 'y' })
  await apply(configDoc('a', { token: marks['token'] }))
  expect((await opened('a'))?.secrets).toEqual({ token: 'hunter2' }) // what is left out goes
})

test.each([
  ['of another value', 'a', { token: `hmac:${'0'.repeat(16)}` }, 'another value'],
  ['of a secret that is not there', 'a', { none: `hmac:${'0'.repeat(16)}` }, 'secret has none'],
  ['of a Config that is not there', 'new', { token: `hmac:${'0'.repeat(16)}` }, 'secret has none'],
])('CG3 a mark %s is an error that names the secret, on every way in, and writes nothing', async (_, name, secrets, message) => {
  await apply(configDoc('a', { token: 'hunter2' }))
  const [secret = ''] = Object.keys(secrets)
  for (const answer of [await dryRun(configDoc(name, secrets)), await apply(configDoc(name, secrets))])
    expect(answer).toMatchObject({
      code: 'invalid_resource',
      problems: [{ path: `resources[0].spec.secrets.${secret}`, message: expect.stringContaining(message) }],
    })
  const put = await admin.call('PUT', `/api/v1/projects/default/configs/${name}`, configDoc(name, secrets))
  expect(put).toMatchObject({ status: 422, body: { problems: [{ path: `spec.secrets.${secret}` }] } })
  expect((await opened('a'))?.secrets).toEqual({ token: 'hunter2' })
})

test('CG3 a mark of another project’s Config keeps nothing, and proves nothing about its value', async () => {
  await apply(configDoc('a', { token: 'hunter2' }), configDoc('a', { token: 'hunter2' }, {}, 'other'))
  const [mine, theirs] = [await secretsOf('a'), await secretsOf('a', 'other')]
  expect(mine).not.toEqual(theirs)
  expect(await apply(configDoc('a', theirs))).toMatchObject({ code: 'invalid_resource' })
})

test('CG3 a write that keeps secrets is refused when somebody else wrote in between', async () => {
  await apply(configDoc('a', { token: 'hunter2' }))
  const marks = await secretsOf('a')
  const { applyResource } = admin.store
  const faster = await createTestAdmin({
    secrets: keysOf(),
    store: {
      ...admin.store,
      async applyResource(key, change) {
        if (change.labels['by'] === 'slow') await apply(configDoc('a', { token: 'newer' }))
        return applyResource(key, change)
      },
    },
  })
  const slow = configDoc('a', marks)
  const { body } = await faster.call(
    'POST',
    '/api/v1/apply',
    { resources: [{ ...slow, metadata: { ...slow.metadata, labels: { by: 'slow' } } }] },
    { authorization: `Bearer ${faster.token}` },
  )
  await faster.store.close()
  expect(body).toMatchObject({ code: 'conflict' })
  expect((await opened('a'))?.secrets).toEqual({ token: 'newer' })
})

test('CG4 a Config that something names stays, and says who names it', async () => {
  const withAuth = { ...repositoryDoc('apps'), spec: { git: { url: 'https://git.example/apps.git', auth: { secretRef: 'a' } } } }
  const web = serviceDoc('web')
  const values = serviceDoc('values')
  await apply(
    configDoc('a', { token: 'x' }),
    configDoc('free', {}),
    withAuth,
    { ...web, spec: { ...web.spec, configFrom: [{ name: 'a', optional: true }] } },
    { ...values, spec: { ...values.spec, render: { helm: { valuesFrom: [{ name: 'a' }] } } } },
    configDoc('a', {}, {}, 'other'),
  )
  const refused = await admin.call('DELETE', '/api/v1/projects/default/configs/a')
  expect(refused).toMatchObject({ status: 409, body: { code: 'in_use' } })
  expect((refused.body as { detail: string }).detail).toEqual(
    naming('config a', 'project default', 'repository apps, service values, service web'),
  )
  expect((await admin.call('GET', '/api/v1/projects/default/configs/a')).body).toMatchObject({
    status: { usedBy: ['repository/apps', 'service/values', 'service/web'] },
  })
  for (const free of ['default/configs/free', 'other/configs/a'])
    expect(await admin.call('DELETE', `/api/v1/projects/${free}`)).toMatchObject({ status: 200, body: { outcome: 'deleted' } })
  expect(await admin.call('DELETE', '/api/v1/projects/default/configs/free')).toMatchObject({ status: 404 })
})

test('CG4 a service of the same name keeps what it was rendered to when a Config is deleted', async () => {
  await apply(repositoryDoc('apps'), serviceDoc('web'), configDoc('web', {}))
  const id = { project: 'default', service: 'web' }
  await admin.store.setRenderState(id, { ...(await admin.store.renderState(id)), commit: 'c1', generation: 1, digest: 'd1' })
  await admin.call('DELETE', '/api/v1/projects/default/configs/web')
  expect(await admin.store.renderState(id)).toMatchObject({ digest: 'd1' })
})

test('CG5 limits: at the edge it is taken, one past it nothing is written, and no value is in the answer', async () => {
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`s${n}`, 'hunter2']))
  const data = (length: number) => ({ a: 'd'.repeat(length - '{"a":""}'.length) })
  expect(actions(await apply(configDoc('many', many(CONFIG_SECRETS_MAX)), configDoc('long', { s: 's'.repeat(262_144) })))).toHaveLength(2)
  expect(actions(await apply(configDoc('data', {}, data(CONFIG_DATA_LENGTH_MAX))))).toEqual(['created'])
  for (const bad of [
    configDoc('bad', many(CONFIG_SECRETS_MAX + 1)),
    configDoc('bad', { s: 's'.repeat(262_145) }),
    configDoc('bad', {}, data(CONFIG_DATA_LENGTH_MAX + 1)),
    configDoc('bad', { 'not a name': 'hunter2' }),
    configDoc('bad', { s: 12_345_678 }),
  ]) {
    const answer = await apply(bad)
    expect(answer).toMatchObject({ code: 'invalid_resource' })
    expect(JSON.stringify(answer)).not.toMatch(/hunter2|sssss|ddddd|12345678/)
  }
  expect((await opened('bad')) === null).toBe(true)
})

test('CG6 a Config that changed is said to the fleet under its own name', async () => {
  await apply(configDoc('a', { token: 'x' }))
  expect(admin.asked).toEqual(['changed Config default/a'])
  await apply(configDoc('a', { token: 'x' }))
  expect(admin.asked).toHaveLength(1)
})

test('CG2 configs on the command line: get, describe, apply of what get printed, delete', async () => {
  await apply(configDoc('a', { token: 'hunter2' }, { color: 'blue' }))
  const run = (...argv: string[]) => runTestCli(admin, argv)
  expect((await run('get', 'cfg')).out).toMatch(/^NAME +DATA +SECRETS +AGE\na +1 +1 +/)
  const described = await run('describe', 'config/a')
  expect(described.out).toMatch(/color: +"blue"\n +token \(secret\): +hmac:[0-9a-f]{16}\nUsed by: +nobody/)
  const printed = await run('get', 'config/a', '-o', 'yaml')
  expect(printed.out).not.toContain('hunter2')
  expect((await runTestCli(admin, ['apply', '-f', '-'], { stdin: printed.out })).out).toBe('config/a unchanged\n')
  const edited = printed.out.replace('blue', 'green')
  expect((await runTestCli(admin, ['apply', '-f', '-'], { stdin: edited })).out).toBe('config/a configured\n')
  expect(await opened('a')).toEqual({ data: { color: 'green' }, secrets: { token: 'hunter2' } })
  const gone = await run('delete', 'configs', 'a', '--yes')
  expect([gone.out, gone.err]).toEqual(['config/a deleted\n', expect.stringContaining('are LOST: token')])
  const wrong = await runTestCli(admin, ['apply', '-f', '-'], { stdin: printed.out })
  expect([wrong.code, wrong.err]).toEqual([1, expect.stringMatching(/stdin:\d+: spec\.secrets\.token: hmac:…/)])
})

test('CG1 without the key that it was sealed with, a secret is missing and not something else; writing it again mends it', async () => {
  await apply(configDoc('a', { token: 'hunter2' }))
  const other = createConfigs(admin.store, keysOf(tempDir()))
  await expect(other.credentials('default', 'a', FORGE)).rejects.toMatchObject({ code: 'credential_missing' })
  await expect(other.credentials('default', 'none', FORGE)).rejects.toMatchObject({ code: 'credential_missing' })
  expect(await createConfigs(admin.store, keysOf()).credentials('default', 'a', FORGE)).toEqual({ token: 'hunter2' })
})

test('CG8 the first use binds a Config to the hosts of the Repositories that name it; another host is refused and told how to add it', async () => {
  const repository = (name: string, url: string) => {
    const doc = repositoryDoc(name)
    return { ...doc, spec: { git: { url, ref: 'main', auth: { secretRef: 'a' } } } }
  }
  await apply(
    configDoc('a', { token: 'hunter2' }),
    repository('one', 'git@git.example.com:team/one.git'),
    repository('two', 'https://other.example.com:8443/two.git'),
  )
  const configs = createConfigs(admin.store, keysOf())
  const hostsOf = async () =>
    ((await admin.call('GET', '/api/v1/projects/default/configs/a')).body as { spec: { hosts?: string[] } }).spec.hosts
  const elsewhere = () => configs.credentials('default', 'a', { url: 'https://evil.example.com/x.git' })
  expect(await hostsOf()).toBeUndefined()
  expect(await configs.credentials('default', 'a', FORGE)).toEqual({ token: 'hunter2' })
  expect(await hostsOf()).toEqual(['git.example.com', 'other.example.com:8443'])
  await expect(elsewhere()).rejects.toMatchObject({ code: 'source_refused', message: expect.stringContaining('evil.example.com') })
  expect((await runTestCli(admin, ['describe', 'configs', 'a'])).out).toMatch(/Hosts: +git\.example\.com, other\.example\.com:8443\n/)

  const printed = (await runTestCli(admin, ['get', 'configs', 'a', '-o', 'yaml'])).out
  expect((await runTestCli(admin, ['apply', '-f', '-'], { stdin: printed })).out).toBe('config/a unchanged\n')
  expect(actions(await apply(configDoc('a', { token: 'hunter2' })))).toEqual(['unchanged'])
  const { token } = await secretsOf('a')
  const withHosts = (value: string, hosts: string[]) => ({ ...configDoc('a', {}), spec: { secrets: { token: value }, hosts } })
  const unknowing = await apply(withHosts(token ?? '', ['evil.example.com', 'git.example.com']))
  expect(unknowing.problems).toEqual([{ path: 'resources[0].spec.hosts', message: expect.stringContaining('evil.example.com') }])
  expect(actions(await apply(withHosts(token ?? '', ['git.example.com'])))).toEqual(['configured'])
  await expect(configs.credentials('default', 'a', { url: 'oci://other.example.com:8443/x' })).rejects.toMatchObject({
    code: 'source_refused',
  })
  expect(actions(await apply(withHosts('hunter2', ['evil.example.com', 'git.example.com'])))).toEqual(['configured'])
  expect(await elsewhere()).toEqual({ token: 'hunter2' })
  expect((await admin.call('POST', '/api/v1/server-keys/rotate-secrets')).body).toMatchObject({ configs: 1, secrets: 1 })
  expect(await hostsOf()).toEqual(['evil.example.com', 'git.example.com'])
})

test.each([
  ['https://Git.Example.com/a.git', 'git.example.com'],
  ['https://git.example.com:8443/a.git', 'git.example.com:8443'],
  ['ssh://git@git.example.com:22/a.git', 'git.example.com'],
  ['ssh://git@git.example.com:2222/a.git', 'git.example.com:2222'],
  ['git@git.example.com:team/a.git', 'git.example.com'],
  ['oci://registry.example.com:5000/a', 'registry.example.com:5000'],
])('CG8 the host of %s is %s', (url, host) => expect(hostOf(url)).toBe(host))

const REGISTRY = 'oci://registry.example.com/a'
test.each<[what: string, binding: HostBinding, tokenServer: string | undefined, decision: HostDecision]>([
  ['the first use', {}, undefined, { kind: 'bind', firstUse: { 'registry.example.com': '' } }],
  ['the first token server', { firstUse: { 'registry.example.com': '' } }, 'auth.example.com', { kind: 'bind', firstUse: { 'registry.example.com': 'auth.example.com' } }],
  ['the same one again', { firstUse: { 'registry.example.com': 'auth.example.com' } }, 'auth.example.com', { kind: 'allowed' }],
  ['another one', { firstUse: { 'registry.example.com': 'auth.example.com' } }, 'evil.example.com', { kind: 'refused', host: 'evil.example.com' }],
  ['the token server of another registry', { firstUse: { 'other.example.com': 'auth.example.com' } }, undefined, { kind: 'refused', host: 'registry.example.com' }],
  ['one that is not among those written', { hosts: ['registry.example.com'] }, 'auth.example.com', { kind: 'refused', host: 'auth.example.com' }],
  ['those written', { hosts: ['auth.example.com', 'registry.example.com'] }, 'auth.example.com', { kind: 'allowed' }],
  ['no host at all', { hosts: [] }, undefined, { kind: 'refused', host: 'registry.example.com' }],
])('CG8 the token server of a registry: %s', (_, binding, tokenServer, decision) => {
  expect(decideHost(binding, { url: REGISTRY, tokenServer }, [])).toEqual(decision)
}) // biome-ignore format: a line a case

test('CG8 a worker gets the secrets of a job for the repositories of that job, and for no other URL', async () => {
  const uses: unknown[] = []
  const credentials = async (...use: unknown[]) => {
    uses.push(use)
    return { token: 'hunter2' }
  }
  const spec = { url: FORGE.url, ref: 'main', auth: { secretRef: 'a' } }
  const job = credentialsOf({ credentials }, [{ uid: 'u', project: 'shop', place: { kind: 'git', spec } }])
  await expect(job.read({ secretRef: 'a', url: 'https://evil.example.com/x.git' })).rejects.toMatchObject({ code: 'credential_missing' })
  await expect(job.read({ secretRef: 'b', ...FORGE })).rejects.toMatchObject({ code: 'credential_missing' })
  expect(await job.read({ secretRef: 'a', ...FORGE })).toEqual({ token: 'hunter2' })
  expect(uses).toEqual([['shop', 'a', FORGE]])
})

test('CG6 the services and repositories that name a Config are looked at again, and no others', async () => {
  const withAuth = { ...repositoryDoc('apps'), spec: { git: { url: 'https://git.example/apps.git', auth: { secretRef: 'a' } } } }
  const web = serviceDoc('web')
  await apply(configDoc('a', {}), withAuth, { ...web, spec: { ...web.spec, configFrom: [{ name: 'a' }] } }, serviceDoc('a'))
  const looked: string[] = []
  const done = Promise.withResolvers<void>()
  const look = async (name: string) => {
    if (looked.push(name) === 2) done.resolve()
  }
  const actions = createFleetActions({
    store: admin.store,
    content: { get: async () => null },
    shards: { removeCluster: () => {} },
    ingest: {
      repositoryChanged: (_, name) => look(`repository ${name}`),
      dataConfirmed: async () => {},
      serviceChanged: ({ service }) => look(`service ${service}`),
      clusterDeleted: async () => {},
      clustersChanged: async () => {},
      healthRulesChanged: async () => {},
      suspensionsChanged: async () => {},
      siteConfigsChanged: async () => {},
      statusReported: () => {},
    },
    onClusterDeleted: async () => {},
    clock: systemClock,
    log: silentLogger,
  })
  actions.onChanged([{ kind: 'Config', project: 'default', name: 'a' }])
  await done.promise
  expect(looked).toEqual(['repository apps', 'service web'])
})

test('SO56 a remote base gets the first Config that is bound to its host, and binds none', async () => {
  const doc = (name: string, hosts?: string[]) => ({
    ...configDoc(name, {}),
    spec: { secrets: { token: 'hunter2' }, ...(hosts === undefined ? {} : { hosts }) },
  })
  await apply(doc('unbound'), doc('one', ['git.example.com']), doc('two', ['git.example.com', 'git.example.com:8443']))
  const configs = createConfigs(admin.store, keysOf())
  const names = ['unbound', 'gone', 'one', 'two']
  const of = (url: string) => configs.boundTo('default', names, url)
  expect([
    await of('https://git.example.com/a/b'),
    await of('https://git.example.com:8443/a/b'),
    await of('git@git.example.com:a/b'),
  ]).toEqual(['one', 'two', 'one'])
  expect([await of('https://evil.example.com/a'), await configs.boundTo('other', names, 'https://git.example.com/a')]).toEqual([null, null])
  expect(
    ((await admin.call('GET', '/api/v1/projects/default/configs/unbound')).body as { spec: { hosts?: string[] } }).spec.hosts,
  ).toBeUndefined()
})

test('CG14 a dry run with values of secrets is recorded, and limited for each caller and Config; other dry runs are not', async () => {
  await apply(configDoc('a', { token: 'hunter2' }), configDoc('b', { token: 'x' }))
  const { token = '' } = await secretsOf('a')
  for (let tries = 0; tries < PROBES_MAX - 1; tries++)
    expect(actions(await dryRun(configDoc('a', { token: `guess${tries}` })))).toEqual(['configured'])
  const put = (secret: string) => admin.call('PUT', '/api/v1/projects/default/configs/a?dryRun=true', configDoc('a', { token: secret }))
  expect((await put('guess')).status).toBe(200)
  expect(await put('hunter2')).toMatchObject({ status: 429, body: { code: 'too_many_requests' } })
  expect(await dryRun(configDoc('a', { token: 'hunter2' }))).toMatchObject({ code: 'too_many_requests' })
  expect(actions(await dryRun(configDoc('a', { token }, { color: 'red' })))).toEqual(['configured']) // no value of a secret
  expect(actions(await dryRun(configDoc('b', { token: 'x' })))).toEqual(['unchanged'])
  expect(actions(await apply(configDoc('a', { token: 'hunter2' })))).toEqual(['unchanged']) // a write is no dry run
  const { items: entries } = await admin.store.audit.list({ limit: 500 })
  const tried = entries.filter(({ verb, name }) => verb === 'dry-run' && name === 'a')
  expect(tried.filter(({ result }) => result === 'done')).toHaveLength(PROBES_MAX)
  expect(tried.some(({ result }) => result === 'denied')).toBe(true)
  admin.clock.nowMs += PROBES_WINDOW_MS
  expect((await put('hunter2')).status).toBe(200)
})
