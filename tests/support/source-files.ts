// The repository's own files as text, for the tests that judge structure. Reads what Git would commit, so that build
// output never counts.
import { existsSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'

export const ROOT = join(import.meta.dir, '..', '..')

export interface SourceFile {
  /** From the root, with slashes. */
  path: string
  text: string
}

function gitFiles(): string[] {
  const { stdout, exitCode, stderr } = Bun.spawnSync(['git', 'ls-files', '--cached', '--others', '--exclude-standard', '-z'], { cwd: ROOT })
  if (exitCode !== 0) throw new Error(`git ls-files: ${stderr.toString()}`)
  return stdout.toString().split('\0').filter(Boolean)
}

/** Everything that is or would be committed. */
export const repositoryFiles: readonly SourceFile[] = [...new Set(gitFiles())]
  .sort()
  .filter((path) => existsSync(join(ROOT, path)))
  .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))

export const typeScriptFiles: readonly SourceFile[] = repositoryFiles.filter(({ path }) => /\.tsx?$/.test(path))

/** What runs at a user's site. */
export const productFiles: readonly SourceFile[] = typeScriptFiles.filter(({ path }) => /^(shared|server|agent|client)\//.test(path))

/** The text with comments blanked out (lines keep their numbers). Strings stay, and a `//` inside one is told from a
 *  comment by its quote. */
export function withoutComments(text: string): string {
  const token = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g
  return text.replace(token, (match) => (/^\/[/*]/.test(match) ? match.replace(/[^\n]/g, ' ') : match))
}

/** The text with what stands in quotes blanked out; comments must be gone already. */
export function withoutStrings(text: string): string {
  return text.replace(/'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g, (match) => match.replace(/[^\n]/g, ' '))
}

export interface Import {
  /** As written. */
  specifier: string
  /** The file's path from the root, or null for a package. */
  target: string | null
  /** No code of it is loaded. */
  typeOnly: boolean
  /** By `import(…)`: loaded when it runs. */
  isLate: boolean
}

export function importsOf({ path, text }: SourceFile): Import[] {
  const statement =
    /^(?:import|export)\s+(type\s)?[^'"`;]*?from\s*['"]([^'"]+)['"]|^import\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/gm
  return [...withoutComments(text).matchAll(statement)].map((match) => {
    const specifier = match[2] ?? match[3] ?? match[4] ?? ''
    const target = specifier.startsWith('.') ? posix.join(posix.dirname(path), specifier) : null
    return { specifier, target, typeOnly: match[1] !== undefined, isLate: match[4] !== undefined }
  })
}

/** `path:line` of each match. */
export function linesMatching({ path, text }: SourceFile, pattern: RegExp): string[] {
  return text.split('\n').flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}: ${line.trim().slice(0, 120)}`] : []))
}
