// The failures of the git program and ssh, distinguished by the next step of a person. The text of the remote is never
// passed on (IN14).

export type GitProblem =
  | { kind: 'no_ref' }
  | { kind: 'unreachable'; why: string }
  /** `shown`: type and fingerprint of the key, as far as ssh tells them: `ED25519 SHA256:…`. `isChanged`: another one
   *  is known. */
  | { kind: 'host_key'; shown: string | null; isChanged: boolean }
  | { kind: 'refused'; why: string }
  | { kind: 'redirected' }
  | { kind: 'no_repository' }
  | { kind: 'disk_full' }
  | { kind: 'failed'; why: string }

const UNREACHABLE: ReadonlyArray<[RegExp, string]> = [
  [/connect to host .*: Connection refused|Failed to connect to|Couldn't connect to server/, 'cannot be reached: connection refused'],
  [/Temporary failure in name resolution/, 'cannot be resolved: the name server of this machine did not answer'],
  [/Could not resolve (hostname|host)/, 'cannot be resolved: unknown name; correct the URL'],
  [/timed out|Connection timed out|Operation timed out/, 'did not answer in time'],
  [/No route to host|Network is unreachable/, 'cannot be reached: no route'],
  [/Connection (reset|closed) by|kex_exchange_identification/, 'closed the connection before it answered'],
  [
    /SSL certificate problem|server certificate verification failed|SSL: no alternative/,
    'shows a certificate that is not trusted; set caCert to its certificate authority',
  ],
]
const NO_REF = /couldn't find remote ref|not our ref|Server does not allow request for unadvertised object/
const HOST_KEY = /Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED|No \S+ host key is known/
const REFUSED: ReadonlyArray<[RegExp, string]> = [
  [/Load key .*(invalid format|error in libcrypto)/, 'the sshKey is not a valid private key'],
  [/Permission denied \(/, 'the key was refused'],
  [
    /Authentication failed for|could not read (Username|Password)|The requested URL returned error: (401|403)/,
    'the credentials were refused',
  ],
]
const NO_REPOSITORY = /does not appear to be a git repository|Repository not found|repository '.*' not found|project you were looking for/
const FAILED: ReadonlyArray<[RegExp, string]> = [
  [/transport '\w+' not allowed/, 'this transport is not allowed'],
  [
    /bad object|loose object .* is corrupt|packfile .* (cannot be accessed|invalid)|unable to read tree|missing blob/,
    'the folder of the repository on this server is damaged',
  ],
]

/**
 * The line of a changed key ends with a dot; for an unknown key it has only the type, and the rest with LogLevel
 * DEBUG1.
 */
function shownKey(text: string): string | null {
  const type = /(?:fingerprint for the|No) ([A-Z0-9]{2,16}) (?:key sent|host key is known)/.exec(text)?.[1]
  const fingerprint = /^(?:debug1: Server host key: \S+ )?(SHA256:[A-Za-z0-9+/]{43})\.?\r?$/m.exec(text)?.[1]
  return [type, fingerprint].filter((part) => part !== undefined).join(' ') || null
}

export function readProblem(stderr: string): GitProblem {
  // Lines of the other side are its own words, and could claim anything.
  const text = stderr
    .split('\n')
    .filter((line) => !line.startsWith('remote:'))
    .join('\n')
  const first = (table: ReadonlyArray<[RegExp, string]>) => table.find(([pattern]) => pattern.test(text))?.[1]
  if (/No space left on device/.test(text)) return { kind: 'disk_full' }
  if (HOST_KEY.test(text)) return { kind: 'host_key', shown: shownKey(text), isChanged: text.includes('HOST IDENTIFICATION HAS CHANGED') }
  const refused = first(REFUSED)
  if (refused !== undefined) return { kind: 'refused', why: refused }
  if (NO_REF.test(stderr)) return { kind: 'no_ref' }
  const unreachable = first(UNREACHABLE)
  if (unreachable !== undefined) return { kind: 'unreachable', why: unreachable }
  if (/unable to update url base from redirection|The requested URL returned error: 30\d/.test(text)) return { kind: 'redirected' }
  if (NO_REPOSITORY.test(text)) return { kind: 'no_repository' }
  return { kind: 'failed', why: first(FAILED) ?? '' }
}
