// Which source addresses a pattern of a Project covers. Addresses are compared in one form, and an address that two
// programs could read differently (encoded slashes, dot segments, a query) is covered by no pattern but "*".

/** `*` stands for any characters. Linear: patterns come from people, and texts from tenants. */
export function matchesGlob(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return pattern === text
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false
  let from = first.length
  const end = text.length - last.length
  for (const part of rest) {
    const at = text.indexOf(part, from)
    if (at < 0 || at + part.length > end) return false
    from = at + part.length
  }
  return true
}

interface Address {
  scheme: string
  /** In lower case; `*.example.com` in a pattern. */
  host: string
  port: string
  /** Without the slash in front. */
  path: string
}

const DEFAULT_PORTS: Record<string, string> = { http: '80', https: '443', ssh: '22', oci: '443' }
const SCP_FORM = /^([a-z_][-a-z0-9_.]*)@([A-Za-z0-9][-A-Za-z0-9.]*):(?!\/\/)(.+)$/
const URL_FORM = /^([a-z][a-z0-9+.-]*):\/\/(?:([^/@]*)@)?([^/:@]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?(?:\/(.*))?$/
const PLAIN_HOST = /^(?:(?:\*\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?|\[[0-9a-f:.]+\])$/
const PLAIN_PATH = /^[A-Za-z0-9\-._~!$&'()*+,;=:@/]*$/

/** Null if two programs could read it differently. The user name of ssh is not part of the address. */
function parse(text: string): Address | null {
  const scp = SCP_FORM.exec(text)
  const [scheme = '', user, rawHost = '', rawPort, rawPath = ''] =
    scp === null ? (URL_FORM.exec(text)?.slice(1) ?? []) : ['ssh', scp[1], scp[2], undefined, scp[3]?.replace(/^\//, '')]
  if (!Object.hasOwn(DEFAULT_PORTS, scheme) || (user !== undefined && scheme !== 'ssh')) return null
  const host = rawHost.toLowerCase()
  const path = rawPath.replace(/\/+$/, '')
  if (!PLAIN_HOST.test(host) || !PLAIN_PATH.test(path)) return null
  if (path !== '' && path.split('/').some((part) => part === '' || part === '.' || part === '..')) return null
  const port = String(Number(rawPort ?? DEFAULT_PORTS[scheme]))
  return { scheme, host, port, path: path.replace(/\.git$/, '') }
}

/** Whether a text is a pattern that may cover anything. */
export function isSourcePattern(text: string): boolean {
  if (text === '*') return true
  const address = parse(text)
  return address !== null && !address.host.slice(1).includes('*')
}

/** PJ2. `*` in the path covers slashes, too; `*.example.com` covers hosts below example.com and not that host itself.
 */
export function coversSource(pattern: string, url: string): boolean {
  if (pattern === '*') return true
  const [wanted, given] = [parse(pattern), parse(url)]
  if (wanted === null || given === null || given.host.includes('*')) return false
  if (wanted.scheme !== given.scheme || wanted.port !== given.port) return false
  const isHost = wanted.host.startsWith('*.') ? given.host.endsWith(wanted.host.slice(1)) : wanted.host === given.host
  return isHost && matchesGlob(wanted.path, given.path)
}

/** Whether a source of this host, written with its port unless that is the usual one, may be covered. */
export function coversHost(pattern: string, host: string): boolean {
  if (pattern === '*') return true
  const wanted = parse(pattern)
  const given = wanted === null ? null : parse(`${wanted.scheme}://${host}`)
  if (wanted === null || given === null || given.port !== wanted.port) return false
  return wanted.host.startsWith('*.') ? given.host.endsWith(wanted.host.slice(1)) : wanted.host === given.host
}
