// A server's data folder with one large cluster in it, as a server leaves it, and requests to whatever server serves it
// then.
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { zstdDecompressSync } from 'node:zlib'
import { postgresIsWanted } from '../../scripts/local-cluster/postgres.ts'
import { publishRevisions } from '../../server/desired/publisher.ts'
import { createShards, SHARD_COUNT } from '../../server/desired/shard-files.ts'
import { startServer } from '../../server/server.ts'
import { createFileContentStore } from '../../server/store/content/file-content-store.ts'
import { parsePostgresUrl } from '../../server/store/engines/postgres-url.ts'
import { openPostgresStore, openSqliteStore } from '../../server/store/kysely-store.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { PAGE_BYTES_MAX, ROUTES } from '../../shared/protocol/routes.ts'
import { parseTransfer, TRANSFER_HEADER, type TransferHead } from '../../shared/protocol/transfer.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { systemRandom } from '../../shared/runtime/random.ts'
import { joinTestAgent, openTestSession, type TestAgent, type TestServer } from './agent-api-kit.ts'
import { type ParsedPage, parsePage } from './page-kit.ts'
import { testDatabase } from './postgres.ts'
import { newId, objectRows, serviceDoc, WEB } from './sync-kit.ts'
import { tempDir } from './temp-dir.ts'

/** Bytes as they travel; `body` only of problems and of answers that are one JSON document. */
export const askAt =
  (url: () => string): TestServer['ask'] =>
  async (method, path, { token, json, body, headers } = {}) => {
    const response = await fetch(url() + path, {
      method,
      headers: { 'content-type': 'application/json', ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
      ...(json === undefined ? (body === undefined ? {} : { body: body as Uint8Array<ArrayBuffer> }) : { body: JSON.stringify(json) }),
      decompress: false,
    })
    const bytes = Buffer.from(await response.arrayBuffer())
    const isJson = response.headers.get('content-type')?.includes('json') === true && bytes[0] === 0x7b && !bytes.includes(0x0a)
    return { status: response.status, headers: response.headers, bytes, body: isJson ? JSON.parse(bytes.toString()) : {} }
  }

export interface LargeCluster {
  dataDir: string
  /** Where its fleet store is, if it is not there. */
  storeUrl: string | null
  agent: TestAgent
  adminToken: string
}

/** One service of incompressible objects, 300 bytes each. */
export async function makeLargeCluster(objectCount: number): Promise<LargeCluster> {
  const dataDir = tempDir()
  const deps = { clock: systemClock, random: systemRandom, log: silentLogger }
  const storeUrl = postgresIsWanted() ? await testDatabase() : null
  const place = storeUrl === null ? null : { target: parsePostgresUrl(storeUrl), password: async () => null }
  const running = await startServer({ dataDir, store: place, hostname: '127.0.0.1', port: 0 }, deps)
  const ask = askAt(() => running.url)
  const adminToken = running.firstAdminToken ?? ''
  const { body } = await ask('POST', '/api/v1/join-tokens', { token: adminToken, json: { uses: 1 } })
  const agent = await joinTestAgent({ server: { joinToken: String(body['token']) }, ask } as unknown as TestServer)
  await running.stop()

  const store = place === null ? await openSqliteStore(join(dataDir, 'fleet.sqlite'), deps) : await openPostgresStore(place, deps)
  const content = createFileContentStore(join(dataDir, 'content'), systemClock)
  const files = { dir: join(dataDir, 'shards'), shardCount: SHARD_COUNT, newId, clock: systemClock, log: silentLogger }
  const { shards } = createShards({ ...files, sign: () => '', epochOf: () => 1 })
  const values = Array.from({ length: objectCount }, (_, n) => [`o${n}`, randomBytes(150).toString('base64')] as const)
  const objects = objectRows(WEB, Object.fromEntries(values))
  const doc = serviceRowSchema.parse(JSON.parse(serviceDoc(objects)))
  await publishRevisions({ store, content, shards }, [{ ...WEB, clusterId: agent.clusterId, placedBy: '{}', doc, objects }])
  shards.close()
  await store.close()
  return { dataDir, storeUrl, agent, adminToken }
}

export const sessionAt = async (ask: TestServer['ask'], { keys, joined }: TestAgent): Promise<string> =>
  (await openTestSession({ ask } as unknown as TestServer, keys, joined, joined.incarnation)).token

export interface FetchedPage {
  page: ParsedPage
  transfer: TransferHead | null
}

/** A page with all its parts. */
export async function fetchPage(
  ask: TestServer['ask'],
  token: string,
  [method, path]: readonly [string, string],
  body?: Uint8Array,
): Promise<FetchedPage> {
  const first = await ask(method, path, { token, headers: { 'accept-encoding': 'zstd' }, ...(body === undefined ? {} : { body }) })
  if (first.status !== 200) throw new Error(`${method} ${path}: ${first.status} ${first.bytes.toString()}`)
  const transfer = parseTransfer(first.headers.get(TRANSFER_HEADER) ?? '', PAGE_BYTES_MAX)
  const parts = [first.bytes]
  for (let n = 1; n < (transfer?.parts ?? 1); n++) parts.push((await askPart(ask, token, transfer, n)).bytes)
  return { page: parsePage(zstdDecompressSync(Buffer.concat(parts))), transfer }
}

export const askPart = (ask: TestServer['ask'], token: string, transfer: TransferHead | null, n: number) =>
  ask('GET', `${ROUTES.desired}?transfer=${transfer?.id}&part=${n}`, { token })
