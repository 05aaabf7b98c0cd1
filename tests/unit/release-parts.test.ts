// The documents of a release: made of small parts, read by other people's programs where those are on each machine.
import { expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { filesOf, finalStage } from '../../scripts/images/dockerfile.ts'
import { fileEntry } from '../../scripts/images/tar.ts'
import { type CloneFacts, obstacles } from '../../scripts/release.ts'
import { writeTarGz, writeZip } from '../../scripts/release-parts/archives.ts'
import { debianPartsOf } from '../../scripts/release-parts/find-parts.ts'
import { type ClientDownloads, homebrewFormula, krewManifest, scoopManifest } from '../../scripts/release-parts/manifests.ts'
import { licenseOfText, type Part } from '../../scripts/release-parts/part.ts'
import { provenanceOf } from '../../scripts/release-parts/provenance.ts'
import { licensesText, sbomOf } from '../../scripts/release-parts/sbom.ts'
import { envelopeOf, openSigner } from '../../scripts/release-parts/signing.ts'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import { tempDir } from '../support/temp-dir.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const SECONDS = 1_790_000_000
const ENTRIES = [fileEntry('skerry', bytes('program'.repeat(1_000)), 0o755), fileEntry('LICENSE', bytes('Apache'))]
const run = (command: string[]) => {
  const ran = Bun.spawnSync(command)
  return { code: ran.exitCode, out: ran.stdout.toString(), err: ran.stderr.toString() }
}

test('IR1 archives are read by tar and by a program that knows zip, with modes, and the same files make the same bytes', () => {
  const at = (name: string) => join(tempDir(), name)
  const make = () => {
    const [tar, zip] = [at('a.tar.gz'), at('a.zip')]
    writeTarGz(tar, ENTRIES, SECONDS)
    writeZip(zip, ENTRIES.toReversed(), SECONDS)
    return [tar, zip] as const
  }
  const [tar, zip] = make()
  expect(run(['tar', '-tvzf', tar]).out).toMatch(/^-rw-r--r-- .* LICENSE\n-rwxr-xr-x .* skerry\n$/)
  const script =
    'import sys,zipfile; z=zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; print([(i.filename,i.file_size,oct(i.external_attr>>16)) for i in z.infolist()])'
  expect(run(['python3', '-c', script, zip])).toMatchObject({
    code: 0,
    out: "[('LICENSE', 6, '0o100644'), ('skerry', 7000, '0o100755')]\n",
  })
  const again = make()
  expect([tar, zip].map((path) => readFileSync(path).toString('hex'))).toEqual(again.map((path) => readFileSync(path).toString('hex')))
})

test('IR2 the Debian packages of an image are found by its files, and a file without a package is told', () => {
  const root = tempDir()
  for (const path of ['usr/bin/git', 'bin/sh', 'etc/passwd', 'usr/bin/made-by-hand']) {
    mkdirSync(join(root, path, '..'), { recursive: true })
    writeFileSync(join(root, path), 'x')
  }
  const { parts, unowned } = debianPartsOf(root)
  expect([parts.map(({ name }) => name).sort(), unowned]).toEqual([['dash', 'git'], ['/usr/bin/made-by-hand']])
})

test('IR3 a signature and an envelope are what openssl verifies with the public key', () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'word' }).toString()
  const signer = openSigner(pem, 'word')
  const dir = tempDir()
  const file = (name: string, content: string | Uint8Array) => {
    writeFileSync(join(dir, name), content)
    return join(dir, name)
  }
  const envelope = envelopeOf({ hello: 1 }, signer) as { payload: string; payloadType: string; signatures: [{ sig: string }] }
  const payload = Buffer.from(envelope.payload, 'base64')
  const key = file('key.pub', signer.publicPem)
  const verified = (content: string | Uint8Array, signature: string) =>
    run([
      'openssl',
      'dgst',
      '-sha256',
      '-verify',
      key,
      '-signature',
      file('sig', Buffer.from(signature, 'base64')),
      file('content', content),
    ]).code
  expect(verified('hello', signer.sign(bytes('hello')))).toBe(0)
  expect(verified('other', signer.sign(bytes('hello')))).toBe(1)
  const signed = Buffer.concat([bytes(`DSSEv1 ${envelope.payloadType.length} ${envelope.payloadType} ${payload.byteLength} `), payload])
  expect(verified(signed, envelope.signatures[0].sig)).toBe(0)
  expect([signer.isThrowaway, openSigner(undefined, undefined).isThrowaway]).toEqual([false, true])
})

test.each([
  ['neither a PEM nor a file', 'hello', /neither a PEM text nor/],
  ['a key of cosign', '-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----', /format of cosign/],
  [
    'another curve',
    generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    /P-256/,
  ],
])('IR3 %s is no signing key', (_, given, message) => {
  expect(() => openSigner(given, undefined)).toThrow(message)
})

const PART: Part = { purl: 'pkg:npm/zod@4.6.7', name: 'zod', version: '4.6.7', license: 'MIT', text: 'Permission is hereby granted' }
const SUBJECT = { kind: 'application', name: 'skerry', version: '0.1.0', sha256: 'ab', seconds: SECONDS } as const

