// The deciding parts of Git sources, by tables: names of refs, answers of servers, addresses, .gitmodules, what the
// program says.
import { describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { BatchReader } from '../../server/sources/git/cat-file.ts'
import { knownState } from '../../server/sources/git/known-hosts.ts'
import { askForRefs, readRefs } from '../../server/sources/git/ls-refs.ts'
import { readProblem } from '../../server/sources/git/program-errors.ts'
import { greatestTag, isRefName } from '../../server/sources/git/refs.ts'
import { splitCommit, splitTag } from '../../server/sources/git/signature.ts'
import { readGitmodules, SUBMODULES_MAX } from '../../server/sources/git/submodules.ts'
import { readTree } from '../../server/sources/git/text.ts'
import { isSameHost, sshPlace, submoduleUrl } from '../../server/sources/git/url.ts'

const A = 'a'.repeat(40)
const B = 'b'.repeat(40)
const bytes = (text: string) => new TextEncoder().encode(text)
const text = (value: Uint8Array) => new TextDecoder().decode(value)

test.each([
  ['main', true],
  ['feature/x-1', true],
  ['v1.2.3', true],
  ['refs/heads/main', true],
  ['größe', true],
  ['-x', false],
  ['--upload-pack=x', false],
  ['a b', false],
  ['a..b', false],
  ['a^{}', false],
  ['a:b', false],
  ['*', false],
  ['a/', false],
  ['a.lock', false],
  ['a//b', false],
  ['a/.b', false],
  ['@', false],
  ['a@{1}', false],
  ['a\tb', false],
  ['', true], // the schema asks for one character
] as const)('IN1 %j as a name of a ref: %j', (ref, expected) => expect(isRefName(ref)).toBe(expected))

test('SO37 a range is of tags only; of two tags of one version the one without the v', () => {
  const refs = ['refs/tags/v1.0.0', 'refs/tags/1.0.0', 'refs/heads/9.0.0', 'refs/tags/x'].map((name) => ({ name, oid: A, commit: A }))
  expect(greatestTag(refs, '*')?.name).toBe('refs/tags/1.0.0')
  expect(greatestTag(refs, '^2')).toBeNull()
})

describe('protocol 2', () => {
  const packet = (line: string) => `${(line.length + 4).toString(16).padStart(4, '0')}${line}`
  test('IN2 the request names what is asked for', () => {
    const heads = `${packet('command=ls-refs\n')}${packet('agent=git/skerry\n')}${packet('object-format=sha1')}0001${packet('peel\n')}`
    const prefixes = `${packet('ref-prefix refs/heads/a\n')}${packet('ref-prefix refs/tags/\n')}`
    expect(text(askForRefs(['refs/heads/a', 'refs/tags/']))).toBe(`${heads}${prefixes}0000`)
  })
  test.each([
    ['refs and what tags lead to', `${packet(`${A} refs/heads/main\n`)}${packet(`${A} refs/tags/v1 peeled:${B}\n`)}0000`, 2],
    ['none', '0000', 0],
    ['a page', '<html>', null],
    ['an error', packet('ERR no'), null],
    ['cut short', packet(`${A} refs/heads/main\n`), null],
    ['more behind the end', '00000000', null],
    ['a length below four', '0003', null],
    ['a length beyond the end', 'ffff', null],
  ] as const)('IN2 an answer: %s', (_, answer, count) => {
    const refs = readRefs(bytes(answer))
    expect(refs === null ? null : refs.length).toBe(count)
    if (count === 2) expect(refs?.map(({ commit }) => commit)).toEqual([A, B])
  })
})

test.each([
  ['https://example.com/a/b.git', '../c.git', 'https://example.com/a/c.git'],
  ['https://example.com/a/b.git/', './c', 'https://example.com/a/b.git/c'],
  ['https://example.com/a.git', '../../c.git', null],
  ['git@example.com:a/b.git', '../c.git', 'git@example.com:a/c.git'],
  ['git@example.com:/a/b.git', '../c.git', 'git@example.com:/a/c.git'],
  ['ssh://git@example.com:22/a/b.git', '../c.git', 'ssh://git@example.com:22/a/c.git'],
  ['https://example.com/a.git', 'https://other.example.com/c.git', 'https://other.example.com/c.git'],
  ['https://example.com/a.git', 'git@other.example.com:c.git', 'git@other.example.com:c.git'],
  ['https://example.com/a.git', 'https://u:p@other.example.com/c.git', null],
  ['https://example.com/a.git', 'ssh://u:p@other.example.com/c.git', null],
  ['https://example.com/a.git', 'git://other.example.com/c.git', null],
  ['https://example.com/a.git', 'file:///c.git', null],
  ['https://example.com/a.git', '/c.git', null],
  ['https://example.com/a.git', 'c.git', null],
  ['https://example.com/a.git', '-oProxyCommand=x:y', null],
  ['https://example.com/a.git', 'ssh://-oProxyCommand=x/y', null],
  ['https://example.com/a.git', 'https://example.com/a b', null],
] as const)('SO34 of %s the submodule %s is at %j', (parent, url, expected) => expect(submoduleUrl(parent, url)).toBe(expected))

test.each([
  ['https://a.example.com/x', 'https://a.example.com/y', true],
  ['https://a.example.com/x', 'https://A.example.com:443/y', true],
  ['https://a.example.com/x', 'git@a.example.com:y', true],
  ['https://a.example.com/x', 'ssh://git@a.example.com:2222/y', false],
  ['https://a.example.com/x', 'https://a.example.com:8443/y', false],
  ['https://a.example.com/x', 'http://a.example.com/y', false],
  ['https://a.example.com/x', 'https://b.example.com/y', false],
  ['ssh://git@a.example.com:2222/x', 'ssh://me@a.example.com:2222/y', true],
  ['https://a.example.com/x', 'nonsense', false],
] as const)('SO35 %s and %s are the same host: %j', (a, b, expected) => expect(isSameHost(a, b)).toBe(expected))

test.each([
  ['git@example.com:a/b.git', { user: 'git', host: 'example.com', port: 22 }],
  ['ssh://git@example.com:2222/a', { user: 'git', host: 'example.com', port: 2222 }],
  ['ssh://example.com/a', { user: null, host: 'example.com', port: 22 }],
  ['ssh://git@[::1]:22/a', { user: 'git', host: '[::1]', port: 22 }],
  ['https://example.com/a', null],
  ['ssh://-x/a', null],
] as const)('SO29 %s is at %j', (url, expected) => expect(sshPlace(url)).toEqual(expected))

test.each([
  ['[submodule "a"]\n\tpath = a/b\n\turl = https://e.com/x # c\n', [['a/b', 'https://e.com/x']]],
  ['; c\n[core]\n\tpath = no\n[submodule "a"]\npath="a b"\nURL="../x\\"y"\n', [['a b', '../x"y']]],
  ['[submodule "a"]\n\tpath = a\n', []],
  ['[submodule "a"\n', null],
  ['[submodule "a"]\n\tpath = "a\n', null],
  ['[submodule "a"]\n\tpath = a\\x\n', null],
  [Array.from({ length: SUBMODULES_MAX }, (_, n) => `[submodule "${n}"]\npath=${n}\nurl=../x\n`).join(''), SUBMODULES_MAX],
  [Array.from({ length: SUBMODULES_MAX + 1 }, (_, n) => `[submodule "${n}"]\npath=${n}\nurl=../x\n`).join(''), null],
] as const)('SO34 .gitmodules %#', (source, expected) => {
  const found = readGitmodules(source)
  if (typeof expected === 'number') expect(found?.size).toBe(expected)
  else expect(found === null ? null : [...found]).toEqual(expected as [string, string][] | null)
})

test.each([
  ["fatal: couldn't find remote ref refs/heads/x", 'no_ref'],
  ['fatal: remote error: upload-pack: not our ref abc', 'no_ref'],
  ['ssh: connect to host 127.0.0.1 port 1: Connection refused\nfatal: Could not read from remote repository.', 'unreachable'],
  ['ssh: Could not resolve hostname x: Name or service not known', 'unreachable'],
  ['ssh: Could not resolve hostname x: Temporary failure in name resolution', 'unreachable'],
  ['Host key verification failed.\nfatal: Could not read from remote repository.', 'host_key'],
  ['git@x: Permission denied (publickey).', 'refused'],
  ["fatal: Authentication failed for 'https://x/'", 'refused'],
  ["remote: Permission denied (publickey).\nfatal: 'x' does not appear to be a git repository", 'no_repository'],
  ['remote: Host key verification failed\nfatal: early EOF', 'failed'],
  ['fatal: write error: No space left on device', 'disk_full'],
  ['fatal: unable to access: The requested URL returned error: 302', 'redirected'],
  ['something new', 'failed'],
] as const)('IN14 %j is %s', (stderr, kind) => expect(readProblem(stderr).kind).toBe(kind))

const HOST_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEXAMPLEexampleEXAMPLEexampleEXAMPLEexample'
const HASHED = '|1|c2FsdHNhbHRzYWx0c2FsdHM=|'
const hashed = (name: string) =>
  `${HASHED}${createHmac('sha1', Buffer.from('c2FsdHNhbHRzYWx0c2FsdHM=', 'base64')).update(name).digest('base64')}`
test.each([
  ['garbage', 22, 'unread'],
  ['# only a comment\n\n', 22, 'unread'],
  [`other.example ${HOST_KEY}`, 22, 'other'],
  [`git.example ${HOST_KEY}`, 2222, 'other'],
  [`garbage\n  Git.Example ${HOST_KEY} a comment`, 22, 'known'],
  [`a,[git.example]:2222 ${HOST_KEY}`, 2222, 'known'],
  [`@cert-authority *.example ${HOST_KEY}`, 22, 'known'],
  [`*.example,!git.example ${HOST_KEY}`, 22, 'other'],
  [`g?t.*ple ${HOST_KEY}`, 22, 'known'],
  [`${hashed('git.example')} ${HOST_KEY}`, 22, 'known'],
  [`${hashed('[git.example]:2222')} ${HOST_KEY}`, 22, 'other'],
] as const)('SO29 of knownHosts %j for port %d: %s', (knownHosts, port, state) =>
  expect(knownState(knownHosts, { user: 'git', host: 'git.example', port })).toBe(state),
)

describe('objects', () => {
  const stream = Buffer.from(`${A} blob 5\nhello\n${B} missing\n${B} tree 0\n\n${A} commit 1\nx\n`)
  test.each([1, 2, 7, 50, 1_000])('SO36 answers of cat-file in pieces of %d bytes', (size) => {
    const found: [string, string][] = []
    const reader = new BatchReader(
      () => {},
      ({ type, bytes: content }) => found.push([type, content.toString()]),
    )
    for (let at = 0; at < stream.length; at += size) reader.push(stream.subarray(at, at + size))
    expect(found).toEqual([
      ['blob', 'hello'],
      ['tree', ''],
      ['commit', 'x'],
    ])
    expect(reader.missing).toEqual([B])
  })

  test('SO36 what is too large is refused before a byte of it is kept, and what is no answer too', () => {
    const reader = new BatchReader(
      (_, __, size) => {
        if (size > 4) throw new Error('too large')
      },
      () => {},
    )
    expect(() => reader.push(Buffer.from(`${A} blob 5\n`))).toThrow('too large')
    const other = new BatchReader(() => {}, () => {}) // biome-ignore format: short
    expect(() => other.push(Buffer.from('fatal: no\n'))).toThrow('no object')
    expect(() => other.push(Buffer.alloc(2_000, 0x61))).toThrow('too long')
  })

  test('SO36 a tree is entries with modes, names and ids; what is none is nothing', () => {
    const entry = (mode: string, name: string) => Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.alloc(20, 0xaa)])
    const tree = readTree(Buffer.concat([entry('100644', 'a'), entry('40000', 'b'), entry('120000', 'c'), entry('160000', 'd')]))
    expect([...(tree?.values() ?? [])].map(({ name, kind, oid }) => [name, kind, oid === A])).toEqual([
      ['a', 'file', true],
      ['b', 'folder', true],
      ['c', 'link', true],
      ['d', 'submodule', true],
    ])
    expect(readTree(Buffer.from('100644 a\0short'))).toBeNull()
    expect(readTree(Buffer.from('nonsense'))).toBeNull()
  })

  test('SO30 the signature of a commit is its head gpgsig, of all the rest; of a tag what ends it', () => {
    const heads = `tree ${A}\nauthor x\n`
    const signed = splitCommit(
      bytes(`${heads}gpgsig -----BEGIN\n line\n \n end\ngpgsig-sha256 other\n more\nencoding x\n\nmessage\n gpgsig no\n`),
    )
    expect([text(signed.payload), signed.signature]).toEqual([`${heads}encoding x\n\nmessage\n gpgsig no\n`, '-----BEGIN\nline\n\nend\n'])
    expect(splitCommit(bytes(`${heads}\ngpgsig -----BEGIN\n`)).signature).toBeNull()
    const tag = `object ${A}\ntype commit\ntag v1\n\nmessage\n`
    const sig = '-----BEGIN SSH SIGNATURE-----\nxx\n-----END SSH SIGNATURE-----\n'
    expect(splitTag(bytes(`${tag}${sig}`))).toEqual({ payload: Buffer.from(tag), signature: sig })
    expect(splitTag(bytes(tag)).signature).toBeNull()
  })
})
