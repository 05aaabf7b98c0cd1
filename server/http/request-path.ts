// Path and query of a request without a URL object: most requests are polls, and their path is compared, never
// resolved.

export function splitUrl(url: string): { path: string; query: string } {
  const start = url.indexOf('/', url.indexOf('://') + 3)
  if (start < 0) return { path: '/', query: '' }
  const mark = url.indexOf('?', start)
  return mark < 0 ? { path: url.slice(start), query: '' } : { path: url.slice(start, mark), query: url.slice(mark + 1) }
}
