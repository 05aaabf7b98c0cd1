// The line that a problem is about, as the repository has it, for problems that do not have theirs yet. Never of what was rendered: that may hold values of secrets.
import { AppError, type Problem } from '../../shared/protocol/error.ts'
import type { JobSource } from './renderer.ts'

const EXCERPT_MAX = 200
/** A file that may hold a Secret, or is about to be one: its lines are values. */
const SECRET = /\bkind\b[\s\S]{0,40}?\bSecret(List)?\b|\bstringData\b/i

export interface ExcerptSource {
  /** What paths of this source begin with in messages. */
  prefix: string
  source: JobSource
  /** What it rendered to. Of a file with other bytes than the source has under that name, a line here is no line there. */
  files: ReadonlyMap<string, Uint8Array>
}

/** RD7: the same problems, those in a file of a source with their line. */
export async function withExcerpts(problems: readonly Problem[], sources: readonly ExcerptSource[]): Promise<Problem[]> {
  const texts = new Map<string, readonly string[] | null>()
  const told: Problem[] = []
  for (const problem of problems) {
    const [, file, line, column] = /^(.+?):(\d+)(?::(\d+))?$/.exec(problem.path) ?? []
    if (problem.excerpt !== undefined || file === undefined) {
      told.push(problem)
      continue
    }
    const known = texts.get(file)
    const lines = known === undefined ? await linesOf(file, sources) : known
    texts.set(file, lines)
    const excerpt = excerptOf(lines?.[Number(line) - 1] ?? '', Number(column ?? 1))
    told.push(excerpt === '' ? problem : { ...problem, excerpt })
  }
  return told
}

/** Null: there is none to show. */
async function linesOf(path: string, sources: readonly ExcerptSource[]): Promise<string[] | null> {
  const found = sources.find(({ prefix }) => path.startsWith(prefix))
  if (found === undefined) return null
  const name = path.slice(found.prefix.length)
  try {
    const file = await found.source.tree.file(name)
    const rendered = found.files.get(name)
    if (file === null || (rendered !== undefined && Buffer.compare(rendered, file.bytes) !== 0)) return null
    const text = new TextDecoder().decode(file.bytes)
    return SECRET.test(text) ? null : text.split('\n')
  } catch (error) {
    if (error instanceof AppError) return null
    throw error
  }
}

/** The line with what stands before it, so that a caret below its column is right; of a long one, what is around the column (from 1). */
export function excerptOf(line: string, column: number): string {
  const whole = line.trimEnd()
  const from = whole.length > EXCERPT_MAX ? Math.max(0, Math.min(column - EXCERPT_MAX / 2, whole.length - EXCERPT_MAX)) : 0
  return from === 0 ? whole.slice(0, EXCERPT_MAX) : `…${whole.slice(from, from + EXCERPT_MAX)}`
}
