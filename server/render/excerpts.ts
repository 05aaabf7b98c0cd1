// The line that a problem is about, as the repository has it, for problems that do not have theirs yet. Never of what
// was rendered, and none that may hold a secret.
import { AppError, type Problem } from '../../shared/runtime/error.ts'
import type { JobSource } from './renderer.ts'

const EXCERPT_MAX = 200
/** A file that may hold a Secret, or is about to be one: its lines are values. */
const SECRET = /\bkind\b[\s\S]{0,40}?\bSecret(List)?\b|\bstringData\b|\bsecretGenerator\b/i
const SECRET_WORD = /passw|passphrase|pwd|secret|token|credential|:\/\/[^\s/@:]*:[^\s/@]*@/i
/** Matches names of several words such as API_KEY, tls.key and privateKeys, but not `keyboard`. */
const KEY_WORD = /([kK]ey|KEY)s?(?![a-z])/
/** Lines further up are not searched for the parent of a line. */
const LINES_ABOVE_MAX = 10_000

export interface ExcerptSource {
  /** The prefix of this source's paths in messages. */
  prefix: string
  source: JobSource
  /**
   * The rendered files. Where a file has other bytes than the source has under that name, its lines are not lines of
   * the source.
   */
  files: ReadonlyMap<string, Uint8Array>
}

/** RD7: the same problems, those in a file of a source with their line. */
export async function withExcerpts(problems: readonly Problem[], sources: readonly ExcerptSource[]): Promise<Problem[]> {
  const texts = new Map<string, Excerpts | null>()
  const told: Problem[] = []
  for (const problem of problems) {
    const { excerpt: brought, ...bare } = problem
    const [, file, line, column] = /^(.+?):(\d+)(?::(\d+))?$/.exec(problem.path) ?? []
    if (brought !== undefined || file === undefined) {
      told.push(brought === undefined || speaksOfSecrets(brought) ? bare : problem)
      continue
    }
    const known = texts.get(file)
    const excerpts = known === undefined ? await excerptsIn(file, sources) : known
    texts.set(file, excerpts)
    const excerpt = excerpts?.(Number(line), Number(column ?? 1)) ?? ''
    told.push(excerpt === '' ? problem : { ...problem, excerpt })
  }
  return told
}

/** Null if there is none to show. */
async function excerptsIn(path: string, sources: readonly ExcerptSource[]): Promise<Excerpts | null> {
  const found = sources.find(({ prefix }) => path.startsWith(prefix))
  if (found === undefined) return null
  const name = path.slice(found.prefix.length)
  try {
    const file = await found.source.tree.file(name)
    const rendered = found.files.get(name)
    if (file === null || (rendered !== undefined && Buffer.compare(rendered, file.bytes) !== 0)) return null
    return excerptsOf(new TextDecoder().decode(file.bytes))
  } catch (error) {
    if (error instanceof AppError) return null
    throw error
  }
}

/** The excerpt at a line and a column, both from 1. Empty if the line is empty or may hold a secret. */
export type Excerpts = (line: number, column: number) => string

/** RD7: the parts of a text that may be shown beside an error; all code that shows a line asks here. */
export function excerptsOf(text: string): Excerpts {
  if (SECRET.test(text)) return () => ''
  const lines = text.split('\n')
  return (line, column) => (mayShow(lines, line - 1) ? excerptOf(lines[line - 1] ?? '', column) : '')
}

/** Whether a line, or the name of a place, is about confidential values. */
export const speaksOfSecrets = (text: string): boolean => SECRET_WORD.test(text) || KEY_WORD.test(text)

/** Not if the line, the one before it (`name: PASSWORD`, `value: …`) or its parent by indentation is about secrets. */
function mayShow(lines: readonly string[], index: number): boolean {
  const line = lines[index] ?? ''
  if (speaksOfSecrets(line) || speaksOfSecrets(lines[index - 1] ?? '')) return false
  let [indent, isItem] = [indentOf(line), isListItem(line)]
  for (let above = index - 1; above >= 0 && (indent > 0 || isItem); above--) {
    if (index - above > LINES_ABOVE_MAX) return false
    const text = lines[above] ?? ''
    if (text.trim() === '') continue
    const depth = indentOf(text)
    if (depth > indent || (depth === indent && !(isItem && !isListItem(text)))) continue
    if (speaksOfSecrets(text)) return false
    indent = depth
    isItem = isListItem(text)
  }
  return true
}

const indentOf = (line: string): number => line.length - line.trimStart().length
const isListItem = (line: string): boolean => /^\s*-(\s|$)/.test(line)

/** The line with what stands before it, so that a caret below its column is right; of a long one, what is around the
 *  column (from 1). */
function excerptOf(line: string, column: number): string {
  const whole = line.trimEnd()
  const from = whole.length > EXCERPT_MAX ? Math.max(0, Math.min(column - EXCERPT_MAX / 2, whole.length - EXCERPT_MAX)) : 0
  return from === 0 ? whole.slice(0, EXCERPT_MAX) : `…${whole.slice(from, from + EXCERPT_MAX)}`
}
