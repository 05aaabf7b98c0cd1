// Envelope encryption of the secrets of Configs (CG11). Each Config has a data key of its own, which is stored wrapped
// beside its secrets. A text that was sealed under it opens only as that secret of that Config. Opened data keys stay
// in memory until this process ends, so that renders do not wait for a key service.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { createFileWrap, type KeyWrap } from './key-wrap.ts'
import type { SecretBox } from './secret-box.ts'

export interface ConfigId {
  project: string
  name: string
}

/** Seals and opens the values of one Config. */
export interface ValueKey {
  /** The stored form. Null means values that a version before data keys sealed, which this key only opens. */
  readonly wrapped: string | null
  seal(secret: string, value: string): Uint8Array
  /** The value. Null means that it was sealed under another key or for another secret, or changed. */
  open(secret: string, sealed: Uint8Array): string | null
  /** 16 hex digits, equal for equal values of that secret. */
  markOf(secret: string, value: string): string
}

export interface ConfigKeys {
  /** The master key that wraps new data keys, for people. */
  readonly master: string
  /** Id of the last rotation: what was sealed since then has it. '' before the first one. */
  rotation: string
  make(id: ConfigId): Promise<ValueKey>
  /** `wrapped` null: values of a version before data keys. Null means that the master key is not here. */
  open(id: ConfigId, wrapped: string | null): Promise<ValueKey | null>
  /** Whether the master key in use wrapped it, of whatever age. */
  isOfMaster(wrapped: string): boolean
  /** Work that seals and then commits. A rotation waits for it before it reads what is to be sealed anew. */
  using<T>(work: () => Promise<T>): Promise<T>
  /** Resolves when the work that uses keys now is done. */
  settled(): Promise<void>
  rotate: KeyWrap['rotate']
  forgetEarlier: KeyWrap['forgetEarlier']
}

const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** Texts of forms 1 and 2 are those of `secret-box.ts`. */
const FORM = 3
const OPENED_MAX = 10_000

/** `service`: a key service that wraps new data keys (`isMaster`), or only unwraps those that it wrapped before. Null
 *  means that the master key is in the data folder. */
export function createConfigKeys(box: SecretBox, service: { wrap: KeyWrap; isMaster: boolean } | null = null): ConfigKeys {
  const file = createFileWrap(box)
  const all = service === null ? [file] : [service.wrap, file]
  const master = service?.isMaster === true ? service.wrap : file
  const opened = new Map<string, ValueKey>()
  const busy = new Set<Promise<unknown>>()
  return {
    master: master.name,
    rotation: '',
    async make(id) {
      const key = randomBytes(KEY_BYTES)
      return valueKey(id, key, await master.wrap(key, textOf(id)))
    },
    async open(id, wrapped) {
      if (wrapped === null) return earlierKey(box, id)
      const name = `${textOf(id)} ${wrapped}`
      const held = opened.get(name)
      if (held !== undefined) return held
      const wrap = all.find(({ kind }) => wrapped.startsWith(`${kind}:`))
      const key = (await wrap?.unwrap(wrapped, textOf(id))) ?? null
      if (key?.length !== KEY_BYTES) return null
      const found = valueKey(id, key, wrapped)
      if (opened.size >= OPENED_MAX) opened.clear()
      opened.set(name, found)
      return found
    },
    isOfMaster: (wrapped) => wrapped.startsWith(`${master.kind}:`),
    async using(work) {
      const running = work()
      busy.add(running)
      try {
        return await running
      } finally {
        busy.delete(running)
      }
    },
    settled: async () => void (await Promise.allSettled([...busy])),
    rotate: () => master.rotate(),
    forgetEarlier: () => master.forgetEarlier(),
  }
}

/** Names have no slash. */
const textOf = ({ project, name }: ConfigId): string => `${project}/${name}`
const placeOf = (id: ConfigId, secret: string): string => `config/${textOf(id)}/${secret}`

function valueKey(id: ConfigId, key: Uint8Array, wrapped: string): ValueKey {
  const derived = (purpose: string) => Buffer.from(hkdfSync('sha256', key, '', `skerry config ${purpose}`, KEY_BYTES))
  const [sealing, marking] = [derived('values'), derived('marks')]
  const boundTo = (secret: string) => Buffer.concat([Buffer.from([FORM]), Buffer.from(placeOf(id, secret))])
  return {
    wrapped,
    seal(secret, value) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', sealing, nonce).setAAD(boundTo(secret))
      return Buffer.concat([Buffer.from([FORM]), nonce, cipher.update(value, 'utf8'), cipher.final(), cipher.getAuthTag()])
    },
    open(secret, sealed) {
      const text = Buffer.from(sealed)
      if (text[0] !== FORM || text.length < 1 + NONCE_BYTES + TAG_BYTES) return null
      const decipher = createDecipheriv('aes-256-gcm', sealing, text.subarray(1, 1 + NONCE_BYTES), { authTagLength: TAG_BYTES })
      decipher.setAAD(boundTo(secret)).setAuthTag(text.subarray(-TAG_BYTES))
      try {
        return Buffer.concat([decipher.update(text.subarray(1 + NONCE_BYTES, -TAG_BYTES)), decipher.final()]).toString('utf8')
      } catch {
        return null // its tag is wrong
      }
    },
    markOf: (secret, value) => createHmac('sha256', marking).update(`${secret}\0${value}`).digest('hex').slice(0, 16),
  }
}

/** A version before data keys sealed each value with the master key itself. */
const earlierKey = (box: SecretBox, id: ConfigId): ValueKey => ({
  wrapped: null,
  seal() {
    throw new Error('a value is sealed under a data key')
  },
  open(secret, sealed) {
    const bytes = box.open(sealed, placeOf(id, secret))
    return bytes === null ? null : new TextDecoder().decode(bytes)
  },
  markOf: (secret, value) => box.macOf(['config', id.project, id.name, secret, value].join('\0')),
})
