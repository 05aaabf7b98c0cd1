// The argument vectors that start a program with nothing around it: bubblewrap with everything cut, or only limits of
// the process where that is chosen.
import type { SandboxLimits } from '../sandbox.ts'
import { bundled } from '../typescript/bundle.ts' with { type: 'macro' }
import type { ConfineOrder } from './confine.ts'
import { enterGroup } from './process-groups.ts'
import type { PlacedProgram } from './programs.ts'
import type { PlacedFiles } from './trees.ts'

/** The size of the mount at /tmp inside; it counts besides the memory. */
const TEMP_BYTES_MAX = 64 * 1024 * 1024
const FILE_BYTES_MAX = 64 * 1024 * 1024
const OPEN_FILES_MAX = 256
/** The most processes and threads of a run. The kernel counts those of the run's own user namespace, not those of the
 *  server; it does not count those of root, for whom process-groups.ts sets the limit. */
export const THREADS_MAX = 256
/** The memory that a Go program maps besides its heap. */
const GO_DATA_BYTES = 160 * 1024 * 1024

export interface StartOptions {
  program: PlacedProgram
  args: readonly string[]
  files: Pick<PlacedFiles, 'dir' | 'shared'>
  /** Checked: a folder in the tree, or ''. */
  cwd: string
  env: Readonly<Record<string, string>>
  limits: SandboxLimits
}

export interface StartCommand {
  argv: string[]
  env: Record<string, string>
  /** Null if it does not matter. */
  cwd: string | null
  /** Open, with the system calls that are refused; the program's helper finds it as FILTER_FD. Null means none. */
  filter: number | null
}
/** The file descriptor of the filter in a started process, the first after standard error. */
export const FILTER_FD = 3

interface ProcessLimits {
  cpuSeconds: number
  /** Null if there is none. */
  dataBytes: number | null
}

function processLimits({ program, limits }: StartOptions): ProcessLimits {
  const cpuSeconds = 2 * Math.ceil(limits.timeoutMs / 1_000) + 5 // of all threads together; the time on the wall is watched
  return { cpuSeconds, dataBytes: program.kind === 'go' ? limits.memoryBytes + GO_DATA_BYTES : null }
}

function byPrlimit({ cpuSeconds, dataBytes }: ProcessLimits): string[] {
  const data = dataBytes === null ? [] : [`--data=${dataBytes}`]
  return ['--core=0', `--cpu=${cpuSeconds}`, `--fsize=${FILE_BYTES_MAX}`, `--nofile=${OPEN_FILES_MAX}`, ...data]
}

/** The same limits for a shell: files in blocks of 512 bytes, memory in KiB. */
function byShell({ cpuSeconds, dataBytes }: ProcessLimits): string {
  const data = dataBytes === null ? [] : [`ulimit -d ${Math.floor(dataBytes / 1024)}`]
  return ['ulimit -c 0', `ulimit -t ${cpuSeconds}`, `ulimit -f ${FILE_BYTES_MAX / 512}`, `ulimit -n ${OPEN_FILES_MAX}`, ...data].join(
    ' && ',
  )
}

/**
 * The environment of a program in every mode: Go collects garbage in time, and starts no thread for each core of a
 * large machine.
 */
function programEnv({ program, env, limits }: StartOptions): Record<string, string> {
  const go = program.kind === 'go' ? { GOMAXPROCS: '2', GOMEMLIMIT: String(Math.floor(limits.memoryBytes * 0.9)) } : {}
  const path = program.kind === 'exec' ? '/usr/local/bin:/usr/bin:/bin' : '/bin'
  return { HOME: '/tmp', TMPDIR: '/tmp', PATH: path, LANG: 'C.UTF-8', TZ: 'UTC', ...go, ...program.env, ...env }
}

export interface BubblewrapTools {
  bwrap: string
  prlimit: string
  /** Loader and libraries of prlimit. */
  libraries: readonly string[]
  /** An open file with the system calls that are refused. */
  filter: number
}

/** A control group that counts processes, and the shell by which a program enters it. */
export interface GroupEntry {
  shell: string
  group: string
}

/**
 * No network, no other process, no user but nobody, no capability, no terminal; only /tmp is writable. With a group the
 * shell that enters it sets the limits, too: one program less to start. Without one, they are set inside, where the
 * processes of the server are not counted.
 */
