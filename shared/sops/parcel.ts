// A SOPS document as it travels: everything that its MAC covers, in the order of the file, and still encrypted. Rows are canonical JSON, which sorts members, and the MAC of SOPS is over
// values in their order; so the order travels in lists. Pure.

export type SopsFormat = 'yaml' | 'json' | 'dotenv' | 'binary'

/**
 * Text, null, a mapping (names and values in turn), a list, or a value that is no text: its bytes in the MAC, and
 * whether JSON has it as a number or a boolean.
 */
export type SopsNode = string | null | { m: Array<string | SopsNode> } | { l: SopsNode[] } | { v: string; t: 'number' | 'bool' | 'text' }

export interface SopsParcel {
  format: SopsFormat
  /** Recipients, each with the data key as an armored age file. */
  age: Array<readonly [recipient: string, enc: string]>
  mac: string
  /** `lastmodified`, which the MAC is bound to. */
  at: string
  /** `mac_only_encrypted` */
  only?: true
  /** One for each document of the file. */
  docs: SopsNode[]
}

/** A member of the file, as it is written: `ENC[AES256_GCM,data:…,iv:…,tag:…,type:str]`. */
export const SOPS_VALUE = /^ENC\[AES256_GCM,data:([A-Za-z0-9+/=]*),iv:([A-Za-z0-9+/=]+),tag:([A-Za-z0-9+/=]+),type:([a-z]+)\]$/
export const isSopsValue = (value: unknown): value is string => typeof value === 'string' && value.startsWith('ENC[AES256_GCM,')

/** Member of a row: the SOPS documents that the object is built from. It sorts before all members of Kubernetes objects. */
export const SOPS = '$sops'

export interface SopsMember {
  v: 1
  /** The encrypted parts of the object itself. */
  object?: SopsParcel
  /** The encrypted files in a Secret, by place: `data/app.env`. */
  entries?: Record<string, SopsParcel>
}

export const mayHaveSops = (doc: string): boolean => doc.includes(`"${SOPS}":`)

/** Null if there is none, or if another version wrote it. */
export function sopsMemberOf(object: Record<string, unknown>): SopsMember | null {
  const member = object[SOPS]
  return typeof member === 'object' && member !== null && 'v' in member && member.v === 1 ? (member as SopsMember) : null
}

export const parcelsOf = ({ object, entries = {} }: SopsMember): SopsParcel[] => [
  ...(object === undefined ? [] : [object]),
  ...Object.values(entries),
]

/** Each recipient once; those of post-quantum keys have two thousand characters and are cut. */
export const recipientsText = (recipients: Iterable<string>): string =>
  [...new Set(recipients)].map((text) => (text.length <= 70 ? text : `${text.slice(0, 24)}…${text.slice(-8)}`)).join(', ')
