// The binary reads large pages in a Worker, which is a part of it that only a compiled server can miss: a cluster of
// 5,000 objects is fetched in parts and by sums.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { SUM_BYTES } from '../../shared/protocol/refetch.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { askAt, fetchPage, makeLargeCluster, sessionAt } from '../support/large-cluster.ts'

const OBJECTS = 5_000

let server: ReturnType<typeof Bun.spawn>
let url: string
let token: string
const ask = askAt(() => url)

beforeAll(async () => {
  const { dataDir, storeUrl, agent } = await makeLargeCluster(OBJECTS)
  const probe = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() })
  const { port } = probe
  await probe.stop(true)
  url = `http://127.0.0.1:${port}`
  const flags = ['--data', dataDir, '--listen', `127.0.0.1:${port}`]
  server = Bun.spawn([join(import.meta.dir, '../../dist/skerry'), 'server', ...flags], {
    stdout: 'ignore',
    stderr: 'ignore',
    env: { ...process.env, ...(storeUrl === null ? {} : { SKERRY_STORE: storeUrl }) },
  })
  const isReady = () =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )
  for (let n = 0; n < 200 && !(await isReady()); n++) await Bun.sleep(50)
  token = await sessionAt(ask, agent)
}, 60_000)
afterAll(async () => {
  server?.kill('SIGKILL')
  await server?.exited
})

test('PL3 PL13 a compiled server reads a large page in its Worker and hands it out in parts', async () => {
  const { page, transfer } = await fetchPage(ask, token, ['GET', ROUTES.desired])
  expect([page.rows.length, page.checkpoint.count, (transfer?.parts ?? 1) > 1]).toEqual([OBJECTS + 1, OBJECTS + 1, true])
})

test('PL9 PL13 a compiled server compares buckets in its Worker', async () => {
  const sums = Buffer.concat([Buffer.from('{}\n'), Buffer.alloc(256 * SUM_BYTES)])
  const { page } = await fetchPage(ask, token, ['POST', ROUTES.buckets], sums)
  expect([page.rows.length, page.hello.keep]).toEqual([OBJECTS + 1, '0'.repeat(256)])
})
