// Secrets from a Config and a repository to a site, on a real server, a real worker process and a whole agent: what is
// written and sent on the way is searched for them.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { agentFiles } from '../../agent/agent.ts'
import { createBackup } from '../../server/backup/create.ts'
import { restoreBackup } from '../../server/backup/restore.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { fingerprint } from '../../shared/runtime/keys.ts'
import { CANARIES } from '../support/canaries.ts'
import { eventually } from '../support/kube-cluster.ts'
import { CHART_DATA, DERIVED_DATA, type SealedSite, startSealedSite } from '../support/sealed-site.ts'

let site: SealedSite
beforeAll(async () => {
  site = await startSealedSite()
}, 60_000)
afterAll(() => site.stop())

describe('secrets on their way to a site', () => {
  const decoded = (data: Record<string, string> = {}) =>
    Object.fromEntries(Object.entries(data).map(([name, value]) => [name, Buffer.from(value, 'base64').toString()]))

  test('SL1 SL4 SP4 SP7 CG13 arrive: from manifests, Configs, values files, files of SOPS and from outside', async () => {
    const names = ['Secret plain', 'Secret chart', 'Secret of-site', 'ConfigMap derived', 'ConfigMap open']
    await site.applied(() => names.every((name) => site.live(name.split(' ')[0] ?? '', name.split(' ')[1] ?? '') !== null))
    expect(decoded(site.live('Secret', 'plain')?.data)).toEqual({ password: CANARIES.manifest })
    expect(decoded(site.live('Secret', 'chart')?.data)).toEqual(CHART_DATA)
    expect(decoded(site.live('Secret', 'of-site')?.data)).toEqual({ password: CANARIES.sopsManifest })
    expect(site.live('ConfigMap', 'derived')?.data).toEqual(DERIVED_DATA)
  }, 60_000)

  test('SL6 a commit that changes another object of the service changes no sealed row', async () => {
    const rows = () => {
      const db = openSqlite(agentFiles(join(site.folder, 'agent')).replica, { readonly: true })
      const docs = db
        .query<{ id: string; doc: string }, []>("SELECT id, doc FROM desired WHERE id LIKE 'object/default/shop/%' ORDER BY id")
        .all()
      db.close()
      return docs
    }
    const before = rows()
    expect(before.map(({ doc }) => doc.startsWith('{"$sealed":'))).toEqual([true, true])
    await site.git.commit({ 'shop/more.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\ndata: {a: b}\n' }, 'more')
    await site.refresh()
    await site.applied(() => site.live('ConfigMap', 'more') !== null)
    const after = new Map(rows().map(({ id, doc }) => [id, doc]))
    for (const { id, doc } of before) expect(after.get(id)).toBe(doc)
    expect(after.size).toBe(3)
  }, 60_000)

  test('SL9 SL9a a fleet that wrote rows in clear is sealed by a command, which says when nothing is left', async () => {
    await site.restart(() => rmSync(join(site.folder, 'server', 'keys', 'sealing.json')))
    expect((await site.ask('GET', '/api/v1/secrets/seal')).body).toMatchObject({ step: 'off', key: null })
    await site.commitSecret('two')
    await site.refresh()
    await site.applied(() => site.live('Secret', 'plain')?.data?.['number'] !== undefined)
    expect(site.found()).not.toEqual([])
    const sealed = async (done: boolean) => {
      const { body } = await site.ask('GET', '/api/v1/secrets/seal')
      if (body['step'] !== 'finished' || body['done'] !== done) throw new Error(JSON.stringify(body))
      return body
    }
    // The replica of an agent that is away still has rows in clear.
    await site.withoutAgent(async () => {
      const { body } = await site.ask('POST', '/api/v1/secrets/seal', {})
      expect(body).toMatchObject({ key: expect.stringMatching(/^[0-9a-f]{8}$/), done: false })
      const away = { left: [], shards: 16, replicas: { count: 1, first: ['ship'] } }
      expect(await eventually('the server has sealed rows', () => sealed(false))).toMatchObject(away)
    })
    expect(await eventually('all is sealed', () => sealed(true))).toMatchObject({ left: [], replicas: { count: 0 } })
    site.forgetMessages()
    await eventually('the site has sealed rows only', async () => {
      expect(site.found()).toEqual([])
      return true
    })
    await site.commitSecret('three')
    await site.refresh()
    await site.applied(() => site.secretNumber() === 'three')
    expect(site.found()).toEqual([])
  }, 90_000)

  test('SL10 SL11 another recipient key, without a new join: the rows are fetched anew and the former key is deleted', async () => {
    const keys = () => JSON.parse(readFileSync(join(site.folder, 'agent', 'agent-keys.json'), 'utf8'))
    const agentOf = async () => ((await site.ask('GET', '/api/v1/agents')).body['items'] as Array<Record<string, string>>)[0] ?? {}
    const before = await agentOf()
    expect(before['recipient']).toBe(fingerprint(keys().recipient.publicKey))
    expect((await site.ask('POST', `/api/v1/agents/${before['id']}/rotate-recipient`)).status).toBe(204)
    await eventually('another key is in use', async () => {
      const { recipient, rotating } = await agentOf()
      if (recipient === before['recipient'] || String(rotating) !== 'false') throw new Error('not yet')
      const held = keys()
      if (held.former?.length !== 0) throw new Error('the former key is still there')
      expect(fingerprint(held.recipient.publicKey)).toBe(String(recipient))
      return true
    })
    await site.commitSecret('four')
    await site.refresh()
    await site.applied(() => site.secretNumber() === 'four')
  }, 60_000)

  test('SL12 another sealing key: everything is sealed anew and the earlier key is destroyed', async () => {
    const before = (await site.ask('GET', '/api/v1/secrets/seal')).body['key']
    const asked = await site.ask('POST', '/api/v1/secrets/seal', { newKey: true })
    expect(asked.body).toMatchObject({ formerKeys: [before] })
    await eventually('the earlier key is gone', async () => {
      const { body } = await site.ask('GET', '/api/v1/secrets/seal')
      if (body['step'] !== 'finished') throw new Error(JSON.stringify(body))
      expect(body).toMatchObject({ left: [], formerKeys: [] })
      expect(body['key']).not.toBe(before)
      return true
    })
    expect(readFileSync(join(site.folder, 'server', 'keys', 'sealing.json'), 'utf8')).not.toContain(String(before))
    await site.commitSecret('five')
    await site.refresh()
    await site.applied(() => site.secretNumber() === 'five')
  }, 60_000)

  test('SL7 failures do not show them: of a chart, a template, a refused write, and a worker that is killed', async () => {
    const shop = '/api/v1/projects/default/services/shop'
    const failed = (name: string, reason: string) =>
      eventually(`${name}: ${reason}`, async () => {
        const { text } = await site.ask('GET', `/api/v1/projects/default/services/${name}`)
        if (!text.includes(reason)) throw new Error(text)
        return text
      })
    const healthy = (name: string) =>
      eventually(`${name} renders`, async () => {
        const { text } = await site.ask('GET', `/api/v1/projects/default/services/${name}`)
        if (text.includes('RenderFailed')) throw new Error(text)
        return true
      })
    await site.git.commit({ 'chart/values.yaml': 'broken: true\n' }, 'the chart fails')
    await site.refresh()
    // The words of the chart, with marks in place of both secrets.
    expect(await failed('chart', 'RenderFailed')).toMatch(/refused: HMAC:[0-9A-F]{16} /)
    const broken = 'apiVersion: v1\nkind: Secret\nmetadata: {name: plain}\nstringData: [{{ config.password }}\n'
    await site.git.commit({ 'chart/values.yaml': 'broken: false\n', 'shop/broken.yaml.liquid': broken }, 'does not render')
    await site.refresh()
    await failed('shop', 'RenderFailed')
    await healthy('chart')
    await site.git.commit({ 'shop/broken.yaml.liquid': null }, 'renders')
    await site.refresh()
    await healthy('shop')

    site.cluster.admit((object) => {
      const { kind, data } = object as typeof object & { data?: Record<string, string> }
      return kind === 'Secret' && decoded(data)['number'] === 'refused'
        ? `admission webhook "policy" denied the request: data.password: Invalid value: "${CANARIES.manifest}": too weak`
        : null
    })
    await site.commitSecret('refused')
    await site.refresh()
    await eventually('the write is refused', async () => {
      const { text } = await site.ask('GET', '/api/v1/clusters/ship/services')
      if (!text.includes('denied the request')) throw new Error(text)
      return true
    })
    site.cluster.admit(() => null)
    await site.commitSecret('killed')
    await site.refresh()
    const workers = workersHere()
    expect(workers.length).toBeGreaterThan(0)
    for (const pid of workers) process.kill(pid, 'SIGKILL')
    await site.applied(() => site.secretNumber() === 'killed')
    expect((await site.ask('GET', shop)).status).toBe(200)
    expect(site.found()).toEqual([])
  }, 120_000)

  test('CG7 SL7 a rotation of the keys of Configs, and backups with and without keys that are restored', async () => {
    expect((await site.ask('POST', '/api/v1/secrets/rotate-key')).status).toBe(202)
    await eventually('the keys are rotated', async () => {
      const { text, body } = await site.ask('GET', '/api/v1/secrets/rotate-key')
      if (!text.includes('"finished"')) throw new Error(text)
      expect(body['rotation']).toMatchObject({ reason: 'rotation', configs: 3, unopened: 0 })
      return true
    })
    const deps = { clock: systemClock, progress: () => {}, signal: new AbortController().signal }
    const openFolder = (path: string) => {
      mkdirSync(path, { mode: 0o700 })
      return { path, place: null, unlock: () => {} }
    }
    for (const withoutKeys of [true, false]) {
      const to = join(site.folder, `backup-${withoutKeys}`)
      await createBackup({ dataDir: join(site.folder, 'server'), to, withoutKeys, postgres: false }, deps)
      expect([existsSync(join(to, 'fleet.sqlite')), existsSync(join(to, 'keys', 'sealing.json'))]).toEqual([true, !withoutKeys])
      const options = { folder: to, dataDir: `${to}-restored`, keysFrom: null, newKeys: withoutKeys }
      await restoreBackup(options, { ...deps, openFolder })
    }
  }, 60_000)

  test('SL10 an agent whose disk was lost joins anew and gets its secrets, sealed to its new key', async () => {
    const before = (await site.ask('GET', '/api/v1/agents')).text
    await site.loseDisk()
    await site.commitSecret('new-disk')
    await site.refresh()
    await site.applied(() => site.secretNumber() === 'new-disk')
    const { recipient } = JSON.parse(readFileSync(join(site.folder, 'agent', 'agent-keys.json'), 'utf8'))
    expect(before).not.toContain(fingerprint(recipient.publicKey))
    expect((await site.ask('GET', '/api/v1/agents')).text).toContain(fingerprint(recipient.publicKey))
  }, 90_000)

  test('SL7 no answer of the API shows them', async () => {
    const [shop, chart] = ['shop', 'chart'].map((name) => `/projects/default/services/${name}`)
    const paths = [
      ...[
        '/services',
        '/configs',
        '/repositories',
        '/clusters',
        '/objects',
        '/placements',
        '/events?limit=500',
        '/changes',
        '/metrics',
        '/audit',
        '/audit/entries',
      ],
      ...['/projects/default/configs/vars', '/projects/default/configs/outside', '/projects/default/repositories/apps/webhook'],
      ...[`${shop}/variants`, '/clusters/ship/services', '/notifications', '/agents', '/join-tokens', '/secrets/rotate-key'],
      ...[shop, chart].flatMap((at) => [at, `${at}/revisions`, `${at}/history`, `${at}/why`]),
      ...[shop, chart, '/projects/default/services/site'].map((at) => `${at}/render?cluster=ship&explain=true`),
    ]
    const answered: number[] = []
    for (const path of paths) answered.push((await site.ask('GET', `/api/v1${path}`)).status)
    const ref = { group: '', kind: 'ConfigMap', namespace: 'shop', name: 'derived' }
    const service = { project: 'default', service: 'shop' }
    const secrets = ['plain', 'chart', 'of-site'].map((name) => ({ ...ref, kind: 'Secret', name }))
    const about = ['object', 'tree', 'events'].flatMap((kind) => [ref, ...secrets].map((one) => ({ kind, ref: one })))
    for (const question of [...about, { kind: 'diff', service }, { kind: 'dryRun', service }]) {
      const { status, text } = await site.ask('POST', '/api/v1/clusters/ship/ask', { question })
      answered.push(status)
      expect(text).toContain('"t":"end"')
      if (question.kind === 'object') expect(text).toContain('<redacted>')
    }
    expect(answered.filter((status) => status === 200).length).toBeGreaterThan(paths.length + about.length - 4)
    await site.git.commit(
      { 'chart/clear.yaml': `values: {password: ${CANARIES.values}, more: true}\n`, 'shop/secret.yaml': null },
      'proposed',
    )
    for (const at of [shop, chart]) {
      const { status, body } = await site.ask('POST', `/api/v1${at}/diff`, { content: { apps: { ref: 'main' } } })
      expect([status, body['failing']]).toEqual([200, []])
    }
  }, 60_000)

  test('SL7 nothing that was written or sent holds them', () => {
    expect(site.found()).toEqual([])
  })
})

/** Processes of the server's workers. */
function workersHere(): number[] {
  const textOf = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8') : '')
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => textOf(`/proc/${pid}/status`).includes(`PPid:\t${process.pid}\n`))
    .filter((pid) => textOf(`/proc/${pid}/cmdline`).includes('server/worker/main.ts'))
    .map(Number)
}
