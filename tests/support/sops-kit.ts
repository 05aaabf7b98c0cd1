// Files that the real sops encrypts for tests, and the keys that open them.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import type { AgeKey } from '../../shared/adapters/age.ts'
import { renderProgram } from './render-programs.ts'

export async function newAgeKey(): Promise<AgeKey> {
  const identity = await generateX25519Identity()
  return { identity, recipient: await identityToRecipient(identity) }
}

/** As age-keygen writes it. */
export const keyFile = ({ identity, recipient }: AgeKey): string =>
  `# created: 2026-11-24T00:00:00Z\n# public key: ${recipient}\n${identity}\n`

export interface SopsRules {
  to: readonly AgeKey[]
  /** Of the creation rule: `encrypted_regex`, `mac_only_encrypted` and others. */
  rule?: Record<string, string | boolean>
}

/** `name` decides the format, as for sops: `.yaml`, `.json`, `.env`, anything else is binary. */
export const sopsEncrypt = (name: string, content: string | Uint8Array, { to, rule = {} }: SopsRules): string =>
  inFolder((folder) => {
    writeFileSync(join(folder, name), content)
    const config = join(folder, 'rules.yaml')
    writeFileSync(config, JSON.stringify({ creation_rules: [{ age: to.map(({ recipient }) => recipient).join(','), ...rule }] }))
    return sops(folder, ['--config', config, 'encrypt', join(folder, name)]).toString('utf8')
  })

/** With the program, for comparison. Throws with what it says. */
export const sopsDecrypt = (name: string, encrypted: string, key: AgeKey): Buffer =>
  inFolder((folder) => {
    const path = join(folder, name)
    writeFileSync(path, encrypted)
    return sops(folder, ['decrypt', path], { SOPS_AGE_KEY: key.identity })
  })

/** Also outside of the test runner. */
function inFolder<T>(work: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'skerry-sops-'))
  try {
    return work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function sops(home: string, args: readonly string[], env: Record<string, string> = {}): Buffer {
  const run = Bun.spawnSync([renderProgram('sops'), ...args], { env: { HOME: home, ...env }, stdout: 'pipe', stderr: 'pipe' })
  if (run.exitCode !== 0) throw new Error(`sops: ${run.stderr.toString('utf8')}`)
  return run.stdout
}
