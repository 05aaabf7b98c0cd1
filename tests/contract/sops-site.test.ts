// SP1, SP4, SP5: what the real sops encrypted, from manifests to objects of a cluster: rows of the server, age keys of
// the site, and the states where a key or a file is wrong.
import { afterEach, describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { objectText } from '../../agent/messages/object-messages.ts'
import { sitePart } from '../../agent/messages/site-messages.ts'
import { SopsDecrypter } from '../../agent/sops/decrypter.ts'
import { SiteKeys, SOPS_KEYS_NAMESPACE } from '../../agent/sops/site-keys.ts'
import { type Manifest, readManifests } from '../../server/render/manifests.ts'
import { sopsRows } from '../../server/render/sops/documents.ts'
import type { AgeKey } from '../../shared/adapters/age.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { Problem } from '../../shared/runtime/error.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { eventually } from '../support/kube-cluster.ts'
import { configMap, createReconcileKit, SHOP } from '../support/reconcile-kit.ts'
import { SOME, said } from '../support/said.ts'
import { keyFile, newAgeKey, type SopsRules, sopsDecrypt, sopsEncrypt } from '../support/sops-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

const [key, other, next] = await Promise.all([newAgeKey(), newAgeKey(), newAgeKey()])

/** As a renderer of plain files has them. */
function rowsOf(files: Record<string, string>): { objects: K8sObject[]; problems: Problem[] } {
  const read = readManifests(new Map(Object.entries(files).map(([name, text]) => [name, Buffer.from(text)])))
  const problems = [...read.problems]
  return { objects: sopsRows<Manifest>(read.found, problems).map(({ object }) => object), problems }
}

const SECRET = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'db', namespace: 'default', labels: { app: 'shop' } },
  stringData: { password: 'pässword', 'a.b_c': 'x: y\n' },
}
const DATA_ONLY: SopsRules['rule'] = { encrypted_regex: '^(data|stringData)$' }
const encrypted = (object: object, to: readonly AgeKey[] = [key], rule = DATA_ONLY) =>
  sopsEncrypt('a.yaml', JSON.stringify(object), { to, rule })

interface SiteOptions {
  folder?: string
  statePath?: string
  cluster?: ReturnType<typeof createFakeCluster>
}
let stop: Array<() => Promise<unknown>> = []
afterEach(async () => {
  await Promise.all(stop.map((one) => one()))
  stop = []
})

function siteOf({ folder, statePath, cluster = createFakeCluster({ clock: systemClock }) }: SiteOptions = {}) {
  const stopping = new AbortController()
  const holder: { kit?: ReturnType<typeof createReconcileKit> } = {}
  const kit = createReconcileKit({
    ...{ cluster, clock: systemClock },
    ...(statePath === undefined ? {} : { statePath }),
    decryption: (state) => {
      const changed = () => holder.kit?.reconciler.revisionsChanged([SHOP])
      const options = { cluster, folder, state, clock: systemClock, log: silentLogger, signal: stopping.signal, changed }
      return new SopsDecrypter(new SiteKeys(options))
    },
  })
  holder.kit = kit
  kit.start()
  stop.push(async () => {
    stopping.abort()
    await kit.stop()
  })
  const live = (kind: string, name: string) =>
    cluster.object({ group: '', kind, namespace: 'default', name }) as Record<string, unknown> | null
  const problemOf = (kind: string, name: string, reason: string) =>
    eventually(`${kind} ${name} is ${reason}`, async () => {
      const found = kit.object(`/${kind}/default/${name}`)
      if (found?.reason !== reason) throw new Error(JSON.stringify(found))
      return found
    })
  const applied = (kind: string, name: string, is: (object: Record<string, unknown>) => boolean = () => true) =>
    eventually(`${kind} ${name} is applied`, async () => {
      const found = live(kind, name)
      if (found === null || !is(found)) throw new Error(JSON.stringify(kit.object(`/${kind}/default/${name}`)))
      return found
    })
  return { cluster, kit, live, applied, problemOf }
}

