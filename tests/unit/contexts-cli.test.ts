// Contexts of the command line: the file, who may read it, and which server and credential a command uses.
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { resolveConnection } from '../../server/cli/contexts/connection.ts'
import { changeContexts, contextsPath, readContexts } from '../../server/cli/contexts/file.ts'
import { type CliSetup, runCliWith } from '../support/cli-run.ts'

const root = mkdtempSync(join(tmpdir(), 'skerry-contexts-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
let home = ''
let path = ''
beforeEach(() => {
  home = mkdtempSync(join(root, 'home-'))
  path = join(home, 'skerry', 'config.yaml')
})
const asked: { url: string; authorization: string; init: object }[] = []
const cli = (argv: string, setup: CliSetup = {}) => {
  asked.length = 0
  return runCliWith(argv.split(' '), {
    env: { XDG_CONFIG_HOME: home },
    fetch: async (url, init) => {
      asked.push({ url, authorization: new Headers(init.headers).get('authorization') ?? '', init })
      return Response.json({ items: [], continue: null })
    },
    ...setup,
  })
}
const PEM = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'

describe('the contexts file', () => {
  test('CL30 is made with mode 0600 in a folder of mode 0700; the first context becomes current', async () => {
    expect(await cli('config set-context prod --server https://a.example --token-file -', { stdin: 'secret-a\n' })).toMatchObject({
      code: 0,
    })
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(statSync(dirname(path)).mode & 0o777).toBe(0o700)
    expect((await cli('config current-context')).out).toBe('prod\n')
    expect(await cli('config set-context dev --server http://b.example -p team')).toMatchObject({ code: 0 })
    expect((await cli('config get-contexts')).out).toBe(
      'CURRENT   NAME   SERVER              PROJECT   CREDENTIAL   USER\n' +
        '*         prod   https://a.example   -         token        -\n' +
        '-         dev    http://b.example    team      -            -\n',
    )
    expect((await cli('config get-contexts -o name')).out).toBe('prod\ndev\n')
    expect(await cli('config use-context dev')).toMatchObject({ code: 0 })
    expect(await cli('config delete-context dev')).toMatchObject({ code: 0 })
    expect((await cli('config current-context')).code).toBe(2)
  })

  test.each([0o640, 0o604, 0o660, 0o644])('CL31 refuses a file that others can read or write: mode %o', async (mode) => {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, 'apiVersion: skerry.dev/cli/v1\ncontexts: {}\n')
    chmodSync(path, mode)
    const { code, err } = await cli('get clusters')
    expect(code).toBe(1)
    expect(err).toContain(`chmod 600 ${path}`)
    expect(asked).toEqual([])
  })

  test('CL31 a broken file is named by its place, without its content', async () => {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, 'apiVersion: skerry.dev/cli/v1\ncontexts:\n  a: {server: [, token: tellnobody}\n', { mode: 0o600 })
    const { code, err } = await cli('config get-contexts')
    expect(code).toBe(1)
    expect(err).toContain(path)
    expect(err).not.toContain('tellnobody')
  })

  test('view hides tokens and everything that this version does not know; --raw shows them', async () => {
    changeContexts(path, (file) => ({
      ...file,
      contexts: {
        a: { server: 'https://a.example', token: 't0p', login: { user: 'eva', refreshToken: 'r3f', later: 'l4t' }, more: 'm5r' },
      },
    }))
    const { out } = await cli('config view')
    expect(out).toContain('user: eva')
    for (const secret of ['t0p', 'r3f', 'l4t', 'm5r']) expect(out).not.toContain(secret)
    const raw = JSON.parse((await cli('config view --raw -o json')).out)
    expect(raw.contexts.a).toMatchObject({ token: 't0p', more: 'm5r', login: { refreshToken: 'r3f', later: 'l4t' } })
  })

  test('a change keeps what it does not know, follows a link, and drops credentials when the server changes', async () => {
    const real = join(home, 'real.yaml')
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(real, 'apiVersion: skerry.dev/cli/v1\nnewer: 1\ncontexts: {a: {server: "https://a.example", token: x, newer: 2}}\n', {
      mode: 0o600,
    })
    symlinkSync(real, path)
    expect(await cli('config set-context a -p team')).toMatchObject({ code: 0 })
    expect(readContexts(real)).toMatchObject({ newer: 1, contexts: { a: { token: 'x', newer: 2, project: 'team' } } })
    expect(await cli('config set-context a --server https://evil.example')).toMatchObject({ code: 0 })
    expect(readContexts(real).contexts['a']).not.toHaveProperty('token')
    expect(existsSync(`${real}.lock`)).toBe(false)
  })

  test('two programs that change it at once both succeed', async () => {
    const program = (name: string) =>
      `import { changeContexts } from ${JSON.stringify(join(import.meta.dir, '../../server/cli/contexts/file.ts'))}\n` +
      `for (let i = 0; i < 20; i++) changeContexts(${JSON.stringify(path)}, (f) => ({ ...f, contexts: { ...f.contexts, ['${name}' + i]: { server: 'http://x' } } }))`
    const children = ['a', 'b'].map((name) => Bun.spawn([process.execPath, '-e', program(name)], { stderr: 'inherit' }))
    expect(await Promise.all(children.map((child) => child.exited))).toEqual([0, 0])
    expect(Object.keys(readContexts(path).contexts)).toHaveLength(40)
  })

  test.each(['../x', '', '-a', 'a b', 'a/b', 'x'.repeat(64), '__proto__'])('refuses the name %p', async (name) => {
    const { code } = await runCliWith(['config', 'set-context', '--server', 'http://x', '--', name], { env: { XDG_CONFIG_HOME: home } })
    expect(code).toBe(2)
    expect(existsSync(path)).toBe(false)
  })

  test('the path is XDG_CONFIG_HOME if it is absolute, else HOME, else there is none', () => {
    expect(contextsPath({ XDG_CONFIG_HOME: '/x', HOME: '/h' })).toBe('/x/skerry/config.yaml')
    expect(contextsPath({ XDG_CONFIG_HOME: 'x', HOME: '/h' })).toBe('/h/.config/skerry/config.yaml')
    expect(contextsPath({})).toBeNull()
  })
})

