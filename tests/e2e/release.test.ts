// The folder of a release: other people's programs read its packages, verify its signatures and push its images, and a
// second run makes the same files.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageVersion } from '../../scripts/binary-sandbox.ts'
import { GLIBC_LEAST } from '../../scripts/release-parts/packages.ts'
import { helm } from '../support/chart-kit.ts'
import { imageTool } from '../support/image-kit.ts'
import { startRegistry } from '../support/registry.ts'
import { ROOT } from '../support/source-files.ts'
import { lacksSystemd, startSystemdNode } from '../support/systemd-node.ts'
import { tempDir } from '../support/temp-dir.ts'

const VERSION = packageVersion()
const SECONDS = '1790000000'
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const folder = join(tempDir(), 'release')
const at = (name: string) => join(folder, name)
const undo: Array<() => unknown> = []
afterAll(async () => {
  for (const step of undo.reverse()) await step()
})

function run(command: readonly string[], env: Record<string, string> = {}) {
  const ran = Bun.spawnSync([...command], { env: { PATH: process.env['PATH'] ?? '', HOME: tempDir(), ...env } })
  return { code: ran.exitCode, out: ran.stdout.toString(), err: ran.stderr.toString() }
}
function release(to: string): void {
  const made = run([join(ROOT, 'scripts/release'), '--dry-run', '--no-build', '--to', to], {
    ...(process.env as Record<string, string>),
    ...{ SOURCE_DATE_EPOCH: SECONDS, SKERRY_RELEASE_URL: 'https://downloads.example.com/skerry' },
    SKERRY_SIGNING_KEY: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  })
  if (made.code !== 0) throw new Error(made.err + made.out)
}
const cosign = (...args: string[]) => run([join(ROOT, 'build/cosign/cosign'), ...args])

function build(...options: string[]): void {
  const built = Bun.spawnSync([join(ROOT, 'scripts/build'), ...options], {
    env: { ...process.env, SKERRY_CRSQLITE: join(ROOT, 'build/targets/crsqlite-x64.so'), SKERRY_COMMIT: 'a-commit' },
  })
  if (!built.success) throw new Error(built.stderr.toString())
}
const hash = (path: string) => new Bun.CryptoHasher('sha256').update(readFileSync(path)).digest('hex')

beforeAll(() => {
  build('--arm64', '--clients')
  release(folder)
}, 900_000)

test('IR1 the folder has programs, packages, charts, images, texts and manifests, all with a checksum', () => {
  const names = readdirSync(folder)
  const wanted = [
    ...['amd64', 'arm64'].flatMap((arch) =>
      ['skerry', 'skerry-agent'].flatMap((name) => [
        `${name}_${VERSION}_linux_${arch}.tar.gz`,
        `${name}_${VERSION}_${arch}.deb`,
        `${name}_${VERSION}_${arch}.rpm`,
      ]),
    ),
    ...['linux_amd64', 'linux_arm64', 'darwin_amd64', 'darwin_arm64'].map((platform) => `skerry-cli_${VERSION}_${platform}.tar.gz`),
    ...[`skerry-cli_${VERSION}_windows_amd64.zip`, 'homebrew-skerry.rb', 'scoop-skerry.json', 'krew-skerry.yaml'],
    ...[`skerry-${VERSION}.tgz`, `skerry-agent-${VERSION}.tgz`, `skerry-docs_${VERSION}.tar.gz`],
    ...[`skerry-server_${VERSION}_image.tar`, `skerry-agent_${VERSION}_image.tar`, `skerry_${VERSION}.intoto.jsonl`],
  ]
  expect(wanted.filter((name) => !names.includes(name))).toEqual([])
  expect(run(['sh', '-c', `cd ${folder} && sha256sum -c --quiet SHA256SUMS`])).toMatchObject({ code: 0 })
  const sums = readFileSync(at('SHA256SUMS'), 'utf8')
  expect(names.filter((name) => !sums.includes(`  ${name}\n`) && !/^(SHA256SUMS|skerry\.pub|skerry-airgap_)/.test(name))).toEqual([])
}, 60_000)

