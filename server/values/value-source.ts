// The port to a place outside of Skerry that has values of Configs.
import type { ValueSource } from '../../shared/model/render.ts'
import type { FetchedValue } from '../access/config-secrets.ts'

/** Why a value cannot be read, for people. Holds no value and no credential. */
export class ValueError extends Error {}

/** `name` of the source of the same read. */
export type ReadValues = ReadonlyMap<string, FetchedValue | ValueError>

export interface ValueReader {
  /** Values of these sources of one Config, by their names. Does not throw for a source that fails. */
  read(config: { project: string; name: string }, sources: readonly ValueSource[]): Promise<ReadValues>
}

/** Characters of a value, as of a secret. */
export const VALUE_LENGTH_MAX = 262_144

/** For people: `vault secret/shop#password at vault.example.com`. */
export function sourceText({ vault, kubernetesSecret, file }: ValueSource): string {
  if (vault !== undefined) return `vault ${vault.mount}/${vault.path}#${vault.key} at ${new URL(vault.url).host}`
  if (kubernetesSecret !== undefined) return `Secret ${kubernetesSecret.name}#${kubernetesSecret.key}`
  return `file ${file ?? ''}`
}

export function checkedValue(value: unknown, version: string): FetchedValue | ValueError {
  if (typeof value !== 'string') return new ValueError('the value is not a text')
  if (value.length > VALUE_LENGTH_MAX) return new ValueError(`the value has more than ${VALUE_LENGTH_MAX} characters`)
  return { value, version }
}
