// The entries of a knownHosts text for one host, for messages: ssh alone decides whether the host is trusted.
import { createHmac } from 'node:crypto'
import type { SshPlace } from './url.ts'

/** As lines of knownHosts name it. */
export function knownName({ host, port }: Pick<SshPlace, 'host' | 'port'>): string {
  const name = host.replace(/^\[|\]$/g, '')
  return port === 22 ? name : `[${name}]:${port}`
}

const LINE = /^(?:@(?:cert-authority|revoked)\s+)?(\S+)\s+(?:ssh-|ecdsa-|sk-)\S+\s+[A-Za-z0-9+/=]{16,}(?:\s|$)/

/** `unread`: none of its lines is one. `other`: none is for this host. */
export function knownState(knownHosts: string, place: SshPlace): 'unread' | 'other' | 'known' {
  const hosts = knownHosts.split('\n').flatMap((line) => LINE.exec(line.trim())?.[1] ?? [])
  if (hosts.length === 0) return 'unread'
  const name = knownName(place).toLowerCase()
  return hosts.some((patterns) => isFor(patterns, name)) ? 'known' : 'other'
}

function isFor(patterns: string, name: string): boolean {
  if (patterns.startsWith('|1|')) {
    const [salt = '', digest] = patterns.slice(3).split('|')
    return createHmac('sha1', Buffer.from(salt, 'base64')).update(name).digest('base64') === digest
  }
  const all = patterns.toLowerCase().split(',')
  const fits = (pattern: string) => matches(pattern, name)
  return all.some(fits) && !all.some((pattern) => pattern.startsWith('!') && fits(pattern.slice(1)))
}

/** With * and ?; step by step, since an expression of many * takes for ever. */
function matches(pattern: string, name: string): boolean {
  let [at, star, mark] = [0, -1, 0]
  for (let here = 0; here < name.length; ) {
    if (pattern[at] === '*') [star, mark] = [at++, here]
    else if (at < pattern.length && (pattern[at] === '?' || pattern[at] === name[here])) [at, here] = [at + 1, here + 1]
    else if (star >= 0) [at, here] = [star + 1, ++mark]
    else return false
  }
  return /^\**$/.test(pattern.slice(at))
}