function keySecret(cluster: ReturnType<typeof createFakeCluster>, keys: readonly AgeKey[], annotations: Record<string, string> = {}): void {
  const data = Object.fromEntries(keys.map((one, index) => [`${index}.agekey`, Buffer.from(keyFile(one)).toString('base64')]))
  const metadata = { name: 'keys', namespace: 'skerry-system', labels: { 'skerry.dev/sops-keys': '' }, annotations }
  cluster.applyAs('person', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'skerry-system' } })
  cluster.applyAs('person', { apiVersion: 'v1', kind: 'Secret', metadata, data } as K8sObject, { force: true })
}

test('SP1 SP4 each kind of SOPS file arrives as sops decrypts it', async () => {
  const { cluster, kit, applied } = siteOf()
  keySecret(cluster, [other, key])
  const env = 'A=one two\nB=\n'
  const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
  const files = {
    'app.env': sopsEncrypt('app.env', env, { to: [key] }),
    'cert.pem': sopsEncrypt('cert.pem', bytes, { to: [key] }),
    'deep.yaml': sopsEncrypt('deep.yaml', 'a: {b: [1, two]}\n', { to: [key] }),
    'deep.json': sopsEncrypt('deep.json', '{"a":{"b":[1,"two"]}}', { to: [key] }),
    'plain.txt': 'not encrypted',
  }
  const generated = {
    ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'files', namespace: 'default' } },
    data: Object.fromEntries(Object.entries(files).map(([name, text]) => [name, Buffer.from(text).toString('base64')])),
  }
  const two = `${JSON.stringify({ ...SECRET, metadata: { name: 'one', namespace: 'default' } })}\n---\n${JSON.stringify(SECRET)}\n`
  const map = { ...configMap('map', { url: 'https://x:pässword@db' }), other: undefined }
  const { objects, problems } = rowsOf({
    'two.yaml': sopsEncrypt('two.yaml', two, { to: [key], rule: DATA_ONLY }),
    'map.json': sopsEncrypt('map.json', JSON.stringify(map), { to: [other, key], rule: DATA_ONLY }),
    'generated.yaml': JSON.stringify(generated),
  })
  expect(problems).toEqual([])
  expect(JSON.stringify(objects)).not.toContain('pässword')
  kit.desire(objects)
  for (const name of ['one', 'db']) {
    const { data, metadata } = (await applied('Secret', name)) as { data: object; metadata: { annotations: object } }
    expect(data).toEqual({ password: base64('pässword'), 'a.b_c': base64('x: y\n') })
    expect(metadata.annotations).not.toHaveProperty('skerry.dev/sops')
  }
  const { data, metadata } = (await applied('ConfigMap', 'map')) as { data: object; metadata: { annotations: object } }
  expect(data).toEqual({ url: 'https://x:pässword@db' })
  expect(metadata.annotations).toMatchObject({ 'skerry.dev/sops': 'decrypted' })
  const own = ((await applied('Secret', 'files')) as { data: Record<string, string> }).data
  for (const [name, text] of Object.entries(files)) {
    const wanted = name === 'plain.txt' ? Buffer.from(text) : sopsDecrypt(name, text, key)
    const got = Buffer.from(own[name] ?? '', 'base64')
    if (name === 'deep.yaml') expect(Bun.YAML.parse(got.toString())).toEqual(Bun.YAML.parse(wanted.toString()))
    else expect({ name, got: got.toString('latin1') }).toEqual({ name, got: wanted.toString('latin1') })
  }
})

const base64 = (text: string) => Buffer.from(text).toString('base64')

