// How long a person waits for a sign-in: from the first request to the server to the session cookie, with everything
// that a real provider does in between.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createDataFolder } from '../local-cluster/child-process.ts'
import { createLocalFleet } from '../local-cluster/local-fleet.ts'
import { Browser, signInAtDex } from '../local-oidc/browser.ts'
import { CLIENT, startDex } from '../local-oidc/dex.ts'
import { percentile, rounded } from './figures.ts'
import type { Say } from './parts.ts'
import { benchPrograms } from './server-process.ts'

const ROUNDS = 50
const WARM_UP = 5

/** Median of sign-ins one after the other, of a new browser each. */
export async function measureOidcLogin(say: Say = () => {}): Promise<{ oidc_login_ms: number }> {
  const folder = createDataFolder('skerry-oidc')
  const file = join(folder.path, 'oidc.json')
  const fleet = await createLocalFleet({ programs: benchPrograms(), serverEnv: { SKERRY_OIDC_CONFIG: file } })
  const dex = await startDex({ redirectUris: [`${fleet.serverUrl}/auth/callback`] })
  try {
    writeFileSync(join(folder.path, 'secret'), CLIENT.secret)
    writeFileSync(
      file,
      JSON.stringify({ providers: [{ name: 'dex', issuer: dex.issuer, clientId: CLIENT.id, clientSecretFile: 'secret' }] }),
    )
    await fleet.startServer()
    const tookMs: number[] = []
    for (let round = 0; round < WARM_UP + ROUNDS; round++) {
      const browser = new Browser()
      const startMs = performance.now()
      const start = await browser.go(`${fleet.serverUrl}/auth/login`)
      const answer = await signInAtDex(browser, start.headers.get('location') ?? '', { kind: 'forge' }, (url) =>
        url.startsWith(fleet.serverUrl),
      )
      const end = await browser.go(answer)
      if (round >= WARM_UP) tookMs.push(performance.now() - startMs)
      if (end.status !== 303) throw new Error(`sign-in ended with status ${end.status}`)
    }
    say(`${ROUNDS} sign-ins, p50 ${rounded(percentile(tookMs, 50))} ms, p95 ${rounded(percentile(tookMs, 95))} ms`)
    return { oidc_login_ms: rounded(percentile(tookMs, 50)) }
  } finally {
    await dex.stop()
    await fleet.stop()
    await folder.remove()
  }
}
