// The option that allows inner addresses, on a server as it is started.
import { afterEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type RunningServer, startServer } from '../../server/server.ts'
import type { ServerOptions } from '../../server/server-options.ts'
import { repositoryViewSchema } from '../../shared/model/views.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { createHelmRepository } from '../support/helm-charts.ts'
import { naming } from '../support/naming.ts'
import { ROOT } from '../support/source-files.ts'
import { tempDir } from '../support/temp-dir.ts'

let server: RunningServer | null = null
const stop = async () => {
  await server?.stop()
  server = null
}
afterEach(stop)

async function errorOf(url: string, options: Partial<ServerOptions>): Promise<string | null> {
  const deps = { clock: systemClock, random: seededRandom(1), log: silentLogger }
  const running = await startServer({ dataDir: tempDir(), hostname: '127.0.0.1', port: 0, ...options }, deps)
  server = running
  const ask = async (method: string, path: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${running.firstAdminToken}`, 'content-type': 'application/json' }
    const answer = await fetch(running.url + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
    return (await answer.json()) as Record<string, unknown>
  }
  const repository = { apiVersion: 'skerry.dev/v1', kind: 'Repository', metadata: { name: 'charts' }, spec: { helm: { url } } }
  await ask('POST', '/api/v1/apply', { resources: [repository] })
  for (const deadline = performance.now() + 10_000; performance.now() < deadline; await Bun.sleep(20)) {
    const { status } = repositoryViewSchema.parse(await ask('GET', '/api/v1/projects/default/repositories/charts'))
    if (status.problems.length + status.message.length > 0 && !status.ready && status.sinceMs !== null)
      return `${status.reason} ${status.message}`
    if (status.commit !== null) return null
  }
  throw new Error('the repository was not looked at')
}

test('SO1 SO2 a server speaks to no inner address unless it is allowed to', async () => {
  const charts = createHelmRepository()
  try {
    charts.add({ name: 'shop', version: '1.0.0' })
    const refused = await errorOf(charts.url, {})
    expect(refused).toStartWith('SourceAddressRefused ')
    expect(refused).toContain('127.0.0.1: a loopback address (127.0.0.0/8)')
    expect(charts.requests).toEqual([])
    await stop()
    expect(await errorOf(charts.url, { sourceAddresses: '127.0.0.1' })).toBeNull()
  } finally {
    await charts.stop()
  }
})

test('SO2 what is no range is named, and the server does not start', () => {
  const args = [
    join(ROOT, 'server', 'main.ts'),
    'server',
    '--data',
    tempDir(),
    '--listen',
    '127.0.0.1:0',
    '--source-addresses',
    '10.0.0.0/8,10.0.0.1/8,inner',
  ]
  const run = Bun.spawnSync([process.execPath, ...args], { stdout: 'pipe', stderr: 'pipe', timeout: 20_000 })
  expect(run.exitCode).toBe(2)
  expect(run.stderr.toString()).toEqual(naming('--source-addresses (SKERRY_SOURCE_ADDRESSES)', 'not 10.0.0.1/8, inner'))
})
