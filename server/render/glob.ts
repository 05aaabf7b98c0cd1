// The globs of `render.directory`, as Argo CD's directory sources have them, matched in time proportional to the path.
import { GLOB_LENGTH_MAX, type RenderSpec } from '../../shared/model/render.ts'
import type { Problem } from '../../shared/runtime/error.ts'
import { PatchError } from './patch/merge.ts'
import { compilePattern } from './patch/safe-pattern.ts'

/** A character of a glob becomes two of a pattern at most. */
const PATTERN_LENGTH_MAX = 2 * GLOB_LENGTH_MAX

/**
 * RN11. Whether a glob matches a whole path. `*` and `**` match any characters, `/` included, because Argo CD compiles
 * its globs without separators. Throws PatchError when the glob is malformed.
 */
export const compileGlob = (glob: string): ((path: string) => boolean) => compilePattern(patternOf(glob), PATTERN_LENGTH_MAX)

function patternOf(glob: string): string {
  let pattern = ''
  let depth = 0
  for (let at = 0; at < glob.length; at++) {
    const character = glob[at] ?? ''
    if (character === '\\') {
      if (at + 1 === glob.length) throw new PatchError('unfinished escape: "\\" at the end')
      pattern += literal(glob[++at] ?? '')
    } else if (character === '*') {
      while (glob[at + 1] === '*') at++
      pattern += '.*'
    } else if (character === '?') pattern += '.'
    else if (character === '[') {
      const end = glob.indexOf(']', at + 2)
      if (end < 0) throw new PatchError('"]" is missing')
      pattern += setOf(glob.slice(at + 1, end))
      at = end
    } else if (character === '{') {
      depth++
      pattern += '('
    } else if (character === ',' && depth > 0) pattern += '|'
    else if (character === '}' && depth > 0) {
      depth--
      pattern += ')'
    } else pattern += literal(character)
  }
  if (depth > 0) throw new PatchError('"}" is missing')
  return pattern
}

const literal = (character: string): string => (/[A-Za-z0-9_\u0080-\uffff]/.test(character) ? character : `\\${character}`)

function setOf(body: string): string {
  const isNegated = body.startsWith('!')
  const members = (isNegated ? body.slice(1) : body).replace(/[\\[\]^]/g, (character) => `\\${character}`)
  if (members === '') throw new PatchError('"[]" is empty')
  return `[${isNegated ? '^' : ''}${members}]`
}

/** Whether a path below the rendered folder is read. A path that ends with a slash is a folder. */
export function directoryFilter({ include, exclude, recurse = true }: NonNullable<RenderSpec['directory']>): (path: string) => boolean {
  const isIncluded = include === undefined ? () => true : compileGlob(include)
  const isExcluded = exclude === undefined ? () => false : compileGlob(exclude)
  return (path) => (path.endsWith('/') ? recurse : isIncluded(path) && !isExcluded(path))
}

/** Malformed globs of a render spec; `from` is its path in the resource. */
export function wrongGlobs({ directory = {} }: RenderSpec, from: string): Problem[] {
  return (['include', 'exclude'] as const).flatMap((field) => {
    const glob = directory[field]
    if (glob === undefined) return []
    try {
      compileGlob(glob)
      return []
    } catch (error) {
      if (!(error instanceof PatchError)) throw error
      return [{ path: `${from}.directory.${field}`, message: `malformed glob: ${error.message}` }]
    }
  })
}
