// Runs a binary as a container with a bare image would: a root of just the given files, read-only, uid 65532, no
// capabilities, no network, empty environment, and one writable folder, which is the working directory. By bubblewrap,
// so neither root nor Docker is needed.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface SandboxOptions {
  /** Where in the sandbox → which file or folder here. */
  files: Readonly<Record<string, string>>
  /** The only writable folder; it appears as /data. */
  dataDir: string
  command: readonly string[]
  /** Default false. With it the sandbox shares this machine's loopback, for a server and its agent. */
  network?: boolean
  /** Default false. With it there is a /dev, as in a container. */
  devices?: boolean
}

export interface SandboxResult {
  exitCode: number
  stdout: string
  stderr: string
}

/** The files of the system that any glibc program of Debian 12 needs: the loader and its libraries. */
export const LIBC_FILES: Readonly<Record<string, string>> = Object.fromEntries([
  ...['libc.so.6', 'libm.so.6', 'libdl.so.2', 'libpthread.so.0'].map((name) => [
    `/lib/x86_64-linux-gnu/${name}`,
    `/lib/x86_64-linux-gnu/${name}`,
  ]),
  ['/lib64/ld-linux-x86-64.so.2', '/lib64/ld-linux-x86-64.so.2'],
])

export const sandboxAvailable = (): boolean => Bun.which('bwrap') !== null

/** The command that runs `command` in the sandbox, for callers that start it as a process of its own. */
export function sandboxCommand({ files, dataDir, command, network = false, devices = false }: SandboxOptions): string[] {
  const isolate = ['--unshare-all', ...(network ? ['--share-net'] : []), '--die-with-parent', '--new-session', '--cap-drop', 'ALL']
  const user = ['--uid', '65532', '--gid', '65532', '--clearenv']
  const binds = Object.entries(files).flatMap(([inside, here]) => ['--ro-bind', here, inside])
  const root = [
    ...binds,
    ...(devices ? ['--dev', '/dev'] : []),
    '--proc',
    '/proc',
    '--bind',
    dataDir,
    '/data',
    '--chdir',
    '/data',
    '--remount-ro',
    '/',
  ]
  return ['bwrap', ...isolate, ...user, ...root, '--', ...command]
}

export async function runInSandbox(options: SandboxOptions): Promise<SandboxResult> {
  const child = Bun.spawn(sandboxCommand(options), { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const streams = [Bun.readableStreamToText(child.stdout), Bun.readableStreamToText(child.stderr)] as const
  const [stdout, stderr, exitCode] = await Promise.all([...streams, child.exited])
  return { exitCode, stdout, stderr }
}

/** Files that would change a binary that reads its working directory: Bun does, unless built not to. */
export async function plantTraps(dir: string): Promise<void> {
  await Bun.write(join(dir, '.env'), 'SKERRY_LOG_LEVEL=trap\nSKERRY_TOKEN=trap\n')
  await Bun.write(join(dir, 'bunfig.toml'), 'preload = ["./trap.ts"]\n')
  await Bun.write(join(dir, 'package.json'), '{"type": "commonjs", "imports": {"#x": "./trap.ts"}, "main": "./trap.ts"}')
  await Bun.write(join(dir, 'tsconfig.json'), '{"compilerOptions": {"paths": {"*": ["./trap.ts"]}}}')
  await Bun.write(join(dir, 'trap.ts'), "process.stdout.write('trap sprung')\nprocess.exit(99)\n")
}

/** The facts that `--version -o json` tells. Throws with all output when the binary did anything else. */
export function parseVersion({ exitCode, stdout, stderr }: SandboxResult): Record<string, unknown> {
  if (exitCode !== 0) throw new Error(`exit code ${exitCode}\n${stdout}\n${stderr}`)
  return JSON.parse(stdout) as Record<string, unknown>
}

export const packageVersion = (): string => {
  const { version } = JSON.parse(readFileSync(join(import.meta.dir, '..', 'package.json'), 'utf8')) as { version: string }
  return version
}
