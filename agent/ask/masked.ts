// Live objects without secrets (AK9, AK10). Keys stay, so that people see which values exist. A value that is masked in
// one place is masked wherever it stands in the object, and texts of the status pass the redaction boundary. Pure.
import type { K8sObject } from '../../shared/kube/object.ts'
import { isClearMark } from '../../shared/model/sealed-object.ts'
import { KnownValues } from '../cluster/redact/known-values.ts'
import { HOLE, MARK } from '../cluster/redact/marks.ts'
import { safeText } from '../cluster/redact/safe-text.ts'
import { isSecretKey, secretKeyOf } from '../cluster/redact/secret-keys.ts'
import { isSecretKind, isSensitiveName, isShown } from '../cluster/redact/shown-fields.ts'
import type { Hiding } from './hiding.ts'

/** kubectl keeps a whole object here, values of Secrets too. */
export const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'
const CONTENTS: ReadonlySet<string> = new Set(['data', 'stringData', 'binaryData'])
const IDENTITY: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata'])
/** Lists of words of a command line. */
const ARGUMENTS: ReadonlySet<string> = new Set(['args', 'command'])
/** Fields of Events, which have no status. */
const EVENT_TEXTS: ReadonlySet<string> = new Set(['message', 'note'])
/** Shorter values are words that stand in many places for other reasons. */
const SPREAD_CHARS_MIN = 6

export interface Masked {
  object: K8sObject
  /** Paths of hidden values. */
  masked: string[]
}

export function masked(live: K8sObject, { hiding = 'nothing' as Hiding, managedFields = false } = {}): Masked {
  const { managedFields: fields, ...metadata } = live.metadata
  const keepsFields = managedFields && hiding === 'nothing' && fields !== undefined
  const object: K8sObject = { ...live, metadata: { ...metadata, ...(keepsFields ? { managedFields: fields } : {}) } }
  const mask = maskOf([live])
  const shown = hiding === 'nothing' ? mask.object(object) : mask.identity(object)
  return { object: shown, masked: mask.paths.sort() }
}

export interface Mask {
  /** Paths of what was hidden so far. */
  readonly paths: string[]
  object(object: K8sObject): K8sObject
  /** Identity and keys alone. */
  identity(object: K8sObject): K8sObject
}

/** `objects`: all forms of one object that are shown together; a secret of one of them may stand in another. */
export function maskOf(objects: readonly K8sObject[]): Mask {
  const secrets: string[] = []
  for (const object of objects) hideFields(object, (value, path) => (path.endsWith(LAST_APPLIED) ? MARK : note(value)))
  // Without other encodings and single words of them (KA51), which are in every text.
  const known = new KnownValues([{ kind: '', data: secrets.filter(({ length }) => length >= SPREAD_CHARS_MIN) }])
  const about = new KnownValues(objects)
  const paths: string[] = []
  const kind = objects[0]?.kind ?? ''
  return {
    paths,
    object: (object) => spread(hideFields(object, hide), { text: '', names: [] }) as K8sObject,
    identity: (object) => identityOf(object, hide),
  }

  function note(value: unknown): string {
    secrets.push(...textsIn(value))
    return MARK
  }

  function hide(_value: unknown, path: string): string {
    paths.push(path)
    return MARK
  }

  function spread(value: unknown, at: At): unknown {
    if (Array.isArray(value)) return value.map((item, index) => spread(item, { ...at, text: `${at.text}[${index}]` }))
    if (isRecord(value)) return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, spread(member, below(at, key))]))
    if (typeof value !== 'string' || value === MARK || isShown(kind, at.names, value) || isIdentity(at.names)) return value
    const isText = /\s/.test(value) && isFreeText(kind, at.names)
    const text = isText ? safeText(value, { known: about }) : withoutLogin(hiddenIn(value, known))
    if (text !== value) paths.push(at.text)
    return text
  }
}

interface At {
  text: string
  names: string[]
}
const below = ({ text, names }: At, key: string): At => ({ text: text === '' ? key : `${text}.${key}`, names: [...names, key] })

type Hide = (value: unknown, path: string) => unknown

/** The object with a mark for each secret by its place: contents of a Secret, telling variables and arguments,
 *  kubectl's copy. */
