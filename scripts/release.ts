// Makes the folder of a release out of dist/. See scripts/release.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { packageVersion } from './binary-sandbox.ts'
import { buildOrigin, type ImageName, writeImage } from './image.ts'
import { type Architecture, DEBIAN_ARM64, withDebianRoot } from './images/dockerfile.ts'
import { sha256 } from './images/layer.ts'
import { addSignature } from './images/oci.ts'
import { fileEntry, type TarEntry, writeTar } from './images/tar.ts'
import { sorted, writeTarGz, writeZip } from './release-parts/archives.ts'
import { crateParts, debianPartsOf, goParts, installedPart, npmParts, sameDebianParts } from './release-parts/find-parts.ts'
import { type ClientDownloads, type ClientPlatform, homebrewFormula, krewManifest, scoopManifest } from './release-parts/manifests.ts'
import { writePackages } from './release-parts/packages.ts'
import { bunParts, type Part, uniqueParts } from './release-parts/part.ts'
import { provenanceOf } from './release-parts/provenance.ts'
import { licensesText, sbomOf } from './release-parts/sbom.ts'
import { envelopeOf, imagePayload, openSigner, type Signer, signatureBundle } from './release-parts/signing.ts'

const ROOT = join(import.meta.dir, '..')
const ARCHITECTURES: readonly Architecture[] = ['amd64', 'arm64']
const CLIENTS: Readonly<Record<ClientPlatform, string>> = {
  linux_amd64: 'linux-x64',
  linux_arm64: 'linux-arm64',
  darwin_amd64: 'darwin-x64',
  darwin_arm64: 'darwin-arm64',
  windows_amd64: 'windows-x64',
}
/** Entry points of each program; the workers of the server are programs of their own. */
const SOURCES = {
  skerry: [
    ...['server/main.ts', 'server/desired/page-worker.ts', 'server/desired/check-worker.ts'],
    ...['server/store/queries/query-worker.ts', 'server/store/engines/wal-worker.ts'],
  ],
  'skerry-agent': ['agent/main.ts'],
  'skerry-cli': ['server/client-main.ts'],
} as const
type Program = keyof typeof SOURCES

const git = (...args: string[]): string =>
  Bun.spawnSync(['git', '-C', ROOT, ...args], { stderr: 'ignore' })
    .stdout.toString()
    .trim()
const say = (text: string) => process.stdout.write(`release: ${text}\n`)

export interface CloneFacts {
  /** Output of `git status --porcelain`. */
  changes: string
  /** At HEAD. */
  tags: readonly string[]
  changelog: string
  env: Readonly<Record<string, string | undefined>>
}

/** Reasons for which a clone is no release. */
export function obstacles(version: string, { changes, tags, changelog, env }: CloneFacts): string[] {
  return [
    ...(changes === '' ? [] : ['the clone has changes that are not committed']),
    ...(tags.includes(`v${version}`) ? [] : [`HEAD has no tag v${version}`]),
    ...(new RegExp(`^## ${version.replaceAll('.', '\\.')} \\(\\d{4}-\\d{2}-\\d{2}\\)$`, 'm').test(changelog)
      ? []
      : [`CHANGELOG.md has no section "## ${version} (DATE)"`]),
    ...['SKERRY_SIGNING_KEY', 'SKERRY_RELEASE_URL'].filter((name) => (env[name] ?? '') === '').map((name) => `${name} is not set`),
  ]
}

const cloneFacts = (): CloneFacts => ({
  changes: git('status', '--porcelain'),
  tags: git('tag', '--points-at', 'HEAD').split('\n'),
  changelog: readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8'),
  env: process.env,
})

interface Release {
  folder: string
  version: string
  /** Read once, so that a commit during the release does not show in half of its files. */
  commit: string
  seconds: number
  signer: Signer
  /** Parts of each program. */
  parts: Readonly<Record<Program, readonly Part[]>>
}

const at = ({ folder }: Release, name: string): string => join(folder, name)
const text = (content: string): Uint8Array => new TextEncoder().encode(content)
const hashOf = (path: string): string => sha256(readFileSync(path))
const json = (value: object): string => `${JSON.stringify(value, null, 2)}\n`

