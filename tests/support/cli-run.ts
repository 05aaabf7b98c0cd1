// Runs the command line in this process, with everything it may touch replaced.

import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { SILENCE_MS } from '../../client/client.ts'
import { createCommandLine, runCli } from '../../server/cli/cli.ts'
import type { CliIo } from '../../server/cli/io.ts'
import type { LocalCommand, LocalCommands } from '../../server/cli/local-commands.ts'
import { packFolder } from '../../server/local-render/pack-folder.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { TestAdmin } from './admin-app.ts'

export interface CliResult {
  code: number
  out: string
  err: string
}

export interface CliSetup {
  stdin?: string
  env?: Record<string, string | undefined>
  isTty?: boolean
  fetch?: CliIo['fetch']
  signal?: AbortSignal
  openBrowser?: (url: string) => void
  run?: NonNullable<CliIo['run']>
  sleep?: (ms: number, signal?: AbortSignal) => Promise<void>
  /** Hears what is printed as it is. */
  onPrinted?: (result: CliResult) => void
}

export const runTestCli = (admin: TestAdmin, argv: readonly string[], setup: CliSetup = {}): Promise<CliResult> =>
  runCliWith(
    argv,
    {
      fetch: (url, init) => admin.app.fetch(new Request(url, init)),
      ...setup,
      env: { SKERRY_SERVER: 'http://localhost', SKERRY_TOKEN: admin.token, ...setup.env },
    },
    () => admin.clock.nowMs,
  )

function localCommands(write: (text: string) => void): LocalCommands {
  const local = (name: string): LocalCommand => ({
    table: { data: { type: 'text', help: 'Folder.', default: '/data' } },
    run: async (flags, argument) => {
      write(`${name}${argument && ` ${argument}`} ${JSON.stringify(flags)}\n`)
      return 7
    },
  })
  return {
    server: local('server'),
    dev: local('dev'),
    doctor: local('doctor'),
    adminToken: local('admin-token'),
    render: local('render'),
    pack: packFolder,
    backup: { create: local('create'), list: local('list'), verify: local('verify'), restore: local('restore') },
  }
}

/** `get`, `backup create`: every command that a person can type. */
export async function commandPaths(): Promise<string[]> {
  const io: CliIo = {
    argv: [],
    env: {},
    stdin: stdinOf(''),
    stdout: { write: () => {} },
    stderr: { write: () => {} },
    fetch: () => Promise.reject(new Error('no server')),
    isTty: false,
    clock: systemClock,
  }
  const { program } = await createCommandLine({
    local: async () => localCommands(() => {}),
    version: async () => ({ info: { version: '1' }, text: '' }),
    io,
  })
  const below = (path: string, commands: readonly CommandUnknownOpts[]): string[] =>
    commands.flatMap((command) => {
      const own = `${path}${command.name()}`
      return [own, ...below(`${own} `, command.commands)]
    })
  return below('', program.commands)
}

/** Without a server, unless `fetch` is one. */
export async function runCliWith(argv: readonly string[], setup: CliSetup = {}, nowMs: () => number = () => 1_000_000): Promise<CliResult> {
  const result: CliResult = { code: 0, out: '', err: '' }
  const print = (to: 'out' | 'err', text: string) => {
    result[to] += text
    setup.onPrinted?.(result)
  }
  result.code = await runCli({
    local: async () =>
      localCommands((text) => {
        result.out += text
      }),
    version: async () => ({ info: { version: '1.2.3', bun: 'b' }, text: 'skerry 1.2.3' }),
    io: {
      argv,
      env: setup.env ?? {},
      stdin: stdinOf(setup.stdin ?? ''),
      stdout: { write: (text) => print('out', text) },
      stderr: { write: (text) => print('err', text) },
      fetch: setup.fetch ?? (() => Promise.reject(new Error('this test has no server'))),
      isTty: setup.isTty ?? false,
      clock: { nowMs, monotonicMs: nowMs, sleep: setup.sleep ?? sleepShort },
      ...(setup.signal === undefined ? {} : { signal: setup.signal }),
      ...(setup.run === undefined ? {} : { run: setup.run }),
      ...(setup.openBrowser === undefined ? {} : { openBrowser: setup.openBrowser }),
    },
  })
  return result
}

/** Waits are over at once; what would take a minute, as the silence of a stream, is never over. */
const sleepShort = (ms: number, signal?: AbortSignal): Promise<void> =>
  ms < SILENCE_MS ? new Promise((resolve) => setImmediate(resolve)) : systemClock.sleep(ms, signal)

async function* stdinOf(text: string): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(text)
}
