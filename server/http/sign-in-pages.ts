// The few pages that the server itself shows during a sign-in. No script, no content of other hosts.

const CSP = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
const STYLE = `body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:15vh auto;padding:0 1rem;color-scheme:light dark}
a.button{display:block;padding:.6rem 1rem;margin:.5rem 0;border:1px solid;border-radius:.4rem;text-decoration:none}code{overflow-wrap:anywhere}`

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '')

function page(status: number, title: string, body: string): Response {
  const html = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(title)}</title><style>${STYLE}</style><h1>${escapeHtml(title)}</h1>${body}</html>`
  return new Response(html, {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'content-security-policy': CSP,
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    },
  })
}

/** `links`: by the name of the provider. */
export const choicePage = (links: ReadonlyArray<readonly [name: string, href: string]>): Response =>
  page(
    200,
    'Sign in to Skerry',
    links.map(([name, href]) => `<a class="button" href="${escapeHtml(href)}">${escapeHtml(name)}</a>`).join(''),
  )

export const failurePage = (status: number, code: string, message: string, remedy: string): Response =>
  page(
    status,
    'Sign-in failed',
    `<p>${escapeHtml(message)}</p><p>${escapeHtml(remedy)}</p><p><code>${escapeHtml(code)}</code></p><p><a href="/auth/login">Sign in again</a></p>`,
  )
