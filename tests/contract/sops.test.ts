// SP2, SP3: what the real sops encrypts, opened by our reader; what it refuses, refused.
import { describe, expect, test } from 'bun:test'
import { openAge, readAgeKeys } from '../../shared/adapters/age.ts'
import { emitSops } from '../../shared/sops/emit.ts'
import { openSops, type SopsOpened } from '../../shared/sops/open.ts'
import { readSops, sopsFormatOf } from '../../shared/sops/read.ts'
import { keyFile, newAgeKey, sopsDecrypt, sopsEncrypt } from '../support/sops-kit.ts'

const [key, other] = await Promise.all([newAgeKey(), newAgeKey()])

async function opened(encrypted: string, by = key): Promise<SopsOpened & { text?: Buffer | null }> {
  const format = sopsFormatOf(encrypted)
  const read = format === null ? null : readSops(encrypted, format)
  if (read?.kind !== 'parcel') throw new Error(`no parcel: ${JSON.stringify(read)}`)
  const [keys] = [await readAgeKeys(keyFile(by))]
  const enc = read.parcel.age.find(([recipient]) => recipient === by.recipient)?.[1] ?? ''
  const dataKey = keys?.[0] === undefined ? null : await openAge(keys[0], enc)
  if (dataKey === null) throw new Error('the key does not open the file')
  const result = openSops(read.parcel, dataKey)
  return result.kind === 'open' ? { ...result, text: emitSops(read.parcel, result.sops) } : result
}

const YAML = `# of the shop
apiVersion: v1
kind: Secret
metadata: {name: shop, labels: {"10": ten, "2": two}}
stringData:
  # before a member
  "10": ten
  "2": "two"
  z: last
  text: "äö\\n😀"
  empty: ""
  number: 12
  float: 1.50
  large: 1e21
  small: 0.0000001
  truth: true
  "yes": yes
  octal: 0644
  day: 2001-12-14
  nothing: null
  list: [1, two, {x: 3, y: [4]}]
rest: {plain: 1e3, at: 2001-12-14t21:59:43.10-05:00, octal: 0o17, hex: 0xff, n: -0.5, far: 1e21, no: "no", neg: -12}
`
const JSON_TEXT =
  '{"z": 1, "data": {"b": "1", "10": "x<y>&\\u2028", "2": 1.5, "on": true, "none": null}, "n": 1e21, "k": -0.5, "s": "\\ud83d\\ude00"}'
const ENV = 'B=1\n# about the next\nA=two words = one\nM=line1\\nline2\nE=\n'
const MULTI = 'a: 1\ndata: {x: y}\n---\nb: 2\ndata: {q: r, x: y}\n'
const BYTES = Uint8Array.from({ length: 256 }, (_, index) => 255 - index)

/** Members that stay readable, and those that are encrypted, by each way that sops has to say so. */
const RULES: Array<[string, Record<string, string | boolean>]> = [
  ['everything', {}],
  ['encrypted_regex', { encrypted_regex: '^(data|stringData)$' }],
  ['unencrypted_regex', { unencrypted_regex: '^(apiVersion|kind|metadata|rest)$' }],
  ['encrypted_suffix', { encrypted_suffix: 'ata' }],
  ['unencrypted_suffix', { unencrypted_suffix: 'rest' }],
  ['encrypted_comment_regex', { encrypted_comment_regex: 'before a member' }],
  ['mac_only_encrypted', { encrypted_regex: '^(data|stringData)$', mac_only_encrypted: true }],
]

