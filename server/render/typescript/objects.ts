// Turns a program's output into a flat list of plain JSON objects, or into an error that names the place of a wrong
// one. Members are dropped as JSON drops them.

export class NotPlainError extends Error {}

const DEPTH_MAX = 200

/** Lists are flattened; what is false or absent in them (`wanted && {…}`) is left out. */
export function collectObjects(made: unknown): Record<string, unknown>[] {
  if (made === undefined)
    throw new NotPlainError('exports nothing: expected `export default` of objects, or of a function that returns them')
  const objects: Record<string, unknown>[] = []
  const add = (value: unknown, path: string, depth: number): void => {
    if (depth > DEPTH_MAX) throw new NotPlainError(`${path}: lists nested too deeply`)
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) if (item != null && item !== false) add(item, `${path}[${index}]`, depth + 1)
      return
    }
    const plain = plainOf(value, path, [])
    if (typeof plain !== 'object' || plain === null || Array.isArray(plain))
      throw new NotPlainError(`${path} is ${nameOf(value)}: expected an object or a list of objects`)
    objects.push(plain as Record<string, unknown>)
  }
  add(made, 'default', 0)
  return objects
}

const nameOf = (value: unknown): string =>
  value === null ? 'null' : typeof value === 'object' ? 'not a plain object' : `a ${typeof value}`

const DROPPED = Symbol('dropped')

function plainOf(given: unknown, path: string, above: readonly object[]): unknown {
  const value = hasToJson(given) ? given.toJSON() : given
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      if (!Number.isFinite(value)) throw new NotPlainError(`${path} is ${value}, which JSON does not support`)
      return value
    case 'bigint':
      throw new NotPlainError(`${path} is a BigInt, which JSON does not support: use Number or String`)
    case 'undefined':
    case 'function':
    case 'symbol':
      return DROPPED
    case 'object':
      return value === null ? null : plainObject(value, path, above)
  }
}

const hasToJson = (value: unknown): value is { toJSON(): unknown } =>
  typeof value === 'object' && value !== null && 'toJSON' in value && typeof value.toJSON === 'function'

function plainObject(value: object, path: string, above: readonly object[]): unknown {
  if (above.includes(value)) throw new NotPlainError(`${path} is a circular object`)
  if (above.length > DEPTH_MAX) throw new NotPlainError(`${path} is nested more than ${DEPTH_MAX} deep`)
  if (value instanceof Promise) throw new NotPlainError(`${path} is a promise; use its value`)
  if (value instanceof Map || value instanceof Set)
    throw new NotPlainError(`${path} is a ${value.constructor.name}, which JSON does not support`)
  const inside = [...above, value]
  if (Array.isArray(value))
    return value.map((item: unknown, index) => {
      const plain = plainOf(item, `${path}[${index}]`, inside)
      return plain === DROPPED ? null : plain
    })
  const members = Object.entries(value).flatMap(([name, member]) => {
    const plain = plainOf(member, `${path}.${name}`, inside)
    return plain === DROPPED ? [] : [[name, plain] as const]
  })
  return Object.fromEntries(members)
}
