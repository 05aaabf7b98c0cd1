// Addresses of Git repositories: https and http, ssh, and `user@host:path`. Text in, values out.

export interface SshPlace {
  user: string | null
  host: string
  port: number
}

const SCP_FORM = /^(?:([A-Za-z_][-A-Za-z0-9_.]*)@)([A-Za-z0-9][-A-Za-z0-9.]*):(?!\/\/)\S+$/
const HOST = /^([A-Za-z0-9][-A-Za-z0-9.]*|\[[0-9A-Fa-f:.]+\])$/

/** Null if it is not reached by ssh. */
export function sshPlace(url: string): SshPlace | null {
  const scp = SCP_FORM.exec(url)
  if (scp !== null) return { user: scp[1] ?? null, host: scp[2] ?? '', port: 22 }
  if (!URL.canParse(url)) return null
  const { protocol, hostname, port, username } = new URL(url)
  if (protocol !== 'ssh:' || !HOST.test(hostname)) return null
  return { user: username === '' ? null : username, host: hostname, port: port === '' ? 22 : Number(port) }
}

export const isWebUrl = (url: string): boolean => /^https?:\/\//.test(url) && URL.canParse(url)

/** For credentials: the same host by the same way, or by the two usual ones, https and ssh at their own ports. */
export function isSameHost(a: string, b: string): boolean {
  const [one, other] = [hostOf(a), hostOf(b)]
  if (one === null || other === null || one.host !== other.host) return false
  return one.way === other.way ? one.port === other.port : one.isUsual && other.isUsual
}

function hostOf(url: string): { host: string; port: number; way: string; isUsual: boolean } | null {
  const ssh = sshPlace(url)
  if (ssh !== null) return { host: ssh.host.toLowerCase(), port: ssh.port, way: 'ssh', isUsual: ssh.port === 22 }
  if (!isWebUrl(url)) return null
  const { hostname, port, protocol } = new URL(url)
  const number = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
  return { host: hostname.toLowerCase(), port: number, way: protocol, isUsual: protocol === 'https:' && number === 443 }
}

/**
 * The address that a repository may name in its .gitmodules: one of the kinds above without credentials, or a path
 * relative to its own. Null for anything else.
 */
export function submoduleUrl(parent: string, text: string): string | null {
  const url = /^\.\.?\//.test(text) ? relativeTo(parent, text) : text
  if (url === null || /[\s\p{Cc}]/u.test(url) || url.length > 2_048) return null
  if (isWebUrl(url)) {
    const { username, password } = new URL(url)
    return username === '' && password === '' ? url : null
  }
  if (sshPlace(url) === null) return null
  return URL.canParse(url) && new URL(url).password !== '' ? null : url
}

/** As Git does it: each `../` takes one name from the end of the address, and never its host. */
function relativeTo(parent: string, text: string): string | null {
  const scp = SCP_FORM.exec(parent)
  const head = scp !== null ? parent.slice(0, parent.indexOf(':') + 1) : `${new URL(parent).protocol}//${parent.split('/')[2] ?? ''}/`
  const path = parent
    .slice(head.length)
    .replace(/[?#].*$/, '')
    .split('/')
    .filter((part) => part !== '')
  const isAbsolute = scp !== null && parent.slice(head.length).startsWith('/')
  for (const part of text.split('/')) {
    if (part === '.' || part === '') continue
    if (part !== '..') path.push(part)
    else if (path.pop() === undefined) return null
  }
  return path.length === 0 ? null : `${head}${isAbsolute ? '/' : ''}${path.join('/')}`
}
