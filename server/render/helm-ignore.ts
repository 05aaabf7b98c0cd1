// Which files of a chart's folder helm does not see: .helmignore as helm itself reads it (pkg/ignore/rules.go), and what it never looks at. Errs on the side of seeing:
// helm holds what it gets against the rules once more.

type Rule = { matches: (path: string) => boolean; foldersOnly: boolean; negated: boolean }

/** Names that begin with a dot in the templates folder are hidden by helm itself. */
const DEFAULTS = ['templates/.?*']

/** Of paths from the chart's folder; a folder has a slash at its end, and what is in a hidden folder is hidden. */
export function helmIgnore(text: string): (path: string) => boolean {
  const lines = text.replace(/^\ufeff/, '').split(/\r?\n/)
  const rules = [...lines, ...DEFAULTS].flatMap((line) => ruleOf(line.trim()))
  const hides = (path: string, isFolder: boolean): boolean => {
    for (const { matches, foldersOnly, negated } of rules) {
      if (negated) {
        if ((foldersOnly && !isFolder) || !matches(path)) return true
      } else if ((!foldersOnly || isFolder) && matches(path)) return true
    }
    return false
  }
  return (path) => {
    const names = path.split('/')
    const isFolder = names.at(-1) === ''
    if (isFolder) names.pop()
    return names.some((_, index) => hides(names.slice(0, index + 1).join('/'), index < names.length - 1 || isFolder))
  }
}

function ruleOf(line: string): Rule[] {
  // helm refuses the double star, and says so.
  if (line === '' || line.startsWith('#') || line.includes('**')) return []
  const negated = line.startsWith('!')
  const bare = negated ? line.slice(1) : line
  const foldersOnly = bare.endsWith('/')
  const pattern = foldersOnly ? bare.slice(0, -1) : bare
  const anchored = pattern.startsWith('/')
  const whole = globPattern(anchored ? pattern.slice(1) : pattern)
  if (whole === null) return []
  const byName = !anchored && !pattern.includes('/')
  const matches = (path: string) => whole.test(byName ? path.slice(path.lastIndexOf('/') + 1) : path)
  return [{ matches, foldersOnly, negated }]
}

/** Go's filepath.Match: a star and a question mark never match a slash. Null: it is no pattern. */
function globPattern(glob: string): RegExp | null {
  let source = ''
  for (let at = 0; at < glob.length; at++) {
    const char = glob.charAt(at)
    if (char === '*') source += '[^/]*'
    else if (char === '?') source += '[^/]'
    else if (char === '[') {
      const end = glob.indexOf(']', at + 2)
      if (end < 0) return null
      const set = glob.slice(at + 1, end)
      source += set.startsWith('^') ? `[^/${escapeSet(set.slice(1))}]` : `[${escapeSet(set)}]`
      at = end
    } else if (char === '\\' && at + 1 < glob.length) source += escapeText(glob.charAt(++at))
    else source += escapeText(char)
  }
  try {
    return new RegExp(`^${source}$`, 'u')
  } catch {
    return null
  }
}

const escapeText = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
const escapeSet = (set: string): string => set.replace(/[\\\]^[]/g, '\\$&')
