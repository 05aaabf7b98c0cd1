// POST /webhooks/v1/<project>/<repository>: a forge says that there is news. Only its signature counts; what it says
// about branches and commits is not read, so a forged or delayed message can at worst cause one look at the repository.
import { createHmac } from 'node:crypto'
import { AppError } from '../../shared/runtime/error.ts'
import { equalSecrets } from '../../shared/runtime/keys.ts'
import type { ServerKeys } from '../access/server-keys.ts'
import type { Store } from '../store/store.ts'
import { readBody } from './body.ts'
import { problemResponse } from './problem.ts'
import { createStrangerBodies } from './stranger-bodies.ts'

export const WEBHOOKS = '/webhooks/v1'
export const WEBHOOK_BODY_BYTES_MAX = 1024 * 1024
/** AR2: anybody can send them. */
const BODIES_BYTES_MAX = 16 * 1024 * 1024
/** Else one stranger would hold the room of all forges. Of IPv6, one network. */
const BODIES_OF_ONE_ADDRESS_BYTES_MAX = 4 * 1024 * 1024
/** Forges give up on an answer after ten seconds as well. */
const BODY_MS = 10_000

export interface WebhookDeps {
  store: Pick<Store, 'getResource' | 'webhookNumber'>
  keys: Pick<ServerKeys, 'mac' | 'earlierMac'>
  repositoryChanged(project: string, name: string): void
  /** The address of the sender. Absent, or null: unknown; such requests share the room of one. */
  addressOf?(request: Request): string | null
  /** Until when a body has to be there. */
  bodyMs?: number
}

/** The text to copy into the forge. It is stored nowhere: the number of the secret is, and `mac.key`. A repository that
 *  is deleted and created again has another one. */
export const webhookSecret = (keys: Pick<ServerKeys, 'mac'>, repositoryUid: string, number: number): string =>
  keys.mac('webhook', subjectOf(repositoryUid, number)).toString('base64url')

/** WH3: for people. Equal for equal secrets. */
export const webhookMark = (keys: Pick<ServerKeys, 'mac'>, repositoryUid: string, number: number): string =>
  `hmac:${keys
    .mac('webhook', new TextEncoder().encode(`mark\0${repositoryUid}\0${number}`))
    .toString('hex')
    .slice(0, 16)}`

/** Forges may still have the secret before the newest one, and those of before the last rotation of `mac.key`. */
function webhookSecrets(keys: WebhookDeps['keys'], repositoryUid: string, number: number): string[] {
  return [number, Math.max(0, number - 1)].flatMap((one) => {
    const earlier = keys.earlierMac('webhook', subjectOf(repositoryUid, one))
    return [webhookSecret(keys, repositoryUid, one), ...(earlier === null ? [] : [earlier.toString('base64url')])]
  })
}

/** The first secret is the one that versions before numbers made. */
const subjectOf = (repositoryUid: string, number: number): Uint8Array =>
  new TextEncoder().encode(number === 0 ? repositoryUid : `${repositoryUid}\0${number}`)

/** Null for a path that is not a webhook's. Answers before the repository is read. */
export function createWebhook(deps: WebhookDeps): (request: Request) => Promise<Response | null> {
  const { bodyMs = BODY_MS } = deps
  const strangers = createStrangerBodies({ bytesMax: BODIES_BYTES_MAX, ofOneBytesMax: BODIES_OF_ONE_ADDRESS_BYTES_MAX, bodyMs })
  return async (request) => {
    const { pathname } = new URL(request.url)
    if (!pathname.startsWith(`${WEBHOOKS}/`)) return null
    try {
      const [project, name, ...rest] = pathname.slice(WEBHOOKS.length + 1).split('/')
      if (request.method !== 'POST' || !project || !name || rest.length > 0)
        throw new AppError('not_found', { detail: `${request.method} ${pathname.slice(0, 200)}` })
      const body = await readBody(request, WEBHOOK_BODY_BYTES_MAX, strangers(deps.addressOf?.(request) ?? null))
      const repository = await deps.store.getResource({ kind: 'Repository', project, name })
      // An unknown repository is answered like a wrong signature, and as late: a caller without the secret learns no
      // names.
      const uid = repository?.uid ?? ''
      const number = await deps.store.webhookNumber(uid)
      const isRight = webhookSecrets(deps.keys, uid, number).map((secret) => isSigned(request.headers, body, secret))
      if (repository === null || !isRight.includes(true)) throw new AppError('webhook_signature')
      if (isPing(request.headers)) return new Response('pong: the signature is valid\n')
      deps.repositoryChanged(project, name)
      return new Response(null, { status: 202 })
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      return problemResponse(error)
    }
  }
}

/** HMAC-SHA-256 of the body in hex: GitHub and Gitea, Forgejo and Gitea, Bitbucket (its older header; others send SHA-1
 *  there, which proves nothing), and anybody else. */
const SIGNATURES = ['x-skerry-signature', 'x-hub-signature-256', 'x-gitea-signature', 'x-forgejo-signature', 'x-hub-signature'] as const

/**
 * All headers that are present must be right. GitLab sends the secret itself; so do registries, which can send only a
 * fixed header.
 */
export function isSigned(headers: Headers, body: Uint8Array, secret: string): boolean {
  const expected = createHmac('sha256', secret).update(body).digest('hex')
  const given = SIGNATURES.flatMap((name) => {
    const text = headers.get(name)
    return text === null || (name === 'x-hub-signature' && !text.startsWith('sha256=')) ? [] : [text.replace(/^sha256=/, '').toLowerCase()]
  })
  const token = headers.get('x-gitlab-token')
  const proofs = [...given.map((text) => equalSecrets(text, expected)), ...(token === null ? [] : [equalSecrets(token, secret)])]
  if (proofs.length > 0) return proofs.every((isRight) => isRight)
  return equalSecrets(headers.get('authorization')?.replace(/^Bearer +/i, '') ?? '', secret)
}

/** The test request of a forge: there is no change, and the person who sends it wants to read that it works. */
const isPing = (headers: Headers): boolean => headers.get('x-github-event') === 'ping' || headers.get('x-event-key') === 'diagnostics:ping'
