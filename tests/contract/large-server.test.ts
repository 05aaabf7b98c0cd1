// A whole server with a large cluster, over real sockets: what must end a transfer that is under way, and what must not
// wait for a large read.
import { afterEach, expect, test } from 'bun:test'
import { type RunningServer, startServer } from '../../server/server.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { askAt, askPart, fetchPage, makeLargeCluster, sessionAt } from '../support/large-cluster.ts'

let server: RunningServer
afterEach(() => server?.stop())

async function start(objects: number) {
  const large = await makeLargeCluster(objects)
  const deps = { clock: systemClock, random: seededRandom(3), log: silentLogger }
  server = await startServer({ dataDir: large.dataDir, hostname: '127.0.0.1', port: 0 }, deps)
  const ask = askAt(() => server.url)
  return { ...large, ask, token: await sessionAt(ask, large.agent) }
}

test('RV3 an agent that was revoked and is let in again goes on with no old part', async () => {
  const { ask, token, adminToken } = await start(2_000)
  const { transfer } = await fetchPage(ask, token, ['GET', ROUTES.desired])
  expect((await askPart(ask, token, transfer, 1)).status).toBe(200)
  const revoke = (revoked: boolean) => {
    const json = { apiVersion: 'skerry.dev/v1', kind: 'Cluster', metadata: { name: 'site' }, spec: { revoked } }
    return ask('PUT', '/api/v1/clusters/site', { token: adminToken, json })
  }
  const partIs = async (code: string) => {
    for (let n = 0; n < 200 && (await askPart(ask, token, transfer, 1)).body['code'] !== code; n++) await Bun.sleep(5)
    expect((await askPart(ask, token, transfer, 1)).body['code']).toBe(code)
  }
  await revoke(true)
  await partIs('revoked')
  await revoke(false)
  await partIs('transfer_gone')
})

test('PL13 others are answered while a large page is read', async () => {
  const { ask, token } = await start(20_000)
  let done = false
  const begun = performance.now()
  const large = ask('GET', ROUTES.desired, { token, headers: { 'accept-encoding': 'zstd' } }).finally(() => {
    done = true
  })
  let longestMs = 0
  while (!done) {
    const asked = performance.now()
    await fetch(`${server.url}/healthz`)
    longestMs = Math.max(longestMs, performance.now() - asked)
  }
  const readMs = performance.now() - begun
  expect((await large).status).toBe(200)
  // On the main thread it would be nearly all of the time.
  expect(longestMs / readMs).toBeLessThan(0.5)
}, 60_000)
