// JSON patches (RFC 6902), applied to one object. Pure. As kubectl does it, also where the RFC would refuse: an index
// may count from the end (-1).
import { isMap, type Json, type JsonMap, PatchError } from './merge.ts'

export interface JsonPatchOp {
  op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test'
  path: string
  from?: string | undefined
  value?: Json | undefined
}

/** Characters and values that `copy` may add to one object: a few operations could else double it until the memory is
 *  full. */
const COPY_SIZE_MAX = 1_048_576

/** `index` counts the operations, for messages. */
export function applyJsonPatch(original: JsonMap, ops: readonly JsonPatchOp[]): JsonMap {
  const root: JsonMap = structuredClone(original)
  let copied = 0
  for (const [index, op] of ops.entries()) {
    try {
      if (op.op === 'copy') {
        copied += sizeOf(read(root, pointer(op.from ?? '')), COPY_SIZE_MAX)
        if (copied > COPY_SIZE_MAX) throw new PatchError(`copies more than ${COPY_SIZE_MAX} characters`)
      }
      run(root, op)
    } catch (error) {
      if (!(error instanceof PatchError)) throw error
      throw new PatchError(`[${index}] ${op.op} ${op.path}: ${error.message}`)
    }
  }
  return root
}

function run(root: JsonMap, { op, path, from, value }: JsonPatchOp): void {
  const to = pointer(path)
  switch (op) {
    case 'test':
      if (!isEqual(to.length === 0 ? root : read(root, to), value ?? null)) throw new PatchError('the value differs')
      return
    case 'remove':
      remove(root, to)
      return
    case 'add':
      add(root, to, structuredClone(value ?? null))
      return
    case 'replace':
      read(root, to)
      replace(root, to, structuredClone(value ?? null))
      return
    case 'copy':
      add(root, to, structuredClone(read(root, pointer(from ?? ''))))
      return
    case 'move': {
      const source = pointer(from ?? '')
      const moved = read(root, source)
      if (source.length < to.length && source.every((part, at) => part === to[at]))
        throw new PatchError('a value cannot be moved into itself')
      remove(root, source)
      add(root, to, moved)
    }
  }
}

/** RFC 6901. */
function pointer(text: string): string[] {
  if (text === '') return []
  if (!text.startsWith('/')) throw new PatchError('expected a pointer such as /spec/replicas')
  return text
    .slice(1)
    .split('/')
    .map((part) => {
      if (/~(?![01])/.test(part)) throw new PatchError('"~" is written ~0, and "/" in a name ~1')
      return part.replaceAll('~1', '/').replaceAll('~0', '~')
    })
}

function holderOf(root: JsonMap, path: readonly string[]): { holder: JsonMap | Json[]; last: string } {
  const last = path.at(-1)
  if (last === undefined) throw new PatchError('the whole object cannot be removed or replaced')
  const holder = read(root, path.slice(0, -1))
  if (isMap(holder) || Array.isArray(holder)) return { holder, last }
  throw new PatchError(`no mapping or list at ${pathText(path.slice(0, -1))}`)
}

function read(root: JsonMap, path: readonly string[]): Json {
  let value: Json = root
  for (const [depth, part] of path.entries()) {
    const next: Json | undefined = Array.isArray(value)
      ? value[indexIn(value, part, value.length)]
      : isMap(value) && Object.hasOwn(value, part)
        ? value[part]
        : undefined
    if (next === undefined) throw new PatchError(`no value at ${pathText(path.slice(0, depth + 1))}`)
    value = next
  }
  return value
}

const pathText = (path: readonly string[]): string => path.map((part) => `/${part.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')

/** Below `end`. */
function indexIn(list: readonly Json[], part: string, end: number): number {
  const given = /^-?(0|[1-9][0-9]{0,8})$/.test(part) ? Number(part) : Number.NaN
  const index = given < 0 || part === '-0' ? end + given : given
  if (index >= 0 && index < end) return index
  throw new PatchError(Number.isNaN(given) ? `expected an index, not "${part.slice(0, 60)}"` : `the list there has ${list.length} items`)
}

function add(root: JsonMap, path: readonly string[], value: Json): void {
  const { holder, last } = holderOf(root, path)
  if (Array.isArray(holder)) holder.splice(last === '-' ? holder.length : indexIn(holder, last, holder.length + 1), 0, value)
  else holder[last] = value
}

function replace(root: JsonMap, path: readonly string[], value: Json): void {
  const { holder, last } = holderOf(root, path)
  if (Array.isArray(holder)) holder[indexIn(holder, last, holder.length)] = value
  else holder[last] = value
}

function remove(root: JsonMap, path: readonly string[]): void {
  const { holder, last } = holderOf(root, path)
  if (Array.isArray(holder)) holder.splice(indexIn(holder, last, holder.length), 1)
  else if (Object.hasOwn(holder, last)) delete holder[last]
  else throw new PatchError(`no value at ${pathText(path)}`)
}

function sizeOf(value: Json, most: number): number {
  let size = 0
  const open: Json[] = [value]
  for (let next = open.pop(); next !== undefined && size <= most; next = open.pop()) {
    size += typeof next === 'string' ? next.length + 1 : 1
    if (Array.isArray(next)) open.push(...next)
    else if (isMap(next)) {
      open.push(...Object.values(next))
      for (const key of Object.keys(next)) size += key.length
    }
  }
  return size
}

function isEqual(a: Json, b: Json): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, at) => isEqual(item, b[at] ?? null))
  if (!isMap(a) || !isMap(b)) return a === b
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && isEqual(a[key] ?? null, b[key] ?? null))
}
