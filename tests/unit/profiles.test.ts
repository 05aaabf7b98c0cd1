// OB6: profiles of server and agent: for admins, bounded, one at a time, and without content.
import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serveLocalApi, socketPath } from '../../agent/local-api.ts'
import { createProfiler, withoutContent } from '../../shared/adapters/profiler.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { createTestAdmin } from '../support/admin-app.ts'

const undo: Array<() => unknown> = []
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step()
})

class HolderOfToken {
  secretValue: string
  constructor(secretValue: string) {
    this.secretValue = secretValue
  }
}

test('OB6 a heap snapshot has names of classes and properties, and no content', () => {
  const secrets = ['sk1', 'key1', 'dyn1'].map((name) => `${name}-${crypto.randomUUID()}`) as [string, string, string]
  const held = [new HolderOfToken(secrets[0]), new Map([[secrets[1], 1]]), { [secrets[2]]: true }]
  const raw = Bun.generateHeapSnapshot('v8')
  const text = withoutContent(raw)
  expect(held.length + secrets.filter((secret) => raw.includes(secret)).length).toBe(6)
  expect(secrets.filter((secret) => text.includes(secret))).toEqual([])
  expect(['HolderOfToken', 'secretValue'].filter((name) => text.includes(`"${name}"`))).toEqual(['HolderOfToken', 'secretValue'])
  const [before, after] = [raw, text].map((one) => JSON.parse(one) as { nodes: number[]; edges: number[]; strings: string[] })
  expect([after?.nodes.length, after?.edges.length]).toEqual([before?.nodes.length, before?.edges.length])
})

test('OB6 a profile of time names functions, and only one is taken at a time', async () => {
  const profiler = createProfiler(systemClock)
  const ended = new AbortController()
  const taken = profiler.cpu(5, ended.signal)
  await expect(profiler.heap()).rejects.toMatchObject({ code: 'too_many_requests' })
  const untilMs = performance.now() + 150
  while (performance.now() < untilMs) JSON.stringify(Array.from({ length: 1_000 }, (_, n) => n))
  ended.abort() // the caller went away: it ends at once
  expect(JSON.parse(await taken)).toMatchObject({ nodes: expect.any(Array), samples: expect.any(Array) })
  await expect(profiler.snapshot()).rejects.toMatchObject({ code: 'too_many_requests' })
})

test('OB6 the server gives profiles to admins only', async () => {
  const admin = await createTestAdmin()
  undo.push(() => admin.store.close())
  const { status, body } = await admin.call('GET', '/api/v1/profile/heap')
  expect([status, typeof (body as { heapBytes: unknown }).heapBytes]).toEqual([200, 'number'])
  expect((await admin.call('GET', '/api/v1/profile/heap')).status).toBe(429)
  expect((await admin.call('GET', '/api/v1/profile/cpu?seconds=61')).status).toBe(400)
  const plain = await admin.app.fetch(new Request('http://localhost/api/v1/profile/heap'))
  expect(plain.status).toBe(401)
})

test('OB6 the agent gives profiles on the socket in its data folder, and not on the address of its probes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'skerry-profiles-'))
  const local = serveLocalApi(folder, { report: () => ({}) as never, order: () => ({ kind: 'refused', message: '' }) })
  undo.push(
    () => rmSync(folder, { recursive: true }),
    () => local.stop(),
  )
  const ask = (path: string) => fetch(`http://agent/profile/${path}`, { unix: socketPath(folder) })
  expect((await ask('cpu?seconds=0')).status).toBe(400)
  const answer = await ask('cpu?seconds=1')
  expect([answer.status, Object.keys((await answer.json()) as object)]).toEqual([200, expect.arrayContaining(['nodes', 'samples'])])
  expect((await ask('heap')).status).toBe(429)
  expect((await ask('other')).status).toBe(404)
})
