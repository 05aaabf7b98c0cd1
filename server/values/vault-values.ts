// Values in HashiCorp Vault or OpenBao, read with a credential of the project. Whoever writes a Config chooses the
// address: requests go through the address guard, and the credential only to hosts that it is bound to (CG8).
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { ValueSource } from '../../shared/model/render.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { Configs } from '../access/configs.ts'
import { createVault, type Vault, type VaultAnswer, type VaultAuth, VaultError } from '../access/vault-api.ts'
import type { AddressGuard } from '../sources/address/guard.ts'
import { checkedValue, type ReadValues, ValueError, type ValueReader } from './value-source.ts'

export interface VaultValuesDeps {
  configs: Pick<Configs, 'credentials'>
  addresses: Pick<AddressGuard, 'fetcher' | 'namedOnly'>
  clock: Pick<Clock, 'nowMs'>
}

type VaultSource = NonNullable<ValueSource['vault']>

export function createVaultValues({ configs, addresses, clock }: VaultValuesDeps): ValueReader {
  const open = async (project: string, { url, namespace, secretRef, authMount }: VaultSource): Promise<Vault> => {
    const secrets = await configs.credentials(project, secretRef, { url })
    const fetcher = url.startsWith('https:') ? addresses.fetcher : addresses.namedOnly // plain http shows the token
    return createVault({ url, namespace, ca: secrets['caCert'], auth: authOf(secrets, secretRef, authMount) }, { fetcher, clock })
  }
  return {
    async read({ project }, sources) {
      const read = new Map<string, ReturnType<typeof checkedValue>>()
      const vaults = new Map<string, Promise<Vault>>()
      const answers = new Map<string, Promise<VaultAnswer>>()
      for (const { name, vault } of sources) {
        if (vault === undefined) continue
        const { url, namespace, secretRef, authMount, mount, engine, path, key } = vault
        const at = canonicalJson([url, namespace ?? null, secretRef, authMount])
        const secret = `${at} ${mount} ${engine} ${path}`
        const opened = vaults.get(at) ?? open(project, vault)
        vaults.set(at, opened)
        // One request for all keys of a secret.
        const asked =
          answers.get(secret) ?? opened.then((one) => one.request('GET', engine === 'kv2' ? `${mount}/data/${path}` : `${mount}/${path}`))
        answers.set(secret, asked)
        read.set(name, await asked.then((answer) => valueIn(answer, vault, key), failureOf))
      }
      return read satisfies ReadValues
    },
  }
}

function authOf(secrets: Readonly<Record<string, string>>, secretRef: string, authMount: string): VaultAuth {
  const [token, roleId, secretId] = ['token', 'roleId', 'secretId'].map((name) => secrets[name]?.trim())
  if (token !== undefined) return { kind: 'token', token: () => token }
  if (roleId !== undefined && secretId !== undefined)
    return { kind: 'appRole', mount: authMount, roleId: () => roleId, secretId: () => secretId }
  throw new ValueError(`the Config ${secretRef} has neither token, nor roleId and secretId`)
}

function valueIn({ status, data }: VaultAnswer, { mount, path, engine, url }: VaultSource, key: string): ReturnType<typeof checkedValue> {
  const { host } = new URL(url)
  const where = `${mount}/${path} at ${host}`
  if (status === 403) return new ValueError(`the credential may not read ${where}`)
  if (status === 404) return new ValueError(`${where} does not exist, or was deleted`)
  if (status !== 200) return new ValueError(`${host} answers ${mount}/${path} with status ${status}`)
  const found = engine === 'kv2' ? data?.['data'] : data
  const metadata = data?.['metadata']
  if (typeof found !== 'object' || found === null) return new ValueError(`${where} is no secret of a ${engine} engine`)
  if (!Object.hasOwn(found, key)) return new ValueError(`${where} has no key ${key}`)
  const version = typeof metadata === 'object' && metadata !== null && 'version' in metadata ? String(metadata.version) : ''
  return checkedValue((found as Record<string, unknown>)[key], version)
}

function failureOf(error: unknown): ValueError {
  if (error instanceof ValueError) return error
  if (error instanceof VaultError || error instanceof AppError) return new ValueError(error.message)
  throw error
}
