// The paths of fields that differ between two documents. Values never leave this file: a Config holds secrets, and an
// entry of the audit log cannot be taken back.

const FIELDS_MAX = 50

export function changedFields(before: string, after: string): { fields: string[]; more: number } {
  const all: string[] = []
  const [a, b] = [parse(before), parse(after)]
  if (a === undefined || b === undefined) return { fields: [], more: 0 }
  collect(a, b, '', all)
  return { fields: all.slice(0, FIELDS_MAX), more: Math.max(0, all.length - FIELDS_MAX) }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)

function collect(a: unknown, b: unknown, path: string, all: string[]): void {
  if (Object.is(a, b)) return
  if (isObject(a) && isObject(b)) {
    for (const key of [...new Set([...Object.keys(a), ...Object.keys(b)])].sort()) collect(a[key], b[key], join(path, key), all)
    return
  }
  if (Array.isArray(a) && Array.isArray(b)) {
    for (let index = 0; index < Math.max(a.length, b.length); index++) collect(a[index], b[index], `${path}[${index}]`, all)
    return
  }
  all.push(path === '' ? '.' : path)
}

/** Labels have dots and slashes in their names. */
const join = (path: string, key: string): string =>
  /^[A-Za-z0-9_-]+$/.test(key) ? `${path}${path === '' ? '' : '.'}${key}` : `${path}[${JSON.stringify(key)}]`
