// A real Vault in memory with a transit key, a key/value engine and AppRole.
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'

const BINARY = resolve(import.meta.dirname, '../../build/vault/vault')

export interface TestVault {
  url: string
  rootToken: string
  /** As root; `path` below `/v1/`. Throws for anything but a success. */
  call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>
  /** A token with this policy alone. */
  tokenFor(policy: string, rules: string): Promise<string>
  stop(): Promise<void>
}

export async function startVault(): Promise<TestVault> {
  if (!existsSync(BINARY)) throw new Error('build/vault/vault is missing: run scripts/setup --vault')
  const child = Bun.spawn([BINARY, '127.0.0.1:0'], { stdout: 'pipe', stderr: 'ignore' })
  const reader = child.stdout.getReader()
  let text = ''
  while (!text.includes('\n')) {
    const { value, done } = await reader.read()
    if (done) throw new Error('vault ended before it listened')
    text += new TextDecoder().decode(value)
  }
  const { url, token: rootToken } = JSON.parse(text) as { url: string; token: string }
  const call: TestVault['call'] = async (method, path, body) => {
    const answer = await fetch(`${url}/v1/${path}`, {
      method,
      headers: { 'x-vault-token': rootToken },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (!answer.ok) throw new Error(`vault: ${method} ${path}: ${answer.status} ${await answer.text()}`)
    const said = await answer.text()
    return said === '' ? {} : (JSON.parse(said) as Record<string, unknown>)
  }
  await call('POST', 'sys/mounts/transit', { type: 'transit' })
  await call('POST', 'transit/keys/skerry', {})
  await call('POST', 'sys/mounts/secret', { type: 'kv', options: { version: '2' } })
  await call('POST', 'sys/mounts/old', { type: 'kv', options: { version: '1' } })
  await call('POST', 'sys/auth/approle', { type: 'approle' })
  return {
    ...{ url, rootToken, call },
    async tokenFor(policy, rules) {
      await call('POST', `sys/policies/acl/${policy}`, { policy: rules })
      const { auth } = (await call('POST', 'auth/token/create', { policies: [policy], no_default_policy: true })) as {
        auth: { client_token: string }
      }
      return auth.client_token
    },
    async stop() {
      child.kill()
      await child.exited
    },
  }
}
