// The content of an opened SOPS file, as `sops decrypt` writes it but for comments, which have no place in a parcel.
// Pure.
import { toYaml } from '../adapters/yaml.ts'
import type { OpenNode, OpenSops } from './open.ts'
import type { SopsParcel } from './parcel.ts'

/** Null if the file does not have the form of its format. */
export function emitSops({ format }: SopsParcel, { docs, values }: OpenSops): Buffer | null {
  const [first] = docs
  if (format === 'yaml') return Buffer.from(docs.map((doc) => toYaml(plainOf(doc))).join('---\n'))
  if (first === undefined || first === null || typeof first !== 'object' || !('m' in first)) return null
  if (format === 'json') return Buffer.from(`${jsonOf(first, '')}\n`)
  if (format === 'binary') {
    const [value] = values.values()
    return value === undefined ? Buffer.alloc(0) : value.bytes
  }
  const lines = first.m.map(([key, value]) => (isScalar(value) ? `${key}=${String(value ?? '').replaceAll('\n', '\\n')}\n` : null))
  return lines.includes(null) ? null : Buffer.from(lines.join(''))
}

const isScalar = (value: OpenNode): value is Exclude<OpenNode, object> | null => value === null || typeof value !== 'object'

function plainOf(node: OpenNode): unknown {
  if (isScalar(node)) return node
  return 'l' in node ? node.l.map(plainOf) : Object.fromEntries(node.m.map(([key, value]) => [key, plainOf(value)]))
}

/** Members stay in their order, also those whose names are numbers. */
function jsonOf(node: OpenNode, indent: string): string {
  if (isScalar(node)) return JSON.stringify(node)
  const inner = `${indent}\t`
  const parts =
    'l' in node
      ? node.l.map((item) => jsonOf(item, inner))
      : node.m.map(([key, value]) => `${JSON.stringify(key)}: ${jsonOf(value, inner)}`)
  const [open, close] = 'l' in node ? '[]' : '{}'
  return parts.length === 0 ? `${open}${close}` : `${open}\n${parts.map((part) => inner + part).join(',\n')}\n${indent}${close}`
}
