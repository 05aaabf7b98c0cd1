// Dex on loopback: a real OpenID Connect provider with one person in its own database, and a forge behind it whose
// users and groups a test changes.
import { existsSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createDataFolder, freePort, startChild } from '../local-cluster/child-process.ts'

export const DEX_BINARY = resolve(import.meta.dirname, '../../build/oidc/dex')
export const dexIsThere = (): boolean => existsSync(DEX_BINARY)

export const CLIENT = { id: 'skerry', secret: 'dex-client-secret' }
/** In the database of Dex, which knows no groups. */
export const PERSON = { email: 'alice@skerry.example', password: 'correct horse battery staple' }

export interface ForgeUser {
  id: number
  username: string
  email: string
  groups: string[]
  /** Blocked users get no answer any more. */
  blocked?: boolean
}

export interface Dex {
  issuer: string
  /** Whom the forge signs in. */
  user: ForgeUser
  stop(): Promise<void>
}

export interface DexOptions {
  /** Where it sends browsers back to. */
  redirectUris: readonly string[]
  port?: number
}

export async function startDex({ redirectUris, port }: DexOptions): Promise<Dex> {
  if (!dexIsThere()) throw new Error('build/oidc/dex is missing: run scripts/setup --oidc')
  const user: ForgeUser = { id: 7, username: 'bob', email: 'bob@skerry.example', groups: ['web', 'ops'] }
  const forge = startForge(user)
  const own = port ?? freePort()
  // Its page for device codes leads to an address without the issuer's path, so the issuer has none.
  const issuer = `http://127.0.0.1:${own}`
  const folder = createDataFolder('dex')
  const config = join(folder.path, 'dex.json')
  writeFileSync(config, JSON.stringify(await configOf(issuer, own, forge.url, redirectUris)))
  const child = startChild([DEX_BINARY, 'serve', config], join(folder.path, 'log'))
  const stop = async () => {
    await child.kill()
    await forge.stop()
    await folder.remove()
  }
  for (let tries = 0; ; tries++) {
    const answer = await fetch(`${issuer}/.well-known/openid-configuration`).catch(() => null)
    if (answer?.ok) break
    if (child.exitCode() !== null || tries > 400) {
      const log = child.logTail()
      await stop()
      throw new Error(`dex does not start: ${log}`)
    }
    await Bun.sleep(25)
  }
  return { issuer, user, stop }
}

async function configOf(issuer: string, port: number, forge: string, redirectUris: readonly string[]): Promise<object> {
  const forgeConfig = { baseURL: forge, clientID: 'dex', clientSecret: 'forge-secret', redirectURI: `${issuer}/callback` }
  return {
    issuer,
    storage: { type: 'memory' },
    web: { http: `127.0.0.1:${port}` },
    oauth2: { skipApprovalScreen: true },
    // The same refresh token twice is refused at once.
    expiry: { idTokens: '10m', deviceRequests: '5m', refreshTokens: { reuseInterval: '0s' } },
    staticClients: [{ id: CLIENT.id, name: 'Skerry', secret: CLIENT.secret, redirectURIs: [...redirectUris, '/device/callback'] }],
    connectors: [{ type: 'gitlab', id: 'forge', name: 'Forge', config: forgeConfig }],
    enablePasswordDB: true,
    staticPasswords: [
      {
        email: PERSON.email,
        hash: await Bun.password.hash(PERSON.password, { algorithm: 'bcrypt', cost: 10 }),
        username: 'alice',
        userID: '08a8684b-db88-4b73-90a9-3cd1661f5466',
      },
    ],
  }
}

/** The requests of Dex to a GitLab: the person who signs in, and the groups of this person. */
function startForge(user: ForgeUser): { url: string; stop(): Promise<void> } {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      if (pathname === '/oauth/authorize') {
        const back = new URL(searchParams.get('redirect_uri') ?? '')
        back.searchParams.set('code', 'forge-code')
        back.searchParams.set('state', searchParams.get('state') ?? '')
        return Response.redirect(back.href, 302)
      }
      if (user.blocked) return new Response('blocked', { status: 401 })
      if (pathname === '/oauth/token')
        return Response.json({ access_token: 'forge-access', refresh_token: 'forge-refresh', token_type: 'bearer', expires_in: 7_200 })
      if (pathname === '/api/v4/user')
        return Response.json({ id: user.id, name: user.username, username: user.username, state: 'active', email: user.email })
      if (pathname === '/oauth/userinfo') return Response.json({ groups: user.groups })
      return new Response('not found', { status: 404 })
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) }
}