describe('age keys of a site', () => {
  test('SP4 SP5 nothing is read before a row needs it; a missing key is named, and applied when it comes', async () => {
    const { cluster, kit, applied, problemOf, live } = siteOf()
    const isSecretWatch = ({ verb, kind }: (typeof cluster.requests)[number]) => verb === 'watch' && kind === 'Secret'
    kit.desire([configMap('a')])
    await applied('ConfigMap', 'a')
    expect(cluster.requests.filter(isSecretWatch)).toEqual([])
    kit.desire([configMap('a', { a: '2' }), ...rowsOf({ 'a.yaml': encrypted(SECRET, [key, other]) }).objects])
    const { message } = await problemOf('Secret', 'db', 'SopsKeyMissing')
    expect(message).toMatch(said(objectText('SopsKeyMissing', { recipients: SOME, own: '', problems: '' })))
    for (const { recipient } of [key, other]) expect(message).toContain(recipient)
    expect([live('Secret', 'db'), (live('ConfigMap', 'a') as { data?: unknown }).data]).toEqual([null, { a: '2' }])
    keySecret(cluster, [next])
    await eventually('the keys of the site are named', async () => kit.object('/Secret/default/db')?.message.includes(next.recipient))
    keySecret(cluster, [next, other])
    await applied('Secret', 'db')
  })

  test('SP5 a rotated key: the object stays, the state names the recipients, also after a restart', async () => {
    const statePath = join(tempDir(), 'agent.sqlite')
    const { cluster, kit, applied, problemOf, live } = siteOf({ statePath })
    keySecret(cluster, [key])
    const { objects } = rowsOf({ 'a.yaml': encrypted(SECRET) })
    kit.desire(objects)
    await applied('Secret', 'db')
    keySecret(cluster, [next])
    const told = await problemOf('Secret', 'db', 'SopsKeyRotated')
    const { recipient } = key
    expect(told.message).toMatch(
      said(objectText('SopsKeyRotated', { recipients: recipient, own: next.recipient, problems: '', former: recipient })),
    )
    expect(live('Secret', 'db')).not.toBeNull()
    await stop.pop()?.()

    const again = siteOf({ statePath, cluster })
    again.kit.desire(objects)
    await again.problemOf('Secret', 'db', 'SopsKeyRotated')
    again.kit.desire(rowsOf({ 'a.yaml': encrypted({ ...SECRET, stringData: { password: 'second' } }, [next]) }).objects)
    await again.applied('Secret', 'db', ({ data }) => (data as { password?: string }).password === base64('second'))
  })

  test('SP5 a stanza that the named key does not open, a file that was changed, and one of a later version', async () => {
    const { cluster, kit, problemOf, live } = siteOf()
    keySecret(cluster, [key])
    const file = encrypted(SECRET)
    const [stanza = ''] = /-----BEGIN AGE[\s\S]*?END AGE ENCRYPTED FILE-----/.exec(encrypted(SECRET, [other])) ?? []
    const named = (name: string) => ({ ...SECRET, metadata: { name, namespace: 'default' } })
    const wrong = encrypted(named('wrong')).replace(/-----BEGIN AGE[\s\S]*?END AGE ENCRYPTED FILE-----/, stanza)
    const changed = encrypted(named('changed'))
      .replace('app: shop', 'app: other')
      .replace(/name: changed/, 'name: changed\n    labels: {app: x}')
    const { objects, problems } = rowsOf({ 'a.yaml': file, 'b.yaml': wrong, 'c.yaml': changed })
    expect(problems).toEqual([])
    const [first] = objects as [K8sObject & { $sops: object }]
    kit.desire([...objects.slice(1), { ...first, $sops: { ...first.$sops, v: 2 } } as K8sObject])
    const { recipient } = key
    expect((await problemOf('Secret', 'wrong', 'SopsKeyWrong')).message).toBe(objectText('SopsKeyWrong', { recipient }))
    expect((await problemOf('Secret', 'changed', 'SopsMacWrong')).message).toBe(objectText('SopsMacWrong'))
    expect((await problemOf('Secret', 'db', 'SopsUnreadable')).message).toBe(objectText('SopsUnreadable.newer'))
    for (const name of ['wrong', 'changed', 'db']) expect(live('Secret', name)).toBeNull()
  })

  test('SP4 keys of a Secret or a folder may serve some projects only', async () => {
    const folder = tempDir()
    for (const [project, of] of [
      ['shop', key],
      ['web', other],
    ] as const) {
      mkdirSync(join(folder, project))
      writeFileSync(join(folder, project, 'site.agekey'), keyFile(of))
    }
    const { cluster, kit, applied, problemOf } = siteOf({ folder })
    keySecret(cluster, [key], { 'skerry.dev/sops-projects': 'shop, other' })
    const forOther = encrypted({ ...SECRET, metadata: { name: 'b', namespace: 'default' } }, [other])
    kit.desire(rowsOf({ 'a.yaml': encrypted(SECRET), 'b.yaml': forOther }).objects)
    expect(SHOP.project).toBe('web')
    await applied('Secret', 'b')
    const others = { recipients: key.recipient, own: SOME, problems: SOME, from: SOME, project: 'web' }
    const otherProjects = said(objectText('SopsKeyMissing.otherProjects', others))
    expect((await problemOf('Secret', 'db', 'SopsKeyMissing')).message).toMatch(otherProjects)
    writeFileSync(join(folder, 'broken.agekey'), 'no key')
    await eventually('the file is named', async () => kit.object('/Secret/default/db')?.message.includes('broken.agekey'))
    keySecret(cluster, [key], { 'skerry.dev/sops-projects': 'shop,web' })
    await applied('Secret', 'db')
  })

  test('SP4 Secrets that the agent may not read are said in the state', async () => {
    const { cluster, kit, problemOf } = siteOf()
    cluster.fail(({ verb, kind }) =>
      verb === 'watch' && kind === 'Secret'
        ? { kind: 'forbidden', status: 403, reason: 'Forbidden', message: 'secrets is forbidden' }
        : null,
    )
    kit.desire(rowsOf({ 'a.yaml': encrypted(SECRET) }).objects)
    const unread = sitePart('secrets_unread', { namespace: SOPS_KEYS_NAMESPACE, failure: 'secrets is forbidden' })
    expect((await problemOf('Secret', 'db', 'SopsKeyMissing')).message).toContain(unread)
  })
})

