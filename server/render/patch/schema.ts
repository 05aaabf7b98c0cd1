// The facts about built-in kinds that a strategic merge patch needs: merged lists and their keys. Pure.
import { PATCH_KINDS, PATCH_TYPES } from './table.ts'

export interface PatchField {
  /** The type of the object, or of each item of the list. */
  type: PatchType | null
  /** A list is merged; else it is replaced. */
  merge: boolean
  /** A map is replaced. */
  replace: boolean
  /** Absent means that items are no objects. */
  key: string | undefined
}
export type PatchType = ReadonlyMap<string, PatchField>

const words = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '')

function readTypes(): ReadonlyMap<string, PatchType> {
  const types = new Map<string, Map<string, PatchField>>()
  const lines = PATCH_TYPES.split('\n').filter((line) => line !== '')
  for (const line of lines) types.set(line.split(' ', 1)[0] ?? '', new Map())
  for (const line of lines) {
    const [name = '', ...fields] = words(line)
    for (const field of fields) {
      const [member = '', type = '', strategy = '', key] = field.split(':')
      const strategies = strategy.split(',')
      const found: PatchField = {
        type: types.get(type) ?? null,
        merge: strategies.includes('merge'),
        replace: strategies.includes('replace'),
        key: key === '' ? undefined : key,
      }
      types.get(name)?.set(member, found)
    }
  }
  return types
}

interface Kinds {
  exact: ReadonlyMap<string, PatchType>
  /** By group and kind: versions that are gone were merged as those that are left. */
  any: ReadonlyMap<string, PatchType>
}

function readKinds(): Kinds {
  const types = readTypes()
  const plain: PatchType = new Map([
    ['metadata', { type: types.get('v1.ObjectMeta') ?? null, merge: false, replace: false, key: undefined }],
  ])
  const [exact, any] = [new Map<string, PatchType>(), new Map<string, PatchType>()]
  for (const word of words(PATCH_KINDS)) {
    const [key = '', type = ''] = word.split('=')
    const found = types.get(type) ?? plain
    exact.set(key, found)
    any.set(withoutVersion(key), found)
  }
  return { exact, any }
}

const withoutVersion = (key: string): string => {
  const parts = key.split('/')
  return parts.length === 3 ? `${parts[0]}/${parts[2]}` : `/${parts[1]}`
}

let kinds: Kinds | null = null

/** Null if it is not a built-in kind. */
export function patchTypeOf(apiVersion: string, kind: string): PatchType | null {
  kinds ??= readKinds()
  const key = `${apiVersion}/${kind}`
  return kinds.exact.get(key) ?? kinds.any.get(withoutVersion(key)) ?? null
}
