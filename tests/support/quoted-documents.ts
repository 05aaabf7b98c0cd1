// Generated documents with planted secrets, and the ways in which API servers, policies and controllers print them: Go
// syntax, JSON, YAML, quotes, differences, cut texts.
import fc from 'fast-check'
import type { K8sObject } from '../../shared/kube/object.ts'

/** Every planted secret has it, and nothing else: `zq` and what follows. */
export const PLANTED = /zq[a-z0-9]/i

const token = fc.stringMatching(/^[a-z0-9]{4,14}$/).map((text) => `zq${text}`)
/** Secrets in the forms that people have them, and some that look like the grammar of a message. */
const secret: fc.Arbitrary<string> = fc.oneof(
  token,
  fc.array(token, { minLength: 2, maxLength: 4 }).map((words) => words.join(' ')),
  fc.tuple(token, token).map(([user, password]) => `postgres://${user}:${password}@db.internal:5432/shop`),
  fc.tuple(token, token).map(([a, b]) => `${a}\n  ${b}\n`),
  fc.tuple(token, token).map(([a, b]) => `{"${a}": ["${b}"]}`),
  token.map((text) => `--password=${text}`),
  token.map((text) => `"${text}": field is immutable, spec.x: Invalid value: ${text}`),
  token.map((text) => `} ) ] ' \` < ${text} > " \\ ü€😀 & <b>`),
  token.map((text) => `${text}\u0000\u001b[31m\t${text}`),
  token.map((text) => `.data.x: expected string, got &{${text}}\n  .${text}: field not declared in schema`),
  token.map((text) => text.toUpperCase()),
)

export interface Planted {
  document: K8sObject
  /** Paths to secrets, as an API server writes them, with the values. */
  leaves: ReadonlyArray<readonly [path: string, value: string]>
}

const labels = { app: 'web2' }
const object = (apiVersion: string, kind: string, rest: Record<string, unknown>, annotation: string): K8sObject =>
  ({ apiVersion, kind, metadata: { name: 'web2', namespace: 'shop', labels, annotations: { note: annotation } }, ...rest }) as K8sObject
const podTemplate = (env: string, argument: string, note: string) => ({
  metadata: { labels, annotations: { note } },
  spec: { containers: [{ name: 'main', image: 'registry.example/app:1', args: [argument], env: [{ name: 'TOKEN', value: env }] }] },
})
const containers = 'spec.template.spec.containers[0]'

export const planted: fc.Arbitrary<Planted> = fc
  .tuple(fc.constantFrom('Secret', 'ConfigMap', 'Deployment', 'Job', 'Boat'), secret, secret, secret, secret)
  .map(([kind, a, b, c, d]) => {
    switch (kind) {
      case 'Secret': {
        const data = { password: Buffer.from(a).toString('base64'), other: Buffer.from(b).toString('base64') }
        const document = object('v1', kind, { data, stringData: { plain: c } }, d)
        return {
          document,
          leaves: [
            ['data[password]', data.password],
            ['data[password]', a],
            ['stringData[plain]', c],
            ['metadata.annotations', d],
          ],
        }
      }
      case 'ConfigMap':
        return {
          document: object('v1', kind, { data: { 'app.conf': a, key: b }, binaryData: { bin: c } }, d),
          leaves: [
            ['data[app.conf]', a],
            ['data[key]', b],
            ['binaryData[bin]', c],
            ['metadata.annotations', d],
          ],
        }
      case 'Boat':
        return {
          document: object('sea.example/v1', kind, { spec: { login: a, list: [b], deep: { er: { value: c } } } }, d),
          leaves: [
            ['spec.login', a],
            ['spec.list[0]', b],
            ['spec.deep.er.value', c],
            ['metadata.annotations', d],
          ],
        }
      default:
        return {
          document: object(kind === 'Job' ? 'batch/v1' : 'apps/v1', kind, { spec: { template: podTemplate(a, b, c) } }, d),
          leaves: [
            [`${containers}.env[0].value`, a],
            [`${containers}.args[0]`, b],
            ['spec.template.metadata.annotations', c],
            ['metadata.annotations', d],
          ],
        }
    }
  })

