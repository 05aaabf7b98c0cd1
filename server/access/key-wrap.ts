// Wraps of the data keys of Configs: by the master key of the data folder (here), or a key service (`transit-wrap.ts`).
// A wrapped key opens only for the place that it was wrapped for.
import type { SecretBox } from './secret-box.ts'

export interface KeyWrap {
  /** Begins the texts that it makes: `file`, `transit`. */
  readonly kind: string
  /** Names the master key for people; holds no secret. */
  readonly name: string
  /** Throws `key_service_unavailable` when it cannot be asked now. */
  wrap(key: Uint8Array, place: string): Promise<string>
  /** The key. Null means that it was wrapped under a key that is not here or for another place, or changed. Throws
   *  `key_service_unavailable`. */
  unwrap(wrapped: string, place: string): Promise<Uint8Array | null>
  /** CG7: another master key wraps from now on; the earlier ones still unwrap. Null, or why the master key stays. */
  rotate(): Promise<string | null>
  /** Master keys that no longer wrap are destroyed, where this server can do that. */
  forgetEarlier(): Promise<void>
}

const KIND = 'file'

/** The master key is the key of `keys/secrets.json`. */
export const createFileWrap = (box: SecretBox): KeyWrap => ({
  kind: KIND,
  name: 'keys/secrets.json',
  wrap: async (key, place) => `${KIND}:${Buffer.from(box.seal(key, placeOf(place))).toString('base64url')}`,
  unwrap: async (wrapped, place) => box.open(bytesOf(wrapped), placeOf(place)),
  async rotate() {
    box.rotate()
    return null
  },
  forgetEarlier: async () => box.forgetEarlier(),
})

/** Text of a key that was wrapped by the master key of the data folder. Null means by another one. */
export const fileWrapBytes = (wrapped: string): Uint8Array | null => (wrapped.startsWith(`${KIND}:`) ? bytesOf(wrapped) : null)

const bytesOf = (wrapped: string): Buffer => Buffer.from(wrapped.slice(KIND.length + 1), 'base64url')
const placeOf = (place: string): string => `data-key/${place}`
