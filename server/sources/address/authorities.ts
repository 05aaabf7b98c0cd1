// Which authorities a certificate is held against where a Config brings one of its own. fetch takes what it is given in the place of its own list, not beside it.
import { getCACertificates } from 'node:tls'

/** Counted alone at the repository's own scheme, host and port. Other hosts that those lead to (a store of blobs, a token server) may be of the same house or of the Internet. */
export function authoritiesAt(ca: string | undefined, isOwn: boolean): string | string[] | undefined {
  return ca === undefined || isOwn ? ca : [...getCACertificates('default'), ca]
}
