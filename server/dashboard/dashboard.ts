// The door of the dashboard: one page for every path below /dashboard/, and its files. It knows nothing of the fleet;
// the page asks the admin API like any other client. All addresses in the page are relative to its own, so that it
// works behind a proxy that puts the server below a path.
import { AppError } from '../../shared/runtime/error.ts'
import { problemResponse } from '../http/problem.ts'
import type { Asset } from './assets.ts'

export const DASHBOARD = '/dashboard'
const FILES = 'files'

/** No script, style or picture but our own files; nothing inline, no eval, no frame around it. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

const COMMON = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=()',
}

const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}

/** Null if the request is not for the dashboard. `hasCookie`: it came with the cookie of a session. */
export async function dashboardAnswer(request: Request, hasCookie: () => boolean): Promise<Response | null> {
  if (request.method !== 'GET' && request.method !== 'HEAD') return null
  const { pathname } = new URL(request.url)
  if (pathname === '/') return redirect(`${DASHBOARD.slice(1)}/`)
  if (pathname === DASHBOARD) return redirect(`${DASHBOARD.slice(1)}/`)
  if (!pathname.startsWith(`${DASHBOARD}/`)) return null
  const { ASSETS, ENTRY } = await import('./assets.ts')
  const [first = '', ...rest] = pathname.slice(DASHBOARD.length + 1).split('/')
  if (first !== FILES) return page(request, { depth: rest.length, hasCookie: hasCookie(), ...ENTRY })
  const asset = ASSETS.get(rest.join('/'))
  return asset === undefined
    ? problemResponse(new AppError('not_found', { detail: 'the dashboard has no such file; reload the page' }))
    : file(request, asset)
}

/** Relative to the path that the browser asked for, which may be longer than the one that reached this server. */
const redirect = (location: string): Response =>
  new Response(null, { status: 307, headers: { ...COMMON, location, 'cache-control': 'no-cache' } })

interface PageFacts {
  depth: number
  hasCookie: boolean
  script: string
  begin: string
  style: string
  icon: string
}

function page(request: Request, { depth, hasCookie, script, begin, style, icon }: PageFacts): Response {
  const base = depth === 0 ? './' : '../'.repeat(depth)
  const etag = `"${script}-${begin}-${style}-${depth}${hasCookie ? '-cookie' : ''}"`
  const headers = { ...COMMON, 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache', vary: 'cookie', etag }
  if (request.headers.get('if-none-match') === etag) return new Response(null, { status: 304, headers })
  const html = `<!doctype html>
<html lang="en"${hasCookie ? ' data-cookie' : ''}>
<head>
<meta charset="utf-8">
<base href="${base}">
<title>Skerry</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<script src="${FILES}/${begin}"></script>
<link rel="icon" type="image/svg+xml" href="${FILES}/${icon}">
<link rel="stylesheet" href="${FILES}/${style}">
<script type="module" src="${FILES}/${script}"></script>
</head>
<body><div id="app"></div><noscript>The dashboard needs JavaScript. The command line does not: skerry get clusters</noscript></body>
</html>
`
  return new Response(html, { headers })
}

function file(request: Request, { name, gzip, zstd }: Asset): Response {
  const etag = `"${name}"`
  const type = TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream'
  const headers = new Headers({
    ...COMMON,
    'content-type': type,
    'cache-control': 'public, max-age=31536000, immutable',
    vary: 'accept-encoding',
    etag,
  })
  if (request.headers.get('if-none-match') === etag) return new Response(null, { status: 304, headers })
  const accepted = request.headers.get('accept-encoding') ?? ''
  const encoding = /\bzstd\b/.test(accepted) ? 'zstd' : /\bgzip\b/.test(accepted) ? 'gzip' : null
  if (encoding === null) return new Response(Bun.gunzipSync(gzip), { headers })
  headers.set('content-encoding', encoding)
  return new Response(encoding === 'zstd' ? zstd : gzip, { headers })
}
