// The words behind which a value is a secret, in one list for sentences, free text and log lines. Pure.

/** The end of such a word; any text may precede it: `dbPassword`, `PGPASSWORD`, `--api-key`. */
export const SECRET_KEYS = [
  'pass(?:word|wd|phrase|code)?s?',
  'pwds?',
  'secrets?',
  'tokens?',
  'credentials?',
  'creds?',
  'cookies?',
  'auth(?:orization)?',
  'dsns?',
  'signatures?',
  '(?:api|private|access|account|shared|secret|encryption|signing|client)[-_. ]?keys?',
  '(?<![a-z])pins?',
].join('|')
const SECRET_KEY = new RegExp(`(?:${SECRET_KEYS})$`, 'i')
export const isSecretKey = (word: string): boolean => SECRET_KEY.test(word)

const ASSIGNED = new RegExp(`^(.*?(?:${SECRET_KEYS})["'\`]?[:=]+)(.+)$`, 'is')
/** `--password=` of `--password=x`. Null means that no value of a secret is assigned. */
export const secretKeyOf = (token: string): string | null => (IMAGE.test(token) ? null : (ASSIGNED.exec(token)?.[1] ?? null))
/** `example/external-secrets:v1.2.3`. */
const IMAGE = /^[-\w./]+\/[-\w.]+:v?\d{1,4}(?:\.\d{1,5}){1,3}$/

/** Members of a list of settings, each second one what stands between them: `Id=sa;Password=x`. */
export const settingsOf = (token: string): string[] => token.split(/([;,&]+)/)
export const assignsSecret = (token: string): boolean => settingsOf(token).some((part) => secretKeyOf(part) !== null)

/** `password: must not be empty`: words with which a sentence about a secret continues. */
const GOES_ON: ReadonlySet<string> = new Set(
  `required invalid forbidden unsupported duplicate missing must should cannot may is are was not no the a an too expected unknown
  failed`.split(/\s+/),
)
export const isSentenceAfterKey = (word: string): boolean => GOES_ON.has(word.toLowerCase())

/** `password is x` and `token was "x"` say a value as `password=x` does. */
const VERBS: ReadonlySet<string> = new Set(['is', 'was', 'are', 'were', 'equals', 'becomes'])
export const isVerbOfKey = (word: string): boolean => VERBS.has(word.toLowerCase())
/** `password is now x`. */
const BEFORE_SAID: ReadonlySet<string> = new Set(['now', 'still', 'currently', 'again', 'set', 'changed', 'to'])
export const isBeforeSaid = (word: string): boolean => BEFORE_SAID.has(word.toLowerCase())
/** `token is expired`: words that say something about a secret. */
const PROSE: ReadonlySet<string> = new Set(
  `absent accepted already and as at authenticated authentication authorization been being but by can changed correct could created
  deleted denied did disabled do does empty enabled encrypted expired expires for from given had has have here hidden ignored in incorrect
  kept loaded malformed mismatch mismatched mounted needed needs never null of on only optional or outdated present provided read redacted
  refreshed refused rejected removed renewed reset revoked rotated safe shorter stale still stored than that there to unavailable undefined
  unreadable unset unused updated used using valid validated verified weak when which will with within without would wrong
  check endpoint field file hash header key keys length manager mechanism method name path policy prompt provider ref reference request
  response review rotation server service source store type`.split(/\s+/),
)
export const isProseAfterKey = (word: string): boolean => isSentenceAfterKey(word) || PROSE.has(word.toLowerCase()) || /n['’]t$/.test(word)

const OBJECT_NAME = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/
const KIND_OF_SECRETS = /^(?:secrets?|[A-Za-z]+(?:\.[-a-z0-9]+){2,})$/i

/** `secrets "db"` names a Secret and `token "x"` quotes a token. `word` stands in front of the quotes. */
export function isQuotedSecret(word: string, quoted: string): boolean {
  const [kind = ''] = word.split('.')
  if (!isSecretKey(word) && !isSecretKey(kind) && !/^keys?$/i.test(kind)) return false
  return !KIND_OF_SECRETS.test(word) || !OBJECT_NAME.test(quoted)
}
