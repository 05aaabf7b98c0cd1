// Sign-in in a browser of this machine: the server sends it back to a port on the loopback address with a code, which
// only this program can redeem (PKCE).
import { createHash, randomBytes } from 'node:crypto'
import { AppError } from '../../../shared/runtime/error.ts'
import type { CliIo } from '../io.ts'

export interface LoopbackLogin {
  code: string
  verifier: string
}

const WAIT_MS = 10 * 60_000
const PAGE = (title: string, text: string) =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><style>body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:15vh auto;padding:0 1rem;color-scheme:light dark}</style><h1>${title}</h1><p>${text}</p></html>`
const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
}

/** `tell`: gets the address to open, which holds no secret. */
export async function signInByLoopback(
  { clock, openBrowser, signal }: Pick<CliIo, 'clock' | 'openBrowser' | 'signal'>,
  loginUrl: (query: URLSearchParams) => string,
  tell: (url: string) => void,
): Promise<LoopbackLogin> {
  const verifier = randomBytes(32).toString('base64url')
  const state = randomBytes(32).toString('base64url')
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const server: Bun.Server<undefined> = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    development: false,
    fetch(request): Response {
      const { pathname, searchParams } = new URL(request.url)
      if (request.method !== 'GET') return new Response(null, { status: 405 })
      // The program that opens the browser gets this short address: command lines are readable by other users of the
      // machine.
      if (pathname === '/') return Response.redirect(start, 302)
      const code = searchParams.get('code')
      if (pathname !== '/callback' || code === null || searchParams.get('state') !== state)
        return new Response(PAGE('Not found', 'No sign-in is waiting for this page.'), { status: 404, headers: HEADERS })
      resolve(code)
      return new Response(PAGE('Signed in', 'You can close this page and return to the terminal.'), { headers: HEADERS })
    },
  })
  const start = loginUrl(new URLSearchParams({ cli_port: String(server.port), cli_challenge: challenge, cli_state: state }))
  const over = new AbortController()
  const stopped = () => reject(new AppError('sign_in_expired', { doing: 'sign in', detail: 'stopped' }))
  signal?.addEventListener('abort', stopped, { once: true })
  void clock.sleep(WAIT_MS, over.signal).then(() => {
    if (!over.signal.aborted) reject(new AppError('sign_in_expired', { doing: 'sign in', detail: 'no sign-in within 10 minutes' }))
  })
  try {
    tell(start)
    openBrowser?.(`http://127.0.0.1:${server.port}/`)
    return { code: await promise, verifier }
  } finally {
    over.abort()
    signal?.removeEventListener('abort', stopped)
    await server.stop() // the page is still being sent
  }
}
