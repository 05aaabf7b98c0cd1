// Manifests from every kind of source, by every renderer, into a real cluster: Git over http and ssh, a Helm
// repository, an OCI registry as a process.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGitServer, type GitServer } from '../../scripts/local-cluster/git-http-server.ts'
import { askHelm, createHelmRepository, type HelmRepository, packChart } from '../support/helm-charts.ts'
import { CLUSTER_START_TIMEOUT_MS, eventually } from '../support/kube-cluster.ts'
import { pusherTo, type RegistryProcess, startRegistry } from '../support/registry.ts'
import { searchPath } from '../support/render-programs.ts'
import { configMapYaml, type Scenario, startScenario } from '../support/scenario.ts'
import { ROOT } from '../support/source-files.ts'
import { type SshServer, startSshServer } from '../support/ssh-server.ts'

setDefaultTimeout(90_000)
let scenario: Scenario
let dir: string
let private_: GitServer
let ssh: SshServer
let charts: HelmRepository
let registry: RegistryProcess

const kubectl = (...args: string[]) => {
  const site = scenario.sites['harbour']
  if (site === undefined) throw new Error('no site')
  return site.cluster.kubectl(args)
}
const apply = (...documents: object[]) =>
  scenario.fleet.run(['apply', '-f', '-'], {
    stdin: documents.map((document) => JSON.stringify({ apiVersion: 'skerry.dev/v1', ...document })).join('\n---\n'),
  })
const repository = (name: string, spec: object) => ({ kind: 'Repository', metadata: { name }, spec: { poll: '1h', ...spec } })
const service = (name: string, spec: object) => ({
  kind: 'Service',
  metadata: { name },
  spec: { targets: { selector: { matchLabels: { env: 'prod' } } }, namespace: name, ...spec },
})
const dataOf = (namespace: string, name: string, key = 'value') =>
  kubectl('get', 'configmap', name, '-n', namespace, '-o', `jsonpath={.data.${key}}`).catch(() => '')
const becomes = (namespace: string, name: string, wanted: string, key = 'value') =>
  eventually(`${namespace}/${name} has ${wanted}`, async () => {
    const found = await dataOf(namespace, name, key)
    if (found === wanted) return true
    throw new Error(`${found}; ${JSON.stringify(await scenario.status('harbour', namespace))}`)
  })

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'skerry-sources-'))
  const path = [join(ROOT, 'build', 'render'), ...searchPath()].join(':')
  scenario = await startScenario({ sites: { harbour: { labels: { env: 'prod', region: 'north' } } }, serverEnv: { PATH: path } })
  private_ = await createGitServer({ dir: join(dir, 'private') })
  ssh = await startSshServer(join(dir, 'sshd'))
  charts = createHelmRepository()
  registry = await startRegistry()
}, CLUSTER_START_TIMEOUT_MS)
afterAll(async () => {
  await scenario?.stop()
  await private_?.stop()
  await ssh?.stop()
  charts?.stop()
  await registry?.stop()
  rmSync(dir, { recursive: true, force: true })
})

test('KU1 LQ2 a kustomization and a Liquid template of one repository over http reach the cluster', async () => {
  await scenario.push({
    'kust/base/kustomization.yaml': 'resources: [map.yaml]\n',
    'kust/base/map.yaml': configMapYaml('settings', { value: 'base' }),
    'kust/overlay/kustomization.yaml':
      'resources: [../base]\nnamePrefix: pre-\nconfigMapGenerator:\n  - name: made\n    literals: [value=generated]\n    options: {disableNameSuffixHash: true}\n',
    'liquid/map.yaml.liquid':
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: where}\ndata: {value: '{{ cluster.name }} in {{ cluster.labels.region }}, {{ config.color }}'}\n",
  })
  await apply(
    service('kust', { source: { repository: 'apps', path: 'kust/overlay' } }),
    service('liquid', { source: { repository: 'apps', path: 'liquid' }, config: { color: 'green' } }),
  )
  await becomes('kust', 'pre-settings', 'base')
  await becomes('kust', 'pre-made', 'generated')
  await becomes('liquid', 'where', 'harbour in north, green')
})

test('SO29 CG2 a private repository over ssh: a deploy key and known hosts from a Config; TypeScript from it', async () => {
  await private_.commit(
    {
      'ts/main.ts':
        "import { name } from './name.ts'\nexport default ({ cluster, config }) => [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { value: [cluster.name, config.size * 2].join(' ') } }]\n",
      'ts/name.ts': "export const name: string = 'made'\n",
    },
    'typescript',
  )
  const url = `${ssh.url}${join(dir, 'private', 'fleet.git')}`
  await apply(
    { kind: 'Config', metadata: { name: 'deploy' }, spec: { secrets: ssh.secrets } },
    repository('private', { git: { url, auth: { secretRef: 'deploy' } } }),
    service('typed', { source: { repository: 'private', path: 'ts' }, render: { type: 'typescript' }, config: { size: 21 } }),
  )
  await becomes('typed', 'made', 'harbour 42')
  expect(await scenario.fleet.run(['get', 'config', 'deploy', '-o', 'yaml'])).not.toContain('PRIVATE KEY')
})

/** Public half of a key that signed nothing. */
const OPENPGP_KEY = `-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEawJzwhYJKwYBBAHaRw8BAQdADgPgwwp+JKCbV0BmrEPyS490ypENyK76KvPD
mSl55jm0EUEgPGFAZXhhbXBsZS5jb20+iJAEExYIADgWIQR2B4GtsqpSUKf5N3XF
KciqU0KjQQUCawJzwgIbAwULCQgHAgYVCgkICwIEFgIDAQIeAQIXgAAKCRDFKciq
U0KjQfhUAQDcyDkZaL3TIwFQfmkXYkIsei3jJ0M+8HJhQyjUv5+/ugD/dYuv5Z+g
QryiTJ3pe6Od0sWwfjOkHT47YQmMVV5DwwE=
=fsxL
-----END PGP PUBLIC KEY BLOCK-----
`
const OPENPGP_FINGERPRINT = '760781ADB2AA5250A7F93775C529C8AA5342A341'

