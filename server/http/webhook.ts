// POST /webhooks/v1/<project>/<repository>: a forge says that there is news. Only its signature counts; what it says about branches and commits is not read, so a
// forged or delayed message can at worst cause one look at the repository.
import { createHmac } from 'node:crypto'
import { AppError } from '../../shared/protocol/error.ts'
import { equalSecrets } from '../../shared/runtime/keys.ts'
import type { ServerKeys } from '../access/server-keys.ts'
import type { Store } from '../store/store.ts'
import { createBodyBudget, readBody } from './body.ts'
import { problemResponse } from './problem.ts'

export const WEBHOOKS = '/webhooks/v1'
export const WEBHOOK_BODY_BYTES_MAX = 1024 * 1024
/** AR2: anybody can send them. */
const BODIES_BYTES_MAX = 16 * 1024 * 1024

export interface WebhookDeps {
  store: Pick<Store, 'getResource'>
  keys: Pick<ServerKeys, 'mac'>
  repositoryChanged(project: string, name: string): void
}

/** What is copied into the forge. A repository that is deleted and made again has another one. */
export const webhookSecret = (keys: Pick<ServerKeys, 'mac'>, repositoryUid: string): string =>
  keys.mac('webhook', new TextEncoder().encode(repositoryUid)).toString('base64url')

/** Null for a path that is not a webhook's. Answers before the repository is read. */
export function createWebhook(deps: WebhookDeps): (request: Request) => Promise<Response | null> {
  const budget = createBodyBudget(BODIES_BYTES_MAX)
  return async (request) => {
    const { pathname } = new URL(request.url)
    if (!pathname.startsWith(`${WEBHOOKS}/`)) return null
    try {
      const [project, name, ...rest] = pathname.slice(WEBHOOKS.length + 1).split('/')
      if (request.method !== 'POST' || !project || !name || rest.length > 0)
        throw new AppError('not_found', { detail: `${request.method} ${pathname.slice(0, 200)}` })
      const body = await readBody(request, WEBHOOK_BODY_BYTES_MAX, { budget })
      const repository = await deps.store.getResource({ kind: 'Repository', project, name })
      // An unknown repository answers as a wrong signature does: who has no secret learns no names.
      if (repository === null || !signed(request.headers, body, webhookSecret(deps.keys, repository.uid)))
        throw new AppError('webhook_signature')
      deps.repositoryChanged(project, name)
      return new Response(null, { status: 202 })
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      return problemResponse(error)
    }
  }
}

/** HMAC-SHA-256 of the body in hex, as GitHub, Gitea and Forgejo send it; GitLab sends the secret itself. */
function signed(headers: Headers, body: Uint8Array, secret: string): boolean {
  const gitlab = headers.get('x-gitlab-token')
  if (gitlab !== null) return equalSecrets(gitlab, secret)
  const expected = createHmac('sha256', secret).update(body).digest('hex')
  const given = headers.get('x-skerry-signature') ?? headers.get('x-hub-signature-256') ?? headers.get('x-gitea-signature') ?? ''
  return equalSecrets(given.replace(/^sha256=/, '').toLowerCase(), expected)
}