/** As `%q` and `%#v` of Go print a text. */
export const goQuoted = (text: string): string =>
  `"${[...text]
    .map((char) => {
      const code = char.codePointAt(0) ?? 0
      const short: Record<string, string> = { '"': '\\"', '\\': '\\\\', '\n': '\\n', '\t': '\\t', '\r': '\\r' }
      return short[char] ?? (code < 0x20 || code === 0x7f ? `\\x${code.toString(16).padStart(2, '0')}` : char)
    })
    .join('')}"`

/** `%#v` */
export function goSyntax(value: unknown, type = 'core.X'): string {
  if (Array.isArray(value)) return `[]${type}{${value.map((item) => goSyntax(item, type)).join(', ')}}`
  if (value !== null && typeof value === 'object') {
    const members = Object.entries(value).map(
      ([key, member]) => `${key.slice(0, 1).toUpperCase()}${key.slice(1)}:${goSyntax(member, type)}`,
    )
    return `${type}{${members.join(', ')}, Unset:(*int64)(nil), Time:time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC)}`
  }
  return typeof value === 'string' ? goQuoted(value) : String(value)
}

/** `%v`, and `%+v` with the names of fields. */
export function goPlain(value: unknown, withNames: boolean): string {
  if (Array.isArray(value)) return `[${value.map((item) => goPlain(item, withNames)).join(' ')}]`
  if (value === null || typeof value !== 'object') return String(value)
  return `{${Object.entries(value)
    .map(([key, member]) => `${withNames ? `${key}:` : ''}${goPlain(member, withNames)}`)
    .join(' ')}}`
}

/** Go's JSON escapes what HTML could misread. */
export const goJson = (value: unknown): string =>
  JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

const yaml = (value: unknown, indent = ''): string =>
  value !== null && typeof value === 'object'
    ? Object.entries(value)
        .map(([key, member]) => `\n${indent}${key}: ${yaml(member, `${indent}  `)}`)
        .join('')
    : JSON.stringify(value)

const printed = [goSyntax, goJson, (value: unknown) => goPlain(value, false), (value: unknown) => goPlain(value, true), yaml] as const

/** What an API server prints as a bad value: a text quoted, all else in the syntax of its version. */
const badValue = (value: unknown, isOld: boolean): string =>
  typeof value === 'string' ? goQuoted(value) : isOld ? goSyntax(value) : goJson(value)

type Words = ReadonlyArray<(value: string) => string>
/** Rules in the words of the API server itself, which quotes a value in strings, or behind the first line. */
const OWN_RULES: Words = [
  () => 'field is immutable',
  () => 'must be no more than 63 characters',
  (value) => `must be of type date-time: ${goQuoted(value)}`,
  (value) => `is forbidden\n  core.PodSpec{\n- \tValue: ${goQuoted(value)},\n+ \tValue: ${goQuoted(value)},\n  }`,
]
const RULES: Words = [
  ...OWN_RULES,
  (value) => `unknown time zone ${value}`,
  (value) => `expected exactly 5 fields, found 1: [${value}]`,
  (value) => `note ${value} is too long`,
  (value) => `cannot parse '${value}' here`,
]

const TEMPLATES: Words = [
  (value) => `the value ${value} is not allowed`,
  (value) => `value "${value}" is bad, ask the team`,
  (value) => `value '${value}' in main`,
  (value) => `value \`${value}\` in main`,
  (value) => `container <${value}> is refused`,
  (value) => `[policy] refused: ${value}`,
  (value) => `found ${value}, expected none`,
  (value) =>
    `\n\nresource Deployment/shop/web2 was blocked due to the following policies \n\nno-secrets:\n  check: 'validation error: ${value} is a secret.'\n`,
]