test('IR1 the archive of the command line has completions, and the packages install one binary with its licences', () => {
  const unpacked = tempDir()
  run(['tar', '-xzf', at(`skerry-cli_${VERSION}_linux_amd64.tar.gz`), '-C', unpacked])
  expect(readdirSync(join(unpacked, 'completions')).sort()).toEqual(['_skerry', 'skerry.bash', 'skerry.fish'])
  expect(JSON.parse(run([join(unpacked, 'skerry'), 'version', '--client', '-o', 'json']).out)).toMatchObject({ version: VERSION })
  for (const arch of ['amd64', 'arm64']) {
    const deb = at(`skerry-agent_${VERSION}_${arch}.deb`)
    expect(run(['dpkg-deb', '-f', deb, 'Package', 'Version', 'Architecture', 'Depends']).out).toBe(
      `Package: skerry-agent\nVersion: ${VERSION}\nArchitecture: ${arch}\nDepends: libc6 (>= 2.17)\n`,
    )
    const files = run(['dpkg-deb', '-c', deb]).out
    expect(files).toMatch(/-rwxr-xr-x root\/root .* \.\/usr\/bin\/skerry-agent\n/)
    expect(files).toContain('./usr/share/doc/skerry-agent/third-party\n')
  }
  const installed = tempDir()
  run(['dpkg-deb', '-x', at(`skerry-agent_${VERSION}_amd64.deb`), installed])
  expect(run([join(installed, 'usr/bin/skerry-agent'), 'version']).out).toContain(VERSION)
}, 60_000)

test('IR1 rpm reads the packages for Red Hat', () => {
  for (const [arch, machine] of [
    ['amd64', 'x86_64'],
    ['arm64', 'aarch64'],
  ]) {
    const format = '%{NAME} %{VERSION} %{ARCH} %{LICENSE}\\n'
    const read = (...args: string[]) => imageTool('rpm', ['-qp', '--nosignature', ...args, at(`skerry-agent_${VERSION}_${arch}.rpm`)]).out
    expect(read('--qf', format)).toBe(`skerry-agent ${VERSION} ${machine} Apache-2.0\n`)
    expect(read('--requires')).toContain(`glibc >= ${GLIBC_LEAST}\n`)
    expect(read('-l')).toContain('/usr/bin/skerry-agent\n')
    expect(read('--scripts')).toMatch(/postinstall scriptlet.*try-restart skerry-agent\.service.*preuninstall scriptlet/s)
  }
})

const KUBECONFIG = `apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: none, user: {token: none}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
current-context: none
`
const lack = lacksSystemd()
test.skipIf(lack !== null)(
  `IR1 dpkg restarts a running agent with a new package, and stops it when the package is removed${lack === null ? '' : ` (${lack})`}`,
  async () => {
    const node = await startSystemdNode()
    undo.push(() => node.stop())
    const deb = `skerry-agent_${VERSION}_amd64.deb`
    copyFileSync(at(deb), join(node.shared, deb))
    const property = (name: string) => node.must(['systemctl', 'show', '--value', '-p', name, 'skerry-agent']).trim()
    node.must(['dpkg', '-i', `/media/${deb}`])
    expect(property('LoadState')).toBe('not-found') // a package alone starts nothing
    node.must(['install', '-D', '-m', '600', '/dev/stdin', '/etc/rancher/k3s/k3s.yaml'], KUBECONFIG)
    const said = node.must(['skerry-agent', 'install', '--server', 'https://127.0.0.1:1', '--cluster', 'oslo', '--join-token', 'skj.x'])
    expect(said).toContain('installed /usr/bin/skerry-agent as')
    const first = property('MainPID')
    node.must(['dpkg', '-i', `/media/${deb}`])
    expect([property('ActiveState'), property('MainPID') === first]).toEqual(['active', false])
    expect(node.must(['dpkg', '-r', 'skerry-agent'])).toContain('objects in the cluster stay')
    expect([property('ActiveState'), property('UnitFileState')]).toEqual(['inactive', 'disabled'])
  },
  60_000,
)

const minor = (version: string): number => Number(version.split('.')[1])

test('IR1 the programs and the libraries in them need no newer glibc than their packages name', () => {
  const programs = ['', 'arm64/'].flatMap((folder) => ['skerry', 'skerry-agent'].map((name) => `dist/${folder}${name}`))
  for (const path of [...programs, 'build/targets/crsqlite-x64.so', 'build/targets/crsqlite-arm64.so']) {
    const needed = run(['objdump', '-p', join(ROOT, path)]).out.match(/\bGLIBC_[\d.]+/g) ?? []
    const newer = needed.filter((version) => minor(version) > minor(GLIBC_LEAST))
    expect([path, needed.length > 0, newer]).toEqual([path, true, []])
  }
})

test('IR1 helm reads the packaged charts', () => {
  const linted = helm(['lint', '--strict', at(`skerry-${VERSION}.tgz`)])
  expect(linted.ok ? '' : linted.text).toBe('')
  const values = { server: 'https://skerry.example.com', cluster: 'oslo' }
  expect(helm(['template', 'x', at(`skerry-agent-${VERSION}.tgz`)], values).text).toContain('kind: Deployment')
})

