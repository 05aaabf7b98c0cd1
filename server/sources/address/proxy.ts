// Which outbound proxy the environment names for a URL, as curl and Bun read it: HTTP_PROXY, HTTPS_PROXY and NO_PROXY,
// small letters first.

/** Which proxy the environment names for a URL. Null means none. */
export function outboundProxy(env: Readonly<Record<string, string | undefined>>): (url: URL) => string | null {
  const read = (name: string) => env[name.toLowerCase()] || env[name] || null
  const without = (read('NO_PROXY') ?? '').split(',').flatMap((part) => (part.trim() === '' ? [] : [part.trim().toLowerCase()]))
  return (url) => {
    const proxy = read(url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY')
    return proxy === null || without.some((entry) => matches(entry, url)) ? null : proxy
  }
}

/** `*`, a host with all below it, with a leading dot or `*.` or without, and perhaps a port. */
function matches(entry: string, url: URL): boolean {
  if (entry === '*') return true
  const port = /:(\d+)$/.exec(entry)?.[1]
  const urlPort = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port
  const isBareV6 = entry.split(':').length > 2 && !entry.startsWith('[')
  if (port !== undefined && !isBareV6 && port !== urlPort) return false
  const host = (port === undefined || isBareV6 ? entry : entry.slice(0, -port.length - 1)).replace(/^(\*?\.)/, '').replace(/^\[|\]$/g, '')
  const name = url.hostname.replace(/^\[|\]$/g, '').toLowerCase()
  return name === host || name.endsWith(`.${host}`)
}
