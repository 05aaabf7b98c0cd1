// HashiCorp Vault and OpenBao over HTTP: signs in, keeps the token until shortly before its end, and signs in again
// when it is refused. Errors name the address and the path, never what was sent or answered.
import { z } from 'zod'
import type { Clock } from '../../shared/runtime/clock.ts'

export type VaultAuth =
  | { kind: 'token'; token: () => string }
  | { kind: 'appRole'; mount: string; roleId: () => string; secretId: () => string }
  | { kind: 'kubernetes'; mount: string; role: string; jwt: () => string }

export interface VaultPlace {
  /** `https://vault.example.com:8200`. */
  url: string
  /** Enterprise and OpenBao namespaces. */
  namespace?: string | undefined
  /** PEM of the authorities of its certificate. Absent means those that this server trusts. */
  ca?: string | undefined
  auth: VaultAuth
}

export interface VaultAnswer {
  status: number
  /** Member `data`. Null means that it has none. */
  data: Record<string, unknown> | null
}

export interface Vault {
  /** `path` below `/v1/`. Any status is an answer. Throws `VaultError` when there is none. */
  request(method: 'GET' | 'POST', path: string, body?: unknown): Promise<VaultAnswer>
}

/** It cannot be reached, or refuses the credential. */
export class VaultError extends Error {}

export interface VaultDeps {
  fetcher(url: string, init: BunFetchRequestInit): Promise<Response>
  clock: Pick<Clock, 'nowMs'>
}

const ANSWER_BYTES_MAX = 1_048_576
const ANSWER_MS = 10_000
/** A token is replaced when so much of its life is over. */
const TOKEN_PART = 0.8

const answerSchema = z.looseObject({
  data: z.record(z.string(), z.unknown()).nullable().optional(),
  auth: z.looseObject({ client_token: z.string(), lease_duration: z.number() }).nullable().optional(),
})

export function createVault({ url, namespace, ca, auth }: VaultPlace, { fetcher, clock }: VaultDeps): Vault {
  const { host } = new URL(url)
  let token: { text: string; untilMs: number } | null = null

  const send = async (method: 'GET' | 'POST', path: string, body: unknown, as: string | null) => {
    try {
      const answer = await fetcher(`${url.replace(/\/+$/, '')}/v1/${path}`, {
        method,
        headers: {
          ...(as === null ? {} : { 'x-vault-token': as }),
          ...(namespace === undefined ? {} : { 'x-vault-namespace': namespace }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(ca === undefined ? {} : { tls: { ca } }),
        redirect: 'manual',
        signal: AbortSignal.timeout(ANSWER_MS),
      })
      const text = await boundedText(answer)
      const read = answerSchema.safeParse(text === '' ? {} : JSON.parse(text)).data
      return { status: answer.status, data: read?.data ?? null, auth: read?.auth ?? null }
    } catch (error) {
      throw new VaultError(`cannot reach ${host}: ${reasonOf(error)}`)
    }
  }
  const login = async (): Promise<string> => {
    if (auth.kind === 'token') return auth.token()
    const nowMs = clock.nowMs()
    if (token !== null && nowMs < token.untilMs) return token.text
    const [mount, body] =
      auth.kind === 'appRole'
        ? [auth.mount, { role_id: auth.roleId(), secret_id: auth.secretId() }]
        : [auth.mount, { role: auth.role, jwt: auth.jwt() }]
    const answer = await send('POST', `auth/${mount}/login`, body, null)
    if (answer.auth === null) throw new VaultError(`${host} refuses the sign-in at auth/${mount} with status ${answer.status}`)
    const { client_token: text, lease_duration: seconds } = answer.auth
    token = { text, untilMs: seconds === 0 ? Number.POSITIVE_INFINITY : nowMs + seconds * 1_000 * TOKEN_PART }
    return text
  }
  return {
    async request(method, path, body) {
      const first = await send(method, path, body, await login())
      if (first.status !== 403 || auth.kind === 'token') return first
      token = null // it was revoked, perhaps
      return send(method, path, body, await login())
    },
  }
}

async function boundedText(answer: Response): Promise<string> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of (answer.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += piece.length
    if (bytes > ANSWER_BYTES_MAX) throw new Error(`the answer has more than ${ANSWER_BYTES_MAX} bytes`)
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}

/** A SyntaxError quotes what it could not read. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error'
  if (error.name === 'TimeoutError') return `no answer in ${ANSWER_MS / 1_000} seconds`
  if (error instanceof SyntaxError) return 'the answer is not JSON'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}
