// A SOPS document as it travels: everything that its MAC covers, in the order of the file, and still encrypted. Rows
// are canonical JSON, which sorts members, and the MAC of SOPS is over values in their order; so the order travels in
// lists. Pure.

import { isSealed } from '../model/sealed-object.ts'

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

/** Stanzas beyond this count are no team's recipients. */
export const SOPS_RECIPIENTS_MAX = 64

/** A member of the file, as it is written: `ENC[AES256_GCM,data:…,iv:…,tag:…,type:str]`. */
export const SOPS_VALUE = /^ENC\[AES256_GCM,data:([A-Za-z0-9+/=]*),iv:([A-Za-z0-9+/=]+),tag:([A-Za-z0-9+/=]+),type:([a-z]+)\]$/
export const isSopsValue = (value: unknown): value is string => typeof value === 'string' && value.startsWith('ENC[AES256_GCM,')

/** Member of a row: the SOPS documents that the object is built from. It sorts before all members of Kubernetes
 *  objects. */
export const SOPS = '$sops'

/**
 * Values of the annotation on an object: the server sets `encrypted` on rows with SOPS documents; the agent sets
 * `decrypted`, so that the contents are never shown; the author sets `disabled`, so that the object is not read as
 * SOPS.
 */
export const SOPS_ANNOTATION = 'skerry.dev/sops'
/** A text that canonical JSON has for that annotation only: quotes in values are escaped. */
const MARKED = `"${SOPS_ANNOTATION}":"encrypted"`

/** Feature bit: a query parameter of GET desired and POST desired/buckets by which an agent says that it opens SOPS
 *  documents. */
export const SOPS_PARAM = 'sops'

export interface SopsMember {
  v: 1
  /** The encrypted parts of the object itself. */
  object?: SopsParcel
  /** The encrypted files in a Secret, by place: `data/app.env`. */
  entries?: Record<string, SopsParcel>
}

/** The member, in whatever form. */
export const hasSopsMember = (object: object): boolean => Object.hasOwn(object, SOPS)

/** Whether an agent has to open SOPS documents of a row: canonical JSON, sealed or not. A sealed row says so by its
 *  annotation. */
export const isSopsRow = (doc: string): boolean => doc.startsWith(`{"${SOPS}":`) || (isSealed(doc) && doc.includes(MARKED))

/** Null if there is none, or if another version wrote it. */
export function sopsMemberOf(object: Record<string, unknown>): SopsMember | null {
  const member = object[SOPS]
  return typeof member === 'object' && member !== null && 'v' in member && member.v === 1 ? (member as SopsMember) : null
}

export const parcelsOf = ({ object, entries = {} }: SopsMember): SopsParcel[] => [
  ...(object === undefined ? [] : [object]),
  ...Object.values(entries),
]

/** Recipients in one message. */
const NAMED_MAX = 8

/** Each recipient once; those of post-quantum keys have two thousand characters and are cut. */
export function recipientsText(recipients: Iterable<string>): string {
  const all = [...new Set(recipients)].map((text) => (text.length <= 70 ? text : `${text.slice(0, 24)}…${text.slice(-8)}`))
  return all.length <= NAMED_MAX ? all.join(', ') : `${all.slice(0, NAMED_MAX).join(', ')} and ${all.length - NAMED_MAX} more`
}
