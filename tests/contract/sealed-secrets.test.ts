// Secrets from a Config and a repository to a site, on a real server, a real worker process and a whole agent: what is written and sent on the way is searched for them.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { agentFiles } from '../../agent/agent.ts'
import { createBackup } from '../../server/backup/create.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { fingerprint } from '../../shared/runtime/keys.ts'
import { eventually } from '../support/kube-cluster.ts'
import { CANARIES, type SealedSite, startSealedSite } from '../support/sealed-site.ts'

let site: SealedSite
beforeAll(async () => {
  site = await startSealedSite()
}, 60_000)
afterAll(() => site.stop())

describe('secrets on their way to a site', () => {
  test('SL1 SL4 arrive: a Secret of the repository, and what was made of a secret of a Config', async () => {
    await site.applied(
      () => site.live('Secret', 'plain') !== null && site.live('ConfigMap', 'derived') !== null && site.live('ConfigMap', 'open') !== null,
    )
    expect(site.live('Secret', 'plain')?.data).toEqual({ password: Buffer.from(CANARIES.manifest).toString('base64') })
    expect(site.live('ConfigMap', 'derived')?.data).toEqual({
      url: `https://x:${CANARIES.config}@db`,
      upper: CANARIES.config.toUpperCase(),
      coded: Buffer.from(CANARIES.config).toString('base64'),
    })
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

  test('SL9 a fleet that wrote rows in clear is sealed by a command, which says when nothing is left', async () => {
    await site.restart(() => rmSync(join(site.folder, 'server', 'keys', 'sealing.json')))
    expect((await site.ask('GET', '/api/v1/secrets/seal')).body).toMatchObject({ step: 'off', key: null })
    await site.commitSecret('two')
    await site.refresh()
    await site.applied(() => site.live('Secret', 'plain')?.data?.['number'] !== undefined)
    expect(site.found()).not.toEqual([])
    expect((await site.ask('POST', '/api/v1/secrets/seal', {})).body).toMatchObject({ key: expect.stringMatching(/^[0-9a-f]{8}$/) })
    await eventually('all is sealed', async () => {
      const { body } = await site.ask('GET', '/api/v1/secrets/seal')
      if (body['step'] !== 'finished') throw new Error(JSON.stringify(body))
      expect(body).toMatchObject({ left: [], shards: 16 })
      return true
    })
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

  test('SL7 no answer of the API shows them, and a backup without keys does not hold them', async () => {
    const shop = '/projects/default/services/shop'
    const paths = [
      ...[
        '/services',
        '/configs',
        '/clusters',
        '/objects',
        '/placements',
        '/events?limit=500',
        '/changes',
        '/metrics',
        '/audit',
        '/audit/entries',
      ],
      ...['/projects/default/configs/vars', shop, `${shop}/render?cluster=ship`, `${shop}/revisions`, `${shop}/history`, `${shop}/why`],
      ...[`${shop}/variants`, '/clusters/ship/services', '/notifications', '/agents'],
    ]
    const answered: number[] = []
    for (const path of paths) answered.push((await site.ask('GET', `/api/v1${path}`)).status)
    const ref = { group: '', kind: 'ConfigMap', namespace: 'shop', name: 'derived' }
    const service = { project: 'default', service: 'shop' }
    const secret = { ...ref, kind: 'Secret', name: 'plain' }
    const about = ['object', 'tree', 'events'].flatMap((kind) => [ref, secret].map((one) => ({ kind, ref: one })))
    for (const question of [...about, { kind: 'diff', service }, { kind: 'dryRun', service }]) {
      const { status, text } = await site.ask('POST', '/api/v1/clusters/ship/ask', { question })
      answered.push(status)
      expect(text).toContain('"t":"end"')
      if (question.kind === 'object') expect(text).toContain('<redacted>')
    }
    expect(answered.filter((status) => status === 200).length).toBeGreaterThan(paths.length + about.length - 4)
    const broken = 'apiVersion: v1\nkind: Secret\nmetadata: {name: plain}\nstringData: [{{ config.password }}\n'
    await site.git.commit({ 'shop/broken.yaml.liquid': broken }, 'does not render')
    await site.refresh()
    await eventually('the render failed', async () => {
      const { body } = await site.ask('GET', `/api/v1${shop}`)
      if (!JSON.stringify(body).includes('RenderFailed')) throw new Error('not yet')
      return true
    })
    const deps = { clock: systemClock, progress: () => {}, signal: new AbortController().signal }
    const to = join(site.folder, 'backup')
    await createBackup({ dataDir: join(site.folder, 'server'), to, withoutKeys: true, postgres: false }, deps)
    expect(existsSync(join(to, 'fleet.sqlite'))).toBe(true)
  }, 60_000)

  test('SL7 nothing that was written or sent holds them', () => {
    expect(site.found()).toEqual([])
  })
})
