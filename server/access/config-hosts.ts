// CG8: the hosts to which the secrets of a Config go as a credential: those that it names, or those of its first use.
// So a person who may write a Repository cannot send them elsewhere.
import type { CredentialUse } from '../sources/sources.ts'

/** The form that is stored beside the secrets. Without either: not used yet. */
export interface HostBinding {
  /** Those that a person wrote. */
  hosts?: readonly string[] | undefined
  /** Hosts of the first use, in place of `hosts`: each with its token server, '' while it named none. */
  firstUse?: Readonly<Record<string, string>> | undefined
}

export type HostDecision = { kind: 'allowed' } | { kind: 'refused'; host: string } | { kind: 'bind'; firstUse: Record<string, string> }

/** With the port unless it is the usual one. */
export function hostOf(url: string): string {
  const scp = /^[^@/]+@([^:/]+):(?!\/\/)/.exec(url)?.[1]
  if (scp !== undefined) return scp.toLowerCase()
  const isSsh = url.startsWith('ssh:')
  const { host } = new URL(url.replace(/^(oci|ssh):/, 'https:'))
  return (isSsh ? host.replace(/:22$/, '') : host).toLowerCase()
}

/** Hosts that the credential may be sent to; null while it is not bound. */
export function boundHosts({ hosts, firstUse }: HostBinding): string[] | null {
  if (hosts !== undefined) return [...hosts]
  if (firstUse === undefined) return null
  return [...new Set([...Object.keys(firstUse), ...Object.values(firstUse).filter((host) => host !== '')])].sort()
}

/** `others`: hosts of the Repositories that name the Config now; they count for the first use. */
export function decideHost(binding: HostBinding, { url, tokenServer }: CredentialUse, others: readonly string[]): HostDecision {
  const { hosts, firstUse } = binding
  const host = hostOf(url)
  if (hosts !== undefined) {
    const missing = [host, ...(tokenServer === undefined ? [] : [tokenServer])].find((one) => !hosts.includes(one))
    return missing === undefined ? { kind: 'allowed' } : { kind: 'refused', host: missing }
  }
  if (firstUse === undefined)
    return { kind: 'bind', firstUse: { ...Object.fromEntries(others.map((other) => [other, ''])), [host]: tokenServer ?? '' } }
  const known = Object.hasOwn(firstUse, host) ? firstUse[host] : undefined
  if (known === undefined) return { kind: 'refused', host }
  if (tokenServer === undefined || tokenServer === known || Object.hasOwn(firstUse, tokenServer)) return { kind: 'allowed' }
  return known === '' ? { kind: 'bind', firstUse: { ...firstUse, [host]: tokenServer } } : { kind: 'refused', host: tokenServer }
}
