// Headers that every answer to people and browsers carries. Answers to agents have none of them: no browser reads
// those, and each poll pays for its bytes.

export interface SecureHeaders {
  /** HT4: adds what the answer does not say itself. */
  complete(answer: Response, isApi: boolean): Response
}

const STRICT_TRANSPORT_SECURITY = 'max-age=31536000'
/** A JSON document loads nothing and may not be framed. Pages bring their own policy. */
const API_POLICY = "default-src 'none'; frame-ancestors 'none'"

/** `https`: clients reach this server over TLS, ended here or by a proxy. */
export function createSecureHeaders(https: boolean): SecureHeaders {
  return {
    complete(answer, isApi) {
      const { headers } = answer
      headers.set('x-content-type-options', 'nosniff')
      headers.set('referrer-policy', 'no-referrer')
      headers.set('x-frame-options', 'DENY')
      if (!headers.has('content-security-policy')) headers.set('content-security-policy', API_POLICY)
      if (isApi && !headers.has('cache-control')) headers.set('cache-control', 'no-store')
      if (https) headers.set('strict-transport-security', STRICT_TRANSPORT_SECURITY)
      return answer
    },
  }
}