function programEntries(release: Release, program: Program, path: string, name: string): TarEntry[] {
  return [
    fileEntry(name, readFileSync(path), 0o755),
    fileEntry('LICENSE', readFileSync(join(ROOT, 'LICENSE'))),
    fileEntry('THIRD-PARTY-LICENSES.txt', text(licensesText(program, release.parts[program]))),
  ]
}

function writeSbom(release: Release, name: string, kind: 'application' | 'container', hash: string, parts: readonly Part[]): void {
  const { version, seconds } = release
  writeFileSync(at(release, `${name}.cdx.json`), json(sbomOf({ kind, name, version, sha256: hash, seconds }, uniqueParts(parts))))
}

/** Archives and packages of server and agent. */
function writePrograms(release: Release): void {
  const { version, seconds, folder } = release
  const work = mkdtempSync(join(tmpdir(), 'skerry-release-'))
  for (const [program, about] of [
    ['skerry', 'Skerry: GitOps for fleets of Kubernetes clusters, server and command line'],
    ['skerry-agent', 'The Skerry agent of a cluster: keeps it equal to its desired state'],
  ] as const) {
    writeFileSync(join(work, program), licensesText(program, release.parts[program]))
    for (const architecture of ARCHITECTURES) {
      const binary = join(ROOT, 'dist', architecture === 'arm64' ? 'arm64' : '', program)
      const name = `${program}_${version}_linux_${architecture}`
      writeTarGz(at(release, `${name}.tar.gz`), programEntries(release, program, binary, program), seconds)
      writeSbom(release, name, 'application', hashOf(binary), release.parts[program])
      const files = {
        [`/usr/share/doc/${program}/copyright`]: join(ROOT, 'LICENSE'),
        [`/usr/share/doc/${program}/third-party`]: join(work, program),
      }
      const facts = { name: program, about, version, architecture, binary, files, seconds, nfpm: join(ROOT, 'build/release/nfpm') }
      writePackages(facts, folder)
      say(`${name}: ${mb(binary)} MB, ${mb(at(release, `${name}.tar.gz`))} MB compressed`)
    }
  }
  rmSync(work, { recursive: true })
}

const mb = (path: string): string => (statSync(path).size / 1e6).toFixed(1)

/** Archives of the command line with completions, and the manifests of package managers. */
function writeClients(release: Release): void {
  const { version, seconds } = release
  const base = (process.env['SKERRY_RELEASE_URL'] ?? `https://example.com/skerry/${version}`).replace(/\/$/, '')
  const completion = (shell: string): Uint8Array => {
    const made = Bun.spawnSync([join(ROOT, 'dist/clients/linux-x64/skerry'), 'completion', shell], { env: { HOME: '/nonexistent' } })
    if (!made.success) throw new Error(`skerry completion ${shell}: ${made.stderr}`)
    return made.stdout
  }
  const completions = [
    fileEntry('completions/skerry.bash', completion('bash')),
    fileEntry('completions/_skerry', completion('zsh')),
    fileEntry('completions/skerry.fish', completion('fish')),
  ]
  const downloads = Object.entries(CLIENTS).map(([platform, folder]) => {
    const isWindows = platform.startsWith('windows')
    const binary = join(ROOT, 'dist/clients', folder, isWindows ? 'skerry.exe' : 'skerry')
    const name = `skerry-cli_${version}_${platform}`
    const file = `${name}${isWindows ? '.zip' : '.tar.gz'}`
    const entries = [...programEntries(release, 'skerry-cli', binary, isWindows ? 'skerry.exe' : 'skerry'), ...completions]
    if (isWindows) writeZip(at(release, file), entries, seconds)
    else writeTarGz(at(release, file), entries, seconds)
    writeSbom(release, name, 'application', hashOf(binary), release.parts['skerry-cli'])
    say(`${name}: ${mb(binary)} MB, ${mb(at(release, file))} MB compressed`)
    return [platform, { url: `${base}/${file}`, sha256: hashOf(at(release, file)) }] as const
  })
  const all = Object.fromEntries(downloads) as unknown as ClientDownloads
  writeFileSync(at(release, 'homebrew-skerry.rb'), homebrewFormula(version, all))
  writeFileSync(at(release, 'scoop-skerry.json'), json(scoopManifest(version, all)))
  writeFileSync(at(release, 'krew-skerry.yaml'), krewManifest(version, all))
}

