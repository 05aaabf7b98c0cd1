// Everything about sign-in through identity providers, put together from the settings of the operator.
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import type { SecretBox } from '../secret-box.ts'
import { createFlows, type Flows } from './flows.ts'
import { createProvider, type IdentityProvider } from './provider.ts'
import type { OidcSettings } from './settings.ts'
import { createUserSessions, type UserSessions, type UserSessionsDeps } from './user-sessions.ts'
import { createWorkloads, type Workloads } from './workload.ts'

/** The settings, and the files that they name. */
export interface SignInPlace {
  settings: OidcSettings
  /** Content by path. */
  files: ReadonlyMap<string, string>
}

export interface SignIn {
  /** By name, in the order of the settings. */
  providers: ReadonlyMap<string, IdentityProvider>
  workloads: Workloads
  sessions: UserSessions
  flows: Flows
  /** Current problems, one line for each provider. */
  problems(): string[]
  /** SI1: asks providers that do not answer again, and ends what has expired. */
  run(signal: AbortSignal): Promise<void>
}

export interface SignInDeps {
  store: UserSessionsDeps['store']
  secrets: Pick<SecretBox, 'seal' | 'open'>
  /** URL of this server, without a slash at its end. */
  url(): string
  clock: Clock
  log: Logger
  stopping: AbortSignal
}

export const CALLBACK = '/auth/callback'
/** Between two looks at providers, most of which answer from memory. */
const LOOK_MS = 30_000

export function createSignIn({ settings, files }: SignInPlace, deps: SignInDeps): SignIn {
  const { store, secrets, clock, log, stopping } = deps
  const fileOf = (path: string | undefined) => (path === undefined ? null : (files.get(path) ?? null))
  const providers = new Map(
    settings.providers.map((one) => {
      const clientSecret = fileOf(one.clientSecretFile)?.trim() ?? null
      return [one.name, createProvider(one, { clientSecret, ca: fileOf(one.caFile), clock, log })] as const
    }),
  )
  const workloads = createWorkloads(settings.workloads, { caOf: ({ caFile }) => fileOf(caFile), clock, log })
  const names = new Set(settings.workloads.map(({ name }) => name))
  const sessions = createUserSessions({ store, providers, workloads: names, settings: settings.sessions, secrets, clock, log })
  return {
    providers,
    workloads,
    sessions,
    flows: createFlows({ providers, redirectUri: () => `${deps.url()}${CALLBACK}`, secrets, clock, stopping }),
    problems: () => [
      ...[...providers.values()].flatMap((one) =>
        one.problem() === null ? [] : [`identity provider ${one.name} is not available: ${one.problem()}`],
      ),
      ...[...workloads.problems()].map(([name, problem]) => `keys of ${name} cannot be read: ${problem}`),
    ],
    async run(signal) {
      const look = async () => {
        while (!signal.aborted) {
          await Promise.all([...providers.values()].map((one) => one.discover().catch(() => {}))) // it logs the reason itself
          await clock.sleep(LOOK_MS, signal)
        }
      }
      await Promise.all([look(), sessions.run(signal)])
    },
  }
}