test('IR2 each program and each image has a bill of materials in which no part is without a licence', () => {
  const documents = readdirSync(folder).filter((name) => name.endsWith('.cdx.json'))
  expect(documents).toHaveLength(4 + 5 + 4)
  for (const name of documents) {
    const { components } = JSON.parse(readFileSync(at(name), 'utf8')) as { components: Array<{ name: string; licenses?: object[] }> }
    const names = components.map((one) => one.name)
    expect([name, components.filter(({ licenses }) => licenses === undefined).map((one) => one.name)]).toEqual([name, []])
    expect(names).toContain('bun')
    if (name.startsWith('skerry-server_'))
      expect(names).toEqual(expect.arrayContaining(['helm.sh/helm/v4', 'git', 'bubblewrap', 'libc6', 'elysia']))
    if (name.startsWith('skerry-agent_')) expect(names).toEqual(expect.arrayContaining(['js-yaml', '@vlcn.io/crsqlite']))
    if (name.includes('_image_')) expect(names).toContain('ca-certificates')
  }
})

test('IR3 cosign verifies the checksums, the provenance and the pushed image with the public key, and nothing else', async () => {
  const key = at('skerry.pub')
  const blob = ['verify-blob', '--key', key, '--insecure-ignore-tlog=true']
  expect(cosign(...blob, '--signature', at('SHA256SUMS.sig'), at('SHA256SUMS'))).toMatchObject({ code: 0 })
  const root = join(tempDir(), 'trusted-root.json') // of nobody: else cosign asks for that of Sigstore
  writeFileSync(root, JSON.stringify({ mediaType: 'application/vnd.dev.sigstore.trustedroot+json;version=0.1' }))
  expect(
    cosign(...blob, '--trusted-root', root, '--new-bundle-format', '--bundle', at('SHA256SUMS.sigstore.json'), at('SHA256SUMS')),
  ).toMatchObject({ code: 0 })
  expect(cosign(...blob, '--signature', at('SHA256SUMS.sig'), at('skerry.pub')).code).not.toBe(0)
  const subject = at(`skerry-agent_${VERSION}_amd64.deb`)
  const provenance = ['verify-blob-attestation', '--key', key, '--insecure-ignore-tlog=true', '--type', 'slsaprovenance1']
  expect(cosign(...provenance, '--signature', at(`skerry_${VERSION}.intoto.jsonl`), subject)).toMatchObject({ code: 0 })
  expect(cosign(...provenance, '--signature', at(`skerry_${VERSION}.intoto.jsonl`), key).code).not.toBe(0)

  const registry = await startRegistry()
  undo.push(() => registry.stop())
  const image = `${registry.host}/skerry-agent`
  const archive = `oci-archive:${at(`skerry-agent_${VERSION}_image.tar`)}`
  const digest = readFileSync(at(`skerry-agent_${VERSION}_image.digest`), 'utf8').trim()
  const signature = `${digest.replace(':', '-')}.sig`
  for (const tag of [VERSION, signature]) {
    const pushed = imageTool('skopeo', [
      '--insecure-policy',
      'copy',
      '--all',
      '--dest-tls-verify=false',
      `${archive}:${tag}`,
      `docker://${image}:${tag}`,
    ])
    expect(pushed.code === 0 ? '' : pushed.err).toBe('')
  }
  const verify = (pem: string) =>
    cosign('verify', '--key', pem, '--insecure-ignore-tlog=true', '--allow-insecure-registry', `${image}@${digest}`)
  expect(verify(key)).toMatchObject({ code: 0 })
  const other = join(tempDir(), 'other.pub')
  writeFileSync(other, generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ type: 'spki', format: 'pem' }))
  expect(verify(other).code).not.toBe(0)
}, 120_000)

test('IR5 the command line of the release verifies its air-gap bundle', () => {
  const skerry = join(ROOT, 'dist/clients/linux-x64/skerry')
  const bundle = at(`skerry-airgap_${VERSION}.tar`)
  expect(run([skerry, 'bundle', 'verify', bundle, '--key', at('skerry.pub')])).toMatchObject({
    code: 0,
    out: expect.stringContaining('signed with the key SHA256:'),
  })
  expect(run([skerry, 'bundle', 'verify', folder, '--key', at('skerry.pub')])).toMatchObject({ code: 0 })
}, 60_000)

test('IR4 the same dist/ makes the same folder, but for signatures', () => {
  const again = join(tempDir(), 'again')
  release(again)
  const differing = readdirSync(again).filter((name) => !existsSync(at(name)) || hash(at(name)) !== hash(join(again, name)))
  // ECDSA draws a number for each signature; the archives of images and the bundle hold signatures.
  expect(differing.filter((name) => !/\.sig$|\.sigstore\.json$|\.intoto\.jsonl$|_image\.tar$|^SHA256SUMS$|airgap/.test(name))).toEqual([])
  rmSync(again, { recursive: true })
}, 900_000)

test('IR4 the same commit makes the same programs', () => {
  const programs = ['dist/skerry', 'dist/skerry-agent'].map((path) => join(ROOT, path))
  const before = programs.map(hash)
  build()
  expect(programs.map(hash)).toEqual(before)
}, 300_000)
