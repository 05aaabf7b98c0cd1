// The admin API on a loopback socket, with sign-in through the providers and issuers that a test names.

import { freePort } from '../../scripts/local-cluster/child-process.ts'
import { oidcSettingsSchema } from '../../server/access/oidc/settings.ts'
import { createSignIn } from '../../server/access/oidc/sign-in.ts'
import type { SecretBox } from '../../server/access/secret-box.ts'
import { type Logger, silentLogger } from '../../shared/runtime/logger.ts'
import { createTestAdmin, type TestAdmin } from './admin-app.ts'

export interface SignInSite {
  url: string
  admin: TestAdmin
  secrets: SecretBox
  /** Lines of the server's log. */
  logged: string[]
  stop(): Promise<void>
}

export interface SignInSiteOptions {
  port?: number
  /** Under which browsers know it; default its address. */
  publicUrl?: string
  /** As in the file of `--oidc-config`. */
  settings(url: string): unknown
  /** Content by path. */
  files?: ReadonlyMap<string, string>
}

export async function startSignInSite({ port, publicUrl, settings, files = new Map() }: SignInSiteOptions): Promise<SignInSite> {
  const own = port ?? freePort()
  const url = `http://127.0.0.1:${own}`
  const shown = () => publicUrl ?? url
  const logged: string[] = []
  const note = (text: string, fields: unknown) => void logged.push(`${text} ${JSON.stringify(fields)}`)
  const log: Logger = { ...silentLogger, info: note, warn: note, error: note }
  const stopping = new AbortController()
  let box: SecretBox | undefined
  const admin = await createTestAdmin(({ store, clock, box: made }) => {
    box = made
    return {
      signIn: createSignIn(
        { settings: oidcSettingsSchema.parse(settings(url)), files },
        { store, secrets: made, url: shown, clock, log, stopping: stopping.signal },
      ),
      url: shown,
      logger: log,
    }
  }, Date.now())
  const server = Bun.serve({ port: own, hostname: '127.0.0.1', fetch: (request) => admin.app.fetch(request) })
  return {
    url,
    admin,
    secrets: box as unknown as SecretBox,
    logged,
    stop: async () => {
      stopping.abort()
      await server.stop(true)
    },
  }
}
