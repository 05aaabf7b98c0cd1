// `skerry dev --demo-data` as a person starts it: a link that signs in once, a fleet that joins by itself, and nothing
// left behind.
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { freePort } from '../../scripts/local-cluster/child-process.ts'

setDefaultTimeout(60_000)
const CLUSTERS = 20
const root = join(import.meta.dir, '../..')
const url = `http://127.0.0.1:${freePort()}`
const child = Bun.spawn(
  [process.execPath, join(root, 'server/main.ts'), 'dev', '--demo-data', '--clusters', String(CLUSTERS), '--listen', url.slice(7)],
  { stdout: 'pipe', stderr: 'inherit', env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '' } },
)
type Dev = Bun.Subprocess<'ignore', 'pipe', 'inherit'>
let output = ''
const read = (async () => {
  for await (const piece of child.stdout.pipeThrough(new TextDecoderStream())) output += piece
})()
afterAll(() => child.kill('SIGKILL'))

async function printed(pattern: RegExp): Promise<string> {
  for (let tries = 0; tries < 400; tries++) {
    const found = pattern.exec(output)?.[1]
    if (found !== undefined) return found
    if (child.exitCode !== null) break
    await Bun.sleep(100)
  }
  throw new Error(`not printed: ${pattern}\n${output}`)
}

const redeem = (code: string): Promise<Response> =>
  fetch(`${url}/auth/link`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ code }) })

test('SI30 the printed link signs in once, over a fleet that joins by itself', async () => {
  const code = await printed(/#sign-in=([\w-]+)/)
  const answer = await redeem(code)
  expect(answer.status).toBe(200)
  const { token } = (await answer.json()) as { token: string }
  expect((await redeem(code)).status).toBe(403)
  const joined = Number(await printed(/(\d+) simulated clusters joined/))
  expect(joined).toBeGreaterThanOrEqual(CLUSTERS)
  const get = async (path: string) =>
    (await (await fetch(`${url}/api/v1${path}`, { headers: { authorization: `Bearer ${token}` } })).json()) as { items: unknown[] }
  expect((await get('/chart')).items.length).toBe(joined)
  for (let tries = 0; tries < 200 && (await get('/placements?health=Healthy&limit=20')).items.length < 20; tries++) await Bun.sleep(100)
  expect((await get('/placements?health=Healthy&limit=20')).items.length).toBe(20)
})

test('it removes its data when it is told to stop', async () => {
  const folder = dirname(await printed(/SKERRY_TOKEN=\$\(cat (\S+)\/admin-token\)/))
  expect(existsSync(folder)).toBe(true)
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
  await read
  expect(existsSync(folder)).toBe(false)
})

test.each([
  ['the reader of its output goes away', ['--demo-data', '--clusters', '10'], (of: Dev) => of.stdout.cancel()],
  ['its terminal is closed', [], (of: Dev) => of.kill('SIGHUP')],
])('it stops its server and removes its data when %s', async (_, flags, leave) => {
  const address = `127.0.0.1:${freePort()}`
  const dev = Bun.spawn([process.execPath, join(root, 'server/main.ts'), 'dev', ...flags, '--listen', address], {
    ...{ stdout: 'pipe', stderr: 'inherit', env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '' } },
  })
  const reader = dev.stdout.getReader()
  let said = ''
  while (!said.includes('Ctrl-C')) said += new TextDecoder().decode((await reader.read()).value)
  reader.releaseLock()
  const folder = dirname(/cat (\S+)\/admin-token/.exec(said)?.[1] ?? '')
  expect(existsSync(folder)).toBe(true)
  await leave(dev)
  expect(await dev.exited).toBe(0)
  expect(existsSync(folder)).toBe(false)
  expect(await fetch(`http://${address}/healthz`).catch(() => null)).toBeNull()
})