describe('what sops encrypts', () => {
  test.each(RULES)('SP2 opens: %s', async (_, rule) => {
    for (const [name, text] of [
      ['a.yaml', YAML],
      ['a.json', JSON_TEXT],
      ['multi.yaml', MULTI],
    ] as const) {
      const encrypted = sopsEncrypt(name, text, { to: [other, key], rule })
      const result = await opened(encrypted)
      expect({ name, kind: result.kind }).toEqual({ name, kind: 'open' })
      const own = Bun.YAML.parse(String(result.text))
      expect(own).toEqual(Bun.YAML.parse(sopsDecrypt(name, encrypted, key).toString()))
    }
  })

  test('SP2 opens env files and any bytes, exactly', async () => {
    const env = await opened(sopsEncrypt('a.env', ENV, { to: [key] }))
    expect(String(env.text)).toBe(ENV.replace('# about the next\n', ''))
    const binary = await opened(sopsEncrypt('a.bin', BYTES, { to: [key] }))
    expect(new Uint8Array(binary.text ?? [])).toEqual(BYTES)
    expect((await opened(sopsEncrypt('a.bin', '', { to: [key] }))).text).toHaveLength(0)
  })

  test('SP2 each recipient opens it, and nobody else', async () => {
    const encrypted = sopsEncrypt('a.yaml', MULTI, { to: [key, other] })
    expect((await opened(encrypted, other)).kind).toBe('open')
    const stranger = await newAgeKey()
    await expect(opened(encrypted, stranger)).rejects.toThrow('does not open')
  })
})

describe('what sops refuses', () => {
  const only = { encrypted_regex: '^data$', mac_only_encrypted: true }
  const change = (from: RegExp, to: string | ((found: string) => string)) => (text: string) => {
    const changed = text.replace(from, to as string)
    if (changed === text) throw new Error(`${from} changed nothing`)
    return changed
  }
  const swapped = (text: string) => {
    const [one, two] = [...text.matchAll(/^ {4}(?:x|q): (ENC\[.*)$/gm)].map(([, value = '']) => value)
    return text
      .replace(one ?? '', '@')
      .replace(two ?? '', one ?? '')
      .replace('@', two ?? '')
  }
  test.each<[string, Record<string, string | boolean>, (text: string) => string]>([
    ['a readable value was changed', { encrypted_regex: '^data$' }, change(/^a: 1/m, 'a: 2')],
    ['a readable value was added', { encrypted_regex: '^data$' }, change(/^a: 1/m, 'a: 1\nc: 3')],
    ['an encrypted value was removed', only, change(/^ {4}q: .*\n/m, '')],
    ['an encrypted value was renamed', only, change(/^ {4}q: /m, '    w: ')],
    ['an encrypted value became readable', only, change(/^ {4}q: .*$/m, '    q: r')],
    [
      'the documents changed places',
      { encrypted_regex: '^data$' },
      (text) =>
        text
          .split(/^---\n/m)
          .reverse()
          .join('---\n'),
    ],
    ['two values were exchanged', only, swapped],
    ['a byte of a value was changed', only, change(/data:(.)/, (found) => (found === 'data:A' ? 'data:B' : 'data:A'))],
    ['mac_only_encrypted was turned on', { encrypted_regex: '^data$' }, change(/^( +)mac: /gm, '$1mac_only_encrypted: true\n$1mac: ')],
    ['lastmodified was changed', only, change(/lastmodified: "\d{4}/g, 'lastmodified: "1999')],
  ])('SP3 refuses: %s', async (_, rule, tamper) => {
    const tampered = tamper(sopsEncrypt('a.yaml', MULTI, { to: [key], rule }))
    expect(() => sopsDecrypt('a.yaml', tampered, key)).toThrow()
    expect((await opened(tampered)).kind).not.toBe('open')
  })
})

test('SP2 a file without an age recipient, or with key groups, is refused with the reason', () => {
  const encrypted = sopsEncrypt('a.yaml', MULTI, { to: [key] })
  const refused = (text: string) => {
    const read = readSops(text, 'yaml')
    return read.kind === 'refused' ? read.why : read.kind
  }
  expect(refused(encrypted.replaceAll('age:', 'pgp:'))).toContain('no age recipient')
  expect(refused(encrypted.replaceAll(/^ {4}age:/gm, '    key_groups: [{}, {}]\n    age:'))).toContain('key group')
  expect(readSops('a: 1\n', 'yaml')).toEqual({ kind: 'none' })
})
