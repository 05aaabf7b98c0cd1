// `skerry bundle verify` on small bundles: whole ones, damaged ones, and those that somebody made up.
import { beforeEach, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { appendFileSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from '../../scripts/images/layer.ts'
import { fileEntry, folderEntry, type TarEntry, writeTar } from '../../scripts/images/tar.ts'
import { openSigner, type Signer } from '../../scripts/release-parts/signing.ts'
import { runCliWith } from '../support/cli-run.ts'
import { tempDir } from '../support/temp-dir.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const FILES = { 'skerry-agent_0.1.0_amd64.deb': 'a package', 'skerry-docs_0.1.0.tar.gz': 'documentation'.repeat(1_000) }
let dir: string
let signer: Signer
let key: string

beforeEach(() => {
  dir = tempDir()
  signer = openSigner(undefined, undefined)
  key = join(dir, 'trusted.pub')
  writeFileSync(key, signer.publicPem)
})

const sumsOf = (files: Record<string, string>): Uint8Array =>
  bytes(
    Object.entries(files)
      .map(([name, content]) => `${sha256(bytes(content))}  ${name}\n`)
      .join(''),
  )
function entriesOf(files: Record<string, string> = FILES, by: Signer = signer, sums = sumsOf(files)): TarEntry[] {
  const own = { SHA256SUMS: sums, 'SHA256SUMS.sig': bytes(`${by.sign(sums)}\n`), 'skerry.pub': bytes(by.publicPem) }
  return [
    ...Object.entries(own).map(([name, content]) => fileEntry(name, content)),
    ...Object.entries(files).map(([name, content]) => fileEntry(name, bytes(content))),
  ]
}
function bundleOf(entries: readonly TarEntry[]): string {
  const path = join(dir, 'bundle.tar')
  writeTar(path, entries, 1_790_000_000)
  return path
}
async function verify(path: string, ...args: string[]) {
  const { code, out, err } = await runCliWith(['bundle', 'verify', path, ...(args.length > 0 ? args : ['--key', key]), '-o', 'json'])
  const found = out === '' ? null : (JSON.parse(out) as { good: boolean; files: number; signedBy: string | null; problems: string[] })
  return { code, err, ...found }
}

test('IR5 a whole bundle is good, as an archive and as a folder, and says who signed it', async () => {
  const entries = entriesOf()
  expect(await verify(bundleOf(entries))).toMatchObject({ code: 0, good: true, files: 2, signedBy: expect.stringMatching(/^SHA256:/) })
  const folder = join(dir, 'release')
  mkdirSync(folder)
  for (const { name, bytes: content } of entries) writeFileSync(join(folder, name), content as Uint8Array)
  expect(await verify(folder)).toMatchObject({ code: 0, files: 2 })
  expect(await verify(folder, '--checksums-only')).toMatchObject({ code: 0, signedBy: null })
})

test('IR5 without a key and without --checksums-only nothing is said to be good', async () => {
  const { code, err } = await runCliWith(['bundle', 'verify', bundleOf(entriesOf())])
  expect([code, err]).toEqual([2, expect.stringContaining('--checksums-only')])
})

const [DEB, DOCS] = Object.keys(FILES) as [string, string]
const without = (name: string): TarEntry[] => entriesOf().filter((entry) => entry.name !== name)
test.each<[what: string, entries: () => TarEntry[], problem: RegExp]>([
  ['a file that was changed', () => entriesOf({ ...FILES, [DEB]: 'another' }, signer, sumsOf(FILES)), /amd64\.deb .*changed/],
  ['a file that is missing', () => without(DOCS), /docs.* missing/],
  ['a file that nobody signed', () => [...entriesOf(), fileEntry('extra.sh', bytes('rm'))], /extra\.sh .*SHA256SUMS/],
  [
    'a file that is named like the bundle',
    () => [...entriesOf(), fileEntry('skerry-airgap_0.1.0.sh', bytes('rm'))],
    /airgap_0\.1\.0\.sh .*not in/,
  ],
  ['another key', () => entriesOf(FILES, openSigner(undefined, undefined)), /signature of this key/],
  ['no signature', () => without('SHA256SUMS.sig'), /SHA256SUMS\.sig is missing/],
  ['no checksums', () => without('SHA256SUMS'), /no bundle/],
  ['a line that is no checksum', () => entriesOf(FILES, signer, bytes('hello\n')), /no checksum: "hello"/],
])('IR5 %s is a problem with exit code 1', async (_, entries, problem) => {
  const { code, problems } = await verify(bundleOf(entries()))
  expect([code, problems?.some((one) => problem.test(one)) ? '' : problems]).toEqual([1, ''])
})

test.each<[what: string, make: (path: string) => void, message: string]>([
  ['cut off', (path) => truncateSync(path, readFileSync(path).byteLength - 12_000), 'is cut off'],
  ['something else', (path) => writeFileSync(path, 'hello'), 'no tar archive'],
  ['with a folder', (path) => writeTar(path, [folderEntry('folder'), ...entriesOf()], 0), 'no plain file'],
  ['with a path that leads elsewhere', (path) => writeTar(path, [fileEntry('../evil', bytes('x'))], 0), 'no plain file'],
  ['with a link', (path) => writeTar(path, [{ ...fileEntry('evil', bytes('')), type: '2', link: '/etc/passwd' }], 0), 'no plain file'],
  ['with a file twice', (path) => writeTar(path, [...entriesOf(), fileEntry(DEB, bytes('x'))], 0), 'twice'],
  [
    'with 1,001 files',
    (path) =>
      writeTar(
        path,
        Array.from({ length: 1_001 }, (_, n) => fileEntry(`f${n}`, bytes('x'))),
        0,
      ),
    '1000 files',
  ],
  ['with large checksums', (path) => writeTar(path, [fileEntry('SHA256SUMS', new Uint8Array(1_048_577))], 0), '1048576'],
])('IR5 an archive %s is refused', async (_, make, message) => {
  const path = bundleOf(entriesOf())
  make(path)
  const { code, err } = await verify(path)
  expect([code, err]).toEqual([1, expect.stringContaining(message)])
})

test('IR5 bytes behind the end of the archive change nothing', async () => {
  const path = bundleOf(entriesOf())
  appendFileSync(path, 'more')
  expect(await verify(path)).toMatchObject({ code: 0 })
})

test.each([
  ['a file that does not exist', () => '/nowhere/skerry.pub', 'ENOENT'],
  [
    'a private key',
    () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    'public key',
  ],
  [
    'a key of another kind',
    () => generateKeyPairSync('rsa', { modulusLength: 2_048 }).publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    'ECDSA',
  ],
])('IR5 %s is no key', async (_, make, message) => {
  const text = make()
  const path = text.startsWith('/') ? text : join(dir, 'key.pem')
  if (path !== text) writeFileSync(path, text)
  const { code, err } = await verify(bundleOf(entriesOf()), '--key', path)
  expect([code, err]).toEqual([2, expect.stringContaining(message)])
})
