// Path and query of a request without a URL object: a poll is most of what a server hears, and its path is compared, never resolved.

export function splitUrl(url: string): { path: string; query: string } {
  const start = url.indexOf('/', url.indexOf('://') + 3)
  if (start < 0) return { path: '/', query: '' }
  const mark = url.indexOf('?', start)
  return mark < 0 ? { path: url.slice(start), query: '' } : { path: url.slice(start, mark), query: url.slice(mark + 1) }
}
