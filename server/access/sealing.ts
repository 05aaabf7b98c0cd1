// The sealing key of the fleet: keys/sealing.json, in backups with the other keys. Row keys are derived from it, one
// for each object, so nothing about them is stored. A fleet without the file writes rows in clear, as versions before
// it did, until `skerry secrets seal --all` makes it.
import { hkdfSync, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { type SealingKeys, sealingKeysOf } from '../../shared/model/sealed-object.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { readOrMake, replaceSecret } from './secret-file.ts'

export const SEALING_FILE = 'sealing.json'

const KEY_BYTES = 32
const ID_BYTES = 4
/** Services whose keys are remembered. */
const SERVICES_MAX = 10_000

const key = z.base64url().refine((text) => Buffer.from(text, 'base64url').length === KEY_BYTES, `expected ${KEY_BYTES} bytes`)
const sealingFile = z.object({
  /** The first one seals, all of them open. */
  keys: z
    .array(z.object({ id: z.string().regex(/^[0-9a-f]{8}$/), key }))
    .min(1)
    .max(100),
  /** Since when nothing on this server is in clear. Absent means not known. */
  cleanMs: z.number().int().optional(),
  /** SL16: each placement has its proof. Absent means that an earlier version wrote the placements. */
  proofs: z.literal(true).optional(),
})

/** The ids of its keys, the one that seals first, and since when nothing is in clear. Null means that it is no such
 *  file. */
export function readSealingFile(text: string): { ids: string[]; cleanMs: number | null } | null {
  try {
    const { keys, cleanMs = null } = sealingFile.parse(JSON.parse(text))
    return { ids: keys.map(({ id }) => id), cleanMs }
  } catch {
    return null
  }
}

export interface Sealing {
  /** Id of the key that seals. Null means that rows are written in clear. */
  current(): string | null
  /** Null means that rows are written in clear. */
  keysFor(service: ServiceId): SealingKeys | null
  /** Null means that this server does not have the key. */
  keysOf(id: string, service: ServiceId): SealingKeys | null
  /** Seals from now on, and records that on the disk. `newKey`: under another key. False means that nothing changed. */
  begin(newKey?: boolean): boolean
  /** Since when nothing on this server is in clear. Null means not known, or never. */
  cleanMs(): number | null
  /** Nothing is in clear from now on. The first time counts. */
  isClean(atMs: number): void
  /** Keys that no longer seal. */
  former(): string[]
  /** Makes the proofs of placements (SL16). Null means that this server does not have the sealing key of that id. */
  proofKey(id: string): Uint8Array | null
  /** Whether each placement has a proof, as far as this server wrote it. */
  hasProofs(): boolean
  /** Records on the disk that each placement has a proof. */
  proofsWritten(): void
  /** Destroys former keys: what is sealed under them opens nowhere but at the sites that have it. */
  forget(ids: readonly string[]): void
}

export function loadSealing(folder: string): Sealing {
  const path = join(folder, SEALING_FILE)
  let file = existsSync(path) ? sealingFile.parse(JSON.parse(readFileSync(path, 'utf8'))) : null
  const known = new Map<string, SealingKeys>()
  const proofKeys = new Map<string, Uint8Array>()
  const keysOf = (id: string, service: ServiceId): SealingKeys | null => {
    const name = `${id}/${service.project}/${service.service}`
    const held = known.get(name)
    if (held !== undefined) return held
    const root = file?.keys.find((one) => one.id === id)
    if (root === undefined) return null
    const keys = sealingKeysOf({ id, secret: Buffer.from(root.key, 'base64url') }, service)
    if (known.size >= SERVICES_MAX) known.clear()
    known.set(name, keys)
    return keys
  }
  const keep = (next: NonNullable<typeof file>) => {
    replaceSecret(path, JSON.stringify(sealingFile.parse(next)))
    file = next
  }
  const current = () => file?.keys[0]?.id ?? null
  return {
    current,
    keysOf,
    keysFor(service) {
      const id = current()
      return id === null ? null : keysOf(id, service)
    },
    begin(newKey = false) {
      const made = { id: randomBytes(ID_BYTES).toString('hex'), key: randomBytes(KEY_BYTES).toString('base64url') }
      if (file === null) {
        mkdirSync(folder, { recursive: true, mode: 0o700 })
        // Nothing is sealed yet, so nothing that is sealed lacks its proof.
        file = sealingFile.parse(JSON.parse(readOrMake(path, () => JSON.stringify({ keys: [made], proofs: true }))))
        return true
      }
      if (newKey) keep({ ...file, keys: [made, ...file.keys] })
      return newKey
    },
    cleanMs: () => file?.cleanMs ?? null,
    isClean(atMs) {
      if (file !== null && file.cleanMs === undefined) keep({ ...file, cleanMs: atMs })
    },
    proofKey(id) {
      const held = proofKeys.get(id)
      if (held !== undefined) return held
      const root = file?.keys.find((one) => one.id === id)
      if (root === undefined) return null
      const made = new Uint8Array(
        hkdfSync('sha256', Buffer.from(root.key, 'base64url'), new Uint8Array(), `skerry-proof-v1\n${id}`, KEY_BYTES),
      )
      proofKeys.set(id, made)
      return made
    },
    hasProofs: () => file?.proofs === true,
    proofsWritten() {
      if (file !== null && file.proofs === undefined) keep({ ...file, proofs: true })
    },
    former: () => (file?.keys ?? []).slice(1).map(({ id }) => id),
    forget(ids) {
      const [first, ...former] = file?.keys ?? []
      if (file === null || first === undefined || ids.length === 0) return
      keep({ ...file, keys: [first, ...former.filter(({ id }) => !ids.includes(id))] })
      known.clear()
      proofKeys.clear()
    },
  }
}
