// BK7: the contents of a backup that a thief could use, in words for people who create or verify it.
import type { Manifest } from './manifest.ts'
import { KEYS, STORE } from './manifest.ts'

export const HOLDINGS = {
  manifests_clear: 'rendered objects of clusters; Secrets from manifests are in plain text',
  config_secrets_sealed: 'secrets of Configs, sealed',
  join_tokens_usable: 'hashes of join tokens, which permit a join until the token expires',
  api_token_hashes: 'hashes of API tokens, which permit no sign-in',
  private_keys: 'private keys of the server: they open secrets of Configs and authenticate the server to agents',
} as const
export type Holding = keyof typeof HOLDINGS

export function holdingsOf({ files }: Pick<Manifest, 'files'>): Holding[] {
  const paths = new Set<string>(files.map(({ path }) => path))
  const ofStore: Holding[] = ['config_secrets_sealed', 'join_tokens_usable', 'api_token_hashes']
  return [
    'manifests_clear',
    ...(paths.has(STORE) ? ofStore : []),
    ...(KEYS.some((path) => paths.has(path)) ? (['private_keys'] as const) : []),
  ]
}

export const holdingsText = (manifest: Pick<Manifest, 'files'>): string =>
  `It holds:\n${holdingsOf(manifest)
    .map((holding) => `  - ${HOLDINGS[holding]}\n`)
    .join('')}Keep it as safe as the server.\n`
