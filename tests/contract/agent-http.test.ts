// The one place where sync meets real sockets before the end-to-end tests: what a fake fetch cannot know of
// compression, idle time-outs and cut streams.
import { afterEach, expect, test } from 'bun:test'
import type { Server } from 'bun'
import { IDLE_TIMEOUT_SECONDS } from '../../server/http/desired-routes.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { WEB } from '../support/sync-kit.ts'
import { SyncAgent, SyncServer } from '../support/sync-world.ts'
import { tempDir } from '../support/temp-dir.ts'
import type { VirtualClock } from '../support/virtual-clock.ts'

const realClock: VirtualClock = { ...systemClock, asked: [], advance: (ms) => Bun.sleep(ms), settle: () => Bun.sleep(1), jump: () => {} }

const stops: Array<() => Promise<void>> = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

async function until(condition: () => boolean | undefined, what: string): Promise<void> {
  const endMs = performance.now() + 8_000
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`waited in vain until ${what}`)
    await Bun.sleep(1)
  }
}

async function start() {
  const world = { dir: tempDir(), clock: realClock, random: seededRandom(3) }
  const server = new SyncServer(world)
  await server.open()
  await server.createJoinToken(1)
  const listen = (port: number): Server<undefined> =>
    Bun.serve({
      hostname: '127.0.0.1',
      port,
      idleTimeout: IDLE_TIMEOUT_SECONDS,
      fetch: async (request, bun) =>
        (await server.handle(request, (seconds) => bun.timeout(request, seconds))) ?? new Response('not ready', { status: 503 }),
    })
  let http = listen(0)
  const { port } = http
  const agent = new SyncAgent(world, server, 'site', (url, init) => fetch(url.replace('http://sim', `http://127.0.0.1:${port}`), init))
  stops.push(async () => {
    await agent.kill()
    await http.stop(true)
  })
  agent.start()
  await until(() => agent.loop?.status().state === 'following', 'the agent follows')
  const publish = async (value: string) => {
    if (agent.clusterId === null) throw new Error('it has joined')
    await server.publish(agent.clusterId, WEB, { a: value })
  }
  const holds = (text: string) =>
    agent.loop
      ?.replica()
      ?.dump()
      .some(([, doc]) => doc.includes(text))
  return {
    server,
    agent,
    publish,
    holds,
    stopHttp: () => http.stop(true),
    startHttp: () => {
      http = listen(port ?? 0)
    },
  }
}

test('PL2 PL10 a revision crosses real sockets while a poll waits, compressed, and its report comes back', async () => {
  const { server, agent, publish, holds } = await start()
  await publish('x'.repeat(20_000))
  await until(() => holds('xxxx'), 'the revision is there')
  expect(agent.loop?.status().traffic.receivedBytes).toBeLessThan(6_000)
  for (let n = 0; n < 20; n++) {
    await publish(`value ${n}.`)
    await until(() => holds(`value ${n}.`), `revision ${n} is there`)
  }
  await until(() => agent.loop?.status().outboxDepth === 0, 'everything is reported')
  const clusterId = agent.clusterId ?? ('' as never)
  expect(await server.store.listStatus({ clusterId, kind: 'service' })).toHaveLength(1)
  expect(agent.loop?.status().failure).toBeNull()
})

test('SY4 a server that goes in the middle of a poll and comes back is followed again', async () => {
  const { agent, publish, holds, stopHttp, startHttp } = await start()
  await Bun.sleep(50)
  await stopHttp()
  await until(() => agent.loop?.status().state === 'offline', 'the agent knows')
  await publish('while it was away')
  startHttp()
  await until(() => holds('while it was away'), 'it caught up')
  expect(agent.loop?.status()).toMatchObject({ state: 'following', failure: null })
}, 20_000)