export interface Refusal {
  message: string
  details?: { name: string; kind: string; causes: ReadonlyArray<{ reason: string; field: string; message: string }> }
}

const nameOf = ({ document }: Planted): string => document.metadata.name ?? ''
const leafOf = ({ leaves }: Planted) => fc.constantFrom(...leaves)
const wholeOf = ({ document: { metadata: _, ...rest } }: Planted): unknown => rest

/** A validation that names `rules`, with its causes and without. */
function invalid(from: Planted, rules: Words): fc.Arbitrary<Refusal> {
  const { kind } = from.document
  const name = nameOf(from)
  // A rule quotes nothing but what it judges.
  const types = fc.constantFrom('Invalid value', 'Unsupported value', 'Duplicate value', 'Not found')
  const error = fc.tuple(leafOf(from), fc.boolean(), fc.boolean(), fc.constantFrom(...rules), types)
  const cause = error.map(([[path, value], mayBeWhole, isOld, rule, type]) => {
    const isWhole = mayBeWhole && !path.startsWith('metadata')
    return {
      reason: 'FieldValueInvalid',
      field: isWhole ? 'spec' : path,
      message: `${type}: ${badValue(isWhole ? wholeOf(from) : value, isOld)}: ${rule(value)}`,
    }
  })
  return fc.tuple(fc.array(cause, { minLength: 1, maxLength: 3 }), fc.boolean()).map(([causes, isStructured]) => {
    const list = causes.map(({ field, message }) => `${field}: ${message}`).join(', ')
    const message = `${kind}.apps "${name}" is invalid: ${causes.length > 1 ? `[${list}]` : list}`
    return isStructured ? { message, details: { name, kind, causes } } : { message }
  })
}

/** A merge that finds another type, and a conflict about a member of a set. */
function merged(from: Planted): fc.Arbitrary<Refusal> {
  const type = fc.tuple(leafOf(from), fc.constantFrom(...printed), fc.boolean()).map(([[path, value], print, isText]) => {
    const got = isText ? `&value.valueUnstructured{Value:${goQuoted(value)}}` : `&${print({ a: value, b: wholeOf(from) })}`
    const { kind } = from.document
    return `failed to create typed patch object (shop/${nameOf(from)}; apps/v1, Kind=${kind}): .${path}: expected map, got ${got}`
  })
  const set = leafOf(from).map(
    ([, value]) => `Apply failed with 1 conflict: conflict with "other" using v1: .spec.set[=${goQuoted(value)}]`,
  )
  return fc.oneof(type, set).map((message) => ({ message }))
}

/** The words of a policy, which quote a part of the document, whole or cut off. */
function denied(from: Planted): fc.Arbitrary<Refusal> {
  const leaf = leafOf(from)
  const quoted = fc.oneof(
    leaf.map(([, value]) => value),
    leaf.map(([, value]) => goQuoted(value).slice(1, -1)),
    leaf.map(([, value]) => value.slice(0, Math.max(20, value.length / 2))),
    fc.tuple(leaf, fc.constantFrom(...printed)).map(([[key, value], print]) => print({ [key]: value })),
    fc.constantFrom(...printed).map((print) => print(from.document)),
  )
  return fc.tuple(quoted, fc.constantFrom(...TEMPLATES), fc.boolean()).map(([value, template, isWebhook]) => ({
    message: `${isWebhook ? 'admission webhook "own.example.com" denied the request: ' : ''}${template(value)}`,
  }))
}

/** What the API server says by itself: its grammar alone tells which parts are values. */
export const ownRefusalOf = (from: Planted): fc.Arbitrary<Refusal> => fc.oneof(invalid(from, OWN_RULES), merged(from))
/** That, and what schemas, policies and webhooks say. */
export const refusalOf = (from: Planted): fc.Arbitrary<Refusal> => fc.oneof(invalid(from, RULES), merged(from), denied(from))