test('SO30 the binary has OpenPGP in it, which it loads late: an unsigned commit is refused with the fingerprint of the key', async () => {
  await private_.commit({ 'signed/map.yaml': configMapYaml('signed', { value: 'a' }) }, 'unsigned')
  await apply(repository('signed', { git: { url: private_.url, verify: { keys: [OPENPGP_KEY] } } }))
  await eventually('the refusal names the key', async () => {
    const shown = await scenario.fleet.run(['get', 'repository', 'signed', '-o', 'json'])
    if (shown.includes(OPENPGP_FINGERPRINT)) return true
    throw new Error(shown)
  })
})

test('HM1 HM2 SO6 a chart of a Helm repository, with a values file from Git and values of the service; a newer version in its range follows', async () => {
  charts.add({ name: 'web', version: '1.2.0' })
  await scenario.push({ 'envs/prod.yaml': 'value: from the file\n' })
  await apply(
    repository('charts', { helm: { url: charts.url } }),
    service('web', {
      sources: [
        { repository: 'charts', chart: 'web', version: '^1', render: { helm: { valuesFiles: ['$envs/prod.yaml'] } } },
        { name: 'envs', repository: 'apps', path: 'envs', filesOnly: true },
      ],
    }),
    service('web-plain', { source: { repository: 'charts', chart: 'web', version: '~1.2.0' } }),
  )
  await becomes('web', 'web', 'from the file')
  await becomes('web-plain', 'web-plain', '1.2.0')
  charts.add({ name: 'web', version: '1.2.7' }, { name: 'web', version: '2.0.0' })
  await scenario.fleet.webhook('charts')
  await becomes('web-plain', 'web-plain', '1.2.7')
  expect(await scenario.fleet.run(['describe', 'service', 'web-plain'])).toMatch(/1\.2\.7 sha256:[0-9a-f]{12}/)
})

test('SO17 SO10 a chart and an artifact of a real OCI registry, pinned by digest in what is shown', async () => {
  const archive = packChart({ name: 'boat', version: '0.3.1' }, dir)
  await askHelm('push', archive, `oci://${registry.host}/charts`, '--plain-http')
  const artifact = Bun.gzipSync(await new Bun.Archive({ 'deploy/map.yaml': configMapYaml('anchor', { value: 'iron' }) }).bytes())
  await pusherTo(registry.host, 'fleet/anchor').push('v1.0.0', [
    { mediaType: 'application/vnd.cncf.flux.content.v1.tar+gzip', bytes: artifact },
  ])
  await apply(
    repository('boat', { oci: { url: `oci://${registry.host}/charts/boat`, semver: '0.x', insecure: true } }),
    repository('anchor', { oci: { url: `oci://${registry.host}/fleet/anchor`, tag: 'v1.0.0', insecure: true } }),
    service('boat', { source: { repository: 'boat', path: '.' } }),
    service('anchor', { source: { repository: 'anchor', path: 'deploy' } }),
  )
  await becomes('boat', 'boat', '0.3.1')
  await becomes('anchor', 'anchor', 'iron')
  await registry.stop()
  await scenario.fleet.webhook('anchor')
  const told = await eventually('the repository says so', async () => {
    const text = await scenario.fleet.run(['describe', 'repository', 'anchor'])
    return text.includes('SourceUnreachable') && text
  })
  expect(told).toMatch(/Last content: the version of .* stays in use/)
  await becomes('anchor', 'anchor', 'iron')
})

test('IC1 what is rendered by hand is what the cluster has', async () => {
  const shown = await scenario.fleet.run(['render', 'liquid', '--cluster', 'harbour'])
  expect(shown).toContain('harbour in north, green')
  expect(await scenario.fleet.run(['render', 'web-plain', '--cluster', 'harbour'])).toContain('1.2.7')
})

test('KU12 SU2 SU3 a remote base on a real site; suspended, a commit and a correction wait until it is resumed', async () => {
  await private_.commit(
    {
      'base/kustomization.yaml': 'resources: [a.yaml]\n',
      'base/a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {value: one}\n',
    },
    'base',
  )
  const kustomization = (...patches: object[]) => JSON.stringify({ resources: [`${private_.url}//base?ref=main`], patches })
  await scenario.push({ 'moored/kustomization.yaml': kustomization() })
  await apply(service('moored', { source: { repository: 'apps', path: 'moored' }, render: { kustomize: { remoteBases: true } } }))
  await becomes('moored', 'a', 'one')
  await scenario.fleet.run(['suspend', 'moored', '--reason', 'test'])
  const message = async () => (await scenario.status('harbour', 'moored'))?.message ?? ''
  await eventually('the agent confirmed it', async () => /suspended by(?!.*not confirmed)/.test(await message()))
  await kubectl('patch', 'configmap', 'a', '-n', 'moored', '--type', 'merge', '-p', '{"data":{"value":"by hand"}}')
  const patch = '[{"op":"replace","path":"/data/value","value":"two"}]'
  await scenario.push({ 'moored/kustomization.yaml': kustomization({ target: { kind: 'ConfigMap', name: 'a' }, patch }) })
  await Bun.sleep(2_000)
  expect(await dataOf('moored', 'a')).toBe('by hand')
  await scenario.fleet.run(['resume', 'moored'])
  await becomes('moored', 'a', 'two')
}, 90_000)
