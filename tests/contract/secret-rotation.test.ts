// The secrets of Configs under data keys: what an earlier version sealed, rotations that are cut off, and writes that
// meet one. On both stores, because PostgreSQL reads while others write.
import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createConfigKeys } from '../../server/access/config-keys.ts'
import { openConfig, sealConfig } from '../../server/access/config-secrets.ts'
import type { KeyWrap } from '../../server/access/key-wrap.ts'
import { createSecretRotation, type SecretRotationDeps } from '../../server/access/rotate-secrets.ts'
import { loadSecretBox, secretKeyIds } from '../../server/access/secret-box.ts'
import type { Store } from '../../server/store/store.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { openIn, SQLITE, STORES } from '../support/stores.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(60_000) // PostgreSQL is started in one of them

const EARLIER = JSON.parse(readFileSync(join(import.meta.dir, '../fixtures/store/config-secrets-18.json'), 'utf8'))
const keyOf = (name: string) => ({ kind: 'Config', project: 'default', name }) as const
const idOf = (name: string) => ({ project: 'default', name })

const stopping: AbortController[] = []
afterEach(() => {
  for (const one of stopping.splice(0)) one.abort()
})

async function siteOn(
  store: Store,
  folder: string,
  more: Partial<SecretRotationDeps> = {},
  service: Parameters<typeof createConfigKeys>[1] = null,
) {
  const keys = createConfigKeys(loadSecretBox(folder), service)
  const stop = new AbortController()
  stopping.push(stop)
  const deps = { store, keys, clock: systemClock, pace: async () => {}, log: silentLogger, stopping: stop.signal, ...more }
  return { keys, stop, rotation: await createSecretRotation(deps) }
}
type Site = Awaited<ReturnType<typeof siteOn>>

const held = async (store: Store, name: string) => (await store.getResource(keyOf(name)))?.spec ?? ''
const opened = async (store: Store, { keys }: Site, name: string) => (await openConfig(keys, idOf(name), await held(store, name))).secrets

const sealed = async ({ keys }: Site, name: string, secrets: Record<string, string>) => {
  const made = await sealConfig(keys, idOf(name), { data: {}, secrets }, null)
  if (made.kind !== 'sealed') throw new Error('refused')
  return made.spec
}
const write = (store: Store, site: Site, name: string, secrets: Record<string, string>) =>
  site.keys.using(async () => store.applyResource(keyOf(name), { labels: {}, spec: await sealed(site, name, secrets), nowMs: 1 }))
const fileKeys = (folder: string) => secretKeyIds(readFileSync(join(folder, 'secrets.json'), 'utf8')) ?? []

