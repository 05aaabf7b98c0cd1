// Which files of a chart's folder helm does not see: .helmignore as helm itself reads it (pkg/ignore/rules.go), and what it never looks at. Errs on the side of seeing:
// helm holds what it gets against the rules once more.

type Rule = { matches: (path: string) => boolean; foldersOnly: boolean; negated: boolean }

/** Names that begin with a dot in the templates folder are hidden by helm itself. */
const DEFAULTS = ['templates/.?*']

/** Lines with a rule, and characters; larger ones are refused: each rule is held against each file. */
export const IGNORE_RULES_MAX = 500
export const IGNORE_LENGTH_MAX = 64 * 1024

/** Of paths from the chart's folder; a folder has a slash at its end, and what is in a hidden folder is hidden. Null: too many rules. */
export function helmIgnore(text: string): ((path: string) => boolean) | null {
  if (text.length > IGNORE_LENGTH_MAX) return null
  const lines = text.replace(/^\ufeff/, '').split(/\r?\n/)
  const rules = [...lines, ...DEFAULTS].flatMap((line) => ruleOf(line.trim()))
  if (rules.length > IGNORE_RULES_MAX) return null
  const hides = (path: string, isFolder: boolean): boolean => {
    for (const { matches, foldersOnly, negated } of rules) {
      if (negated) {
        if ((foldersOnly && !isFolder) || !matches(path)) return true
      } else if ((!foldersOnly || isFolder) && matches(path)) return true
    }
    return false
  }
  const folders = new Map<string, boolean>([['', false]])
  const hidesFolder = (path: string): boolean => {
    const known = folders.get(path)
    const hidden = known ?? (hidesFolder(parentOf(path)) || hides(path, true))
    if (known === undefined) folders.set(path, hidden)
    return hidden
  }
  return (path) => (path.endsWith('/') ? hidesFolder(path.slice(0, -1)) : hidesFolder(parentOf(path)) || hides(path, false))
}

const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')))

function ruleOf(line: string): Rule[] {
  // helm refuses the double star, and says so.
  if (line === '' || line.startsWith('#') || line.includes('**')) return []
  const negated = line.startsWith('!')
  const bare = negated ? line.slice(1) : line
  const foldersOnly = bare.endsWith('/')
  const pattern = foldersOnly ? bare.slice(0, -1) : bare
  const anchored = pattern.startsWith('/')
  const whole = globMatcher(anchored ? pattern.slice(1) : pattern)
  if (whole === null) return []
  const byName = !anchored && !pattern.includes('/')
  const matches = (path: string) => whole(byName ? path.slice(path.lastIndexOf('/') + 1) : path)
  return [{ matches, foldersOnly, negated }]
}

type GlobPart = 'star' | ((char: string) => boolean)

/** Go's filepath.Match: a star and a question mark never match a slash, so each name between slashes is matched by itself. Null: it is no pattern. By hand, because a
 *  regular expression with many stars can take for ever. */
function globMatcher(glob: string): ((path: string) => boolean) | null {
  const names: GlobPart[][] = [[]]
  const add = (part: GlobPart) => names.at(-1)?.push(part)
  const chars = [...glob]
  for (let at = 0; at < chars.length; at++) {
    const char = chars[at] ?? ''
    if (char === '/') names.push([])
    else if (char === '*') add('star')
    else if (char === '?') add(() => true)
    else if (char === '[') {
      const end = chars.indexOf(']', at + 2)
      if (end < 0) return null
      add(setMatcher(chars.slice(at + 1, end)))
      at = end
    } else {
      if (char === '\\') at += 1
      const literal = char === '\\' ? chars[at] : char
      if (literal === undefined) return null
      add((other) => other === literal)
    }
  }
  return (path) => {
    const texts = path.split('/')
    return texts.length === names.length && texts.every((text, index) => fits([...text], names[index] ?? []))
  }
}

function setMatcher(set: readonly string[]): (char: string) => boolean {
  const negated = set[0] === '^'
  const ranges: Array<readonly [string, string]> = []
  for (let at = negated ? 1 : 0; at < set.length; at++) {
    const from = set[at] ?? ''
    const to = set[at + 1] === '-' ? set[at + 2] : undefined
    ranges.push([from, to ?? from])
    if (to !== undefined) at += 2
  }
  return (char) => ranges.some(([from, to]) => from <= char && char <= to) !== negated
}

/** After a mismatch only the last star takes one more: what earlier ones took is enough. */
function fits(text: readonly string[], parts: readonly GlobPart[]): boolean {
  let [at, part, star, taken] = [0, 0, -1, 0]
  while (at < text.length) {
    const one = parts[part]
    if (one === 'star') [star, taken, part] = [part, at, part + 1]
    else if (one?.(text[at] ?? '') === true) [at, part] = [at + 1, part + 1]
    else if (star >= 0) [taken, at, part] = [taken + 1, taken + 1, star + 1]
    else return false
  }
  return parts.slice(part).every((one) => one === 'star')
}
