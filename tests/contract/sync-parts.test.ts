// Large pages over bad links: a real server, an agent's real sync loop, replica and files, and a TCP proxy that cuts
// between them.
import { afterEach, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadAgentKeys } from '../../agent/link/agent-keys.ts'
import type { Fetcher } from '../../agent/link/server-client.ts'
import { createServerLink } from '../../agent/link/server-link.ts'
import { type CheckedReplica, createCrdtReplica } from '../../agent/replica/crdt-replica.ts'
import { openAgentState } from '../../agent/state/sqlite-agent-state.ts'
import { createPartStage, partLength, transferLie } from '../../agent/sync/part-stage.ts'
import { SyncLoop } from '../../agent/sync/sync-loop.ts'
import { PART_BYTES_MAX } from '../../shared/protocol/routes.ts'
import { TRANSFER_HEADER, TRANSFER_MS } from '../../shared/protocol/transfer.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { type ClusterId, clusterIdSchema } from '../../shared/runtime/ids.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { WEB } from '../support/sync-kit.ts'
import { SyncServer } from '../support/sync-world.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { tempDir } from '../support/temp-dir.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const ends: Array<() => unknown> = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** Retries come soon. */
const hasty = () => 0.001

async function startSite(rows: number) {
  const dir = tempDir()
  const server = new SyncServer({ dir, clock: { ...createVirtualClock(), ...systemClock }, random: Math.random })
  await server.open()
  await server.createJoinToken(1)
  const asked: string[] = []
  const listener = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    fetch: async (request) => {
      const { pathname, search } = new URL(request.url)
      asked.push(pathname + search)
      return (await server.handle(request)) ?? new Response(null, { status: 503 })
    },
  })
  ends.push(async () => {
    await listener.stop(true)
    await server.kill()
  })
  const proxy = startTcpProxy(listener.port ?? 0)
  ends.push(() => proxy.stop())
  const link = createServerLink({ serverUrl: proxy.url, caFile: null, env: {}, log: silentLogger })
  let tamper: ((response: Response, url: URL) => Response | Promise<Response>) | null = null
  const fetcher: Fetcher = async (url, init) => {
    const response = await link(url, init)
    return tamper === null ? response : tamper(response, new URL(url))
  }
  const agentDir = join(dir, 'agent')
  const keys = loadAgentKeys(agentDir)
  const start = () => {
    const state = openAgentState(join(agentDir, 'agent.sqlite'))
    const replicas: CheckedReplica[] = []
    const loop = new SyncLoop({
      serverUrl: proxy.url,
      fetcher,
      keys,
      join: { joinToken: server.joinToken, clusterName: 'site', clusterUid: 'uid', agentVersion: 'test' },
      state,
      openReplica: ({ clusterId, serverKeys }) => {
        const replica = createCrdtReplica({
          path: join(agentDir, 'replica.sqlite'),
          clusterId,
          serverKeys: () => serverKeys,
          log: silentLogger,
        })
        replicas.push(replica)
        return replica
      },
      onChange: () => {},
      clock: systemClock,
      random: hasty,
      randomBytes,
      log: silentLogger,
      parts: createPartStage(agentDir),
    })
    const stop = new AbortController()
    const done = loop.run(stop.signal)
    let running = true
    const kill = async () => {
      if (!running) return
      running = false
      stop.abort()
      await done
      for (const replica of replicas) replica.close()
      state.close()
    }
    ends.push(kill)
    const until = async (what: () => boolean, seconds = 25) => {
      for (const endMs = Date.now() + seconds * 1000; !what(); await Bun.sleep(5))
        if (Date.now() > endMs) throw new Error(JSON.stringify(loop.status()))
    }
    return { loop, state, kill, until }
  }
  const first = start()
  await first.until(() => first.loop.status().state === 'following')
  const clusterId: ClusterId = clusterIdSchema.parse(first.state.identity()?.clusterId)
  await first.kill()
  const objects = Object.fromEntries(Array.from({ length: rows }, (_, n) => [`object-${n}`, randomBytes(60).toString('base64')]))
  await server.publish(clusterId, WEB, objects)
  asked.length = 0
  const complete = (loop: SyncLoop) => loop.replica()?.read(WEB).kind === 'complete'
  return {
    agentDir,
    server,
    proxy,
    asked,
    start,
    clusterId,
    complete,
    setTamper: (by: typeof tamper) => {
      tamper = by
    },
  }
}

