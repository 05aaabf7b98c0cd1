// The words behind which a value is a secret, in one list for sentences, free text and log lines. Pure.

/** The end of such a word; what stands in front of it may be anything: `dbPassword`, `PGPASSWORD`, `--api-key`. */
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
/** `--password=` of `--password=x`; null: no value of a secret is assigned. */
export const secretKeyOf = (token: string): string | null => (IMAGE.test(token) ? null : (ASSIGNED.exec(token)?.[1] ?? null))
/** `example/external-secrets:v1.2.3`. */
const IMAGE = /^[-\w./]+\/[-\w.]+:v?\d{1,4}(?:\.\d{1,5}){1,3}$/

/** Members of a list of settings, each second one what stands between them: `Id=sa;Password=x`. */
export const settingsOf = (token: string): string[] => token.split(/([;,&]+)/)
export const assignsSecret = (token: string): boolean => settingsOf(token).some((part) => secretKeyOf(part) !== null)

/** `password: must not be empty`: how a sentence about a secret goes on. */
const GOES_ON: ReadonlySet<string> = new Set(
  `required invalid forbidden unsupported duplicate missing must should cannot may is are was not no the a an too expected unknown
  failed`.split(/\s+/),
)
export const isSentenceAfterKey = (word: string): boolean => GOES_ON.has(word.toLowerCase())

const OBJECT_NAME = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/
const KIND_OF_SECRETS = /^(?:secrets?|[A-Za-z]+(?:\.[-a-z0-9]+){2,})$/i

/** `secrets "db"` names a Secret and `token "x"` quotes a token. `word` stands in front of the quotes. */
export function isQuotedSecret(word: string, quoted: string): boolean {
  const [kind = ''] = word.split('.')
  if (!isSecretKey(word) && !isSecretKey(kind) && !/^keys?$/i.test(kind)) return false
  return !KIND_OF_SECRETS.test(word) || !OBJECT_NAME.test(quoted)
}
