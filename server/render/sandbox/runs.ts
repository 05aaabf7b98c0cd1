// The sandbox: programs by bubblewrap, or with limits of the process only where that is chosen; as many at once as
// there are slots, which projects share by processor time.
import { closeSync, existsSync, openSync, unlinkSync, writeFileSync } from 'node:fs'
import { mkdir, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import { SANDBOX_LIMITS, type Sandbox, type SandboxLimits, type SandboxOutcome, type SandboxProgram, type SandboxRun } from '../sandbox.ts'
import { type BubblewrapTools, bubblewrapCommand, type GroupEntry, limitsCommand, type StartCommand, THREADS_MAX } from './command.ts'
import { librariesOf } from './elf.ts'
import { execVersion, FOLDERS_COUNT_MS, hasFolders } from './exec-version.ts'
import { FairSlots } from './fair-slots.ts'
import { wrongPath } from './files.ts'
import { runProcess } from './process.ts'
import { createProcessGroups } from './process-groups.ts'
import { createPrograms, type PlacedProgram, type ProgramChoices, programName } from './programs.ts'
import { refuseReferences } from './schema-references.ts'
import { systemCallFilter } from './system-calls.ts'
import { canMeasure } from './tree-size.ts'
import { createTrees, type PlacedFiles } from './trees.ts'

export const SANDBOX_MODES = ['bubblewrap', 'limits'] as const
export type SandboxMode = (typeof SANDBOX_MODES)[number]

const LOADER_CACHE = '/etc/ld.so.cache'

export interface SandboxOptions {
  mode: SandboxMode
  programs: ProgramChoices
  /** The render program is Bun, which runs TypeScript. */
  ownBinary: string
  bunVersion: string
  /** A folder of its own, emptied at the start. */
  folder: string
  /** How many programs run at once. */
  slots: number
  /** As Node.js names it; default that of this machine. */
  architecture?: string
  /** The project that asks now: projects share the time of programs. Absent means that all callers are one project. */
  whose?(): string
}

export interface RunningSandbox extends Sandbox {
  mode: SandboxMode
  close(): Promise<void>
}

/** The sandbox of a server, in `folder`, which it clears first. Runs answer how the program ended, or which limit
 *  stopped it; they throw AppError (`renderer_missing`, `sandbox_unavailable`, `source_refused`) for what never
 *  started. */
export function createSandbox(options: SandboxOptions, clock: Clock): RunningSandbox {
  const { mode, ownBinary, folder, bunVersion, architecture = process.arch } = options
  const programs = createPrograms(options.programs, ownBinary)
  const trees = createTrees(folder)
  const slots = new FairSlots(options.slots, clock)
  /** Another program is another object. */
  const versions = new WeakMap<PlacedProgram, { version: Promise<string>; untilMs: number }>()
  let temps = 0
  let tools: BubblewrapTools | null = null
  const groups = mode === 'bubblewrap' ? createProcessGroups(folder, THREADS_MAX) : null
  let filter = mode === 'bubblewrap' ? openFilter(folder, architecture) : null

  const bubblewrapTools = (): BubblewrapTools => {
    const bwrap = programs.tool('bwrap')
    if (bwrap === null) throw unavailable('bubblewrap (bwrap) is not on this server', 'Install bubblewrap')
    const prlimit = prlimitTool()
    if (filter === null) throw unknownCalls(architecture)
    tools = tools?.bwrap === bwrap && tools.prlimit === prlimit ? tools : { bwrap, prlimit, libraries: librariesOf(prlimit), filter }
    return tools
  }
  const prlimitTool = (): string => {
    const prlimit = programs.tool('prlimit')
    if (prlimit === null) throw unavailable('prlimit (of util-linux) is not on this server', 'Install util-linux')
    if (!canMeasure(process.pid))
      throw unavailable('this kernel does not list child processes (CONFIG_PROC_CHILDREN)', 'Run the server on another kernel')
    return prlimit
  }
  /** `group`: of control; null where the kernel holds the limit by itself. */
  const entryOf = (group: string | null): GroupEntry | null => {
    const shell = group === null ? null : programs.tool('sh')
    return group === null || shell === null ? null : { shell, group }
  }
  const commandFor = (
    program: PlacedProgram,
    { args, cwd = '', env = {} }: SandboxRun,
    files: PlacedFiles,
    limits: SandboxLimits,
    temp: string,
    group: string | null,
  ): StartCommand => {
    const start = { program, args, files, cwd, env, limits }
    if (mode === 'bubblewrap') return bubblewrapCommand(start, bubblewrapTools(), entryOf(group))
    const prlimit = prlimitTool()
    const refused = systemCallFilter(architecture, [])
    if (refused === null) throw unknownCalls(architecture)
    const libraries = [...librariesOf(prlimit), ...(existsSync(LOADER_CACHE) ? [LOADER_CACHE] : [])]
    return limitsCommand(start, { prlimit, libraries, ownBinary, temp, filter: refused })
  }
  const attempt = async (run: SandboxRun, spent: (processorMs: number) => void, signal?: AbortSignal): Promise<SandboxOutcome> => {
    const name = programName(run.program)
    if (mode === 'limits' && (run.program === 'bun' || typeof run.program === 'object'))
      throw unavailable(
        `${name} runs untrusted code, and this server runs with --render-sandbox limits`,
        'Start it with --render-sandbox bubblewrap',
      )
    checkRun(run)
    if (mode === 'limits') await refuseReferences(run)
    const program = programs.place(run.program)
    const limits = { ...SANDBOX_LIMITS, ...entryLimits(options.programs, run.program), ...run.limits }
    const files = await trees.place(run.files, mode === 'limits')
    temps += 1
    const temp = join(folder, `temp-${temps}`)
    const group = groups?.take() ?? null
    try {
      if (mode === 'limits') await makeTemp(temp, program)
      const command = commandFor(program, run, files, limits, temp, group)
      const contained = mode === 'bubblewrap'
      const outcome = await runProcess({ command, stdin: run.stdin, limits, name, contained, spent }, clock, signal)
      if (contained) refuseFailedStart(outcome)
      else refuseUnconfined(outcome)
      return outcome
    } finally {
      if (group !== null) groups?.giveBack(group)
      await files.release()
      if (mode === 'limits') await rm(temp, { recursive: true, force: true })
    }
  }
  const sandbox: RunningSandbox = {
    mode,
    run: (run, signal) => slots.run({ project: options.whose?.() ?? '', subject: '' }, (spent) => attempt(run, spent, signal), signal),
    async version(program) {
      let placed: PlacedProgram
      try {
        placed = programs.place(program)
      } catch (error) {
        if (error instanceof AppError && error.code === 'renderer_missing') return null
        throw error
      }
      const known = versions.get(placed)
      if (known !== undefined && clock.nowMs() < known.untilMs) return known.version
      const asked = { version: askVersion(sandbox, program, placed, bunVersion), untilMs: Number.POSITIVE_INFINITY }
      if (hasFolders(placed)) asked.untilMs = clock.nowMs() + FOLDERS_COUNT_MS
      versions.set(placed, asked)
      asked.version.catch(() => versions.delete(placed))
      return asked.version
    },
    async close() {
      if (filter !== null) closeSync(filter)
      filter = null
      groups?.close()
      await trees.close()
    },
  }
  return sandbox
}

/** A file without a name: what is in it stays what it is. */
function openFilter(folder: string, architecture: string): number | null {
  const bytes = systemCallFilter(architecture)
  if (bytes === null) return null
  const path = join(folder, 'filter')
  writeFileSync(path, bytes, { mode: 0o600 })
  const file = openSync(path, 'r')
  unlinkSync(path)
  return file
}

const VERSION_ARGS = {
  helm: ['version', '--template', '{{.Version}}'],
  helm3: ['version', '--template', '{{.Version}}'],
  kustomize: ['version'],
}

async function askVersion(sandbox: Sandbox, program: SandboxProgram, placed: PlacedProgram, bunVersion: string): Promise<string> {
  if (program === 'bun') return `bun ${bunVersion}`
  if (typeof program === 'object') {
    const version = await execVersion(placed).catch((error: unknown) => {
      throw new AppError('renderer_missing', { doing: `read the files of ${program.exec}`, detail: describeError(error) })
    })
    return `${program.exec} sha256:${version}`
  }
  const outcome = await sandbox.run({ program, args: VERSION_ARGS[program], files: new Map() })
  const said = outcome.kind === 'done' && outcome.exitCode === 0 ? new TextDecoder().decode(outcome.stdout).trim() : ''
  const version = /^v?(\d+\.\d+\.\d+\S*)$/.exec(said)?.[1]
  const detail = outcome.kind === 'stopped' ? outcome.message : `cannot read its version: ${(said || outcome.stderr).slice(0, 200)}`
  if (version === undefined) throw new AppError('renderer_missing', { doing: `ask ${program} for its version`, detail })
  const major = { helm: '4.', helm3: '3.', kustomize: '5.' }[program]
  if (!version.startsWith(major))
    throw new AppError('renderer_missing', {
      doing: `render with ${program}`,
      detail: `${program} has version ${version}, expected ${major}x`,
    })
  return `${program === 'helm3' ? 'helm' : program} ${version}`
}

function entryLimits({ renderers }: ProgramChoices, program: SandboxProgram): Partial<SandboxLimits> {
  const entry = typeof program === 'object' ? renderers.get(program.exec) : undefined
  return {
    ...(entry?.memory === undefined ? {} : { memoryBytes: entry.memory }),
    ...(entry?.timeout === undefined ? {} : { timeoutMs: entry.timeout }),
  }
}

/** The program's own /tmp, with a folder of the programs that it may start. */
async function makeTemp(temp: string, { mounts }: PlacedProgram): Promise<void> {
  await mkdir(join(temp, 'bin'), { recursive: true, mode: 0o700 })
  for (const [from, to] of mounts.slice(1)) if (to.startsWith('/bin/')) await symlink(from, join(temp, to))
}

/** Checks the arguments of our own renderers; a person never writes these. */
function checkRun({ args, cwd = '', env = {} }: SandboxRun): void {
  if (cwd !== '' && wrongPath(cwd) !== null) throw new Error(`a folder outside the files: ${cwd}`)
  if ([...args, ...Object.values(env)].some((text) => text.includes('\0'))) throw new Error('an argument with a NUL byte')
  const bad = Object.keys(env).find((name) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || name.startsWith('LD_'))
  if (bad !== undefined) throw new Error(`invalid name of an environment variable: ${bad}`)
}

/** bubblewrap itself says why it cannot; nothing of the program ran then. */
function refuseFailedStart(outcome: SandboxOutcome): void {
  if (outcome.kind !== 'done' || outcome.exitCode === 0 || outcome.stdout.byteLength > 0) return
  const said = /^(bwrap|\/bin\/prlimit|prlimit): (.*)/.exec(outcome.stderr)
  if (said === null) return
  if (/^failed to execute|execvp/.test(said[2] ?? ''))
    throw new AppError('renderer_missing', {
      doing: 'render',
      detail: `the program cannot be started in the sandbox: ${(said[2] ?? '').slice(0, 300)}`,
    })
  const remedy = /namespace|uid map|setting up|Operation not permitted|mount proc/i.test(outcome.stderr)
    ? 'Allow user namespaces (and in a container an unmasked /proc) on the host of the server'
    : 'Correct the problem that it names'
  throw unavailable(`bubblewrap does not work here: ${(said[2] ?? '').slice(0, 300)}`, remedy)
}

/** SB7: the program did not run then. */
function refuseUnconfined(outcome: SandboxOutcome): void {
  const said = outcome.kind === 'done' && outcome.exitCode !== 0 ? /^skerry-confine: (.*)/.exec(outcome.stderr)?.[1] : undefined
  if (said === undefined) return
  throw new AppError('sandbox_unavailable', {
    doing: 'render',
    detail: `--render-sandbox limits cannot protect the files of the server from programs: ${said.slice(0, 300)}`,
    remedy: 'Run the server on a kernel with Landlock (Linux 5.13 or later, lsm=…,landlock), or start it with --render-sandbox bubblewrap.',
  })
}

const unavailable = (detail: string, remedy: string): AppError =>
  new AppError('sandbox_unavailable', {
    doing: 'render',
    detail,
    remedy: `${remedy}. \`--render-sandbox limits\` renders charts and kustomizations without it; \`skerry doctor\` shows the available ones.`,
  })

const unknownCalls = (architecture: string): AppError =>
  unavailable(`the architecture ${architecture} is not supported`, 'Run the server on x86-64 or arm64')

/** Whether any program can run, for callers that ask before they need one. Null means that it can; else the reason. */
export async function sandboxTrouble(sandbox: Sandbox): Promise<string | null> {
  try {
    const outcome = await sandbox.run({ program: 'bun', args: ['-e', ''], files: new Map() })
    if (outcome.kind === 'stopped') return outcome.message
    return outcome.exitCode === 0 ? null : `it exited with code ${outcome.exitCode}: ${outcome.stderr.slice(0, 300)}`
  } catch (error) {
    return describeError(error)
  }
}