test('IR2 a bill of materials names each part with its licence, and follows from its content', () => {
  const parts: Part[] = [
    PART,
    { ...PART, purl: 'pkg:a', name: 'a', license: 'MIT OR Apache-2.0' },
    { ...PART, purl: 'pkg:b', name: 'b', license: 'GPL-2+, BSD-3-clause' },
    { ...PART, purl: 'pkg:c', name: 'c', license: null, text: null },
  ]
  const sbom = sbomOf(SUBJECT, parts) as Record<string, unknown> & { components: object[]; serialNumber: string }
  expect(sbom).toMatchObject({
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { timestamp: '2026-09-21T14:13:20.000Z' },
  })
  expect(sbom.components).toMatchObject([
    { 'bom-ref': 'pkg:npm/zod@4.6.7', licenses: [{ license: { id: 'MIT' } }] },
    { licenses: [{ expression: 'MIT OR Apache-2.0' }] },
    { licenses: [{ license: { name: 'GPL-2+, BSD-3-clause' } }] },
    {},
  ])
  expect(sbom.serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/)
  expect((sbomOf(SUBJECT, parts) as typeof sbom).serialNumber).toBe(sbom.serialNumber)
  expect((sbomOf(SUBJECT, [PART]) as typeof sbom).serialNumber).not.toBe(sbom.serialNumber)
  const text = licensesText('skerry', parts)
  expect(text).toContain('c 4.6.7: see its sources')
  expect(text.match(/Permission is hereby granted/g)).toHaveLength(1)
})

test.each([
  ['MIT', 'MIT License\n\nPermission is hereby granted, free of charge, to any person'],
  ['Apache-2.0', '                                 Apache License\n                           Version 2.0, January 2004'],
  ['BSD-3-Clause', 'Redistribution and use in source and binary forms … Neither the name of'],
  ['BSD-2-Clause', 'Redistribution and use in source and binary forms, with or without'],
  ['ISC', 'Permission to use, copy, modify, and/or distribute this software for any purpose'],
  ['MPL-2.0', 'Mozilla Public License Version 2.0\n=='],
  [null, 'All rights reserved'],
])('IR2 the licence of a text: %s', (id, text) => {
  expect(licenseOfText(text)).toBe(id)
})

test.each(['Dockerfile.server', 'Dockerfile.agent'])('IG1 %s: no file of the image for arm64 is one for x64', (file) => {
  const copies = finalStage(file).copies.filter(({ from }) => from !== '/root-of-image/')
  const files = copies.flatMap((copy) => filesOf(copy, '', 'arm64'))
  const paths = files.flatMap(({ path, content }) => [path, content.kind === 'file' ? content.path : ''])
  expect(paths.filter((path) => /x86|lib64/.test(path))).toEqual([])
  expect(files.map(({ path }) => path)).toContain('/lib/ld-linux-aarch64.so.1')
})

test('IR4 the provenance names commit, inputs and each file, without the time of the run', () => {
  const facts = {
    version: '0.1.0',
    commit: 'c0ffee-dirty',
    repository: null,
    seconds: SECONDS,
    inputs: [{ name: 'bun', sha256: 'b' }],
    builder: 'https://ci',
  }
  const statement = provenanceOf([{ name: 'skerry.deb', sha256: 'd' }], facts)
  expect(statement).toMatchObject({
    _type: 'https://in-toto.io/Statement/v1',
    predicateType: 'https://slsa.dev/provenance/v1',
    subject: [{ name: 'skerry.deb', digest: { sha256: 'd' } }],
    predicate: {
      buildDefinition: { resolvedDependencies: [{ digest: { gitCommit: 'c0ffee' } }, { name: 'bun', digest: { sha256: 'b' } }] },
    },
  })
  expect(provenanceOf([{ name: 'skerry.deb', sha256: 'd' }], facts)).toEqual(statement)
})

test('IR1 manifests of package managers name each download with its checksum', () => {
  const platforms = ['linux_amd64', 'linux_arm64', 'darwin_amd64', 'darwin_arm64', 'windows_amd64']
  const downloads = Object.fromEntries(
    platforms.map((name) => [name, { url: `https://x/${name}`, sha256: `sum-${name}` }]),
  ) as unknown as ClientDownloads
  const formula = homebrewFormula('0.1.0', downloads)
  for (const name of platforms.slice(0, 4)) expect(formula).toContain(`url "https://x/${name}"\n      sha256 "sum-${name}"`)
  const krew = parseYamlDocuments(krewManifest('0.1.0', downloads), { file: 'krew' }).documents[0]?.value
  expect(krew).toMatchObject({ kind: 'Plugin', spec: { version: 'v0.1.0' } })
  expect(JSON.stringify(krew)).toContain('"bin":"skerry.exe"')
  expect(scoopManifest('0.1.0', downloads)).toMatchObject({
    architecture: { '64bit': { url: 'https://x/windows_amd64', hash: 'sum-windows_amd64' } },
  })
})

const CLONE: CloneFacts = {
  ...{ changes: '', tags: ['latest', 'v0.1.0'], changelog: '# Changelog\n\n## 0.1.0 (2026-12-01)\n' },
  env: { SKERRY_SIGNING_KEY: 'release.key', SKERRY_RELEASE_URL: 'https://x' },
}
test.each<[what: string, change: Partial<CloneFacts>, named: RegExp[]]>([
  ['with all that it needs', {}, []],
  ['with changes', { changes: ' M README.md' }, [/changes/]],
  ['without the tag', { tags: ['v0.1.00', 'v0.2.0'] }, [/no tag v0\.1\.0$/]],
  ['whose changelog has no date', { changelog: '## 0.1.0 (unreleased)\n' }, [/"## 0\.1\.0 \(DATE\)"/]],
  ['whose changelog has another version', { changelog: '## 0.1.01 (2026-12-01)\n' }, [/CHANGELOG/]],
  ['without key and URL', { env: { SKERRY_SIGNING_KEY: '' } }, [/SKERRY_SIGNING_KEY/, /SKERRY_RELEASE_URL/]],
])('IR1 a clone %s', (_, change, named) => {
  const found = obstacles('0.1.0', { ...CLONE, ...change })
  expect([found.length, named.filter((pattern, n) => !pattern.test(found[n] ?? ''))]).toEqual([named.length, []])
})
