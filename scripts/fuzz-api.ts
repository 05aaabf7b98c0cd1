// Schemathesis against a server of its own: the compiled one with an empty data folder, without rate limits. The
// document is linted first.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const SECONDS_DEFAULT = '60'
const START_TRIES = 150

/** A request of this kind would end the credential of all that follow. */
const ENDING = ['deleteApiV1TokensById', 'postApiV1TokenExchange', 'deleteApiV1SessionsById']
/** A profile takes as long as it is asked to. */
const LASTING = ['getApiV1ProfileCpu']
const NOT_SENT = [...ENDING, ...LASTING]
/** The rights of many objects cannot be guessed from a schema, and a random reference names nothing. */
const NOT_CHECKED = ['positive_data_acceptance', 'ignored_auth', 'object_level_authorization']

const root = join(import.meta.dir, '..')
const packages = join(root, 'build/schemathesis')

function option(name: string, other: string): string {
  const at = process.argv.indexOf(name)
  return at < 0 ? other : (process.argv[at + 1] ?? other)
}

async function python(args: readonly string[], cwd: string): Promise<number> {
  const env = { PATH: process.env['PATH'], HOME: cwd, PYTHONPATH: packages, PYTHONDONTWRITEBYTECODE: '1', NO_COLOR: '1' }
  return Bun.spawn(['python3', ...args], { cwd, env, stdout: 'inherit', stderr: 'inherit' }).exited
}

async function freePort(): Promise<number> {
  const probe = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() })
  const { port = 0 } = probe
  await probe.stop(true)
  return port
}

async function run(): Promise<number> {
  const program = join(root, 'dist/skerry')
  for (const [path, made] of [
    [program, 'scripts/build'],
    [packages, 'scripts/setup --api'],
  ] as const) {
    if (existsSync(path)) continue
    process.stderr.write(`fuzz-api: ${path} is missing; run ${made}\n`)
    return 1
  }
  const folder = mkdtempSync(join(tmpdir(), 'skerry-fuzz-'))
  const data = join(folder, 'data')
  const tokenFile = join(data, 'admin-token')
  const origin = `http://127.0.0.1:${await freePort()}`
  const options = ['--data', data, '--listen', origin.slice('http://'.length), '--requests-per-second', '0', '--log-level', 'error']
  const server = Bun.spawn([program, 'server', ...options], { cwd: folder, env: {}, stdout: 'ignore', stderr: 'inherit' })
  try {
    // It serves before it writes the token.
    for (let tries = 0; !(existsSync(tokenFile) && (await answers(`${origin}/readyz`))); tries++) {
      if (tries > START_TRIES || server.exitCode !== null) throw new Error('the server does not start')
      await Bun.sleep(100)
    }
    const authorization = `Bearer ${readFileSync(tokenFile, 'utf8').trim()}`
    const document = join(folder, 'openapi.json')
    await Bun.write(document, await (await fetch(`${origin}/api/v1/openapi.json`, { headers: { authorization } })).text())
    if ((await python(['-m', 'openapi_spec_validator', '--subschema-errors', 'all', document], folder)) !== 0) return 1
    const code = await python(
      [
        ...['-m', 'schemathesis.cli', '--no-color', '--config-file', join(root, 'tests/api/schemathesis.toml'), 'run', document],
        ...['--url', origin, '--header', `Authorization: ${authorization}`, '--seed', option('--seed', '1')],
        ...['--max-time', option('--seconds', SECONDS_DEFAULT), '--phases', 'coverage,fuzzing', '--checks', 'all'],
        ...['--exclude-checks', NOT_CHECKED.join(','), '--request-timeout', '20', '--no-shrink', '--continue-on-failure'],
        ...NOT_SENT.flatMap((id) => ['--exclude-operation-id', id]),
        ...['--exclude-path-regex', '^/auth/'], // their limits of attempts would answer for them
      ],
      folder,
    )
    if (server.exitCode === null) return code
    process.stderr.write('fuzz-api: the server ended\n')
    return 1
  } finally {
    server.kill()
    await server.exited
    rmSync(folder, { recursive: true, force: true })
  }
}

const answers = (url: string): Promise<boolean> =>
  fetch(url).then(
    ({ ok }) => ok,
    () => false,
  )

process.exit(await run())