describe('manifests that cannot stay encrypted', () => {
  const refused = (files: Record<string, string>) =>
    rowsOf(files)
      .problems.map(({ path, message }) => `${path} ${message}`)
      .join('\n')

  test.each<[string, SopsRules['rule'], string]>([
    ['its kind', { encrypted_regex: '^(kind|data)$' }, 'kind is encrypted by SOPS'],
    ['its name', { encrypted_regex: '^(name|data)$' }, 'metadata.name is encrypted by SOPS'],
    ['its namespace', { encrypted_regex: '^(namespace|data)$' }, 'metadata.namespace is encrypted by SOPS'],
    ['all of it', {}, 'apiVersion is encrypted by SOPS'],
  ])('SP1 %s is encrypted', (_, rule, message) => {
    expect(refused({ 'a.yaml': encrypted(SECRET, [key], rule) })).toContain(message)
    expect(refused({ 'a.yaml': encrypted(SECRET, [key], rule) })).toMatch(/a\.yaml:\d+/)
  })

  test('SP1 a List, a moved value, and a file without its other documents', () => {
    const list = { apiVersion: 'v1', kind: 'List', metadata: {}, items: [SECRET] }
    expect(refused({ 'a.yaml': encrypted(list) })).toContain('write each object as a document')
    const moved = encrypted({ ...SECRET, stringData: { a: 'one', b: 'two' } })
    const [, a = '', b = ''] = /a: (ENC\[.*\])\n +b: (ENC\[.*\])/.exec(moved) ?? []
    // The file itself is whole; only the object that a renderer made of it has the value elsewhere.
    const read = readManifests(new Map([['a.yaml', Buffer.from(moved)]]))
    const problems: Problem[] = []
    const bent = read.found.map((one) => ({ ...one, object: { ...one.object, stringData: { a: b, c: a } } as K8sObject }))
    sopsRows(bent, problems)
    expect(problems.map(({ message }) => message).join()).toContain('cannot be moved or copied')
  })

  test('SP1 an author can have an object applied as it is, and operators have theirs', () => {
    const text = encrypted({ ...SECRET, metadata: { ...SECRET.metadata, annotations: { 'skerry.dev/sops': 'disabled' } } })
    const { objects, problems } = rowsOf({
      'a.yaml': text,
      'b.yaml': encrypted({ ...SECRET, apiVersion: 'isindir.github.com/v1alpha3', kind: 'SopsSecret' }),
    })
    expect([problems, objects.map((object) => '$sops' in object)]).toEqual([[], [false, false]])
  })
})
