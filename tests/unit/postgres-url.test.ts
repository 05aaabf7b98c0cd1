// What a URL of the fleet store may say, where its password may come from, and that it is shown nowhere.
import { describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parsePostgresUrl, passwordOf, shownTarget } from '../../server/store/engines/postgres-url.ts'
import { readStorePlace } from '../../server/store/store-place.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { tempDir } from '../support/temp-dir.ts'

const PLAIN = { host: 'localhost', port: 5432, user: 'u', database: 'fleet', password: null, tls: 'disable' }

test.each([
  ['postgres://u@localhost/fleet', PLAIN],
  ['postgresql://u@localhost:6000/fleet', { ...PLAIN, port: 6000 }],
  ['postgres://u:p%40ss%2Fw%3Ard@localhost/fleet', { ...PLAIN, password: 'p@ss/w:rd' }],
  ['postgres://u@[::1]/fleet', { ...PLAIN, host: '::1' }],
  ['postgres://u@/fleet?host=/run/postgresql', { ...PLAIN, host: '/run/postgresql' }],
  ['postgres://u@db.example/fleet', { ...PLAIN, host: 'db.example', tls: 'verify-full' }],
  ['postgres://u@db.example/fleet?sslmode=require', { ...PLAIN, host: 'db.example', tls: 'verify-full' }],
  ['postgres://u@db.example/fleet?sslmode=disable', { ...PLAIN, host: 'db.example' }],
  ['postgres://u@127.0.0.2/fleet', { ...PLAIN, host: '127.0.0.2' }],
  ['postgres://u@127.0.0.1.db.example/fleet', { ...PLAIN, host: '127.0.0.1.db.example', tls: 'verify-full' }],
  [
    'postgres://u@10.0.0.7/fleet?sslmode=verify-ca&sslrootcert=/ca.pem',
    { ...PLAIN, host: '10.0.0.7', tls: 'verify-ca', rootCert: '/ca.pem' },
  ],
  ['postgres://u@localhost/fleet?sslmode=verify-full&sslcert=/c&sslkey=/k', { ...PLAIN, tls: 'verify-full', cert: '/c', key: '/k' }],
])('ST17 %s', (url, expected) => {
  expect(parsePostgresUrl(url)).toMatchObject(expected)
})

test('ST17 files of a URL are those of the folder that the server was started in', () => {
  const { rootCert } = parsePostgresUrl('postgres://u@db/fleet?sslrootcert=ca.pem')
  expect(rootCert).toBe(join(process.cwd(), 'ca.pem'))
})

test.each([
  ['mysql://u:hunter2@db/fleet', 'postgres://'],
  ['postgres://u:hunter2@db', 'no database'],
  ['postgres://u:hunter2@db/a/b', 'no database'],
  ['postgres://:hunter2@db/fleet', 'no user'],
  ['postgres://u:hunter2@/fleet', 'no host'],
  ['postgres://u:hunter2@db:0/fleet', 'port'],
  ['postgres://u:hunter2@db:99999/fleet', 'not a URL'],
  ['postgres://u:hun[ter2@db/fleet?x', 'not a URL|unknown option'],
  ['postgres://u:hunter2@db/fleet?options=-c%20x', 'options'],
  ['postgres://u:12?hunter2@db/fleet', 'no user'],
  ['postgres://u@12?hunter2@db/fleet', 'no database'],
  ['postgres://u@db/12?hunter2@db/fleet', 'unknown option'],
  ['postgres://u:hunter2@db/fleet?sslmode=prefer', 'sslmode'],
  ['postgres://u:hunter2@db/fleet?sslmode=no-verify', 'sslmode'],
  ['postgres://u:hunter2@db/fleet?sslmode=verify-ca', 'sslrootcert'],
])('ST17 %s is refused, without its password', (url, why) => {
  const refusal = (() => {
    try {
      return parsePostgresUrl(url)
    } catch (error) {
      return error
    }
  })()
  expect(refusal).toBeInstanceOf(AppError)
  expect(String(refusal)).toMatch(new RegExp(why))
  expect(Bun.inspect(refusal)).not.toContain('hunter2')
})

test('ST17 what is shown of a target has no password', () => {
  expect(shownTarget(parsePostgresUrl('postgres://u:hunter2@db/fleet'))).toBe('postgres://u@db:5432/fleet')
  expect(shownTarget(parsePostgresUrl('postgres://u:hunter2@/fleet?host=/run'))).toBe('postgres://u@/fleet?host=/run')
})

const target = parsePostgresUrl('postgres://u@db/fleet')
test.each([
  ['db:5432:fleet:u:one', 'one'],
  ['other:5432:fleet:u:one\n*:*:*:u:two', 'two'],
  ['# db:5432:fleet:u:one\n*:*:*:*:three', 'three'],
  ['db:5432:fleet:u:with\\:colon\\\\', 'with:colon\\'],
  ['db:5432:fleet:other:one', null],
  ['db:5432', null],
  ['', null],
])('ST17 a password file that says %j', (file, password) => {
  expect(passwordOf(file, target)).toBe(password)
})

describe('where the fleet store is', () => {
  const dir = tempDir()
  const file = (name: string, text: string) => {
    writeFileSync(join(dir, name), text)
    return join(dir, name)
  }
  const read = (input: Partial<Parameters<typeof readStorePlace>[0]>) =>
    readStorePlace({ url: undefined, asFlag: false, file: undefined, env: {}, ...input })
  const withPassword = 'postgres://u:hunter2@db/fleet'

  test('ST17 in the data folder unless it is said otherwise', () => {
    expect([read({}), read({ url: '' })]).toEqual([null, null])
  })
  test('ST17 a password on the command line is refused, in the environment or in a file it is taken', async () => {
    expect(() => read({ url: withPassword, asFlag: true })).toThrow('other users')
    expect(read({ url: withPassword })?.target.password).toBe('hunter2')
    expect(read({ file: file('url', `${withPassword}\n`) })?.target.password).toBe('hunter2')
    expect(read({ url: 'postgres://u@db/fleet', asFlag: true })?.target.user).toBe('u')
    expect(() => read({ url: withPassword, file: file('url', withPassword) })).toThrow('exclude each other')
    expect(() => read({ file: join(dir, 'none') })).toThrow('ENOENT')
  })
  test('ST17 a password file is that of the folder that the server was started in, whichever it works in later', async () => {
    file('relative', '*:*:*:u:fourth')
    const before = process.cwd()
    try {
      process.chdir(dir)
      const place = read({ url: 'postgres://u@db/fleet', env: { PGPASSFILE: 'relative' } })
      process.chdir(before)
      expect(await place?.password()).toBe('fourth')
    } finally {
      process.chdir(before)
    }
  })
  test('ST17 the password of a URL without one comes from PGPASSWORD, PGPASSFILE or the home folder, and is read again each time', async () => {
    const url = 'postgres://u@db/fleet'
    expect(await read({ url, env: { PGPASSWORD: 'a' } })?.password()).toBe('a')
    const passwords = file('pgpass', '*:*:*:u:first')
    const place = read({ url, env: { PGPASSFILE: passwords } })
    expect(await place?.password()).toBe('first')
    file('pgpass', '*:*:*:u:second')
    expect(await place?.password()).toBe('second')
    mkdirSync(join(dir, 'home'))
    expect(await read({ url, env: { HOME: join(dir, 'home') } })?.password()).toBeNull()
    writeFileSync(join(dir, 'home', '.pgpass'), 'db:5432:fleet:u:third')
    expect(await read({ url, env: { HOME: join(dir, 'home') } })?.password()).toBe('third')
  })
})
