// Tokens that expire and are renewed: those of a GitHub App's installation. Each is for reading one repository only,
// and is kept until shortly before its end.
import { createPrivateKey, sign } from 'node:crypto'
import { z } from 'zod'
import { sha256Hex } from '../../../shared/kube/canonical.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { isLoopback } from '../../../shared/runtime/loopback.ts'
import type { WebFetcher } from '../address/guard.ts'
import { unreachedText } from '../address/resolve.ts'

export interface GitTokens {
  /** `document`: what the Config holds as `githubApp`. `url`: of the repository. `refused`: the token that was just
   *  refused, which is not given out again. */
  token(document: string, url: string, refused: string | null): Promise<string>
}

const MADE_ANEW_BEFORE_MS = 5 * 60_000
const TIMEOUT_MS = 30_000
const ANSWER_BYTES_MAX = 256 * 1024
/** GitHub allows ten minutes, and clocks that differ. */
const JWT_SECONDS = 9 * 60
const JWT_BACK_SECONDS = 60

const id = z.union([z.number().int().positive(), z.string().regex(/^[A-Za-z0-9.]{1,64}$/)]).transform(String)
const documentSchema = z.strictObject({ appId: id, installationId: id, privateKey: z.string(), apiUrl: z.url().optional() })
const answerSchema = z.object({ token: z.string().min(1).max(4_096), expires_at: z.iso.datetime({ offset: true }) })

type Held = { token: string; untilMs: number }

export function createGitTokens({ fetcher, clock }: { fetcher: WebFetcher; clock: Clock }): GitTokens {
  const held = new Map<string, Promise<Held>>()
  return {
    async token(document, url, refused) {
      const place = placeOf(url)
      const key = sha256Hex(`${place.host}\n${place.repository}\n${document}`)
      const before = await held.get(key)?.catch(() => null)
      if (before && before.token !== refused && before.untilMs > clock.nowMs()) return before.token
      // A concurrent caller has requested it already.
      const now = held.get(key)
      const known = now === undefined ? null : await now.catch(() => null)
      if (known && known !== before && known.token !== refused) return known.token
      const made = makeToken(document, place, fetcher, clock)
      held.set(key, made)
      made.catch(() => held.delete(key))
      return (await made).token
    },
  }
}

interface Place {
  host: string
  /** Its name alone: an installation is of one owner. */
  repository: string
}

function placeOf(url: string): Place {
  const { host, pathname } = new URL(url)
  const repository =
    pathname
      .replace(/\/+$/, '')
      .replace(/\.git$/, '')
      .split('/')
      .at(-1) ?? ''
  return { host, repository: decodeURIComponent(repository) }
}

async function makeToken(document: string, place: Place, fetcher: WebFetcher, clock: Clock): Promise<Held> {
  const { appId, installationId, privateKey, apiUrl } = readDocument(document)
  const api = (apiUrl ?? (place.host === 'github.com' ? 'https://api.github.com' : `https://${place.host}/api/v3`)).replace(/\/+$/, '')
  const { protocol, host, hostname } = new URL(api)
  if (protocol !== 'https:' && !isLoopback(hostname)) throw missing(`githubApp: ${host} must use https`)
  const jwt = makeJwt(appId, privateKey, Math.floor(clock.nowMs() / 1_000))
  const accept = 'application/vnd.github+json'
  const headers = { accept, authorization: `Bearer ${jwt}`, 'content-type': 'application/json', 'user-agent': 'skerry' }
  const body = JSON.stringify({ repositories: [place.repository], permissions: { contents: 'read' } })
  const url = `${api}/app/installations/${installationId}/access_tokens`
  const init = { method: 'POST', headers, body, redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS) } as const
  const answer = await fetcher(url, init).catch((error: unknown) => {
    if (error instanceof AppError) throw error
    throw new AppError('git_unreachable', { detail: `${host}, the API of the GitHub App, ${unreachedText(error)}` }, { cause: error })
  })
  if (answer.status === 422) {
    await answer.body?.cancel()
    throw new AppError('credential_refused', {
      detail: `${host} gave App ${appId} no token to read the repository ${place.repository}: HTTP 422`,
      remedy: `Add the repository ${place.repository} to installation ${installationId} of the App, and give the App the permission Contents: read.`,
    })
  }
  if (answer.status === 401 || answer.status === 403 || answer.status === 404) {
    await answer.body?.cancel()
    throw new AppError('credential_refused', {
      detail: `${host} gave App ${appId} no token for installation ${installationId}: HTTP ${answer.status}`,
      remedy:
        'Check that the App is installed there and its private key is valid, and correct githubApp in the Config of spec.git.auth.secretRef.',
    })
  }
  const parsed = answerSchema.safeParse(answer.status === 201 || answer.status === 200 ? parseJson(await startOf(answer)) : null)
  if (!parsed.success)
    throw new AppError('git_unreachable', { detail: `${host} gave App ${appId} no token: HTTP ${answer.status}, not an answer of GitHub` })
  return { token: parsed.data.token, untilMs: Date.parse(parsed.data.expires_at) - MADE_ANEW_BEFORE_MS }
}

/** The beginning of an answer, longer than any token that a forge gives. What comes after it is not read. */
async function startOf({ body }: Response): Promise<string> {
  const pieces: Uint8Array[] = []
  let held = 0
  try {
    for await (const piece of (body ?? []) as AsyncIterable<Uint8Array>) {
      pieces.push(piece)
      held += piece.byteLength
      if (held > ANSWER_BYTES_MAX) break
    }
  } catch {
    return '' // cut off
  }
  return Buffer.concat(pieces).toString()
}

function readDocument(document: string): z.infer<typeof documentSchema> {
  const parsed = documentSchema.safeParse(parseJson(document))
  if (parsed.success) return parsed.data
  throw missing('githubApp is not a JSON document with appId, installationId and privateKey')
}

function makeJwt(appId: string, privateKey: string, nowSeconds: number): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = { iat: nowSeconds - JWT_BACK_SECONDS, exp: nowSeconds + JWT_SECONDS, iss: appId }
  const text = `${part({ alg: 'RS256', typ: 'JWT' })}.${part(claims)}`
  try {
    return `${text}.${sign('RSA-SHA256', Buffer.from(text), createPrivateKey(privateKey)).toString('base64url')}`
  } catch {
    throw missing('githubApp: privateKey is not an RSA private key in PEM form') // its own message may quote the key
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

const missing = (detail: string): AppError => new AppError('credential_missing', { detail })
