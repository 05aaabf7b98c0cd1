// SOPS files → parcels, or why they are none. The formats are those of sops 3 (stores/yaml, json, dotenv);
// tests/contract/sops.test.ts has the real program as its oracle. Runs where files of tenants are read: in workers.
import { readYamlNodes, type YamlNode } from '../adapters/yaml.ts'
import { goTextOf, yaml3Scalar } from './go-values.ts'
import { SOPS_RECIPIENTS_MAX, type SopsFormat, type SopsNode, type SopsParcel } from './parcel.ts'

export type SopsRead =
  | { kind: 'parcel'; parcel: SopsParcel }
  /** It is no SOPS file. */
  | { kind: 'none' }
  | { kind: 'refused'; why: string }

interface Metadata {
  get(key: string): unknown
}

/** `mac`: only the documents of that SOPS file, which a renderer put beside others. */
export function readSops(text: string, format: SopsFormat, mac?: string): SopsRead {
  if (format === 'dotenv') return readDotenv(text)
  const nodes = readYamlNodes(text)
  if (nodes === null) return { kind: 'refused', why: 'it cannot be read: SOPS files have no aliases and no composed keys' }
  const own = mac === undefined ? nodes : nodes.filter((node) => macOf(node) === mac)
  const [first] = own
  const metadata = first === undefined ? null : memberOf(first, 'sops')
  if (metadata === null) return { kind: 'none' }
  if (metadata.kind !== 'map') return { kind: 'refused', why: '`sops` is no mapping' }
  const plain = plainOf(metadata) as Record<string, unknown>
  const docs = own.flatMap((node) => (node.kind === 'map' ? [nodeOf(withoutMember(node, 'sops'))] : []))
  if (docs.length < own.length) return { kind: 'refused', why: 'a document is no mapping' }
  return parcelOf(format, { get: (key) => plain[key] }, docs)
}

/** The `mac` of a document's metadata. Null means that it has none. */
const macOf = (node: YamlNode): string | null => {
  const metadata = memberOf(node, 'sops')
  const mac = metadata === null ? null : memberOf(metadata, 'mac')
  return mac?.kind === 'scalar' ? mac.text : null
}

/** By content, for a file in a Secret, whose name may be anything. Null means that it is no SOPS file. */
export function sopsFormatOf(text: string): SopsFormat | null {
  if (/^sops_mac=ENC\[AES256_GCM,/m.test(text)) return 'dotenv'
  if (!/\bmac"?: *"?ENC\[AES256_GCM,/.test(text)) return null
  if (!text.trimStart().startsWith('{')) return 'yaml'
  const [root] = readYamlNodes(text) ?? []
  const names = root?.kind === 'map' ? root.members.map(([key]) => key).sort() : []
  const data = root === undefined ? null : memberOf(root, 'data')
  return names.join() === 'data,sops' && data?.kind === 'scalar' ? 'binary' : 'json'
}

function readDotenv(text: string): SopsRead {
  const metadata = new Map<string, string>()
  const members: Array<string | SopsNode> = []
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const at = line.indexOf('=')
    if (at < 0) return { kind: 'refused', why: 'a line has no "="' }
    const [key, value] = [line.slice(0, at), line.slice(at + 1).replaceAll('\\n', '\n')]
    if (key.startsWith('sops_')) metadata.set(key.slice('sops_'.length), value)
    else members.push(key, value)
  }
  if (metadata.size === 0) return { kind: 'none' }
  const age: Array<Record<string, string>> = []
  for (const [key, value] of metadata) {
    const [, index, field] = /^age__list_(\d{1,3})__map_(recipient|enc)$/.exec(key) ?? []
    if (index === undefined || field === undefined) continue
    const entry = age[Number(index)] ?? {}
    entry[field] = value
    age[Number(index)] = entry
  }
  const hasGroups = [...metadata.keys()].some((key) => key.startsWith('key_groups__'))
  const get = (key: string) => (key === 'age' ? age : key === 'key_groups' && hasGroups ? [{}, {}] : metadata.get(key))
  return parcelOf('dotenv', { get }, [{ m: members }])
}

function parcelOf(format: SopsFormat, metadata: Metadata, docs: SopsNode[]): SopsRead {
  const groups = listOf(metadata.get('key_groups'))
  if (groups.length > 1)
    return { kind: 'refused', why: 'it has more than one key group (Shamir); encrypt it to age recipients in one group' }
  const entries = [...listOf(metadata.get('age')), ...groups.flatMap((group) => listOf(recordOf(group)['age']))]
  const age = entries.map(recordOf).flatMap(({ recipient, enc }) => {
    return typeof recipient === 'string' && typeof enc === 'string' && recipient.startsWith('age1') ? [[recipient, enc] as const] : []
  })
  if (age.length === 0)
    return { kind: 'refused', why: 'it has no age recipient; only age keys are supported: add one with `sops updatekeys`' }
  if (age.length > SOPS_RECIPIENTS_MAX) return { kind: 'refused', why: `it has more than ${SOPS_RECIPIENTS_MAX} recipients` }
  const [mac, at] = [metadata.get('mac'), metadata.get('lastmodified')]
  if (typeof mac !== 'string' || mac === '' || typeof at !== 'string' || at === '')
    return { kind: 'refused', why: '`sops.mac` or `sops.lastmodified` is missing; encrypt it with sops' }
  const only = metadata.get('mac_only_encrypted')
  const parcel: SopsParcel = { format, age, mac, at: goTextOf(at), docs }
  return { kind: 'parcel', parcel: only === true || only === 'true' ? { ...parcel, only: true } : parcel }
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
const recordOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}

const memberOf = (node: YamlNode, name: string): YamlNode | null =>
  (node.kind === 'map' ? node.members.find(([key]) => key === name)?.[1] : undefined) ?? null

const withoutMember = (node: Extract<YamlNode, { kind: 'map' }>, name: string): YamlNode => ({
  ...node,
  members: node.members.filter(([key]) => key !== name),
})

function nodeOf(node: YamlNode): SopsNode {
  if (node.kind === 'map') return { m: node.members.flatMap(([key, value]) => [key, nodeOf(value)]) }
  if (node.kind === 'list') return { l: node.items.map(nodeOf) }
  return yaml3Scalar(node)
}

function plainOf(node: YamlNode): unknown {
  if (node.kind === 'list') return node.items.map(plainOf)
  if (node.kind === 'scalar') return node.text
  return Object.fromEntries(node.members.map(([key, value]) => [key, plainOf(value)]))
}
