// Opens parcels with their data key: AES-256-GCM for each value, bound to the place of the value, and one MAC over all
// values in the order of the file. Nothing of a file whose MAC does not fit is used. Pure.
import { createDecipheriv, createHash, timingSafeEqual } from 'node:crypto'
import { isSopsValue, SOPS_VALUE, type SopsNode, type SopsParcel } from './parcel.ts'

export type SopsScalar = string | number | boolean | null

/** A document in the clear, in its order. */
export type OpenNode = SopsScalar | { m: Array<readonly [string, OpenNode]> } | { l: OpenNode[] }

export interface OpenSops {
  docs: OpenNode[]
  /** By encrypted text, which its nonce makes unique. */
  values: ReadonlyMap<string, { value: SopsScalar; bytes: Buffer }>
}

export type SopsOpened =
  | { kind: 'open'; sops: OpenSops }
  /** A value was changed, added, moved or removed after encryption, or the key is not of this file. */
  | { kind: 'mac' }
  | { kind: 'unreadable'; why: string }

/** SHA-256 of "sops": the MAC of `mac_only_encrypted` begins with it. */
const ONLY_ENCRYPTED = createHash('sha256').update('sops').digest()
const KEY_BYTES = 32
const TAG_BYTES = 16

/** The place of a member, as its file and the object both name it. */
export const placeText = (path: ReadonlyArray<string | number>): string => JSON.stringify(path)

class Unreadable extends Error {}

/**
 * A value counts as encrypted by its form. SOPS asks the rules of the file (suffixes, regular expressions of the
 * author), which lead to the same bytes: a text in clear at an encrypted place changes the MAC.
 */
export function openSops(
  parcel: SopsParcel,
  dataKey: Uint8Array,
  /** Stands in the documents for a value that was encrypted. Absent means the value itself. */
  shown: (value: SopsScalar, path: readonly string[]) => SopsScalar = (value) => value,
): SopsOpened {
  if (dataKey.length !== KEY_BYTES) return { kind: 'unreadable', why: 'its data key has not 32 bytes' }
  const hash = createHash('sha512')
  if (parcel.only === true) hash.update(ONLY_ENCRYPTED)
  const values = new Map<string, { value: SopsScalar; bytes: Buffer }>()

  const leaf = (node: Exclude<SopsNode, { m: unknown } | { l: unknown }>, path: readonly string[]): SopsScalar | undefined => {
    if (node === null) return null
    if (!isSopsValue(node)) {
      const bytes = typeof node === 'string' ? node : node.v
      if (parcel.only !== true) hash.update(bytes)
      return typeof node === 'string' || node.t === 'text' ? bytes : node.t === 'bool' ? bytes === 'True' : Number(bytes)
    }
    const { text, type } = decrypt(node, dataKey, `${path.join(':')}:`)
    if (type === 'comment') return undefined
    hash.update(text)
    const value = scalarOf(text.toString('utf8'), type)
    values.set(node, { value, bytes: text })
    return shown(value, path)
  }
  const walk = (node: SopsNode, path: readonly string[]): OpenNode | undefined => {
    if (node === null || typeof node === 'string' || 'v' in node) return leaf(node, path)
    if ('l' in node) {
      // Items of lists have the place of their list.
      const items = node.l.map((item) => walk(item, path))
      return { l: items.filter((item) => item !== undefined) }
    }
    const members: Array<readonly [string, OpenNode]> = []
    for (let at = 0; at + 1 < node.m.length; at += 2) {
      const [name, member] = [node.m[at], node.m[at + 1]]
      if (typeof name !== 'string' || member === undefined) throw new Unreadable('it is malformed')
      const opened = walk(member, [...path, name])
      if (opened !== undefined) members.push([name, opened])
    }
    return { m: members }
  }
  try {
    const docs = parcel.docs.flatMap((node) => {
      const opened = walk(node, [])
      return opened === undefined ? [] : [opened]
    })
    const { text: mac } = decrypt(parcel.mac, dataKey, parcel.at)
    const computed = Buffer.from(hash.digest('hex').toUpperCase())
    if (mac.length !== computed.length || !timingSafeEqual(mac, computed)) return { kind: 'mac' }
    return { kind: 'open', sops: { docs, values } }
  } catch (error) {
    if (error instanceof Forged) return { kind: 'mac' }
    if (error instanceof Unreadable) return { kind: 'unreadable', why: error.message }
    throw error
  }
}

class Forged extends Error {}

function decrypt(value: string, key: Uint8Array, aad: string): { text: Buffer; type: string } {
  const [, data, iv, tag, type] = SOPS_VALUE.exec(value) ?? []
  if (data === undefined || iv === undefined || tag === undefined || type === undefined)
    throw new Unreadable('an encrypted value is malformed')
  const [nonce, mark] = [Buffer.from(iv, 'base64'), Buffer.from(tag, 'base64')]
  if (nonce.length === 0 || mark.length !== TAG_BYTES) throw new Unreadable('an encrypted value is malformed')
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(aad)).setAuthTag(mark)
  try {
    return { text: Buffer.concat([decipher.update(Buffer.from(data, 'base64')), decipher.final()]), type }
  } catch {
    throw new Forged()
  }
}

function scalarOf(text: string, type: string): SopsScalar {
  switch (type) {
    case 'str':
    case 'bytes':
    case 'time':
      return text
    case 'bool':
      if (!/^(true|false)$/i.test(text)) break
      return text.toLowerCase() === 'true'
    case 'int':
    case 'float': {
      const number = Number(text)
      if (text !== '' && Number.isFinite(number) && (type === 'float' || Number.isSafeInteger(number))) return number
    }
  }
  throw new Unreadable(`an encrypted value of type ${type} cannot be read`)
}
