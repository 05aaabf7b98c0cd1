// Which programs a sandbox can run: where they are, what they need beside them, and which versions they say they are.
import { accessSync, closeSync, constants, openSync, readSync, realpathSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { AppError } from '../../../shared/runtime/error.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import type { ExecEntry } from '../exec/list.ts'
import type { SandboxProgram } from '../sandbox.ts'
import { librariesOf } from './elf.ts'

/** How the server names them: a path each, or nothing, which is to look for it. */
export interface ProgramChoices {
  helm?: string | undefined
  helm3?: string | undefined
  kustomize?: string | undefined
  /** The operator's allow-list. */
  renderers: ReadonlyMap<string, ExecEntry>
  /** Folders of PATH. */
  searchPath: readonly string[]
}

/** A program as a sandbox starts it. */
export interface PlacedProgram {
  /** The path on this machine. */
  path: string
  /** Inside: the program and what it always gets. */
  command: readonly string[]
  /** Where it is here → where it is inside. */
  mounts: ReadonlyArray<readonly [from: string, to: string]>
  /** Go programs keep to a limit of their data; others (a JIT) do not even start with one. */
  kind: 'go' | 'bun' | 'exec'
  env: Readonly<Record<string, string>>
}

export const programName = (program: SandboxProgram): string => (typeof program === 'string' ? program : program.exec)

export interface Programs {
  /** Throws `renderer_missing`. The same object as long as nothing that it is made of changed. */
  place(program: SandboxProgram): PlacedProgram
  /** The path of a program that helps to start others: bwrap, prlimit. */
  tool(name: string): string | null
}

/** `ownBinary` runs TypeScript; programs without a given path are searched on the search path, then beside it. */
export function createPrograms(choices: ProgramChoices, ownBinary: string): Programs {
  const placed = new Map<string, { stamp: string; program: PlacedProgram; named: readonly string[] }>()
  const folders = [...choices.searchPath, dirname(ownBinary)]
  const locate = (program: SandboxProgram): string => {
    if (program === 'bun') return ownBinary
    if (typeof program === 'object') {
      const entry = choices.renderers.get(program.exec)
      if (entry === undefined) throw missing(program, `the server has no renderer ${program.exec} (\`--renderers\`)`)
      return entry.command
    }
    const path = choices[program] ?? find(folders, program)
    if (path === null) throw missing(program, `${program} is not configured and not on PATH`)
    return path
  }
  return {
    place(program) {
      const given = locate(program)
      try {
        accessSync(given, constants.X_OK)
      } catch (error) {
        throw missing(program, `${programName(program)}: ${describeError(error)}`)
      }
      const key = typeof program === 'string' ? program : `exec ${program.exec}`
      // `helmCharts:` of a kustomization is inflated by helm, which kustomize starts.
      const starts = program === 'kustomize' ? (['helm', 'helm3'] as const) : []
      const started = starts.flatMap((name) => {
        const found = choices[name] ?? find(folders, name)
        return found === null ? [] : [[name, found] as const]
      })
      const first = [given, ...started.map(([, path]) => path)]
      const known = placed.get(key)
      if (known?.stamp === stampOf([...first, ...(known?.named ?? [])])) return known.program
      const made = placeProgram(program, given, started, choices)
      const named = namedFiles(made)
      placed.set(key, { stamp: stampOf([...first, ...named]), program: made, named })
      return made
    },
    tool: (name) => find(folders, name),
  }
}

const missing = (program: SandboxProgram, detail: string): AppError =>
  new AppError('renderer_missing', { doing: `render with ${programName(program)}`, detail })

function find(folders: readonly string[], name: string): string | null {
  for (const folder of folders) {
    if (!folder.startsWith('/')) continue // a relative one would mean another program in another working directory
    const path = join(folder, name)
    try {
      if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) continue // most folders do not have it, and errors take their time
      accessSync(path, constants.X_OK)
      return path
    } catch {}
  }
  return null
}

/** Changes when one of the files does, the target of a link, or the reason why it cannot be read. */
const stampOf = (paths: readonly string[]): string => paths.map((path) => `${path} ${stampAt(path)}`).join('\0')

function stampAt(path: string): string {
  try {
    const { mtimeMs, size, ino } = statSync(path)
    return `${mtimeMs} ${size} ${ino}`
  } catch (error) {
    return describeError(error) // what is made of it says so, if it matters
  }
}

/** As they are called here: what an exec renderer sees has the same name inside, by links too. */
const namedFiles = ({ kind, mounts }: PlacedProgram): string[] =>
  mounts.flatMap(([from, to]) => (kind === 'exec' && to !== from ? [from, to] : [from]))

function placeProgram(
  program: SandboxProgram,
  given: string,
  started: ReadonlyArray<readonly [name: string, path: string]>,
  choices: ProgramChoices,
): PlacedProgram {
  try {
    const path = realpathSync(given)
    if (typeof program === 'object') return placeExec(program.exec, path, choices)
    const inside = `/bin/${program}`
    const libraries = librariesOf(path).map((library) => [library, library] as const)
    const mounts = [[path, inside] as const, ...libraries]
    for (const [name, found] of started) mounts.push([realpathSync(found), `/bin/${name}`])
    const env = program === 'bun' ? { BUN_BE_BUN: '1' } : {}
    return { path, command: [inside], mounts, kind: program === 'bun' ? 'bun' : 'go', env }
  } catch (error) {
    if (error instanceof AppError) throw error
    throw missing(program, describeError(error))
  }
}

/** At its own path, since what lies beside it may be looked for from there. A script gets its interpreter, too. */
function placeExec(name: string, path: string, { renderers }: ProgramChoices): PlacedProgram {
  const entry = renderers.get(name)
  if (entry === undefined) throw missing({ exec: name }, 'the file disappeared')
  const interpreter = interpreterOf(path)
  const extras = entry.readOnly.map((extra) => realpathSync(extra)).filter((extra) => statSync(extra).isFile())
  const programs = [path, ...(interpreter === null ? [] : [realpathSync(interpreter)]), ...extras]
  const mounts = new Map<string, string>()
  for (const one of programs) {
    mounts.set(one, one)
    for (const library of librariesOf(one)) mounts.set(library, library)
  }
  if (interpreter !== null) mounts.set(interpreter, realpathSync(interpreter))
  for (const extra of entry.readOnly) mounts.set(extra, realpathSync(extra))
  const pairs = [...mounts].map(([inside, from]) => [from, inside] as const)
  return { path, command: [path, ...entry.args], mounts: pairs, kind: 'exec', env: {} }
}

/** `#!/usr/bin/python3`. */
function interpreterOf(path: string): string | null {
  const handle = openSync(path, 'r')
  try {
    const bytes = Buffer.alloc(256)
    const line = bytes.toString('latin1', 0, readSync(handle, bytes, 0, bytes.length, 0)).split('\n')[0] ?? ''
    const found = /^#![ \t]*(\/\S+)/.exec(line)?.[1]
    if (found === undefined) return null
    if (found.endsWith('/env')) throw new Error(`${path} begins with ${line}: use the path of the interpreter instead of env`)
    return found
  } finally {
    closeSync(handle)
  }
}
