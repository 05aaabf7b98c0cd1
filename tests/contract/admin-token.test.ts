// Break-glass: an admin token from the disk of a server that runs.
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { startServer } from '../../server/server.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { ROOT } from '../support/source-files.ts'
import { tempDir } from '../support/temp-dir.ts'

/** Another process, as a person starts it: one that waits for the store here would stop the server, too. */
const run = async (flags: Record<string, string>) => {
  const words = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value])
  const child = Bun.spawn([process.execPath, join(ROOT, 'server/main.ts'), 'admin-token', ...words], {
    ...{ env: { PATH: process.env['PATH'] ?? '' }, stdout: 'pipe', stderr: 'pipe' },
  })
  const [code, out, err] = await Promise.all([child.exited, new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { code, out, err }
}

test('SI14 a token from the disk works at once on the running server, expires, and is recorded with its reason', async () => {
  const data = tempDir()
  const server = await startServer(
    { dataDir: data, hostname: '127.0.0.1', port: 0 },
    { clock: systemClock, random: seededRandom(3), log: silentLogger },
  )
  const ask = async (path: string, token: string | null) => {
    const response = await fetch(`${server.url}/api/v1${path}`, { headers: { authorization: `Bearer ${token}` } })
    return { status: response.status, body: (await response.json()) as { items: Array<Record<string, unknown>> } }
  }
  try {
    const { code, out, err } = await run({ data, reason: 'the provider is down' })
    expect(code === 0 ? '' : err).toBe('')
    expect(out).toMatch(/^sk_[\w-]{43}[0-9a-f]{8}\n$/)
    expect(err).not.toContain(out.trim())
    const token = out.trim()
    const listed = await ask('/tokens', token)
    const made = listed.body.items.find(({ name }) => name === 'break-glass')
    expect(made).toMatchObject({ role: 'admin', state: 'valid' })
    expect(Number(made?.['expiresMs']) - systemClock.nowMs()).toBeWithin(59 * 60_000, 60 * 60_000)
    const { items } = (await ask('/events', token)).body
    expect(items.find(({ reason }) => reason === 'BreakGlassToken')).toMatchObject({
      type: 'Warning',
      message: expect.stringContaining('the provider is down'),
    })
  } finally {
    await server.stop()
  }
})

test('SI14 it needs a reason, a store, and at most a day', async () => {
  const data = tempDir()
  expect(await run({ data })).toMatchObject({ code: 2, err: expect.stringContaining('--reason') })
  expect(await run({ data, reason: 'x', expires: '2d' })).toMatchObject({ code: 2, err: expect.stringContaining('24h') })
  expect(await run({ data, reason: 'x' })).toMatchObject({ code: 2, err: expect.stringContaining('no fleet store') })
})
