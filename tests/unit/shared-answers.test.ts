// HT11: equal reads of callers with equal rights share one answer until something is written.
import { beforeEach, expect, test } from 'bun:test'
import { createSharedAnswers } from '../../server/http/shared-answers.ts'
import { createTestAdmin } from '../support/admin-app.ts'

let [version, nowMs, performed] = [0, 0, 0]
let answers = createSharedAnswers(() => version, { monotonicMs: () => nowMs })
beforeEach(() => {
  ;[version, nowMs, performed] = [0, 0, 0]
  answers = createSharedAnswers(() => version, { monotonicMs: () => nowMs })
})
const GRANT = {
  rule: { verbs: ['read'], kinds: ['Service'] },
  by: { role: 'a', binding: null },
  projects: null,
  services: null,
  clusters: null,
} as const
const grants = (projects: string[] | null, role = 'a') => [{ ...GRANT, by: { role, binding: null }, projects }] as never
async function get(path: string, of = grants(null), init: RequestInit = {}, status = 200): Promise<string> {
  const answer = await answers.run(
    new Request(`http://x/api/v1${path}`, init),
    path.replace(/\?.*/, ''),
    () => of,
    async () => {
      performed += 1
      const mine = performed
      await Promise.resolve()
      return new Response(`answer ${mine}`, { status, headers: { etag: `"${mine}"` } })
    },
  )
  return `${await answer.text()} ${answer.headers.get('etag')}`
}

test('HT11 reads at the same time, and soon after, are one', async () => {
  const all = await Promise.all([get('/services?limit=50'), get('/services?limit=50'), get('/services?limit=50', grants(null, 'b'))])
  expect([new Set(all).size, all[0]]).toEqual([1, 'answer 1 "1"'])
  nowMs = 499
  expect(await get('/services?limit=50')).toBe('answer 1 "1"')
  nowMs = 501
  expect(await get('/services?limit=50')).toBe('answer 2 "2"')
})

test('HT11 another address, other rights, a write in between, a failure and a condition are not shared', async () => {
  await get('/services?limit=50')
  await get('/services?limit=51')
  await get('/services?limit=50', grants(['web']))
  expect(performed).toBe(3)
  version += 1
  await get('/services?limit=50')
  expect(performed).toBe(4)
  await Promise.all([get('/clusters', grants(null), {}, 503), get('/clusters', grants(null), {}, 503)])
  await get('/services?limit=50', grants(null), { headers: { accept: 'text/event-stream' } })
  expect(performed).toBe(7)
  for (const own of ['/whoami', '/sessions', '/auth/can-i', '/audit', '/configs', '/projects/a/repositories/b/webhook', '/changes']) {
    performed = 0
    await get(own)
    await get(own)
    expect([own, performed]).toEqual([own, 2])
  }
})

test('HT11 a read after a write shows the write', async () => {
  const admin = await createTestAdmin()
  const metadata = (labels: Record<string, string>) => ({ name: 'apps', labels })
  for (const step of ['one', 'two', 'three']) {
    const spec = { git: { url: 'https://git.example/apps.git' } }
    await admin.call('PUT', '/api/v1/projects/default/repositories/apps', {
      apiVersion: 'skerry.dev/v1',
      kind: 'Repository',
      metadata: metadata({ step }),
      spec,
    })
    for (let n = 0; n < 2; n++)
      expect((await admin.call('GET', '/api/v1/repositories')).body).toMatchObject({ items: [{ metadata: metadata({ step }) }] })
  }
})
