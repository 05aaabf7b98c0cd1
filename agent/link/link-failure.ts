// Explains to a person why there was no answer. Pure: takes the name of an error, returns its meaning and the remedy.

export interface LinkFailure {
  detail?: string
  remedy?: string
}

const AUTHORITY = 'the server’s certificate is not signed by an authority that this agent trusts'
const GIVE_AUTHORITY = 'Set --server-ca FILE to the certificate of the authority. If it was never needed before, a proxy may intercept TLS.'
const PROXY_CREDENTIALS =
  'Set user and password in HTTPS_PROXY or HTTP_PROXY (http://USER:PASSWORD@HOST:PORT), or bypass the proxy with NO_PROXY.'

/** A redirect, or 200 and no page. */
export const anotherAnswered: Required<LinkFailure> = {
  detail: 'a proxy or portal answered in place of the server',
  remedy: 'If the network has a login page, log in. Otherwise exclude the server address from the proxy, or check --server.',
}

const BY_CODE: Readonly<Record<string, LinkFailure>> = {
  CERT_HAS_EXPIRED: {
    detail: 'the server’s certificate has expired',
    remedy: 'Renew the certificate of the server. If it is valid, correct the clock of this machine.',
  },
  CERT_NOT_YET_VALID: { detail: 'the server’s certificate is not valid yet', remedy: 'Correct the clock of this machine.' },
  ERR_TLS_CERT_ALTNAME_INVALID: {
    detail: 'the server’s certificate is for another name',
    remedy: 'Set --server to a name in the certificate, or issue a certificate for this name.',
  },
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: { detail: AUTHORITY, remedy: GIVE_AUTHORITY },
  UNABLE_TO_GET_ISSUER_CERT: { detail: AUTHORITY, remedy: GIVE_AUTHORITY },
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: { detail: AUTHORITY, remedy: GIVE_AUTHORITY },
  SELF_SIGNED_CERT_IN_CHAIN: { detail: AUTHORITY, remedy: GIVE_AUTHORITY },
  DEPTH_ZERO_SELF_SIGNED_CERT: { detail: AUTHORITY, remedy: GIVE_AUTHORITY },
  ECONNREFUSED: {
    detail: 'connection refused at the server address',
    remedy: 'Check --server, and that the server or its proxy runs.',
  },
  ECONNRESET: { detail: 'the connection was closed before a response' },
  ENOTFOUND: { detail: 'the server name cannot be resolved', remedy: 'Check --server and the DNS of this machine.' },
  UnexpectedRedirect: anotherAnswered,
  ERR_PROXY_TUNNEL: { detail: 'the proxy refuses connections to the server', remedy: PROXY_CREDENTIALS },
}

const SENT = new Set(['ECONNRESET'])
/** No connection to the server was made, so that no byte of the request was sent to it. */
const UNSENT = new Set([...Object.keys(BY_CODE), 'EHOSTUNREACH', 'ENETUNREACH', 'ConnectionRefused', 'FailedToOpenSocket'])

const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '')

export const linkFailure = (error: unknown): LinkFailure => BY_CODE[codeOf(error)] ?? {}
export const wasSent = (error: unknown): boolean => SENT.has(codeOf(error)) || !UNSENT.has(codeOf(error))

/** A proxy for plain HTTP answers in the server's place. */
export const proxyWantsCredentials: Required<LinkFailure> = {
  detail: 'the proxy asks for credentials (HTTP 407)',
  remedy: PROXY_CREDENTIALS,
}

/** Bun's name is enough for a failure that has a message of our own; Bun's advice is for programmers. */
export function plainCause(error: unknown): unknown {
  const code = codeOf(error)
  return code in BY_CODE ? new Error(code) : error
}
