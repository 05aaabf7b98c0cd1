// Completion in real shells: bash always, zsh and fish where they are installed; their absence is said aloud.
import { expect, test } from 'bun:test'
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { COMPLETION_SCRIPTS } from '../../server/cli/completion/scripts.ts'
import { tempDir } from '../support/temp-dir.ts'

const home = tempDir()
const bin = join(home, 'bin')
mkdirSync(bin)
writeFileSync(join(bin, 'skerry'), `#!/bin/sh\nexec '${process.execPath}' '${join(import.meta.dir, '../../server/main.ts')}' "$@"\n`)
chmodSync(join(bin, 'skerry'), 0o755)

let asked = 0
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: (request) => {
    asked += 1
    const name = new URL(request.url).pathname.endsWith('/clusters') ? 'ship-7' : 'web'
    return Response.json({ items: [{ metadata: { name } }, { metadata: { name: '$(touch evil)' } }], continue: null })
  },
})
server.unref()

async function run(shell: string, script: string, env: Record<string, string> = {}): Promise<string> {
  const child = Bun.spawn([shell, ...(shell === 'zsh' ? ['-f'] : []), '-c', script], {
    cwd: home,
    env: {
      PATH: `${bin}:${process.env['PATH']}`,
      HOME: home,
      XDG_CACHE_HOME: join(home, 'cache'),
      SKERRY_SERVER: server.url.href,
      SKERRY_TOKEN: 't',
      ...env,
    },
    stderr: 'inherit',
  })
  return (await new Response(child.stdout).text()).trimEnd()
}
const bash = (words: readonly string[], env?: Record<string, string>) => {
  const list = words.map((word) => `'${word}'`).join(' ')
  return run(
    'bash',
    `source <(skerry completion bash); COMP_WORDS=(skerry ${list}); COMP_CWORD=${words.length}; _skerry 2>/dev/null; printf '%s\\n' "\${COMPREPLY[@]}"`,
    env,
  )
}

test('CL38 bash: verbs, kinds, options, values after =, and names of the server, which are kept in a cache of mode 0600', async () => {
  expect((await bash(['get', 'clust'])).split('\n')).toEqual(['clusters'])
  expect(await bash(['use'])).toBe('')
  expect((await bash(['config', 'use'])).split('\n')).toEqual(['use-context'])
  expect(await bash(['get', 'svc', '--output', '=', 'js'])).toBe('json\njsonpath=')
  expect(await bash(['describe', 'svc/'])).toBe('svc/web')
  expect(await bash(['get', 'objects', '--cluster', ''])).toBe('ship-7')
  const before = asked
  expect(await bash(['describe', 'svc', 'w'])).toBe('web')
  expect(asked).toBe(before)
  const names = join(home, 'cache/skerry/names')
  expect(readdirSync(names).map((file) => statSync(join(names, file)).mode & 0o777)).toEqual([0o600, 0o600])
})

test('CL38 without a server completion is silent and quick', async () => {
  const startedMs = performance.now()
  expect(await bash(['get', 'svc', ''], { SKERRY_SERVER: 'http://127.0.0.1:9' })).toBe('')
  expect(await bash(['get', 'svc', ''], { SKERRY_TOKEN: '' })).toBe('')
  expect(performance.now() - startedMs).toBeLessThan(5_000)
})

const ZSH_STUBS = `compdef() { : }; _files() { print files }; _describe() { print -l -- "\${(@P)2}" }; source <(skerry completion zsh)`
const ANSWERS: Readonly<Record<'zsh' | 'fish', () => Promise<string[]>>> = {
  zsh: async () => [
    await run('zsh', `${ZSH_STUBS}; words=(skerry get svc/); CURRENT=3; _skerry`),
    await run('zsh', `${ZSH_STUBS}; words=(skerry apply -f ''); CURRENT=4; _skerry`),
  ],
  fish: async () => [
    await run('fish', 'skerry completion fish | source; complete -C "skerry get svc/"'),
    await run('fish', 'skerry completion fish | source; touch here; complete -C "skerry apply -f he"'),
  ],
}
const EXPECTED = { zsh: ['svc/web:', 'files'], fish: ['svc/web', 'here'] }
for (const shell of ['zsh', 'fish'] as const) {
  const path = Bun.which(shell)
  if (path === null) process.stderr.write(`completion: ${shell} is not installed: only the text of its script is checked\n`)
  test.if(path !== null)(`CL38 ${shell}: names of the server, and files where a file is meant`, async () => {
    expect(await ANSWERS[shell]()).toEqual(EXPECTED[shell])
  })
}

test.each(['bash', 'zsh', 'fish'] as const)('the script for %s asks __complete with the words before the cursor', (shell) => {
  expect(COMPLETION_SCRIPTS[shell]).toContain(`__complete ${shell} -- `)
})

test('CL38 with a login whose token has expired, completion gets a new one, and sends the old one to nobody', async () => {
  const seen: string[] = []
  const signIn = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: async (request) => {
      const { pathname } = new URL(request.url)
      seen.push(`${pathname} ${request.headers.get('authorization') ?? ''}`.trim())
      if (pathname === '/auth/token') return Response.json({ token: 'fresh', refreshToken: 'next', expiresInMs: 900_000 })
      return Response.json({ items: [{ metadata: { name: 'web' } }], continue: null })
    },
  })
  const config = join(home, 'logins')
  mkdirSync(join(config, 'skerry'), { recursive: true })
  const login = { provider: 'corp', user: 'ada', expiresMs: 1, refreshToken: 'first' }
  const contexts = { corp: { server: signIn.url.origin, token: 'stale', login } }
  writeFileSync(
    join(config, 'skerry', 'config.yaml'),
    JSON.stringify({ apiVersion: 'skerry.dev/cli/v1', currentContext: 'corp', contexts }),
    {
      mode: 0o600,
    },
  )
  const env = { XDG_CONFIG_HOME: config, SKERRY_SERVER: '', SKERRY_TOKEN: '' }
  expect(await bash(['sync', ''], env)).toBe('web')
  expect(seen).toEqual(['/auth/token', '/api/v1/services Bearer fresh'])
  // Later words come from the cache, also when the token is another one.
  expect(await bash(['sync', 'w'], env)).toBe('web')
  expect(seen).toHaveLength(2)
  await signIn.stop(true)
})
