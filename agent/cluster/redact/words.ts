// Single words that may be shown although no document names them: words of a language, numbers, amounts, addresses and
// versions. A word that looks random (letters and digits, mixed case, many consonants) may be a key or a password.
// Pure.
import { HOLE } from './marks.ts'
import { AMOUNT, hasLogin } from './shown-fields.ts'

/** Words that messages of API servers always contain, so that they reveal no value. */
const PLAIN: ReadonlySet<string> = new Set(
  `a an and any are as at be because been being but by can cannot could did do does else for from had has have if in into is it its may
  must no non none nil not null of on only or other over per set should so such that the their them then there these they this those to
  too true false under up use used uses using was were when where which while will with without would you your
  allowed already api apply applied at applies apiversion binding bound cannot cause changed check cluster conflict conflicts container
  containers count create created data default defined delete deleted denied duplicate each either element empty entries error errors
  exactly exceeded exists expected fail failed failure field fields first forbidden found got group host http https image immutable
  include included info information internal invalid item items key keys kind label labels least length less limit limited limits list
  long map match matches maximum message metadata minimum missing mode more most name names namespace namespaces new number object
  objects old one operation option options otherwise path permitted pod pods policy port ports prefix read reason request requested
  requests required requires resource resources role rule rules same schema secret secrets security server service spec specified
  specify start state status string strings suffix supported template text than timeout token tokens type unknown unsupported update
  updates user valid value values version violation violates volume volumes warning webhook write yes`.split(/\s+/),
)
export const isPlainWord = (word: string): boolean => PLAIN.has(word.toLowerCase())

const WORD_CHARS_MAX = 24
/** The longest names of fields are like `requiredDuringSchedulingIgnoredDuringExecution`. */
const CAMEL_CHARS_MAX = 50
const UPPER_CHARS_MAX = 16
const DIGITS_MAX = 10
const TOKEN_CHARS_MAX = 200

const NUMBER = new RegExp(`^[-+]?\\d{1,${DIGITS_MAX}}(?:\\.\\d{1,6})?%?$`)
const DURATION = /^(?:\d{1,6}(?:\.\d{1,6})?(?:h|m|s|ms|µs|us|ns))+$/
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[-+]\d\d:?\d\d)$/
const IPV4 = /^\d{1,3}(?:\.\d{1,3}){3}(?:\/\d{1,2})?(?::\d{1,5})?$/
const IPV6 = /^\[?(?=[0-9a-f:]*::|(?:[0-9a-f]{1,4}:){7})[0-9a-f:]{2,39}\]?(?:\/\d{1,3})?(?::\d{1,5})?$/i
const VERSION = /^v?\d{1,4}(?:\.\d{1,5}){1,3}(?:[-+](?:alpha|beta|rc|k3s|eks|gke)[-.]?\d{0,4})?\+?$/
/** Technical words with digits: `v1beta1`, `k8s`, `sha256`. */
const WITH_DIGITS =
  /^(?:v\d{1,2}(?:(?:alpha|beta)\d{1,2})?|k8s|k3s|k0s|x509|x86|arm64|amd64|ipv[46]|http[123]|h2c?|utf8|sha(?:1|256|384|512)|md5|base64|rfc\d{1,5}|l[47]|s3|ec2|p\d\d|tls1|oauth2|i18n)$/i

/** One run of letters and digits. */
export function isSafePart(part: string): boolean {
  if (/^\d+$/.test(part)) return part.length <= DIGITS_MAX
  if (WITH_DIGITS.test(part)) return true
  return /^\p{L}+$/u.test(part) && isWord(part)
}

function isWord(word: string): boolean {
  if (!/^[A-Za-z]+$/.test(word)) return word.length <= WORD_CHARS_MAX
  if (hasNoVowels(word)) return false
  if (/^[A-Z]?[a-z]*$/.test(word)) return word.length <= WORD_CHARS_MAX
  if (/^[A-Z]+s?$/.test(word)) return word.length <= UPPER_CHARS_MAX
  // `allowPrivilegeEscalation`, `hostPID` and `APIGroup` consist of words; a random text changes its case more often.
  const humps = word.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? []
  return word.length <= CAMEL_CHARS_MAX && word.length >= humps.length * 2.5
}

/** No word and no common abbreviation has so many consonants in a row. */
const hasNoVowels = (word: string): boolean => /[^aeiouy]{7}/i.test(word)

/** `token` is a word without the punctuation around it. `isName` knows the names in the documents. */
export function isSafeToken(token: string, isName: (text: string) => boolean): boolean {
  if (token === '' || isName(token)) return true
  if (token.length > TOKEN_CHARS_MAX || hasLogin(token)) return false
  const shapes = [NUMBER, AMOUNT, DURATION, TIME, IPV4, IPV6, VERSION]
  if (shapes.some((shape) => shape.test(token))) return true
  return (
    SEPARATORS.some((separator) => token.split(separator).every((part) => isName(part) || areSafeParts(part))) || endsInName(token, isName)
  )
}

/** Between these, names and words alternate: `shop/db2`, `container=main2`, `data[tls.crt]`, `web2.shop2`,
 *  `web2_shop2`. */
const SEPARATORS = [/[/=:@,[\]|]+/, /[/=,[\]|]+/, /[.]+/, /[_=]+/]
const areSafeParts = (text: string): boolean => text.split(/[^\p{L}\p{N}]+/u).every((part) => part === '' || isSafePart(part))

/** `docker.io/library/app:1a2b`, where the documents name the image without its registry. */
function endsInName(token: string, isName: (text: string) => boolean): boolean {
  for (let slash = token.indexOf('/'); slash >= 0; slash = token.indexOf('/', slash + 1))
    if (isName(token.slice(slash + 1)) && areSafeParts(token.slice(0, slash))) return true
  return false
}

const INSIDE = new RegExp(`[\\p{L}\\p{N}${HOLE}]`, 'u')
const OUTSIDE = new RegExp(`^[^\\p{L}\\p{N}${HOLE}]*`, 'u')

/** A word between punctuation. Read from both ends: a pattern would look at the rest of each run of punctuation again.
 */
export function punctuated(word: string): { before: string; core: string; after: string } {
  const start = OUTSIDE.exec(word)?.[0].length ?? 0
  let end = word.length
  while (end > start) {
    // A letter may be two units of the text.
    const unit = word.codePointAt(end - 2) ?? 0
    const size = unit > 0xffff ? 2 : 1
    if (INSIDE.test(word.slice(end - size, end))) break
    end -= size
  }
  return { before: word.slice(0, start), core: word.slice(start, end), after: word.slice(end) }
}
