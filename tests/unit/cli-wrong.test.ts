// The command line when something was typed wrong, or somebody else answers: exit codes, and words to act on.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createTestAdmin, type TestAdmin } from '../support/admin-app.ts'
import { type CliSetup, commandPaths, runTestCli } from '../support/cli-run.ts'
import { naming } from '../support/naming.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
})
afterEach(() => admin.store.close())
const cli = (argv: string, setup?: CliSetup) => runTestCli(admin, argv.split(' ').filter(Boolean), setup)

const subcommands = await commandPaths()

describe('what was typed wrong', () => {
  test('CL8 verbs of the server’s own machine get their flags and their folder, and ask no server', async () => {
    expect(await cli('doctor --data /d -o json')).toMatchObject({ code: 7, out: 'doctor {"data":"/d","output":"json"}\n' })
    expect(await cli('backup create')).toMatchObject({ code: 7, out: 'create {}\n' })
    expect(await cli('backup verify /b')).toMatchObject({ code: 7, out: 'verify /b {}\n' })
    expect(await cli('backup restore /b --data /d')).toMatchObject({ code: 7, out: 'restore /b {"data":"/d"}\n' })
    expect((await cli('backup verify')).code).toBe(2)
    expect((await cli('backup')).code).toBe(2)
    expect((await cli('backup --help')).out).toStartWith('Examples:\n  skerry backup create')
    expect(admin.asked).toEqual([])
  })

  test.each(subcommands)('CL8 an unknown flag of %p is exit code 2, and nothing is asked', async (command) => {
    const { code, err } = await cli(`${command} --no-such-flag`)
    expect([code, admin.asked]).toEqual([2, []])
    expect(err).toContain("unknown option '--no-such-flag'")
  })

  test.each(subcommands)('CL8 --help of %p begins with examples', async (command) => {
    const { code, out } = await cli(`${command} --help`)
    expect(code).toBe(0)
    expect(out).toStartWith('Examples:\n  ')
    expect(out.split('\n')[1]).toMatch(/^ {2}([A-Z_]+=\$\()?skerry /)
  })

  test.each([
    ['gte clusters', 'Did you mean get?'],
    ['get clusterz', 'did you mean "clusters"?'],
    ['get services --outptu json', 'Did you mean --output?'],
    ['get services -o xml', 'json, yaml, wide, name, jsonpath='],
    ['get services -o jsonpath={.items[', 'invalid JSONPath'],
    ['get services --sort-by name', '.metadata.name'],
    ['get svc/web web', 'name once'],
    ['get svc/', 'name is missing'],
    ['get clusters --service web', '--cluster and --service'],
    ['get events -l a=b', '-l does not apply'],
    ['get services --search web', '--search does not apply'],
    ['get placements --kind Deployment', '--kind does not apply'],
    ['get objects --sort-by newst', '"newest"?'],
    ['get objects --status-selector helth=Degraded', '"health"?'],
    ['get objects --status-selector health=Degradd', 'did you mean "Degraded"?'],
    ['get objects --status-selector health', '--status-selector expects health=Healthy'],
    ['get clusters --status-selector a=b=c', '--status-selector expects liveness=WORD'],
    ['get repositories --status-selector a=b', '--status-selector does not apply'],
    ['get objects --limit 0', 'from 1 to 999999'],
    ['get objects web', 'objects have no names'],
    ['describe service', 'skerry get services'],
    ['describe events', 'does not accept events'],
    ['events --limit 0', 'from 1 to 500'],
    ['join-token create --label prod', 'expected --label key=value'],
    ['', 'Usage: skerry'],
  ])('CL8 %p', async (argv, message) => {
    const { code, err } = await cli(argv)
    expect(err).toContain(message)
    expect(code).toBe(2)
  })

  test('CL9 the server’s own words reach the person: no token, wrong token, no such thing, no server', async () => {
    expect((await cli('get clusters', { env: { SKERRY_TOKEN: undefined } })).err).toEqual(
      naming(
        'error: ',
        'token',
        'http://localhost',
        'hint: ',
        'SKERRY_TOKEN',
        'skerry config set-context NAME --server URL --token-file FILE',
      ),
    )
    expect(await cli(`get clusters --token sk_${'x'.repeat(43)}`)).toMatchObject({ code: 1 })
    expect(await cli('get svc/none')).toEqual({
      code: 1,
      out: '',
      err: naming('error: ', 'service none', 'project default', 'hint: ', '`skerry get services -A`'),
    })
    const dead = await cli('get clusters', { fetch: () => Promise.reject(new Error('connection refused')) })
    expect(dead).toMatchObject({ code: 1 })
    expect(dead.err).toMatch(/^error: connection refused .*http:\/\/localhost\b.*\nhint: .*--server/)
    const slow = await cli('get clusters', { fetch: () => Promise.reject(new Error('timed out')) })
    expect(slow.err).toEqual(naming('http://localhost', 'timed out'))
    const other = await cli('get clusters', { fetch: async () => new Response('<html>', { status: 404 }) })
    expect(other.err).toMatch(/^error: .*http:\/\/localhost .*\bHTTP 404\b.*\nhint: .*--server/)
    const bare = await cli('get clusters', { env: { SKERRY_SERVER: '127.0.0.1:18777' } })
    expect(bare.err).toEqual(
      naming('error: ', 'server 127.0.0.1:18777', 'unix:/', 'hint: ', 'http://127.0.0.1:18777', '--server (SKERRY_SERVER)'),
    )
    const foreign = await cli('get clusters', { fetch: async () => new Response('<html>') })
    expect(foreign.err).toContain('not a Skerry server')
    const proxy = await cli('get clusters', { fetch: async () => new Response('<html>', { status: 502 }) })
    expect(proxy.err).toStartWith('error: GET http://localhost/api/v1/clusters: HTTP 502\n')
  })

  test('CL9 a name is one segment of an address, whatever is in it', async () => {
    const urls: string[] = []
    await runTestCli(admin, ['get', 'cluster', '../services?x=1'], {
      fetch: (url, init) => {
        urls.push(url)
        return admin.app.fetch(new Request(url, init))
      },
    })
    expect(urls).toEqual(['http://localhost/api/v1/clusters/..%2Fservices%3Fx%3D1'])
  })
})
