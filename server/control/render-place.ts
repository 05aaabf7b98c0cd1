// With what this server renders, from what an operator said: which programs, which renderers of others, and how they
// are kept apart from everything else.
import { accessSync, constants, readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { type ExecEntry, readExecList } from '../render/exec/list.ts'
import { createPrograms, type ProgramChoices } from '../render/sandbox/programs.ts'
import type { SandboxMode } from '../render/sandbox/runs.ts'

export interface RenderPlace {
  mode: SandboxMode
  programs: ProgramChoices
}

export interface RenderFlags {
  renderSandbox: string
  helm?: string | undefined
  helm3?: string | undefined
  kustomize?: string | undefined
  /** A file. */
  renderers?: string | undefined
}

/** Relative paths are those of the folder that the server was started in. Throws `bad_options`. */
export function readRenderPlace(flags: RenderFlags, env: Record<string, string | undefined>): RenderPlace {
  const { helm, helm3, kustomize, renderers } = flags
  const named = Object.entries({ helm, helm3, kustomize }).flatMap(([name, path]) =>
    path === undefined ? [] : [[name, resolve(path)] as const],
  )
  const unusable = named.flatMap(([name, path]) => (isProgram(path) ? [] : [`--${name}: ${path} is not an executable file`]))
  if (unusable.length > 0)
    throw new AppError('bad_options', {
      detail: unusable.join('; '),
      remedy: 'Set the path of the program, or omit the option to search PATH.',
    })
  const searchPath = (env['PATH'] ?? '').split(':').filter(Boolean)
  return {
    mode: flags.renderSandbox as SandboxMode,
    programs: {
      ...Object.fromEntries(named),
      renderers: renderers === undefined ? new Map() : readRenderers(resolve(renderers)),
      searchPath,
    },
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

/** SB15: what is not on this machine, with what is not done without it; nothing is started for it. */
export function renderLacks({ mode, programs }: RenderPlace, ownBinary = process.execPath): Array<{ program: string; without: string }> {
  const { tool } = createPrograms(programs, ownBinary)
  const wanted = [
    ...(mode === 'bubblewrap'
      ? [['bwrap', 'charts, kustomizations, TypeScript and custom renderers do not work (install bubblewrap)']]
      : []),
    ...(['helm', 'helm3', 'kustomize'] as const)
      .filter((name) => programs[name] === undefined)
      .map((name) => [name, 'services that need it are not rendered']),
    ['git', 'repositories over ssh or with `client: cli` are not read'],
    ['ssh', 'repositories over ssh are not read'],
  ] as const
  return wanted.flatMap(([program = '', without = '']) => (tool(program) === null ? [{ program, without }] : []))
}

function readRenderers(file: string): ReadonlyMap<string, ExecEntry> {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new AppError('bad_options', { doing: 'read --renderers', detail: error instanceof Error ? error.message : String(error) })
  }
  const { documents, problems } = parseYamlDocuments(text, { file })
  const read = problems.length > 0 ? { problems } : readExecList(documents[0]?.value, file)
  if ('entries' in read && documents.length <= 1) return read.entries
  const told = 'problems' in read ? read.problems.map(({ path, message }) => `${path}: ${message}`) : [`${file}: expected one document`]
  throw new AppError('bad_options', {
    doing: 'read --renderers',
    detail: told.join('; '),
    remedy: 'Write NAME: {command: /path/of/program, args: […], readOnly: […], memory: 512Mi, timeout: 30s} for each.',
  })
}
