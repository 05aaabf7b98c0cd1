// Who may use the database, over which connection, and what is told when it is refused: a real PostgreSQL with TLS and
// passwords.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type LocalPostgres, startPostgres } from '../../scripts/local-cluster/postgres.ts'
import { connectPostgres, type PostgresConnect } from '../../server/store/engines/connections.ts'
import { parsePostgresUrl } from '../../server/store/engines/postgres-url.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { tempDir } from '../support/temp-dir.ts'
import { AUTHORITY, EXPIRED_CERT, OTHER_AUTHORITY, SERVER_CERT, SERVER_PRIVATE_KEY } from '../support/test-certs.ts'

/** Two cores, and a database of its own for each test. */
setDefaultTimeout(30_000)

const dir = tempDir()
const pem = (name: string, text: string): string => {
  writeFileSync(join(dir, name), text)
  return join(dir, name)
}
const authority = pem('ca.pem', AUTHORITY)
const otherAuthority = pem('other.pem', OTHER_AUTHORITY)
let postgres: LocalPostgres
let expired: LocalPostgres
let url: string
beforeAll(async () => {
  postgres = await startPostgres({ inMemory: true, tls: { cert: SERVER_CERT, key: SERVER_PRIVATE_KEY } })
  expired = await startPostgres({ inMemory: true, tls: { cert: EXPIRED_CERT, key: SERVER_PRIVATE_KEY } })
  url = await postgres.createDatabase()
}, 30_000)
afterAll(async () => {
  await postgres?.stop()
  await expired?.stop()
})

/** Answers whether the connection was encrypted; throws as the store does. */
async function tryWith(text: string, password?: PostgresConnect['password']): Promise<boolean> {
  const target = parsePostgresUrl(text)
  const { reader, close } = await connectPostgres({ target, ...(password === undefined ? {} : { password }) }, systemClock)
  const me = await reader
    .selectFrom('pg_stat_ssl' as never)
    .select('ssl' as never)
    .where('pid' as never, '=', (eb: { fn(name: string, args: never[]): unknown }) => eb.fn('pg_backend_pid', []) as never)
    .executeTakeFirstOrThrow()
  await close()
  return (me as { ssl: boolean }).ssl
}
const refusalOf = async (...args: Parameters<typeof tryWith>): Promise<{ code: string; text: string }> => {
  const error = await tryWith(...args).then(
    () => ({ code: 'none' }),
    (thrown: { code: string }) => thrown,
  )
  return { code: error.code, text: Bun.inspect(error) }
}
const at = (host: string, options: string) => `${url.replace('127.0.0.1', host)}?${options}`

test('ST17 TLS: the certificate is verified against the authority that is named, and its name against the host', async () => {
  expect(await tryWith(url)).toBe(false)
  expect(await tryWith(at('127.0.0.1', `sslmode=verify-full&sslrootcert=${authority}`))).toBe(true)
  expect(await tryWith(at('localhost', `sslmode=require&sslrootcert=${authority}`))).toBe(true)
  expect(await tryWith(at('localhost', `sslmode=verify-ca&sslrootcert=${authority}`))).toBe(true)
})

test('ST17 TLS: another authority, another host, no authority, and a certificate that expired are refused', async () => {
  const expiredUrl = await expired.createDatabase()
  const refused: Array<[text: string, why: RegExp]> = [
    [at('127.0.0.1', `sslmode=verify-full&sslrootcert=${otherAuthority}`), /UNABLE_TO|SELF_SIGNED|unable to/],
    [at('127.0.0.1', `sslmode=verify-ca&sslrootcert=${otherAuthority}`), /UNABLE_TO|SELF_SIGNED|unable to/],
    [at('127.0.0.1', 'sslmode=verify-full'), /UNABLE_TO|SELF_SIGNED|unable to/],
    [at('127.0.0.1', 'sslmode=require'), /UNABLE_TO|SELF_SIGNED|unable to/],
    [at('127.0.0.2', `sslmode=verify-full&sslrootcert=${authority}`), /ERR_TLS_CERT_ALTNAME_INVALID/],
    [`${expiredUrl}?sslmode=verify-full&sslrootcert=${authority}`, /CERT_HAS_EXPIRED/],
    [`${expiredUrl}?sslmode=verify-ca&sslrootcert=${authority}`, /CERT_HAS_EXPIRED/],
  ]
  for (const [text, why] of refused) {
    const { code, text: shown } = await refusalOf(text)
    expect(code).toBe('store_unreachable')
    expect(shown).toMatch(why)
    expect(shown).not.toContain(new URL(text).password)
  }
  // The authority alone is enough for verify-ca.
  expect(await tryWith(at('127.0.0.2', `sslmode=verify-ca&sslrootcert=${authority}`))).toBe(true)
})

test('ST17 a wrong password, user or database is told with what to check, and without the password', async () => {
  const { username, password, pathname } = new URL(url)
  const wrong = [
    url.replace(password, 'hunter2'),
    url.replace(username, 'nobody'),
    url.replace(new RegExp(`${pathname}$`), '/none'),
    url.replace(`:${password}`, ''),
  ]
  for (const text of wrong) {
    const { code, text: shown } = await refusalOf(text)
    expect(code).toBe('store_unreachable')
    expect(shown).not.toMatch(new RegExp(`hunter2|${password}`))
  }
  expect(await tryWith(url.replace(`:${password}`, ''), async () => password)).toBe(false)
  expect(await tryWith(`postgres://${username}:${password}@${pathname}?host=${postgres.socketDir}&port=${postgres.port}`)).toBe(false)
})

test('ST17 the command line of a server shows no password, and neither does what it says when it cannot start', async () => {
  const main = join(import.meta.dir, '../../server/main.ts')
  const start = (args: string[], env: Record<string, string>) =>
    Bun.spawnSync([process.execPath, main, 'server', '--data', join(dir, 'data'), '--listen', '127.0.0.1:0', ...args], {
      env: { PATH: process.env['PATH'] ?? '', HOME: dir, ...env },
    })
  const flag = start(['--store', 'postgres://u:hunter2@127.0.0.1:1/fleet'], {})
  expect([flag.exitCode, flag.stderr.toString()]).toEqual([2, expect.stringContaining('SKERRY_STORE')])
  const down = start([], { SKERRY_STORE: 'postgres://u:hunter2@127.0.0.1:1/fleet' })
  expect([down.exitCode, down.stderr.toString()]).toEqual([1, expect.stringContaining('postgres://u@127.0.0.1:1/fleet')])
  const unknown = start([], { SKERRY_STORE: 'mysql://u:hunter2@127.0.0.1:1/fleet' })
  for (const { stdout, stderr } of [flag, down, unknown]) expect(stdout.toString() + stderr.toString()).not.toContain('hunter2')
  expect(existsSync(join(dir, 'data', 'fleet.sqlite'))).toBe(false)
})
