// A JSON value as YAML, for reading: block style, keys in the order of kubectl, text of several lines as blocks. Pure.

const FIRST = ['apiVersion', 'kind', 'metadata', 'name', 'namespace', 'labels', 'annotations', 'spec', 'data']
const rank = (key: string): number => {
  if (key === 'status') return FIRST.length + 1
  const at = FIRST.indexOf(key)
  return at < 0 ? FIRST.length : at
}

/** Text that YAML would read as something else, or that cannot stand plain. */
const NOT_PLAIN = /^$|^[\s\-?:,[\]{}#&*!|>'"%@`]|[:#]\s|:$|\s#|\s$|^(true|false|null|yes|no|on|off|~)$|^[-+.\d][\d_.eE+:-]*$/i

function scalar(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value) ?? 'null'
  return NOT_PLAIN.test(value) || /[\n\t]/.test(value) ? JSON.stringify(value) : value
}

const isBlock = (value: unknown): value is string => typeof value === 'string' && value.includes('\n') && !/[\t\r]|\s\n/.test(value)
const isEmpty = (value: object): boolean => (Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0)

export function yamlOf(value: unknown, indent = ''): string {
  if (value === null || typeof value !== 'object') return `${indent}${scalar(value)}\n`
  if (isEmpty(value)) return `${indent}${Array.isArray(value) ? '[]' : '{}'}\n`
  if (Array.isArray(value)) return value.map((item) => `${indent}- ${yamlOf(item, `${indent}  `).slice(indent.length + 2)}`).join('')
  return Object.entries(value)
    .filter(([, child]) => child !== undefined)
    .sort(([a], [b]) => rank(a) - rank(b))
    .map(([key, child]) => `${indent}${scalar(key)}:${entryText(child, indent)}`)
    .join('')
}

function entryText(child: unknown, indent: string): string {
  if (isBlock(child)) {
    const body = child.replace(/\n+$/, '').split('\n')
    const keep = child.endsWith('\n') ? (child.endsWith('\n\n') ? '+' : '') : '-'
    return ` |${keep}\n${body.map((line) => (line === '' ? '\n' : `${indent}  ${line}\n`)).join('')}`
  }
  if (child === null || typeof child !== 'object' || isEmpty(child)) return ` ${yamlOf(child).trimEnd()}\n`
  return `\n${yamlOf(child, Array.isArray(child) ? indent : `${indent}  `)}`
}
