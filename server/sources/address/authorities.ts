// Which authorities a certificate is held against where a Config brings one of its own. fetch takes what it is given in
// the place of its own list, not beside it.
import { getCACertificates } from 'node:tls'

/** Counted alone at the repository's own scheme, host and port. Other hosts that those lead to (a store of blobs, a
 *  token server) may be of the same house or of the Internet. */
export function authoritiesAt(ca: string | undefined, isOwn: boolean): string | string[] | undefined {
  return ca === undefined || isOwn ? ca : [...getCACertificates('default'), ca]
}

/**
 * For a program that does not read NODE_EXTRA_CA_CERTS: the authorities of this machine and of `fetch`. Null if there
 * are no extra ones, because the program then has its own list.
 */
export function authoritiesForProgram(): string | null {
  if (getCACertificates('extra').length === 0) return null
  return [...new Set([...getCACertificates('system'), ...getCACertificates('default'), ...getCACertificates('extra')])]
    .map(lineEnded)
    .join('')
}

const lineEnded = (pem: string): string => `${pem.trimEnd()}\n`
