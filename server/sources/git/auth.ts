// The headers that a Config's secrets give for a Git server over http, and the order in which they are tried. Never
// logged, never in a message.
import { AppError } from '../../../shared/runtime/error.ts'
import { isLoopback } from '../../../shared/runtime/loopback.ts'
import { basicHeader, readLogin } from '../credentials.ts'
import type { GitTokens } from './tokens.ts'

export type GitSecrets = Readonly<Record<string, string>>

export interface WebTry {
  /** For messages: which secret, and how it is sent. */
  what: string
  /** The value of the Authorization header. */
  header(): Promise<string>
}

export interface WebAccess {
  ca: string | null
  /** One after the other, while the answer is 401. Empty: no credentials. */
  tries: readonly WebTry[]
}

export const NO_ACCESS: WebAccess = { ca: null, tries: [] }

/**
 * GitHub, GitLab, Gitea, Forgejo, Azure and most others take a token as the password of basic authentication, with
 * nearly any user; the hosts here require a certain one.
 */
const TOKEN_USERS: ReadonlyArray<[host: RegExp, user: string]> = [
  [/^(.*\.)?gitlab\./, 'oauth2'],
  [/^(.*\.)?bitbucket\.org$/, 'x-token-auth'],
]
const TOKEN_USER = 'x-access-token'

/** `config`: its name, for messages. */
export function webAccess(url: string, secrets: GitSecrets, tokens: GitTokens, config?: string): WebAccess {
  const { hostname, host, protocol } = new URL(url)
  const tries = triesOf(url, secrets, tokens)
  const ca = secrets['caCert'] ?? null
  if (tries.length === 0 && ca === null)
    throw new AppError('credential_missing', {
      detail: `${host}: ${configText(config)} has none of token, username and password, githubApp, and caCert`,
      remedy: 'Set one of them in the secrets of the Config of spec.git.auth.secretRef.',
    })
  if (tries.length > 0 && protocol === 'http:' && !isLoopback(hostname))
    throw new AppError('source_refused', {
      detail: `${host}: credentials are not sent over plain http, because others on the network path can read them`,
      remedy: 'Use an https:// URL, or remove auth.',
    })
  return { ca, tries }
}

export const configText = (name: string | undefined): string => (name === undefined ? 'the Config' : `the Config ${name}`)

function triesOf(url: string, secrets: GitSecrets, tokens: GitTokens): WebTry[] {
  const githubApp = secrets['githubApp']
  if (githubApp !== undefined) return appTries(url, githubApp, tokens)
  const { hostname, host } = new URL(url)
  const login = readLogin(secrets, host)
  if (login.kind === 'none') return []
  if (login.kind === 'basic') return [{ what: login.what, header: async () => login.header }]
  const { token } = login
  const user = TOKEN_USERS.find(([pattern]) => pattern.test(hostname))?.[1] ?? TOKEN_USER
  return [
    { what: `token as the password of ${user}`, header: async () => basicHeader(user, token) },
    { what: 'token as bearer', header: async () => `Bearer ${token}` },
  ]
}

/** One that was refused may have been withdrawn: then a new one, once. */
function appTries(url: string, document: string, tokens: GitTokens): WebTry[] {
  let refused: string | null = null
  const header = async () => {
    refused = await tokens.token(document, url, refused)
    return basicHeader(TOKEN_USER, refused)
  }
  return [
    { what: 'githubApp', header },
    { what: 'githubApp with a new token', header },
  ]
}
