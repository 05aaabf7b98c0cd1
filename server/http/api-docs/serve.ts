// The page at /api/docs: the OpenAPI document for people, from this server alone. The page holds nothing that a
// stranger may not see; the document is asked for with a credential. Kept renderers of such documents weigh one to four
// megabytes and need inline styles, which the policy of this page forbids.
import script from './page.js' with { type: 'text' }

export const API_DOCS = '/api/docs'

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Skerry API</title>
<link rel="stylesheet" href="${API_DOCS}/page.css">
<script type="module" src="${API_DOCS}/page.js"></script>
</head>
<body>
<h1>Skerry API</h1>
<form id="login" hidden>
<label for="token">API token (kept in this page only)</label>
<input id="token" type="password" autocomplete="off" spellcheck="false">
<button>Show the API</button>
<p id="problem" role="alert"></p>
</form>
<input id="filter" type="search" placeholder="Filter" aria-label="Filter" hidden>
<main id="operations"></main>
</body>
</html>
`

const STYLE = `:root {
  color-scheme: light dark;
  --line: light-dark(#d0d7de, #3d444d);
  --soft: light-dark(#57606a, #9198a1);
}
body {
  font: 15px/1.5 system-ui, sans-serif;
  max-width: 70rem;
  margin: 2rem auto;
  padding: 0 1rem;
}
code,
pre {
  font: 13px/1.5 ui-monospace, monospace;
}
pre {
  border: 1px solid var(--line);
  padding: 0.5rem;
  overflow: auto;
}
.operation {
  border: 1px solid var(--line);
  border-radius: 4px;
  margin: 0.4rem 0;
  padding: 0.4rem 0.8rem;
}
summary {
  cursor: pointer;
}
summary b {
  display: inline-block;
  min-width: 4.5rem;
}
td {
  border-bottom: 1px solid var(--line);
  padding: 0.2rem 0.6rem 0.2rem 0;
  vertical-align: top;
}
.said,
.required {
  color: var(--soft);
}
input {
  font: inherit;
  width: 100%;
  max-width: 40rem;
  padding: 0.3rem;
}
`

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const FILES: ReadonlyMap<string, { type: string; text: string }> = new Map([
  [API_DOCS, { type: 'text/html; charset=utf-8', text: PAGE }],
  [`${API_DOCS}/page.css`, { type: 'text/css; charset=utf-8', text: STYLE }],
  [`${API_DOCS}/page.js`, { type: 'text/javascript; charset=utf-8', text: script }],
])

/** Null if the path is not a file of the page. */
export function apiDocs(method: string, path: string): Response | null {
  const file = method === 'GET' || method === 'HEAD' ? FILES.get(path) : undefined
  if (file === undefined) return null
  const headers = { 'content-type': file.type, 'content-security-policy': POLICY, 'cache-control': 'no-cache' }
  return new Response(method === 'HEAD' ? null : file.text, { headers })
}
