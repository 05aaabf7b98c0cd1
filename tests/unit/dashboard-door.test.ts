// The door of the dashboard: its page and its files, how they may be kept, and what a browser may do with them.
import { afterAll, expect, test } from 'bun:test'
import { createTestAdmin } from '../support/admin-app.ts'

const admin = await createTestAdmin()
afterAll(() => admin.store.close())
const get = (path: string, headers: Record<string, string> = {}) => admin.app.fetch(new Request(`http://localhost${path}`, { headers }))
const fileIn = (html: string, ending: string) => new RegExp(`files/[^"]+\\.${ending}`).exec(html)?.[0] ?? ''

test('the root redirects to the dashboard by a relative address, so that a proxy may put both below a path', async () => {
  for (const path of ['/', '/dashboard']) {
    const answer = await get(path)
    expect([answer.status, answer.headers.get('location')]).toEqual([307, 'dashboard/'])
  }
})

test('every page has the same document, whose base is its own depth', async () => {
  for (const [path, base] of [
    ['/dashboard/', './'],
    ['/dashboard/clusters', './'],
    ['/dashboard/clusters/oslo-03', '../'],
    ['/dashboard/clusters/oslo-03/shop/web', '../../../'],
  ] as const) {
    const answer = await get(path)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(await answer.text()).toContain(`<base href="${base}">`)
  }
})

test('nothing inline and nothing from elsewhere is allowed, and nothing of it is there', async () => {
  const answer = await get('/dashboard/')
  const policy = answer.headers.get('content-security-policy') ?? ''
  expect(policy).toContain("script-src 'self';")
  expect(policy).not.toContain('unsafe')
  const html = await answer.text()
  expect(html).not.toMatch(/<script(?![^>]* src=)|<style|https?:/)
})

test('files have hashed names, are kept for ever, and come compressed as the browser takes them', async () => {
  const html = await (await get('/dashboard/')).text()
  const script = `/dashboard/${fileIn(html, 'js')}`
  const zstd = await get(script, { 'accept-encoding': 'gzip, deflate, br, zstd' })
  const gzip = await get(script, { 'accept-encoding': 'gzip' })
  const plain = await get(script)
  expect(zstd.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  expect([zstd, gzip, plain].map((answer) => answer.headers.get('content-encoding'))).toEqual(['zstd', 'gzip', null])
  const text = await plain.text()
  expect(Buffer.from(Bun.gunzipSync(await gzip.bytes())).toString()).toBe(text)
  expect(Bun.zstdDecompressSync(await zstd.bytes()).toString()).toBe(text)
})

test('a file or a page that the browser has is not sent again', async () => {
  const page = await get('/dashboard/')
  const file = await get(`/dashboard/${fileIn(await page.clone().text(), 'css')}`)
  for (const [path, answer] of [
    ['/dashboard/', page],
    [`/dashboard/${fileIn(await page.clone().text(), 'css')}`, file],
  ] as const) {
    const again = await get(path, { 'if-none-match': answer.headers.get('etag') ?? '' })
    expect([again.status, await again.text()]).toEqual([304, ''])
  }
})

test('the scripts of the first load are at most 80 kB gzip, and all together 250 kB', async () => {
  const { ASSETS, ENTRY } = await import('../../server/dashboard/assets.ts')
  const sizeOf = (names: Iterable<string>) => [...names].reduce((sum, name) => sum + (ASSETS.get(name)?.gzip.length ?? 0), 0)
  const first = new Set([ENTRY.begin, ENTRY.script])
  for (const name of first) {
    const code = Bun.gunzipSync(ASSETS.get(name)?.gzip ?? new Uint8Array())
    for (const [, other = ''] of Buffer.from(code)
      .toString()
      .matchAll(/(?:from|import)"\.\/([^"]+\.js)"/g))
      first.add(other)
  }
  expect(sizeOf(first)).toBeGreaterThan(5_000)
  expect(sizeOf(first)).toBeLessThan(80_000)
  expect(sizeOf([...ASSETS.keys()].filter((name) => name.endsWith('.js')))).toBeLessThan(250_000)
})

test('the page says whether it was asked for with the cookie of a session, and is another one then', async () => {
  const { dashboardAnswer } = await import('../../server/dashboard/dashboard.ts')
  const [without, with_] = await Promise.all(
    [false, true].map(async (hasCookie) => {
      const answer = await dashboardAnswer(new Request('http://localhost/dashboard/'), () => hasCookie)
      return { isSaid: (await answer?.text())?.includes('<html lang="en" data-cookie>'), etag: answer?.headers.get('etag') }
    }),
  )
  expect([without?.isSaid, with_?.isSaid]).toEqual([false, true])
  expect(without?.etag).not.toBe(with_?.etag)
})

test('the chart that a page reads has its rows by field', async () => {
  const answer = await admin.call('GET', '/api/v1/chart?columns=true')
  expect(answer.body).toMatchObject({ items: [], columns: { id: [], name: [], word: [], held: [] } })
})

test('the program that sends the first requests waits for no other file', async () => {
  const { ASSETS, ENTRY } = await import('../../server/dashboard/assets.ts')
  const code = Buffer.from(Bun.gunzipSync(ASSETS.get(ENTRY.begin)?.gzip ?? new Uint8Array())).toString()
  expect(code).toContain('api/v1/')
  expect(code).not.toMatch(/\bimport\b/)
  expect(code.length).toBeLessThan(2_000)
})

test('an unknown file and a POST are refused', async () => {
  expect((await get('/dashboard/files/main-old.js')).status).toBe(404)
  expect((await admin.app.fetch(new Request('http://localhost/dashboard/', { method: 'POST' }))).status).toBe(404)
})