test.each([
  ['a bootstrap of 20,000 rows', 20_000, true],
  ['a delta of 20,000 rows', 20_000, false],
  ['a page that would travel in one', 2_500, false],
] as const)(
  'SY9 a link that cuts after every 100 kB brings over %s',
  async (_, rows, bare) => {
    const { proxy, start, complete, asked, agentDir } = await startSite(rows)
    if (bare) for (const suffix of ['', '-wal', '-shm', '.epoch']) rmSync(join(agentDir, `replica.sqlite${suffix}`), { force: true })
    proxy.setRules({ cutAfterBytes: { down: 100_000 } })
    const { loop, until } = start()
    await until(() => complete(loop))
    expect(loop.replica()?.rowCount()).toBe(rows + 1)
    expect(proxy.counts().cuts).toBeGreaterThan(1)
    expect(existsSync(join(agentDir, 'parts'))).toBe(false)
    expect(asked.some((path) => path.includes('slice='))).toBe(true)
  },
  30_000,
)

test('SY9 parts survive a restart of the agent, and none is fetched twice', async () => {
  const { start, complete, setTamper, agentDir } = await startSite(20_000)
  setTamper(async (response, url) => {
    if (Number(url.searchParams.get('part') ?? 0) > 3) throw new Error('cut')
    return response
  })
  const first = start()
  await first.until(() => first.loop.status().parts?.have === 4 && first.loop.status().state === 'offline')
  await first.kill()
  expect(existsSync(join(agentDir, 'parts', 'body'))).toBe(true)
  // Counted where answers arrive: a request that the first agent had on its way when it ended may still come to the
  // server.
  const parts: number[] = []
  setTamper((response, url) => {
    if (url.searchParams.has('part')) parts.push(Number(url.searchParams.get('part')))
    return response
  })
  const second = start()
  expect(second.loop.status()).toMatchObject({ state: 'fetching_parts', parts: { have: 4 } })
  await second.until(() => complete(second.loop))
  expect(parts).toEqual(Array.from({ length: parts.length }, (_, n) => n + 4))
}, 30_000)

test('SY9 RV3 a page that the server no longer keeps is asked for again from the cursor', async () => {
  const { start, asked, complete, setTamper, server, clusterId } = await startSite(20_000)
  setTamper((response, url) => {
    if (url.searchParams.get('part') === '3') server.shards.endTransfers(clusterId)
    return response
  })
  const { loop, until } = start()
  await until(() => asked.filter((path) => path.includes('cursor=')).length >= 2)
  setTamper(null)
  await until(() => complete(loop))
  expect(asked.filter((path) => path.includes('part=4')).length).toBeGreaterThanOrEqual(2)
}, 30_000)

test('PU5 a link that cuts after every 20 kB upwards brings up what waits in the outbox', async () => {
  const { proxy, start, clusterId, server } = await startSite(1)
  proxy.setRules({ cutAfterBytes: { up: 20_000 } })
  const { state, until } = start()
  const doc = { sync: 'Synced', health: 'Healthy', reason: 'r', sinceMs: 1, objectCount: 0, healthyCount: 0 }
  const rows = Array.from({ length: 2_000 }, (_, n) => ({
    kind: 'service' as const,
    key: `shop/s${n}`,
    doc: { ...doc, message: randomBytes(60).toString('base64') },
  }))
  state.report(rows)
  await until(() => state.outboxDepth() === 0)
  expect(await server.store.listStatus({ clusterId, kind: 'service' })).toHaveLength(2_000)
  expect(proxy.counts().cuts).toBeGreaterThan(3)
}, 30_000)

const head = (change: (text: string) => string) => async (response: Response) => {
  const text = response.headers.get(TRANSFER_HEADER)
  if (text === null) return response
  const headers = new Headers(response.headers)
  headers.set(TRANSFER_HEADER, change(text))
  return new Response(await response.arrayBuffer(), { status: response.status, headers })
}
const body = (change: (bytes: Buffer) => Buffer) => async (response: Response, url: URL) => {
  if (url.searchParams.get('part') !== '2') return response
  return new Response(new Uint8Array(change(Buffer.from(await response.arrayBuffer()))), { status: response.status })
}

