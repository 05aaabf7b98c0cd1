// Lines of a program's log. Nothing is known of their grammar, so they leave the cluster only where a person asked for
// them, and then without the values of the documents and without what looks like a credential. Pure.
import { namesOf } from './free-text.ts'
import type { KnownValues } from './known-values.ts'
import { clean, HOLE, MARK } from './marks.ts'
import { withoutSaid } from './said-secrets.ts'
import { SECRET_KEYS } from './secret-keys.ts'
import { addressIn } from './urls.ts'

const VALUE = '\\\\*"[^"]*"|\'[^\']*\'|[^\\s"\',;&]+'
const CREDENTIALS: ReadonlyArray<readonly [pattern: RegExp, shown: string]> = [
  [/\b(authorization["']?\s*[:=]\s*["']?)(?:\w+ )?[^\s"',;]+/gi, `$1${HOLE}`],
  [/\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi, `$1 ${HOLE}`],
  [new RegExp(`((?:${SECRET_KEYS})\\\\*["'\`]?\\s*(?:=>|[:=])\\s*(?:(?:is|was)\\s+)?)(${VALUE})`, 'gi'), `$1${HOLE}`],
  // A JSON web token, and base64 or hexadecimal digits of the length of a key.
  [/\beyJ[\w-]{8,1024}\.[\w-]+(?:\.[\w-]+)?/g, HOLE],
  [/(?<![\w/+-])(?=[\w/+-]*\d)(?=[\w/+-]*[A-Za-z])[\w/+-]{40,}={0,2}/g, HOLE],
]

/** Up to the next address of a list. A user's password may hold any character but these. */
const ADDRESS = /\b[a-z][a-z0-9+.-]{0,31}:\/\/(?:(?!,[a-z][a-z0-9+.-]{0,31}:\/\/)[^\s"])*/gi
const ENDS_ADDRESS = /[\w/\]@=?&#~%-]/

function addressText(text: string, isName: (text: string) => boolean): string {
  let end = text.length
  while (end > 0 && !ENDS_ADDRESS.test(text[end - 1] ?? '')) end -= 1
  const address = addressIn(text.slice(0, end), isName)
  if (address === null) return text
  const { scheme, hasUser, host, path, query } = address
  return `${scheme}${hasUser ? `${HOLE}@` : ''}${host === null ? HOLE : `${host}${path}${query}`}${text.slice(end)}`
}

/** The rest of a value whose beginning is known: up to the last `@`, or the rest of the word. */
function withoutRest(token: string): string {
  const hole = token.indexOf(HOLE)
  if (hole < 0) return token
  const at = token.lastIndexOf('@')
  const behind = at > hole + 1 ? token.slice(0, hole + 1) + token.slice(at) : token
  return behind.replace(REST, HOLE)
}
const REST = new RegExp(`${HOLE}\\w[^\\s"',;${HOLE}]*`, 'g')

/** As many lines as in the input. */
export function safeLines(text: string, known: KnownValues): string {
  const hidden = known.hide(text.split(/\r?\n/).map(clean))
  const isName = namesOf(known)
  const shown = hidden.map((line) => {
    const addressed = line.replace(/[^\s"]+/g, withoutRest).replace(ADDRESS, (text) => addressText(text, isName))
    const unassigned = CREDENTIALS.reduce((rest, [pattern, instead]) => rest.replace(pattern, instead), addressed)
    return withoutSaid(unassigned, isName)
  })
  return shown.map((line) => line.replace(HOLES, MARK)).join('\n')
}
const HOLES = new RegExp(`${HOLE}(?:\\s*${HOLE})*`, 'g')
