// Which files of a chart's folder helm does not see: .helmignore as helm itself reads it (pkg/ignore/rules.go), and
// what it never looks at. Errs on the side of seeing: helm holds what it gets against the rules once more.

interface Rule {
  /** The patterns of the names between slashes. A rule by name has one. */
  names: readonly Pattern[]
  byName: boolean
  foldersOnly: boolean
  negated: boolean
}
type Pattern = readonly GlobPart[]

/** Names that begin with a dot in the templates folder are hidden by helm itself. */
const DEFAULTS = ['templates/.?*']

/** Lines with a rule, and characters; larger ones are refused: each rule is held against each file. */
export const IGNORE_RULES_MAX = 500
export const IGNORE_LENGTH_MAX = 64 * 1024
/** Characters of rules and names that are held against each other, for all files together: a name with a rule of stars
 *  takes as many as the one has times the other. */
export const IGNORE_STEPS_MAX = 20_000_000

/** The cost of comparing a rule with a name, whatever the two are. */
const RULE_STEPS = 5

export interface HelmIgnore {
  /** Takes paths from the chart's folder. A folder ends with a slash, and everything in a hidden folder is hidden. */
  hides(path: string): boolean
  /** Then everything was hidden from there on. */
  tookTooMany(): boolean
}

/** Null if it has too many rules. */
export function helmIgnore(text: string): HelmIgnore | null {
  if (text.length > IGNORE_LENGTH_MAX) return null
  const lines = text.replace(/^\ufeff/, '').split(/\r?\n/)
  const rules = [...lines, ...DEFAULTS].flatMap((line) => ruleOf(line.trim()))
  return rules.length > IGNORE_RULES_MAX ? null : new Ignore(rules)
}

class Ignore implements HelmIgnore {
  private readonly rules: readonly Rule[]
  private readonly folders = new Map<string, boolean>([['', false]])
  /** By the name of a file or folder: what each rule by name says of it. The same few names are in all folders of most
   *  charts. */
  private readonly names = new Map<string, Array<boolean | undefined>>()
  private readonly steps: Steps = { left: IGNORE_STEPS_MAX }

  constructor(rules: readonly Rule[]) {
    this.rules = rules
  }

  hides(path: string): boolean {
    if (this.tookTooMany()) return true
    return path.endsWith('/') ? this.hidesFolder(path.slice(0, -1)) : this.hidesFolder(parentOf(path)) || this.hidesOne(path, false)
  }

  tookTooMany(): boolean {
    return this.steps.left < 0
  }

  private hidesFolder(path: string): boolean {
    const known = this.folders.get(path)
    const hidden = known ?? (this.hidesFolder(parentOf(path)) || this.hidesOne(path, true))
    if (known === undefined) this.folders.set(path, hidden)
    return hidden
  }

  private hidesOne(path: string, isFolder: boolean): boolean {
    const texts = path.split('/').map((name) => [...name])
    const name = path.slice(path.lastIndexOf('/') + 1)
    const known = this.names.get(name) ?? []
    this.names.set(name, known)
    const last = texts.slice(-1)
    for (const [index, rule] of this.rules.entries()) {
      const skipped = rule.foldersOnly && !isFolder
      if (skipped && !rule.negated) continue
      if (skipped) return true
      const matches = (rule.byName ? known[index] : undefined) ?? this.matches(rule, rule.byName ? last : texts)
      if (rule.byName) known[index] = matches
      if (matches !== rule.negated) return true
    }
    return false
  }

  private matches({ names }: Rule, texts: readonly string[][]): boolean {
    this.steps.left -= RULE_STEPS
    return texts.length === names.length && texts.every((text, index) => fits(text, names[index] ?? [], this.steps))
  }
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
  const names = globNames(anchored ? pattern.slice(1) : pattern)
  return names === null ? [] : [{ names, byName: !anchored && !pattern.includes('/'), foldersOnly, negated }]
}

type GlobPart = 'star' | { matches(char: string): boolean; steps: number }

/** Go's filepath.Match: a star and a question mark never match a slash, so each name between slashes is matched by
 *  itself. Null means that it is no pattern. By hand, because a regular expression with many stars can take for ever.
 */
function globNames(glob: string): Pattern[] | null {
  const names: GlobPart[][] = [[]]
  const add = (part: GlobPart) => names.at(-1)?.push(part)
  const chars = [...glob]
  for (let at = 0; at < chars.length; at++) {
    const char = chars[at] ?? ''
    if (char === '/') names.push([])
    else if (char === '*') add('star')
    else if (char === '?') add({ matches: () => true, steps: 1 })
    else if (char === '[') {
      const end = chars.indexOf(']', at + 2)
      if (end < 0) return null
      add(setMatcher(chars.slice(at + 1, end)))
      at = end
    } else {
      if (char === '\\') at += 1
      const literal = char === '\\' ? chars[at] : char
      if (literal === undefined) return null
      add({ matches: (other) => other === literal, steps: 1 })
    }
  }
  return names
}

function setMatcher(set: readonly string[]): GlobPart {
  const negated = set[0] === '^'
  const ranges: Array<readonly [string, string]> = []
  for (let at = negated ? 1 : 0; at < set.length; at++) {
    const from = set[at] ?? ''
    const to = set[at + 1] === '-' ? set[at + 2] : undefined
    ranges.push([from, to ?? from])
    if (to !== undefined) at += 2
  }
  return { matches: (char) => ranges.some(([from, to]) => from <= char && char <= to) !== negated, steps: 1 + ranges.length }
}

interface Steps {
  left: number
}

/** After a mismatch only the last star takes one more: what earlier ones took is enough. */
function fits(text: readonly string[], parts: Pattern, steps: Steps): boolean {
  let [at, part, star, taken] = [0, 0, -1, 0]
  while (at < text.length) {
    const one = parts[part]
    steps.left -= one === undefined || one === 'star' ? 1 : one.steps
    if (steps.left < 0) return false
    if (one === 'star') [star, taken, part] = [part, at, part + 1]
    else if (one?.matches(text[at] ?? '') === true) [at, part] = [at + 1, part + 1]
    else if (star >= 0) [taken, at, part] = [taken + 1, taken + 1, star + 1]
    else return false
  }
  return parts.slice(part).every((one) => one === 'star')
}