function hideFields(object: K8sObject, hide: Hide): K8sObject {
  if (!isSecretKind(object.kind)) return hidePart(object, '', hide) as K8sObject
  const { metadata, ...body } = object
  const contents = Object.entries(body).map(([key, member]) => [
    key,
    CONTENTS.has(key) ? hideMembers(member, key, decoded(key, hide)) : member,
  ])
  return { ...Object.fromEntries(contents), metadata: hidePart(metadata, 'metadata', hide) } as K8sObject
}

/** The value itself may stand elsewhere, not its base64. */
const decoded =
  (field: string, hide: Hide): Hide =>
  (value, path) =>
    hide(field === 'data' && typeof value === 'string' ? [value, Buffer.from(value, 'base64').toString('utf8')] : value, path)

function hideMembers(value: unknown, at: string, hide: Hide): unknown {
  if (!isRecord(value)) return hide(value, at)
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, hide(member, `${at}.${key}`)]))
}

function hidePart(value: unknown, at: string, hide: Hide): unknown {
  if (Array.isArray(value)) {
    const name = /[^.\]]*$/.exec(at)?.[0] ?? ''
    return ARGUMENTS.has(name) ? hideArguments(value, at, hide) : value.map((item, index) => hidePart(item, `${at}[${index}]`, hide))
  }
  if (!isRecord(value)) return value
  const isVariable = typeof value['name'] === 'string' && typeof value['value'] === 'string' && isSensitiveName(value['name'])
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      const path = at === '' ? key : `${at}.${key}`
      return [key, (isVariable && key === 'value') || key === LAST_APPLIED ? hide(member, path) : hidePart(member, path, hide)]
    }),
  )
}

/** `--password=x` and `--password x`. */
function hideArguments(words: unknown[], at: string, hide: Hide): unknown[] {
  return words.map((word, index) => {
    if (typeof word !== 'string') return word
    const before = words[index - 1]
    const isValue = typeof before === 'string' && before.startsWith('-') && !word.startsWith('-') && isSecretKey(before)
    if (isValue) return hide(word, `${at}[${index}]`)
    const key = /\s/.test(word) ? null : secretKeyOf(word)
    return key === null ? word : `${key}${hide(word.slice(key.length), `${at}[${index}]`)}`
  })
}

function identityOf(object: K8sObject, hide: Hide): K8sObject {
  const { labels, annotations, ...metadata } = object.metadata
  const marks = (values: Record<string, string> | undefined, field: string) =>
    values === undefined
      ? {}
      : {
          [field]: Object.fromEntries(
            Object.entries(values).map(([key, value]) => [key, isClearMark(key) ? value : hide(value, `metadata.${field}.${key}`)]),
          ),
        }
  const body = Object.entries(object).map(([key, member]) => {
    if (key === 'metadata') return [key, { ...metadata, ...marks(labels, 'labels'), ...marks(annotations, 'annotations') }]
    if (IDENTITY.has(key)) return [key, member]
    return [key, CONTENTS.has(key) ? hideMembers(member, key, hide) : hide(member, key)]
  })
  return Object.fromEntries(body) as K8sObject
}

/** Metadata apart from annotations. */
const isIdentity = ([field, name]: readonly string[]): boolean => field === 'metadata' && name !== 'annotations'

/** Controllers write into a status whatever they were told. An Event has none. */
const isFreeText = (kind: string, [field = '']: readonly string[]): boolean =>
  field === 'status' || (kind === 'Event' && EVENT_TEXTS.has(field))

const hiddenIn = (text: string, known: KnownValues): string => (known.hide([text])[0] ?? HOLE).replaceAll(HOLE, MARK)

/** `scheme://user:password@host`. */
const withoutLogin = (text: string): string =>
  text.includes('@') ? text.replace(/([a-z][a-z0-9+.-]{0,31}:\/\/)[^\s/@]*:[^\s@]*@/gi, `$1${MARK}@`) : text

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value === 'number') return [String(value)]
  if (Array.isArray(value)) return value.flatMap(textsIn)
  return isRecord(value) ? Object.values(value).flatMap(textsIn) : []
}

const isRecord = (value: unknown): value is Record<string, unknown> => value !== null && typeof value === 'object' && !Array.isArray(value)