describe('which server and credential a command uses', () => {
  const file = {
    apiVersion: 'skerry.dev/cli/v1' as const,
    currentContext: 'a',
    contexts: {
      a: { server: 'https://a.example/', token: 'ta', ca: PEM, project: 'pa' },
      b: { server: 'https://b.example', token: 'tb' },
    },
  }
  const read = () => file
  const never = () => {
    throw new Error('read')
  }

  test('CL32 --context, then SKERRY_SERVER and SKERRY_TOKEN, then SKERRY_CONTEXT, then the current context', () => {
    expect(resolveConnection({}, {}, read)).toEqual({ server: 'https://a.example/', token: 'ta', ca: PEM, project: 'pa', context: 'a' })
    expect(resolveConnection({}, { SKERRY_CONTEXT: 'b' }, read)).toMatchObject({ server: 'https://b.example', token: 'tb', context: 'b' })
    const env = { SKERRY_SERVER: 'http://env', SKERRY_TOKEN: 'te' }
    expect(resolveConnection({}, env, never)).toMatchObject({ server: 'http://env', token: 'te', context: null })
    expect(resolveConnection({ context: 'b' }, env, read)).toMatchObject({ server: 'https://b.example', token: 'tb' })
    expect(resolveConnection({ server: 'http://flag', token: 'tf' }, env, never)).toMatchObject({ server: 'http://flag', token: 'tf' })
    expect(() => resolveConnection({ context: 'bb' }, {}, read)).toThrow('"b"')
  })

  test('CL33 the token, CA and project of a context go to its own server only', () => {
    const other = { server: 'https://evil.example', token: undefined, ca: undefined, project: undefined, context: null }
    expect(resolveConnection({ server: 'https://evil.example' }, {}, read)).toEqual(other)
    expect(resolveConnection({}, { SKERRY_SERVER: 'https://evil.example' }, read)).toEqual(other)
    expect(resolveConnection({ server: 'https://A.example' }, {}, read)).toMatchObject({ token: 'ta', ca: PEM })
  })

  test('a request trusts the CA of the context, uses its token and its project', async () => {
    changeContexts(path, () => file)
    expect(await cli('get services')).toMatchObject({ code: 0 })
    expect(asked[0]).toMatchObject({ authorization: 'Bearer ta', init: { tls: { ca: PEM } } })
    expect(asked[0]?.url).toStartWith('https://a.example/api/v1/services?')
    expect(asked[0]?.url).toContain('project=pa')
    expect(await cli('get services --context b -p own')).toMatchObject({ code: 0 })
    expect(asked[0]?.url).toContain('project=own')
    for (const [given, used] of [
      ['pe', 'pe'],
      ['', 'pa'],
    ] as const) {
      await cli('get services', { env: { XDG_CONFIG_HOME: home, SKERRY_PROJECT: given } })
      expect(asked[0]?.url).toContain(`project=${used}`)
    }
    await cli('get services --context b -p own')
    expect(asked[0]).toMatchObject({ authorization: 'Bearer tb' })
    expect(asked[0]?.init).not.toHaveProperty('tls')
  })

  test('a Unix socket is a server, too', async () => {
    expect(await cli('get clusters --server unix:/run/skerry.sock --token t')).toMatchObject({ code: 0 })
    expect(asked[0]?.url).toStartWith('http://localhost/api/v1/clusters')
    expect(asked[0]?.init).toMatchObject({ unix: '/run/skerry.sock' })
  })

  test('set-context copies the certificates of --server-ca and refuses a file without one', async () => {
    const ca = join(home, 'ca.pem')
    writeFileSync(ca, PEM)
    expect(await cli(`config set-context a --server https://a.example --server-ca ${ca}`)).toMatchObject({ code: 0 })
    expect(readContexts(path).contexts['a']).toMatchObject({ ca: PEM })
    expect(await cli('config set-context a --no-ca')).toMatchObject({ code: 0 })
    expect(readFileSync(path, 'utf8')).not.toContain('CERTIFICATE')
    writeFileSync(ca, 'nothing')
    expect((await cli(`config set-context a --server-ca ${ca}`)).code).toBe(1)
  })
})
