// Encrypts what the agent's state file holds of documents: an applied Secret, the hash of its values, and facts that
// may quote it. The key is in the file of the agent's keys, so that a copy of the state alone (a support bundle, a
// volume snapshot) shows nothing.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { type Database, writeTransaction } from '../../shared/adapters/sqlite.ts'

export interface StateBox {
  /** `place`: the column and key it is stored at; it opens nowhere else. */
  seal(place: string, text: string): Uint8Array
  /** Null if it was sealed with another key, or changed. */
  open(place: string, bytes: Uint8Array): string | null
}

const NONCE_BYTES = 12
const TAG_BYTES = 16

/** `key`: 32 bytes, base64url. */
export function createStateBox(key: string): StateBox {
  const secret = Buffer.from(key, 'base64url')
  return {
    seal(place, text) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', secret, nonce).setAAD(Buffer.from(place))
      return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
    },
    open(place, bytes) {
      if (bytes.length < NONCE_BYTES + TAG_BYTES) return null
      const decipher = createDecipheriv('aes-256-gcm', secret, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
      decipher.setAAD(Buffer.from(place)).setAuthTag(bytes.subarray(-TAG_BYTES))
      try {
        return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]).toString()
      } catch {
        return null
      }
    },
  }
}

/** A column of the state file: text of a version before, or a sealed text. */
export type Stored = string | Uint8Array | null

export interface StateTexts {
  write(place: string, text: string | null): Stored
  read(place: string, stored: Stored): string | null
}

/** Where documents are: table, its key, and the columns that hold text of documents. */
const COLUMNS = [
  { table: 'inventory', keys: ['ref'], column: 'applied_doc' },
  { table: 'inventory', keys: ['ref'], column: 'owned_hash' },
  { table: 'fact', keys: ['service', 'key'], column: 'doc' },
] as const

export const appliedPlace = (ref: string): string => `inventory.applied_doc/${ref}`
export const ownedPlace = (ref: string): string => `inventory.owned_hash/${ref}`
export const factPlace = (service: string, key: string): string => `fact.doc/${service}/${key}`

/** Seals what a version before wrote in clear, and overwrites what the file still holds of it. */
export function sealClearTexts(db: Database, box: StateBox): void {
  const isClear = ({ table, column }: (typeof COLUMNS)[number]) =>
    db.query(`SELECT 1 FROM ${table} WHERE typeof(${column}) = 'text' LIMIT 1`).get() !== null
  if (!COLUMNS.some(isClear)) return
  writeTransaction(db, () => {
    for (const { table, keys, column } of COLUMNS) {
      const rows = db
        .query<Record<string, string>, []>(`SELECT ${keys.join(', ')}, ${column} FROM ${table} WHERE typeof(${column}) = 'text'`)
        .all()
      const update = db.prepare<null, Array<string | Uint8Array>>(
        `UPDATE ${table} SET ${column} = ? WHERE ${keys.map((key) => `${key} = ?`).join(' AND ')}`,
      )
      for (const row of rows) {
        const names = keys.map((key) => row[key] ?? '')
        update.run(box.seal(`${table}.${column}/${names.join('/')}`, row[column] ?? ''), ...names)
      }
      update.finalize()
    }
  })
  db.run('VACUUM')
  db.run('PRAGMA wal_checkpoint(TRUNCATE)')
}

/** Without a box, texts stay as they are. */
export const stateTexts = (box: StateBox | undefined): StateTexts => ({
  write: (place, text) => (text === null || box === undefined ? text : box.seal(place, text)),
  read: (place, stored) => (stored === null || typeof stored === 'string' ? stored : (box?.open(place, stored) ?? null)),
})