const filesBelow = (folder: string, pattern = '**'): string[] =>
  [...new Bun.Glob(pattern).scanSync({ cwd: folder, onlyFiles: true, dot: true })].filter((path) => !path.endsWith('.helmignore')).sort()

/** Charts as `helm package` makes them, and the documentation. */
function writeTexts(release: Release): void {
  const { version, seconds } = release
  for (const chart of ['skerry', 'skerry-agent']) {
    const folder = join(ROOT, 'charts', chart)
    const entries = filesBelow(folder).map((path) => fileEntry(`${chart}/${path}`, readFileSync(join(folder, path))))
    writeTarGz(at(release, `${chart}-${version}.tgz`), entries, seconds)
  }
  const pages = [...filesBelow(ROOT, 'docs/**/*.md'), ...filesBelow(ROOT, 'docs/**/*.png'), 'README.md', 'CHANGELOG.md', 'LICENSE']
  const entries = pages.map((path) => fileEntry(`skerry-docs/${path}`, readFileSync(join(ROOT, path))))
  writeTarGz(at(release, `skerry-docs_${version}.tar.gz`), entries, seconds)
}

/** scripts/setup unpacks it where dpkg does not know it. */
const BUBBLEWRAP = '/usr/bin/bwrap'

/** One archive for each image, with all platforms and the signature; `skopeo copy oci-archive:FILE:VERSION docker://…`
 *  pushes it. */
function writeImages(release: Release): void {
  const { version, seconds, commit, signer } = release
  const render = ['helm', 'helm3', 'kustomize'] as const
  const { parts, unowned } = withDebianRoot('amd64', debianPartsOf)
  const unknown = unowned.filter((path) => path !== BUBBLEWRAP)
  if (unknown.length > 0)
    throw new Error(
      `no Debian package of this machine has ${unknown.join(', ')}, which the server's image contains: its SBOM would not name it`,
    )
  if (unowned.includes(BUBBLEWRAP)) parts.push(...sameDebianParts([{ name: 'bubblewrap' }], DEBIAN_ARM64, 'amd64'))
  const certificates = installedPart('ca-certificates', 'all')
  const debian = { amd64: parts, arm64: sameDebianParts(parts, DEBIAN_ARM64, 'arm64') }
  for (const name of ['server', 'agent'] as const satisfies readonly ImageName[]) {
    const title = `skerry-${name}`
    const layout = join(release.folder, `.${title}`)
    const written = writeImage(name, layout, ARCHITECTURES, { commit, seconds })
    addSignature(layout, written.digest, imagePayload(title, written.digest), signer.sign)
    for (const { architecture, digest, bytes } of written.platforms) {
      const folder = architecture === 'arm64' ? 'build/targets/render-arm64' : 'build/render'
      const programs = name === 'server' ? render.flatMap((program) => goParts(join(ROOT, folder, program))) : []
      const own = release.parts[name === 'server' ? 'skerry' : 'skerry-agent']
      const libraries = debian[architecture as Architecture].filter((part) => name === 'server' || part.name === 'libc6')
      writeSbom(release, `${title}_${version}_image_${architecture}`, 'container', digest.slice('sha256:'.length), [
        ...own,
        ...programs,
        ...libraries,
        certificates,
      ])
      say(`image ${title} ${architecture}: ${(bytes / 1e6).toFixed(1)} MB compressed, ${digest}`)
    }
    const entries = filesBelow(layout).map((path) => fileEntry(path, { path: join(layout, path), size: statSync(join(layout, path)).size }))
    writeTar(at(release, `${title}_${version}_image.tar`), sorted(entries), seconds)
    writeFileSync(at(release, `${title}_${version}_image.digest`), `${written.digest}\n`)
    rmSync(layout, { recursive: true })
  }
}

/** Checksums of all files so far, with the signature over them. */
function writeChecksums(release: Release): void {
  const { folder, signer } = release
  const names = readdirSync(folder).sort()
  const sums = text(names.map((name) => `${hashOf(join(folder, name))}  ${name}\n`).join(''))
  writeFileSync(at(release, 'SHA256SUMS'), sums)
  writeFileSync(at(release, 'SHA256SUMS.sig'), `${signer.sign(sums)}\n`)
  writeFileSync(at(release, 'SHA256SUMS.sigstore.json'), json(signatureBundle(sums, signer)))
  writeFileSync(at(release, 'skerry.pub'), signer.publicPem)
}