describe.each(STORES)('on $name', (kind) => {
  const open = () => openIn(kind)

  test('CG11 at its first start a version with data keys seals what an earlier build sealed; nothing else of it changes', async () => {
    const store = await open()
    const folder = tempDir()
    writeFileSync(join(folder, 'secrets.json'), JSON.stringify(EARLIER.keys), { mode: 0o600 })
    for (const [name, spec] of Object.entries<string>(EARLIER.configs))
      await store.applyResource(keyOf(name), { labels: {}, spec, nowMs: 1 })
    const site = await siteOn(store, folder)
    expect(await opened(store, site, 'bound')).toEqual({ password: 'hunter2', token: 'ümlaut' }) // before, as well
    await site.rotation.resume()
    await site.rotation.settled()
    expect(site.rotation.view()).toMatchObject({ state: 'finished', reason: 'upgrade', configs: 2, total: 2, secrets: 3, unopened: 0 })
    expect(await opened(store, site, 'bound')).toEqual({ password: 'hunter2', token: 'ümlaut' })
    expect(await opened(store, site, 'unbound')).toEqual({ password: 'from-form-1' })
    const bound = await store.getResource(keyOf('bound'))
    expect([bound?.generation, JSON.parse(bound?.spec ?? '')]).toMatchObject([
      1,
      { data: { color: 'blue' }, firstUse: { 'git.example.com': '' }, key: expect.stringMatching(/^file:/) },
    ])
    expect(await held(store, 'plain')).toBe(EARLIER.configs.plain)
    expect(fileKeys(folder)).toHaveLength(2) // an upgrade destroys no key
    const again = await siteOn(store, folder)
    await again.rotation.resume()
    expect(again.rotation.view()?.id).toBe(site.rotation.view()?.id ?? '') // there is nothing left to do
    await store.close()
  })

  test('CG7 a rotation that is cut off goes on at the next start, where it was, and then destroys the earlier master key', async () => {
    const store = await open()
    const folder = tempDir()
    const first = await siteOn(store, folder)
    for (let index = 0; index < 5; index++) await write(store, first, `c${index}`, { token: `t${index}` })
    const [before = '?'] = fileKeys(folder)
    let seals = 0
    const cut: Store = {
      ...store,
      async resealConfig(...change) {
        if (++seals === 3) first.stop.abort()
        return store.resealConfig(...change)
      },
    }
    const stopped = await siteOn(cut, folder, { stopping: first.stop.signal })
    const begun = await stopped.rotation.begin('ana')
    expect(begun).toMatchObject({ state: 'running', reason: 'rotation', by: 'ana' })
    await stopped.rotation.settled()
    expect(stopped.rotation.view()).toMatchObject({ state: 'running', configs: 3, total: 5 })
    expect(fileKeys(folder)).toHaveLength(2)
    const next = await siteOn(store, folder)
    expect(await opened(store, next, 'c4')).toEqual({ token: 't4' })
    await next.rotation.resume()
    await next.rotation.settled()
    expect(next.rotation.view()).toMatchObject({ id: begun.id, state: 'finished', unopened: 0, error: null })
    expect(fileKeys(folder)).toHaveLength(1)
    expect(fileKeys(folder)).not.toContain(before)
    for (let index = 0; index < 5; index++) expect(await opened(store, next, `c${index}`)).toEqual({ token: `t${index}` })
    await store.close()
  })

  test('CG7 a first secret that was sealed before a rotation and commits during it still opens after it', async () => {
    const store = await open()
    const folder = tempDir()
    const site = await siteOn(store, folder)
    const committing = Promise.withResolvers<void>()
    const isSealed = Promise.withResolvers<void>()
    const slow = site.keys.using(async () => {
      const spec = await sealed(site, 'slow', { token: 'hunter2' })
      isSealed.resolve()
      await committing.promise
      return store.applyResource(keyOf('slow'), { labels: {}, spec, nowMs: 1 })
    })
    await isSealed.promise
    await site.rotation.begin('ana')
    await Bun.sleep(200)
    expect(fileKeys(folder)).toHaveLength(2) // the earlier key is needed still
    committing.resolve()
    await slow
    await site.rotation.settled()
    expect(fileKeys(folder)).toHaveLength(1)
    expect(await opened(store, site, 'slow')).toEqual({ token: 'hunter2' })
    await store.close()
  })
})

/** A key service in memory, which can be away. */
function memoryService(): KeyWrap & { away: boolean } {
  const kept = new Map<string, { key: Uint8Array; place: string }>()
  const here = () => {
    if (service.away) throw new AppError('key_service_unavailable')
  }
  const service: KeyWrap & { away: boolean } = {
    away: false,
    kind: 'transit',
    name: 'memory',
    async wrap(key, place) {
      here()
      const name = `transit:${kept.size}`
      kept.set(name, { key, place })
      return name
    },
    async unwrap(wrapped, place) {
      here()
      const found = kept.get(wrapped)
      return found?.place === place ? found.key : null
    },
    async rotate() {
      here()
      return null
    },
    forgetEarlier: async () => {},
  }
  return service
}

test('CG12 a key service takes over at a start, and gives back when it only opens; opened keys outlast its absence', async () => {
  const store = await openIn(SQLITE)
  const folder = tempDir()
  const own = await siteOn(store, folder)
  await write(store, own, 'a', { token: 'hunter2' })
  const service = memoryService()
  const taken = await siteOn(store, folder, {}, { wrap: service, isMaster: true })
  await taken.rotation.resume()
  await taken.rotation.settled()
  expect(JSON.parse(await held(store, 'a')).key).toStartWith('transit:')
  expect(await opened(store, taken, 'a')).toEqual({ token: 'hunter2' })
  service.away = true
  expect(await opened(store, taken, 'a')).toEqual({ token: 'hunter2' })
  const restarted = await siteOn(store, folder, {}, { wrap: service, isMaster: true })
  await expect(opened(store, restarted, 'a')).rejects.toMatchObject({ code: 'key_service_unavailable' })
  service.away = false
  const back = await siteOn(store, folder, {}, { wrap: service, isMaster: false })
  await back.rotation.resume()
  await back.rotation.settled()
  expect(JSON.parse(await held(store, 'a')).key).toStartWith('file:')
  expect(await opened(store, await siteOn(store, folder), 'a')).toEqual({ token: 'hunter2' })
  expect(existsSync(join(folder, 'secrets.json'))).toBe(true)
  await store.close()
})
