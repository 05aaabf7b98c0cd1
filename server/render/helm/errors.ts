// Turns helm's standard error into problems at files of the chart. Words of the chart's author (`fail`, `required`)
// stay. Text that a function of the template language quotes may be a value, and values may be secrets: it is cut.

export interface HelmError {
  /** As helm names it: `podinfo/templates/deployment.yaml`. Null means that the error is of the chart, or of its
   *  values. */
  file: string | null
  line: number | null
  column: number | null
  message: string
  kind: 'execute' | 'parse' | 'yaml' | 'schema' | 'other'
  /** The template that helm rendered when it failed: without it the others can be reported too. Null means that no
   *  others can. */
  template: string | null
  /** For `schema`: the chart's name, and the place in its values. */
  values?: { chart: string; at: readonly string[] }
}

/** Several only for a schema. Empty: it said nothing that is an error. */
export function helmErrors(stderr: string): HelmError[] {
  const text = errorText(stderr)
  if (text === '') return []
  return schemaErrors(text) ?? [authorError(text) ?? parseError(text) ?? executeError(text) ?? yamlError(text) ?? otherError(text)]
}

function errorText(stderr: string): string {
  const start = /^Error: /m.exec(stderr)
  if (start === null) return ''
  return stderr
    .slice(start.index + start[0].length)
    .replace(/(?<!\n)\n+Use --debug flag to render out invalid YAML\s*$/, '')
    .replace(/\nhelm\.go:\d+: [\s\S]*$/, '') // what --debug says once more
    .trim()
}

const MESSAGE_LENGTH_MAX = 1_000
const cut = (text: string): string => (text.length > MESSAGE_LENGTH_MAX ? `${text.slice(0, MESSAGE_LENGTH_MAX)}…` : text)
const place = (line: string | undefined, column: string | undefined) => ({
  line: line === undefined ? null : Number(line),
  column: column === undefined ? null : Number(column),
})

function authorError(text: string): HelmError | null {
  const match = /^execution error (?:at|in) \(([^\s:)]+)(?::(\d+))?(?::(\d+))?\): ([\s\S]*)$/.exec(text)
  if (match === null) return null
  const [, file = '', line, column, message = ''] = match
  return { file, ...place(line, column), message: cut(message), kind: 'execute', template: file }
}

function parseError(text: string): HelmError | null {
  const match = /^parse error (?:at|in) \(([^\s:)]+)(?::(\d+))?(?::(\d+))?\): ([\s\S]*)$/.exec(text)
  if (match === null) return null
  const [, file = '', line, column, message = ''] = match
  return { file, ...place(line, column), message: parseMessage(message), kind: 'parse', template: file }
}

function parseMessage(message: string): string {
  const name = /^function "(env|expandenv)" not defined$/.exec(message)?.[1]
  return name === undefined ? cut(message) : `helm has no function ${name}: charts read no environment; give it as a value`
}

const ONE_LINE = /template: ([^\s:]+):(\d+)(?::(\d+))?: executing "[^"]*" at <([\s\S]*?)>: /g
const TRACE = /^(\S+):(\d+):(\d+)\n {2}executing "[^"]*" at <([\s\S]*?)>:\n {4}/gm

/** helm 3 puts the chain of includes on one line, helm 4 each on lines of its own; the last one is where it happened.
 */
function executeError(text: string): HelmError | null {
  const chain = [...text.matchAll(text.startsWith('template: ') ? ONE_LINE : TRACE)]
  const [first, last] = [chain[0], chain.at(-1)]
  if (first === undefined || last === undefined || first.index !== 0) return null
  const [whole, file = '', line, column, at = ''] = last
  const [, template = '', fromLine] = first
  const called = chain.length === 1 ? '' : ` (rendering ${template}:${fromLine})`
  const reason = safeReason(text.slice(last.index + whole.length).trim(), at)
  return { file, ...place(line, column), message: cut(`<${at}>: ${reason}${called}`), kind: 'execute', template }
}

/** Names of the template itself, which say what is wrong. */
const NAMES_ONLY =
  /^(?:error calling (?:include|tpl): *\n?)*(?:template: )?(?:no template |function |undefined variable|map has no entry|can't evaluate|wrong |nil pointer|template )/

/** `at`: what the template's author wrote there; a name that is not in it was put together from values. */
function safeReason(reason: string, at = ''): string {
  const text = reason.replace(/(?<!\s)\s*\n\s*/g, ' ').replace(/\b(can't iterate over|if\/with can't use) .*/, '$1 this value')
  if (NAMES_ONLY.test(reason))
    return text.replace(/(no template )("[^"]*")/, (whole, said, name) => (at.includes(name) ? whole : `${said}…`))
  return text.replace(/"[\s\S]*"|`[\s\S]*`|'[^']*'/, '…')
}

function yamlError(text: string): HelmError | null {
  const match = /^YAML parse error on (\S+): (?:error converting YAML to JSON: )?(?:yaml: )?(?:line (\d+): )?([\s\S]*)$/.exec(text)
  if (match === null) return null
  const [, file = '', line, message = ''] = match
  const where = line === undefined ? 'its output' : `line ${line} of a document in its output`
  return { file, line: null, column: null, message: `${where} is not YAML: ${safeReason(message)}`, kind: 'yaml', template: file }
}

const SCHEMA_HEAD = /^values don't meet the specifications of the schema\(s\) in the following chart\(s\):\n/

function schemaErrors(text: string): HelmError[] | null {
  const head = SCHEMA_HEAD.exec(text)
  if (head === null) return null
  const errors: HelmError[] = []
  let chart = ''
  for (const line of text.slice(head[0].length).split('\n')) {
    const item = /^\s*- (?:at '([^']*)': |([^:]+): )(.*)$/.exec(line)
    if (item === null) {
      if (line.endsWith(':')) chart = line.slice(0, -1)
      continue
    }
    const [, pointer, dotted, message = ''] = item
    const at = pointer === undefined ? dottedNames(dotted ?? '') : pointerNames(pointer)
    errors.push({
      file: null,
      line: null,
      column: null,
      kind: 'schema',
      template: null,
      values: { chart, at },
      message: schemaMessage(at, message),
    })
  }
  return errors.length > 0 ? errors : null
}

const dottedNames = (text: string): string[] => (text === '(root)' ? [] : text.split('.'))
const pointerNames = (text: string): string[] =>
  text
    .split('/')
    .slice(1)
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))

/** A mismatched pattern or format is reported together with the value. */
const schemaMessage = (at: readonly string[], message: string): string =>
  cut(`${at.length === 0 ? 'the values' : at.join('.')}: ${message.replace(/^'.*' (does not match pattern|is not valid)/, 'the value $1')}`)

function otherError(text: string): HelmError {
  const values =
    /^cannot load (\S+): (?:cannot unmarshal yaml document: )?(?:error converting YAML to JSON: )?(?:yaml: )?(?:line (\d+): )?([\s\S]*)$/.exec(
      text,
    )
  if (values !== null) {
    const [, file = '', line, message = ''] = values
    return { file: `/${file}`, ...place(line, undefined), message: safeReason(message), kind: 'other', template: null }
  }
  return { file: null, line: null, column: null, message: cut(safeReason(text)), kind: 'other', template: null }
}
