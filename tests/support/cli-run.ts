// Runs the command line in this process, with everything it may touch replaced.

import { runCli } from '../../server/cli/cli.ts'
import { SILENCE_MS } from '../../server/cli/client.ts'
import type { CliIo } from '../../server/cli/io.ts'
import type { LocalCommand } from '../../server/cli/local-commands.ts'
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
  sleep?: (ms: number, signal?: AbortSignal) => Promise<void>
  /** Hears what is printed as it is. */
  onPrinted?: (result: CliResult) => void
}

export async function runTestCli(admin: TestAdmin, argv: readonly string[], setup: CliSetup = {}): Promise<CliResult> {
  const result: CliResult = { code: 0, out: '', err: '' }
  const local = (name: string): LocalCommand => ({
    table: { data: { type: 'text', help: 'Folder.', default: '/data' } },
    run: async (flags, argument) => {
      result.out += `${name}${argument && ` ${argument}`} ${JSON.stringify(flags)}\n`
      return 7
    },
  })
  const print = (to: 'out' | 'err', text: string) => {
    result[to] += text
    setup.onPrinted?.(result)
  }
  result.code = await runCli({
    local: {
      server: local('server'),
      doctor: local('doctor'),
      render: local('render'),
      backup: { create: local('create'), verify: local('verify'), restore: local('restore') },
    },
    version: () => ({ info: { version: '1.2.3', bun: 'b' }, text: 'skerry 1.2.3' }),
    io: {
      argv,
      env: { SKERRY_SERVER: 'http://localhost', SKERRY_TOKEN: admin.token, ...setup.env },
      stdin: stdinOf(setup.stdin ?? ''),
      stdout: { write: (text) => print('out', text) },
      stderr: { write: (text) => print('err', text) },
      fetch: setup.fetch ?? ((url, init) => admin.app.fetch(new Request(url, init))),
      isTty: setup.isTty ?? false,
      clock: { nowMs: () => admin.clock.nowMs, monotonicMs: () => admin.clock.nowMs, sleep: setup.sleep ?? sleepShort },
      ...(setup.signal === undefined ? {} : { signal: setup.signal }),
    },
  })
  return result
}

/** Waits are over at once; what would take a minute, as the silence of a stream, is never over. */
const sleepShort = (ms: number, signal?: AbortSignal): Promise<void> =>
  ms < SILENCE_MS ? Promise.resolve() : systemClock.sleep(ms, signal)

async function* stdinOf(text: string): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(text)
}
