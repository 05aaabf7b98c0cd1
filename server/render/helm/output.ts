// Standard output of `helm template` → the files that it came from, so that a problem in what was rendered names the
// template.

const SOURCE = /^---[ \t]*\n# Source: ([^\n]+)\n/gm

/** Documents of one template together, in helm's order. Names are fit for reading as manifests. */
export function splitHelmOutput(stdout: string): Map<string, Uint8Array> {
  const texts = new Map<string, string[]>()
  const heads = [...stdout.matchAll(SOURCE)]
  for (const [index, head] of heads.entries()) {
    const name = manifestName((head[1] ?? '').trim())
    const text = stdout.slice(head.index + head[0].length, heads[index + 1]?.index ?? stdout.length)
    const texts_ = texts.get(name)
    if (texts_ === undefined) texts.set(name, [text])
    else texts_.push(text)
  }
  const before = stdout.slice(0, heads[0]?.index ?? stdout.length)
  if (before.trim() !== '') texts.set('rendered.yaml', [before])
  const encoder = new TextEncoder()
  return new Map([...texts].map(([name, parts]) => [name, encoder.encode(parts.map(endLine).join('---\n'))]))
}

const endLine = (text: string): string => (text.endsWith('\n') ? text : `${text}\n`)

/** A chart may call its templates anything; here names that begin with a dot are not read, and some mark other
 *  renderers. */
function manifestName(source: string): string {
  const names = source.split('/').filter((name) => name !== '')
  const safe = names.map((name) => (name.startsWith('.') ? `_${name}` : name)).join('/')
  return /\.(ya?ml|json)$/i.test(safe) && !/(^|\/)(Chart\.yaml|[Kk]ustomization\.ya?ml)$/.test(safe) ? safe : `${safe}.yaml`
}
