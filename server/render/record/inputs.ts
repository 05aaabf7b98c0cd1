// Inputs that record their reads. Read-only, and like plain objects to their reader; a list counts as one value, so
// there is no half of one.
import { canonicalJson } from '../../../shared/kube/canonical.ts'
import { type InputRead, KIND_ONLY } from '../inputs.ts'

/** `note` is called for each read, also of a missing value. */
export function recordedInputs<T extends object>(inputs: T, note: (path: InputRead) => void, at: InputRead = []): T {
  return recorded(inputs, at, note) as T
}

function recorded(value: object, path: InputRead, note: (path: InputRead) => void): object {
  const children = new Map<string, unknown>()
  const own = value as Record<string, unknown>
  const look = (name: string): unknown => {
    if (name === KIND_ONLY) {
      note(path)
      return undefined
    }
    const here = [...path, name]
    const member = Object.hasOwn(own, name) ? own[name] : undefined
    if (typeof member !== 'object' || member === null) {
      // A null has only its kind: a render with an object there continues with the reads inside it, and not by the
      // whole of it.
      note(member === null ? [...here, KIND_ONLY] : here)
      return member
    }
    if (!children.has(name))
      children.set(name, Array.isArray(member) ? frozen(JSON.parse(canonicalJson(member))) : recorded(member, here, note))
    note(Array.isArray(member) ? here : [...here, KIND_ONLY])
    return children.get(name)
  }
  const isOwn = (name: string) => Object.hasOwn(own, name) && own[name] !== undefined
  // The target is empty, so that nothing of it binds the answers; what every object has (toString) is the language's
  // and no look.
  return new Proxy<object>(
    {},
    {
      get(target, name) {
        if (typeof name === 'symbol') return Reflect.get(target, name)
        const member = look(name)
        return isOwn(name) ? member : Reflect.get(target, name)
      },
      has(target, name) {
        if (typeof name === 'symbol') return Reflect.has(target, name)
        look(name)
        return isOwn(name) || Reflect.has(target, name)
      },
      ownKeys() {
        note(path)
        return Object.keys(own).filter(isOwn).sort() // equal inputs are equal in whatever order they were written
      },
      getOwnPropertyDescriptor(_, name) {
        if (typeof name === 'symbol') return undefined
        const member = look(name)
        return isOwn(name) ? { value: member, enumerable: true, configurable: true, writable: false } : undefined
      },
      ...READ_ONLY,
    },
  )
}

const refuse = (): never => {
  throw new TypeError('inputs of a render cannot be changed')
}
const READ_ONLY = { set: refuse, defineProperty: refuse, deleteProperty: refuse, setPrototypeOf: refuse, preventExtensions: refuse }

function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(value)) frozen(member)
    Object.freeze(value)
  }
  return value
}
