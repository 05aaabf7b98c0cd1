// The binary reads large pages in a Worker, which is a part of it that only a compiled server can miss: a cluster of 5,000 objects is fetched by parts, by
// sums, and as a delta.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { zstdDecompressSync } from 'node:zlib'
import { publishRevisions } from '../../server/desired/publisher.ts'
import { createShards, SHARD_COUNT } from '../../server/desired/shard-files.ts'
import { startServer } from '../../server/server.ts'
import { createFileContentStore } from '../../server/store/file-content-store.ts'
import { openSqliteStore } from '../../server/store/kysely-store.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { SUM_BYTES } from '../../shared/protocol/refetch.ts'
import { PAGE_BYTES_MAX, ROUTES } from '../../shared/protocol/routes.ts'
import { parseTransfer, TRANSFER_HEADER } from '../../shared/protocol/transfer.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { systemRandom } from '../../shared/runtime/random.ts'
import { joinTestAgent, openTestSession, type TestAgent, type TestServer } from '../support/agent-api-kit.ts'
import { type ParsedPage, parsePage } from '../support/page-kit.ts'
import { newId, objectRows, serviceDoc, WEB } from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

const OBJECTS = 5_000
const BINARY = join(import.meta.dir, '../../dist/skerry')

let server: ReturnType<typeof Bun.spawn>
let url: string
let agent: TestAgent

const askAt: (at: () => string) => TestServer['ask'] =
  (at) =>
  async (method, path, { token, json, body, headers } = {}) => {
    const response = await fetch(at() + path, {
      method,
      headers: { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
      body: json === undefined ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(json),
      decompress: false,
    })
    const bytes = Buffer.from(await response.arrayBuffer())
    const isJson = response.headers.get('content-type')?.includes('json') && bytes[0] === 0x7b && !bytes.includes(0x0a)
    return { status: response.status, headers: response.headers, bytes, body: isJson ? JSON.parse(bytes.toString()) : {} }
  }
const ask = askAt(() => url)

/** A folder as a server that is not compiled leaves it, with a large cluster. */
async function prepare(dataDir: string): Promise<void> {
  const deps = { clock: systemClock, random: systemRandom, log: silentLogger }
  const running = await startServer({ dataDir, hostname: '127.0.0.1', port: 0 }, deps)
  url = running.url
  const { body } = await ask('POST', '/api/v1/join-tokens', {
    token: running.firstAdminToken ?? '',
    json: { uses: 1 },
    headers: { 'content-type': 'application/json' },
  })
  agent = await joinTestAgent({ server: { joinToken: String(body['token']) }, ask } as unknown as TestServer)
  await running.stop()
  const store = await openSqliteStore(join(dataDir, 'fleet.sqlite'), { random: systemRandom })
  const content = createFileContentStore(join(dataDir, 'content'))
  const { shards } = createShards({
    dir: join(dataDir, 'shards'),
    shardCount: SHARD_COUNT,
    sign: () => '',
    epochOf: () => 1,
    newId,
    clock: systemClock,
    log: silentLogger,
  })
  const objects = objectRows(
    WEB,
    Object.fromEntries(Array.from({ length: OBJECTS }, (_, n) => [`o${n}`, randomBytes(150).toString('base64')])),
  )
  const doc = serviceRowSchema.parse(JSON.parse(serviceDoc(objects)))
  await publishRevisions({ store, content, shards }, [{ ...WEB, clusterId: agent.clusterId, placedBy: '{}', doc, objects }])
  shards.close()
  await store.close()
}

beforeAll(async () => {
  const dataDir = tempDir()
  await prepare(dataDir)
  const probe = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() })
  const { port } = probe
  await probe.stop(true)
  url = `http://127.0.0.1:${port}`
  server = Bun.spawn([BINARY, 'server', '--data', dataDir, '--listen', `127.0.0.1:${port}`], { stdout: 'ignore', stderr: 'ignore' })
  for (
    let n = 0;
    n < 200 &&
    !(await fetch(`${url}/readyz`).then(
      (r) => r.ok,
      () => false,
    ));
    n++
  )
    await Bun.sleep(50)
  agent.session = await openTestSession({ ask } as unknown as TestServer, agent.keys, agent.joined, 1)
}, 60_000)
afterAll(async () => {
  server?.kill('SIGKILL')
  await server?.exited
})

async function fetchPage(method: string, path: string, body?: Uint8Array): Promise<{ page: ParsedPage; parts: number }> {
  const token = agent.session.token
  const first = await ask(method, path, { token, headers: { 'accept-encoding': 'zstd' }, ...(body === undefined ? {} : { body }) })
  expect(first.status).toBe(200)
  const transfer = parseTransfer(first.headers.get(TRANSFER_HEADER) ?? '', PAGE_BYTES_MAX)
  const bytes = [first.bytes]
  for (let part = 1; part < (transfer?.parts ?? 1); part++)
    bytes.push((await ask('GET', `${ROUTES.desired}?transfer=${transfer?.id}&part=${part}`, { token })).bytes)
  return { page: parsePage(zstdDecompressSync(Buffer.concat(bytes))), parts: bytes.length }
}

test('PL3 PL13 a compiled server reads a large page in its Worker and hands it out in parts', async () => {
  const { page, parts } = await fetchPage('GET', ROUTES.desired)
  expect([page.rows.length, page.checkpoint.count, parts > 1]).toEqual([OBJECTS + 1, OBJECTS + 1, true])
})

test('PL9 PL13 a compiled server compares buckets in its Worker', async () => {
  const sums = Buffer.concat([Buffer.from('{}\n'), Buffer.alloc(256 * SUM_BYTES)])
  const { page } = await fetchPage('POST', ROUTES.buckets, sums)
  expect([page.rows.length, page.hello.keep]).toEqual([OBJECTS + 1, '0'.repeat(256)])
})
