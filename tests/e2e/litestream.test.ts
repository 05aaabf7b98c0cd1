// Litestream beside a running server, as docs/how-to/back-up-and-restore.md describes it: the fleet store of another
// machine, seconds old, beside copies of keys and content.
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { cpSync, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ChildProcess, freePort, startChild, waitUntil } from '../../scripts/local-cluster/child-process.ts'
import { WAL_LONG_BYTES } from '../../server/store/engines/wal-keeper.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { fillDataFolder } from '../support/data-folder-kit.ts'
import { ROOT } from '../support/source-files.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(120_000)
const LITESTREAM = join(ROOT, 'build/storage/litestream')
const SKERRY = join(ROOT, 'dist/skerry')
const dir = tempDir()
const port = freePort()
const env = { PATH: '/usr/bin', HOME: dir, SKERRY_SERVER: `http://127.0.0.1:${port}` }
const started: ChildProcess[] = []
afterAll(() => Promise.all(started.map((child) => child.kill())))

function run(command: string[], token = '', stdin = ''): string {
  const ran = Bun.spawnSync(command, { stdin: Buffer.from(stdin), env: { ...env, SKERRY_TOKEN: token } })
  if (!ran.success) throw new Error(`${command.join(' ')}: ${ran.stderr}${ran.stdout}`)
  return ran.stdout.toString()
}
function start(name: string, command: string[]): ChildProcess {
  const child = startChild(command, join(dir, `${name}.log`))
  started.push(child)
  return child
}
async function serve(data: string): Promise<ChildProcess> {
  const child = start('server', [SKERRY, 'server', '--data', data, '--listen', `127.0.0.1:${port}`, '--log-level', 'warn'])
  await waitUntil('the server serves', async () => (await fetch(`${env.SKERRY_SERVER}/readyz`)).ok, { child })
  return child
}
const config = (name: string, text: string) =>
  `apiVersion: skerry.dev/v1\nkind: Config\nmetadata: {name: ${name}}\nspec: {data: {text: ${text}}}\n---\n`

test('BK11 Litestream follows the fleet store through restarts of its log, and the server goes on from the replica', async () => {
  if (!existsSync(LITESTREAM)) throw new Error(`${LITESTREAM} is missing: run scripts/setup --storage`)
  const [data, replica, restored] = [join(dir, 'data'), join(dir, 'replica'), join(dir, 'restored')]
  mkdirSync(data, { mode: 0o700 })
  await fillDataFolder(data)
  const server = await serve(data)
  const token = run([SKERRY, 'admin-token', '--data', data, '--reason', 'test']).trim()
  const settings = join(dir, 'litestream.yml')
  writeFileSync(settings, `dbs:\n  - path: ${data}/fleet.sqlite\n    replica: {type: file, path: ${replica}}\n`)
  const litestream = start('litestream', [LITESTREAM, 'replicate', '-config', settings])

  // Longer than the log may become before the server restarts it.
  for (let n = 0; n < 30; n++) {
    const many = Array.from({ length: 12 }, (_, at) => config(`c-${at}`, `t${n}`.repeat(90_000)))
    run([SKERRY, 'apply', '-f', '-'], token, many.join(''))
  }
  run([SKERRY, 'apply', '-f', '-'], token, config('last', 'seen'))
  let copies = 0
  const copied = () => {
    const path = join(dir, `copy-${copies++}.sqlite`)
    run([LITESTREAM, 'restore', '-config', settings, '-o', path, `${data}/fleet.sqlite`])
    const db = openSqlite(path, { readonly: true })
    try {
      return { path, hasLast: db.query("select 1 from resources where name = 'last'").get() !== null }
    } finally {
      db.close()
    }
  }
  await waitUntil('the replica has the last change', async () => copied().hasLast, { child: litestream })
  expect(statSync(`${data}/fleet.sqlite-wal`).size).toBeLessThan(2 * WAL_LONG_BYTES)
  await server.kill()
  await litestream.kill()

  mkdirSync(restored, { mode: 0o700 })
  cpSync(copied().path, join(restored, 'fleet.sqlite'))
  for (const folder of ['keys', 'content']) cpSync(join(data, folder), join(restored, folder), { recursive: true })
  expect(JSON.parse(Bun.spawnSync([SKERRY, 'doctor', '--data', restored, '-o', 'json'], { env }).stdout.toString())).toMatchObject({
    facts: { clusters: 3 },
  })
  await serve(restored)
  expect(run([SKERRY, 'get', 'config', 'last', '-o', 'jsonpath={.spec.data.text}'], token)).toContain('seen')
})
