// Reads .gitmodules: the repository of each path. Git's configuration format as far as it is used there; text in,
// values out.

export const SUBMODULES_MAX = 50
/** A submodule of a submodule of a submodule. */
export const SUBMODULE_DEPTH_MAX = 3

/** Path → URL as written. Null means that it cannot be read. */
export function readGitmodules(text: string): ReadonlyMap<string, string> | null {
  const sections: Array<Map<string, string>> = []
  let isOurs = false
  for (const raw of text.replaceAll('\\\n', '').split('\n')) {
    const line = raw.trim()
    if (line === '' || line.startsWith('#') || line.startsWith(';')) continue
    if (line.startsWith('[')) {
      if (!/^\[[^\]]+\]/.test(line)) return null
      isOurs = /^\[\s*submodule\s+"/i.test(line)
      if (isOurs) sections.push(new Map())
      continue
    }
    const match = /^([A-Za-z][-A-Za-z0-9]*)\s*=\s*(.*)$/.exec(line)
    const value = match === null ? null : readValue(match[2] ?? '')
    if (match !== null && value === null) return null
    if (isOurs && match !== null && value !== null) sections.at(-1)?.set((match[1] ?? '').toLowerCase(), value)
  }
  const found = new Map<string, string>()
  for (const section of sections) {
    const [path, url] = [section.get('path'), section.get('url')]
    if (path !== undefined && url !== undefined) found.set(path.replace(/\/+$/, ''), url)
  }
  return found.size > SUBMODULES_MAX ? null : found
}

/** Quotes group, a backslash escapes the next character, # and ; begin a comment. */
function readValue(text: string): string | null {
  let value = ''
  let isQuoted = false
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at)
    if (char === '"') isQuoted = !isQuoted
    else if (!isQuoted && (char === '#' || char === ';')) break
    else if (char === '\\') {
      const next = text.charAt(++at)
      if (next !== '"' && next !== '\\') return null
      value += next
    } else value += char
  }
  return isQuoted ? null : value.trim()
}
