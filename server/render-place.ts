// With what this server renders, from what an operator said: which programs, which renderers of others, and how they are kept apart from everything else.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseYamlDocuments } from '../shared/adapters/yaml.ts'
import { AppError } from '../shared/protocol/error.ts'
import { type ExecEntry, readExecList } from './render/exec/list.ts'
import type { ProgramChoices } from './render/sandbox/programs.ts'
import type { SandboxMode } from './render/sandbox/runs.ts'

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
