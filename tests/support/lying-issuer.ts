// An issuer of JWTs that a test lets lie: discovery, keys, and tokens with whatever claims and signature the test asks
// for.
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose'

export interface LyingIssuer {
  url: string
  /** Claims of a good token of a pipeline; `change` overrides them. */
  jwt(change?: Record<string, unknown>, how?: { alg?: 'RS256' | 'none' | 'HS256'; key?: 'own' | 'other'; kid?: string }): Promise<string>
  /** Makes a new key, with a new id, and forgets the earlier one. */
  rotate(): Promise<void>
  /** The next answer of the token endpoint. */
  idToken(make: (nonce: string) => Promise<string>): void
  /** Nonce of the last authorization request. */
  nonce: string
  requests: { keys: number; discovery: number }
  /** While true, nothing is answered but status 503. */
  down: boolean
  stop(): Promise<void>
}

export async function startLyingIssuer(): Promise<LyingIssuer> {
  let kid = 'k1'
  let pair = await generateKeyPair('RS256', { extractable: true })
  const other = await generateKeyPair('RS256', { extractable: true })
  let makeIdToken: (nonce: string) => Promise<string> = async () => ''
  const requests = { keys: 0, discovery: 0 }
  const issuer = { down: false, nonce: '' }
  const server: Bun.Server<undefined> = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request): Promise<Response> {
      if (issuer.down) return new Response('down', { status: 503 })
      const { pathname } = new URL(request.url)
      if (pathname === '/.well-known/openid-configuration') {
        requests.discovery += 1
        return Response.json({
          issuer: url,
          jwks_uri: `${url}/keys`,
          authorization_endpoint: `${url}/authorize`,
          token_endpoint: `${url}/token`,
          end_session_endpoint: `${url}/logout`,
          response_types_supported: ['code'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['RS256'],
        })
      }
      if (pathname === '/keys') {
        requests.keys += 1
        return Response.json({ keys: [{ ...(await exportJWK(pair.publicKey)), kid, alg: 'RS256', use: 'sig' }] })
      }
      if (pathname === '/token')
        return Response.json({ access_token: 'access', token_type: 'bearer', expires_in: 300, id_token: await makeIdToken(issuer.nonce) })
      return new Response('not found', { status: 404 })
    },
  })
  const url = `http://127.0.0.1:${server.port}`
  return Object.assign(issuer, {
    url,
    requests,
    async jwt(change: Record<string, unknown> = {}, how: { alg?: 'RS256' | 'none' | 'HS256'; key?: 'own' | 'other'; kid?: string } = {}) {
      const nowS = Math.floor(Date.now() / 1_000)
      const claims = {
        iss: url,
        aud: 'skerry',
        sub: 'repo:acme/apps',
        iat: nowS,
        jti: crypto.randomUUID(),
        exp: nowS + 300,
        repository: 'acme/apps',
        ref: 'refs/heads/main',
      }
      const payload = Object.fromEntries(Object.entries({ ...claims, ...change }).filter(([, value]) => value !== undefined))
      const { alg = 'RS256', key = 'own', kid: shown = kid } = how
      if (alg === 'none') return new UnsecuredJWT(payload).encode()
      const signer = new SignJWT(payload).setProtectedHeader({ alg, kid: shown, typ: 'JWT' })
      // The classic confusion: the public key as the secret of a MAC.
      if (alg === 'HS256') return signer.sign(new TextEncoder().encode(JSON.stringify(await exportJWK(pair.publicKey))))
      return signer.sign((key === 'own' ? pair : other).privateKey)
    },
    async rotate() {
      pair = await generateKeyPair('RS256', { extractable: true })
      kid = `${kid}+`
    },
    idToken(make: (nonce: string) => Promise<string>) {
      makeIdToken = make
    },
    stop: () => server.stop(true),
  })
}
