// An admission and conversion webhook that a test opens, breaks and mends: it answers, is silent, or is not there at
// all, on one address.
import { AUTHORITY, SERVER_CERT, SERVER_PRIVATE_KEY } from './test-certs.ts'

type Json = Record<string, unknown>

/** In an AdmissionReview. With a status the object is refused. */
export interface WebhookAnswer {
  status?: Json
  warnings?: string[]
}

export interface WebhookServer {
  /** Base64 PEM, for `clientConfig.caBundle`. */
  caBundle: string
  /** https, and stays the same over `close` and `open`. */
  url(path: string): string
  /** What an admission request gets: null allows, a text denies. */
  admit(decide: (request: { operation: string; name: string; object: Json | null }) => string | WebhookAnswer | null): void
  /** Requests hang until it is true no more. */
  hang(isHanging: boolean): void
  close(): Promise<void>
  open(): void
  requests(): number
}

export function startWebhookServer(): WebhookServer {
  let decide: Parameters<WebhookServer['admit']>[0] = () => null
  let hanging = false
  let count = 0
  let listener: ReturnType<typeof Bun.serve> | null = null
  let port = 0
  let wake: Array<() => void> = []

  const answer = async (request: Request): Promise<Response> => {
    count += 1
    const review = (await request.json()) as { kind: string; request: Json & { uid: string } }
    if (hanging) await new Promise<void>((resolve) => wake.push(resolve))
    const response = review.kind === 'ConversionReview' ? converted(review.request) : admitted(review.request)
    return Response.json({ ...review, request: undefined, response: { uid: review.request.uid, ...response } })
  }
  const admitted = ({ operation, name, object }: Json): Json => {
    const denial = decide({ operation: String(operation), name: String(name), object: object as Json | null })
    if (denial === null) return { allowed: true }
    return typeof denial === 'string'
      ? { allowed: false, status: { message: denial } }
      : { allowed: denial.status === undefined, ...denial }
  }
  const converted = ({ desiredAPIVersion, objects }: Json): Json => ({
    result: { status: 'Success' },
    convertedObjects: (objects as Json[]).map((object) => ({ ...object, apiVersion: desiredAPIVersion })),
  })
  const open = () => {
    if (listener !== null) return
    listener = Bun.serve({
      port,
      hostname: '127.0.0.1',
      idleTimeout: 0,
      tls: { cert: SERVER_CERT, key: SERVER_PRIVATE_KEY },
      fetch: answer,
    })
    port = listener.port ?? 0
  }
  const release = () => {
    for (const resume of wake.splice(0)) resume()
  }
  open()
  return {
    caBundle: Buffer.from(AUTHORITY).toString('base64'),
    url: (path) => `https://127.0.0.1:${port}${path}`,
    admit: (next) => {
      decide = next
    },
    hang: (isHanging) => {
      hanging = isHanging
      if (!isHanging) release()
    },
    close: async () => {
      release()
      wake = []
      const closing = listener
      listener = null
      await closing?.stop(true)
    },
    open,
    requests: () => count,
  }
}