export function bubblewrapCommand(
  options: StartOptions,
  { bwrap, prlimit, libraries, filter }: BubblewrapTools,
  entry: GroupEntry | null,
): StartCommand {
  const { program, args, files, cwd } = options
  const isolate = ['--unshare-all', '--unshare-user', '--disable-userns', '--die-with-parent', '--new-session', '--cap-drop', 'ALL']
  const user = ['--uid', '65534', '--gid', '65534', '--hostname', 'sandbox', '--clearenv']
  const env = Object.entries(programEnv(options)).flatMap(([name, value]) => ['--setenv', name, value])
  const helper = entry === null ? [[PRLIMIT, prlimit] as const, ...libraries.map((library) => [library, library] as const)] : []
  const mounts = new Map<string, string>(helper)
  for (const [from, to] of program.mounts) mounts.set(to, from)
  const binds = [...mounts].flatMap(([to, from]) => ['--ro-bind', from, to])
  const devices = ['null', 'zero', 'urandom'].flatMap((name) => ['--dev-bind', `/dev/${name}`, `/dev/${name}`])
  // Go needs no /proc; a JIT looks up its stack there. It shows the processes of the sandbox only.
  const proc = program.kind === 'go' ? [] : ['--proc', '/proc', '--remount-ro', '/proc']
  const own = files.dir === null ? ['--dir', '/work'] : ['--ro-bind', files.dir, '/work']
  const work = [...own, ...files.shared.flatMap(({ name, dir }) => ['--ro-bind', dir, `/work/${name}`])]
  // Before all that may lie below it.
  const temp = ['--size', String(TEMP_BYTES_MAX), '--tmpfs', '/tmp']
  const rest = ['--remount-ro', '/', '--chdir', cwd === '' ? '/work' : `/work/${cwd}`]
  const calls = ['--seccomp', String(FILTER_FD)]
  const limits = processLimits(options)
  const enter = entry === null ? [] : enterGroup(entry.shell, entry.group, byShell(limits))
  const limit = entry === null ? [PRLIMIT, ...byPrlimit(limits), `--nproc=${THREADS_MAX}`, '--'] : []
  const inside = [...limit, ...program.command, ...args]
  return {
    argv: [
      ...enter,
      bwrap,
      ...isolate,
      ...user,
      ...env,
      ...temp,
      ...binds,
      ...devices,
      ...proc,
      ...work,
      ...rest,
      ...calls,
      '--',
      ...inside,
    ],
    env: {},
    cwd: null,
    filter,
  }
}
const PRLIMIT = '/bin/prlimit'

const CONFINE = bundled('sandbox/confine.ts')
const DEVICES = ['/dev/null', '/dev/zero', '/dev/urandom']

export interface LimitsTools {
  prlimit: string
  /** Loader and libraries of prlimit, and where a loader looks for them. */
  libraries: readonly string[]
  /** The program is this binary as Bun, whose entry is always our own file. */
  ownBinary: string
  /** The run's own. */
  temp: string
  /** The system calls that are refused, sockets among them. */
  filter: Uint8Array
}

/** Characters: the kernel takes no single argument of 128 KiB, and those of a program can have more together. */
const ARGUMENT_MAX = 64 * 1024

function orderArguments(order: ConfineOrder): string[] {
  const text = Buffer.from(JSON.stringify(order)).toString('base64')
  return Array.from({ length: Math.ceil(text.length / ARGUMENT_MAX) }, (_, index) =>
    text.slice(index * ARGUMENT_MAX, (index + 1) * ARGUMENT_MAX),
  )
}

/**
 * Started by confine.ts, which removes access to all other files; `cwd` is a folder where no tenant can have put a
 * configuration of Bun.
 */
export function limitsCommand(options: StartOptions, { prlimit, libraries, ownBinary, temp, filter }: LimitsTools): StartCommand {
  const { program, args, files, cwd } = options
  if (files.dir === null) throw new Error('mounts are not available, and the files are not in one folder')
  const order: ConfineOrder = {
    argv: [prlimit, ...byPrlimit(processLimits(options)), '--', program.path, ...args],
    env: { ...programEnv(options), HOME: temp, TMPDIR: temp, PATH: `${temp}/bin` },
    cwd: cwd === '' ? files.dir : `${files.dir}/${cwd}`,
    read: [...new Set([prlimit, ...libraries, program.path, ...program.mounts.map(([from]) => from), files.dir])],
    write: [temp, ...DEVICES],
    filter: Buffer.from(filter).toString('base64'),
  }
  return { argv: [ownBinary, '-e', CONFINE, ...orderArguments(order)], env: { BUN_BE_BUN: '1' }, cwd: '/', filter: null }
}
