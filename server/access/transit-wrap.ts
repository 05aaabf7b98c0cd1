// Master key in the transit engine of HashiCorp Vault or OpenBao. The key never leaves it: data keys are sent there to
// be wrapped and unwrapped, bound to their place by the additional data of the cipher.
import { AppError } from '../../shared/runtime/error.ts'
import type { KeyWrap } from './key-wrap.ts'
import { type Vault, type VaultAnswer, VaultError } from './vault-api.ts'

const KIND = 'transit'

export interface TransitPlace {
  url: string
  mount: string
  key: string
}

export function createTransitWrap(vault: Vault, { url, mount, key }: TransitPlace): KeyWrap {
  const { host } = new URL(url)
  const ask = async (path: string, body: unknown): Promise<VaultAnswer> => {
    const answer = await vault.request('POST', `${mount}/${path}`, body).catch((error: unknown) => {
      throw error instanceof VaultError ? unavailable(error.message) : error
    })
    if (answer.status === 403 || answer.status === 404 || answer.status >= 500)
      throw unavailable(`${host} answers ${mount}/${path} with status ${answer.status}`)
    return answer
  }
  return {
    kind: KIND,
    name: `${mount}/${key} at ${host}`,
    async wrap(bytes, place) {
      const answer = await ask(`encrypt/${key}`, { plaintext: base64(bytes), associated_data: base64(place) })
      const text = answer.data?.['ciphertext']
      if (typeof text !== 'string')
        throw unavailable(`${host} does not encrypt with ${mount}/${key}, status ${answer.status}: it needs a key of type aes256-gcm96`)
      return `${KIND}:${text}`
    },
    async unwrap(wrapped, place) {
      const answer = await ask(`decrypt/${key}`, { ciphertext: wrapped.slice(KIND.length + 1), associated_data: base64(place) })
      const text = answer.data?.['plaintext']
      return typeof text === 'string' ? Buffer.from(text, 'base64') : null
    },
    async rotate() {
      const { status } = await vault.request('POST', `${mount}/keys/${key}/rotate`, {}).catch((error: unknown) => {
        throw error instanceof VaultError ? unavailable(error.message) : error
      })
      if (status === 403) return `its policy does not allow ${mount}/keys/${key}/rotate; rotate ${mount}/${key} at ${host}`
      if (status >= 400) throw unavailable(`${host} does not rotate ${mount}/${key}, status ${status}`)
      return null
    },
    forgetEarlier: async () => {}, // its operator raises min_decryption_version
  }
}

const base64 = (bytes: Uint8Array | string): string => Buffer.from(bytes).toString('base64')
const unavailable = (detail: string): AppError => new AppError('key_service_unavailable', { detail })