function writeProvenance(release: Release): void {
  const { folder, version, seconds, commit, signer } = release
  const subjects = readdirSync(folder)
    .filter((name) => !name.endsWith('.cdx.json'))
    .sort()
    .map((name) => ({ name, sha256: hashOf(join(folder, name)) }))
  const inputs = ['build/targets/crsqlite-x64.so', 'build/targets/crsqlite-arm64.so', 'build/targets/bun-linux-aarch64', 'bun.lock']
    .filter((path) => existsSync(join(ROOT, path)))
    .map((path) => ({ name: path, sha256: hashOf(join(ROOT, path)) }))
  const facts = {
    ...{ version, seconds, commit: commit || 'unknown', inputs },
    repository: null,
    builder: process.env['SKERRY_BUILDER'] ?? 'https://skerry.dev/build/local',
  }
  writeFileSync(at(release, `skerry_${version}.intoto.jsonl`), `${JSON.stringify(envelopeOf(provenanceOf(subjects, facts), signer))}\n`)
}

/** Everything that a site without a network needs, with checksums and signature in it. */
function writeBundle(release: Release): void {
  const { folder, version, seconds } = release
  const names = readdirSync(folder).sort()
  const first = ['SHA256SUMS', 'SHA256SUMS.sig', 'skerry.pub']
  const order = [...first, ...names.filter((name) => !first.includes(name) && name !== 'SHA256SUMS.sigstore.json')]
  const entries = order.map((name) => fileEntry(name, { path: join(folder, name), size: statSync(join(folder, name)).size }))
  const file = `skerry-airgap_${version}.tar`
  writeTar(at(release, file), entries, seconds)
  const sum = hashOf(at(release, file))
  writeFileSync(at(release, `${file}.sha256`), `${sum}  ${file}\n`)
  writeFileSync(at(release, `${file}.sig`), `${release.signer.sign(readFileSync(at(release, file)))}\n`)
  say(`${file}: ${mb(at(release, file))} MB`)
}

async function partsOf(program: Program): Promise<Part[]> {
  const { version: bun } = { version: Bun.version }
  return uniqueParts([...(await npmParts(SOURCES[program])), ...bunParts(bun), ...(program === 'skerry-cli' ? [] : crateParts())])
}

if (import.meta.main) {
  const args = process.argv.slice(2)
  const to = args.includes('--to') ? args[args.indexOf('--to') + 1] : 'dist/release'
  const isKnown = (arg: string) => ['--dry-run', '--check', '--no-build', '--to'].includes(arg)
  const unknown = args.find((arg, n) => !isKnown(arg) && args[n - 1] !== '--to')
  if (unknown !== undefined || to === undefined) throw new Error(`unknown argument ${unknown ?? '--to'}; see the head of scripts/release`)
  const version = packageVersion()
  const found = obstacles(version, cloneFacts())
  if (found.length > 0 && !args.includes('--dry-run')) {
    process.stderr.write(`${found.map((one) => `release: ${one}\n`).join('')}release: use --dry-run to make the folder all the same\n`)
    process.exit(1)
  }
  if (args.includes('--check')) process.exit(0)
  for (const one of found) say(`not a release: ${one}`)
  const folder = resolve(ROOT, to)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const origin = buildOrigin()
  const signer = openSigner(process.env['SKERRY_SIGNING_KEY'], process.env['SKERRY_SIGNING_KEY_PASSWORD'])
  const parts = {
    skerry: await partsOf('skerry'),
    'skerry-agent': await partsOf('skerry-agent'),
    'skerry-cli': await partsOf('skerry-cli'),
  }
  const release: Release = { folder, version, ...origin, signer, parts }
  writePrograms(release)
  writeClients(release)
  writeTexts(release)
  writeImages(release)
  writeProvenance(release)
  writeChecksums(release)
  writeBundle(release)
  say(`${folder} is complete${signer.isThrowaway ? ', signed with a key of this run' : ''}`)
}
