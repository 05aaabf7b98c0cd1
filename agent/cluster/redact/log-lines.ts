// Lines of a program's log. Nothing is known of their grammar, so they leave the cluster only where a person asked for
// them, and then without the values of the documents and without what looks like a credential. Pure.
import { namesOf } from './free-text.ts'
import type { KnownValues } from './known-values.ts'
import { clean, HOLE, MARK } from './marks.ts'
import { SECRET_KEYS } from './secret-keys.ts'
import { addressIn } from './urls.ts'

const CREDENTIALS: ReadonlyArray<readonly [pattern: RegExp, shown: string]> = [
  [/\b(authorization["']?\s*[:=]\s*["']?)(?:\w+ )?[^\s"',;]+/gi, `$1${HOLE}`],
  [/\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi, `$1 ${HOLE}`],
  [new RegExp(`((?:${SECRET_KEYS})["']?\\s*[:=]\\s*)("[^"]*"|'[^']*'|[^\\s"',;&]+)`, 'gi'), `$1${HOLE}`],
  // A JSON web token, and base64 or hexadecimal digits of the length of a key.
  [/\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]+)?/g, HOLE],
  [/(?<![\w/+-])(?=[\w/+-]*\d)(?=[\w/+-]*[A-Za-z])[\w/+-]{40,}={0,2}/g, HOLE],
]

/** The rest of a value whose beginning is known. */
const REST = new RegExp(`${HOLE}(?:[^\\s"]+(?=@)|\\w[^\\s"',;]*)`, 'g')
/** Up to the next address of a list. A user's password may hold any character but these. */
const ADDRESS = /\b[a-z][a-z0-9+.-]*:\/\/(?:(?!,[a-z][a-z0-9+.-]*:\/\/)[^\s"])*/gi

function addressText(text: string, isName: (text: string) => boolean): string {
  const [, core = '', after = ''] = /^(.*?)([^\w/\]@=?&#~%-]*)$/s.exec(text) ?? []
  const address = addressIn(core, isName)
  if (address === null) return text
  const { scheme, hasUser, host, path, query } = address
  return `${scheme}${hasUser ? `${HOLE}@` : ''}${host === null ? HOLE : `${host}${path}${query}`}${after}`
}

/** As many lines as came in. */
export function safeLines(text: string, known: KnownValues): string {
  const hidden = known.hide(text.split(/\r?\n/).map(clean))
  const isName = namesOf(known)
  const shown = hidden.map((line) => {
    const addressed = line.replace(REST, HOLE).replace(ADDRESS, (text) => addressText(text, isName))
    return CREDENTIALS.reduce((rest, [pattern, instead]) => rest.replace(pattern, instead), addressed)
  })
  return shown.map((line) => line.replace(new RegExp(`${HOLE}(?:\\s*${HOLE})*`, 'g'), MARK)).join('\n')
}