test.each([
  ['fewer parts than its bytes need', head((text) => text.replace(/\.(\d+)\./, (_, n) => `.${Number(n) - 1}.`))],
  ['more parts than its bytes need', head((text) => text.replace(/\.(\d+)\./, '.99999.'))],
  ['more bytes than there are', head((text) => text.replace(/\d+$/, (n) => String(Number(n) + 1)))],
  ['more bytes than a page may have', head((text) => text.replace(/\d+$/, '999999999999'))],
  ['no form', head(() => 'parts')],
  ['a part that is too short', body((bytes) => bytes.subarray(1))],
  ['a part that is too long', body((bytes) => Buffer.concat([bytes, bytes.subarray(0, 1)]))],
  ['an empty part', body(() => Buffer.alloc(0))],
  ['a flipped bit in a part', body((bytes) => Buffer.from(bytes.map((byte, n) => (n === 77 ? byte ^ 1 : byte))))],
  ['a part of another page', body((bytes) => randomBytes(bytes.length))],
] as const)(
  'SY9 PL5 a server that lies about a page in parts is refused, and what is in force stays: %s',
  async (_, lie) => {
    const { start, complete, setTamper, server, clusterId } = await startSite(8_000)
    setTamper(lie)
    const { loop, until } = start()
    await until(() => loop.status().failure?.code === 'bad_page')
    expect(loop.replica()?.rowCount()).toBe(0)
    expect(loop.replica()?.verified()).toBe(true)
    setTamper(null)
    await until(() => complete(loop))
    expect(loop.replica()?.position()).toEqual(server.shards.head(clusterId))
  },
  30_000,
)

test.each([
  ['as many as there are', { parts: 3, bytes: 25 }, 10, true],
  ['an exact fit', { parts: 3, bytes: 30 }, 10, true],
  ['one too few', { parts: 2, bytes: 25 }, 10, false],
  ['one too many', { parts: 4, bytes: 30 }, 10, false],
  ['nothing in the first', { parts: 2, bytes: 25 }, 0, false],
  ['the largest part', { parts: 2, bytes: 2 * PART_BYTES_MAX }, PART_BYTES_MAX, true],
  ['a larger one', { parts: 2, bytes: 2 * PART_BYTES_MAX + 2 }, PART_BYTES_MAX + 1, false],
] as const)('SY9 parts and bytes must fit: %s', (_, transfer, partBytes, good) => {
  expect(transferLie({ id: '', ...transfer }, partBytes) === null).toBe(good)
})

test('SY9 what is staged is forgotten after the time that a server keeps it, and when the clock went back', async () => {
  const page = {
    transfer: { id: 'x'.repeat(22), parts: 3, bytes: 25 },
    of: { kind: 'follow', proven: true, restarted: false },
    cursor: null,
    clusterId: 'c',
    movedMs: 1_000_000,
  } as const
  const dir = tempDir()
  const stage = createPartStage(dir)
  stage.begin(page, Buffer.from('0123456789'))
  stage.add(Buffer.from('abcdefghij'), 2_000_000)
  expect([partLength({ ...page, partBytes: 10 }, 1), partLength({ ...page, partBytes: 10 }, 2)]).toEqual([10, 5])
  const again = createPartStage(dir)
  expect(again.current(2_000_000 + TRANSFER_MS)?.have).toBe(2)
  appendFileSync(join(dir, 'parts', 'body'), 'AB') // a write that a crash cut off
  const third = createPartStage(dir)
  expect(third.current(2_000_001)?.have).toBe(2)
  third.add(Buffer.from('ABCDE'), 3_000_000)
  expect(Buffer.from(third.assembled()).toString()).toBe('0123456789abcdefghijABCDE')
  expect(third.current(3_000_000 + TRANSFER_MS + 1)).toBeNull()
  third.begin(page, Buffer.from('0123456789'))
  expect(createPartStage(dir).current(999_999)?.have).toBe(1) // a clock that is corrected throws nothing away
  expect(createPartStage(dir).current(1_000_000 - TRANSFER_MS - 1)).toBeNull()
  expect(existsSync(join(dir, 'parts'))).toBe(false)
})

test.each([
  ['no head', null],
  ['a head of nothing', ''],
  ['a head that is another thing', '{"transfer":{}}'],
])('SY9 parts with %s, left by a kill between two writes, take no space after the next start', (_, head) => {
  const dir = tempDir()
  const parts = join(dir, 'parts')
  mkdirSync(parts)
  writeFileSync(join(parts, 'body'), randomBytes(1_000))
  if (head !== null) writeFileSync(join(parts, 'head.json'), head)
  expect(createPartStage(dir).current(1)).toBeNull()
  expect(existsSync(parts)).toBe(false)
})
