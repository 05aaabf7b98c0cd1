// Long-running children that cannot outlive us: the kernel kills them when this process dies, even by kill -9 (setpriv
// --pdeathsig), and a janitor that only waits for our end of a pipe to close removes the data folder afterwards. Linux
// only, like the test cluster.
import { closeSync, mkdtempSync, openSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface ChildProcess {
  readonly pid: number
  /** The exit code, or null while it runs. */
  exitCode(): number | null
  /** SIGSTOP and SIGCONT: a process that exists and does not answer. */
  pause(): void
  resume(): void
  /** SIGKILL and wait: all data of these processes is thrown away, so there is nothing to end gracefully. */
  kill(): Promise<void>
  /** The end of what it logged, for error messages. */
  logTail(): string
}

/** `env`: besides our own. */
export function startChild(command: string[], logPath: string, env: Record<string, string> = {}): ChildProcess {
  const log = openSync(logPath, 'a')
  // Detached: Ctrl-C at the terminal reaches only us, and we end the children in order.
  const child = Bun.spawn(['setpriv', '--pdeathsig', 'KILL', '--', ...command], {
    stdin: 'ignore',
    stdout: log,
    stderr: log,
    detached: true,
    env: { ...process.env, ...env },
  })
  closeSync(log)
  return {
    pid: child.pid,
    exitCode: () => child.exitCode ?? (child.signalCode === null ? null : 137),
    pause: () => child.kill('SIGSTOP'),
    resume: () => child.kill('SIGCONT'),
    kill: async () => {
      child.kill('SIGKILL')
      await child.exited
    },
    logTail: () => readFileSync(logPath, 'utf8').trimEnd().split('\n').slice(-12).join('\n'),
  }
}

export interface DataFolder {
  readonly path: string
  remove(): Promise<void>
}

/** A folder, by default under the system's temporary one, that is gone after `remove()` and also after our sudden
 *  death. */
export function createDataFolder(name: string, parent = tmpdir()): DataFolder {
  const path = mkdtempSync(join(parent, `${name}-`))
  // Three tries: at our sudden death a child may write one last file while the first one runs.
  const janitor = Bun.spawn(['sh', '-c', 'cat >/dev/null; for i in 1 2 3; do rm -rf -- "$1" && exit; sleep 1; done', 'janitor', path], {
    stdin: 'pipe',
    stdout: 'ignore',
    stderr: 'ignore',
    detached: true,
  })
  janitor.unref()
  return {
    path,
    remove: async () => {
      await janitor.stdin.end()
      await janitor.exited
    },
  }
}

/** A port that was free a moment ago. The system hands ports out in turn, so another process hardly takes it meanwhile.
 */
export function freePort(): number {
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: () => {} } })
  const { port } = listener
  listener.stop(true)
  return port
}

/** Asks `probe` every 50 ms until it answers true. An exception of the probe means "not yet"; a child that died ends
 *  the wait at once. */
export async function waitUntil(
  what: string,
  probe: () => Promise<boolean>,
  { timeoutMs = 60_000, child }: { timeoutMs?: number; child?: ChildProcess } = {},
): Promise<void> {
  const deadline = performance.now() + timeoutMs
  let last: unknown
  while (performance.now() < deadline) {
    if (child && child.exitCode() !== null) throw new Error(`${what}: the process ended with ${child.exitCode()}\n${child.logTail()}`)
    try {
      if (await probe()) return
    } catch (error) {
      last = error
    }
    await Bun.sleep(50)
  }
  throw new Error(`${what}: not within ${timeoutMs} ms${last ? `, last error: ${last}` : ''}\n${child?.logTail() ?? ''}`)
}
