// `skerry render` on a real server and on this machine, of the same content: raw, Liquid, helm and kustomize. Both have
// to say the very same.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { joinRequest } from '../../agent/link/join.ts'
import { createGitServer, type GitServer } from '../../scripts/local-cluster/git-http-server.ts'
import { runCli } from '../../server/cli/cli.ts'
import { readRenderPlace } from '../../server/control/render-place.ts'
import { packFolder } from '../../server/local-render/pack-folder.ts'
import { type RunningServer, startServer } from '../../server/server.ts'
import { LOCAL_RENDER_OPTIONS, runLocalRender } from '../../server/verbs/render-verb.ts'
import { toYaml } from '../../shared/adapters/yaml.ts'
import type { OriginView, RenderView } from '../../shared/model/render-views.ts'
import { parseJoinToken } from '../../shared/protocol/join.ts'
import { ROUTES } from '../../shared/protocol/routes.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { newAgentKeys } from '../support/agent-api-kit.ts'
import { eventually } from '../support/kube-cluster.ts'

setDefaultTimeout(20_000)
const PROGRAMS = join(import.meta.dir, '../../build/render')
const hasPrograms = existsSync(join(PROGRAMS, 'helm')) && existsSync(join(PROGRAMS, 'kustomize'))
if (!hasPrograms) process.stderr.write('render-by-hand: no helm and kustomize; run scripts/setup --render\n')
const FLAGS = { renderSandbox: 'limits', helm: join(PROGRAMS, 'helm'), kustomize: join(PROGRAMS, 'kustomize') }

const FILES = {
  'raw/a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: raw}\ndata: {on: "yes", n: "1"}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: raw}\nspec: {replicas: 1, template: {spec: {containers: [{name: a, image: "a:1"}]}}}\n',
  'liquid/a.yaml.liquid': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: liquid}\ndata: {cluster: {{ cluster.name | json }}, region: {{ cluster.labels.region | json }}, color: {{ config.color | json }}}\n',
  'chart/Chart.yaml': 'apiVersion: v2\nname: demo\nversion: 1.2.3\n',
  'chart/values.yaml': 'replicas: 1\nhost: none\n',
  'chart/templates/a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-demo}\ndata: {replicas: {{ .Values.replicas | quote }}, host: {{ .Values.host | quote }}}\n',
  'kust/kustomization.yaml': 'namePrefix: k-\nresources: [a.yaml]\nconfigMapGenerator: [{name: made, literals: [a=b]}]\n',
  'kust/a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: "y"}\n',
  'broken/a.yaml.liquid': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ config.nmae }}}\n',
  'secret/a.yaml.liquid': 'apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: {{ config.password | json }}, other: literal}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: url}\ndata: {url: "https://x:{{ config.password }}@db", sum: {{ config.password | sha256sum }}, cut: {{ config.password | slice: 0, 3 | json }}}\n',
  'outside/a.yaml.liquid': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: outside}\ndata: {url: "https://x:{{ config.license }}@db", upper: {{ config.license | upcase }}}\n',
  'coded/a.yaml.liquid': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: coded}\ndata: {a: {{ config.coded | b64dec | json }}}\n',
  'sites/ship/a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-ship}\n',
  'sites/shore/a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-shore}\n',
} // biome-ignore format: files as they are
const head = (kind: string, name: string, spec: unknown) => ({ apiVersion: 'skerry.dev/v1', kind, metadata: { name }, spec })
const targets = { selector: { matchLabels: { env: 'prod' } } }
const service = (name: string, more: Record<string, unknown> = {}) =>
  head('Service', name, { source: { repository: 'apps', path: name }, targets, namespace: 'shop', ...more })
const PATCH = { target: { kind: 'Deployment' }, patch: { spec: { template: { spec: { containers: [{ name: 'a', image: 'a:2' }] } } } } }
const RESOURCES = [
  head('Repository', 'apps', { git: { url: 'https://git.example/apps.git' }, poll: '1h' }),
  head('Config', 'vars', { data: { color: 'blue' }, secrets: { password: 'hunter2' } }),
  head('Config', 'outside', { valueFrom: [{ name: 'license', file: 'license.txt' }] }),
  head('Config', 'coded', { secrets: { coded: btoa('hunter2') } }),
  service('raw', { render: { patches: [PATCH], commonLabels: { team: 'a' } } }),
  service('liquid', {
    configFrom: [{ name: 'vars' }],
    overrides: [{ selector: { matchLabels: { region: 'eu' } }, config: { color: 'green' } }],
  }),
  service('chart', { render: { helm: { values: { host: '{{ cluster.name }}.example' } } } }),
  service('kust'),
  service('sites', { source: { repository: 'apps', path: 'sites/{{ cluster.name }}' } }),
  service('broken'),
  service('secret', { configFrom: [{ name: 'vars' }] }),
  service('outside', { configFrom: [{ name: 'outside' }] }),
  service('coded', { configFrom: [{ name: 'coded' }] }),
  service('nowhere', { source: { repository: 'apps', path: 'liquid' }, targets: { selector: { matchLabels: { env: 'none' } } } }),
]

let [git, server]: [GitServer | null, RunningServer | null] = [null, null]
let folder: string
let resources: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'skerry-by-hand-'))
  mkdirSync(join(folder, 'data'))
  mkdirSync(join(folder, 'values/default'), { recursive: true })
  writeFileSync(join(folder, 'values/default/license.txt'), 'hunter3')
  git = await createGitServer({ dir: join(folder, 'remote') })
  await git.commit(FILES, 'all')
  const { url } = git
  const options = {
    dataDir: join(folder, 'data'),
    hostname: '127.0.0.1',
    port: 0,
    sourceAddresses: '127.0.0.0/8',
    rendering: readRenderPlace(FLAGS, process.env),
    valueFiles: join(folder, 'values'),
  }
  server = await startServer(options, { clock: systemClock, random: seededRandom(3), log: silentLogger })
  resources = join(folder, 'fleet.yaml')
  writeFileSync(resources, RESOURCES.map((one) => `---\n${toYaml(one)}`).join(''))
  for (const [name, labels] of Object.entries({ ship: { region: 'eu' }, shore: { region: 'us' } }))
    await joinCluster(name, { env: 'prod', ...labels })
  const applied = RESOURCES.map((one) => (one.kind === 'Repository' ? { ...one, spec: { git: { url }, poll: '1h' } } : one))
  expect(await ask('POST', '/api/v1/apply', { resources: applied })).toMatchObject({ status: 200 })
  await eventually('the repository is ready', async () => {
    const { body } = await ask('GET', '/api/v1/projects/default/repositories/apps')
    const { status } = body as { status: { ready: boolean } }
    if (!status.ready) throw new Error(JSON.stringify(status))
    return true
  })
}, 60_000)
afterAll(async () => {
  await server?.stop()
  await git?.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function ask(method: string, path: string, body?: unknown) {
  const init = { method, headers: { authorization: `Bearer ${server?.firstAdminToken}`, 'content-type': 'application/json' } }
  const response = await fetch(`${server?.url}${path}`, body === undefined ? init : { ...init, body: JSON.stringify(body) })
  return { status: response.status, body: (await response.json()) as unknown }
}
async function joinCluster(name: string, labels: Record<string, string>): Promise<void> {
  const { body } = await ask('POST', '/api/v1/join-tokens', { labels })
  const secret = parseJoinToken(String((body as { token: string }).token))?.secret ?? ''
  const request = joinRequest(newAgentKeys(), { joinToken: null, clusterName: name, clusterUid: name, agentVersion: 'test' }, secret)
  expect(await ask('POST', ROUTES.join, request)).toMatchObject({ status: 200 })
}

interface Said {
  code: number
  out: string
  err: string
}
const write = (said: Said, to: 'out' | 'err', text: string): void => {
  said[to] += text
}
const onServer = (...argv: string[]) => typed('render', ...argv)
async function typed(...argv: string[]): Promise<Said> {
  const said: Said = { code: 0, out: '', err: '' }
  const none = { table: {}, run: async () => 9 }
  said.code = await runCli({
    local: async () => ({
      server: none,
      dev: none,
      doctor: none,
      adminToken: none,
      render: none,
      pack: packFolder,
      backup: { create: none, list: none, verify: none, restore: none },
    }),
    version: async () => ({ info: { version: '1', bun: 'b' }, text: '' }),
    io: {
      argv,
      env: { SKERRY_SERVER: server?.url, SKERRY_TOKEN: server?.firstAdminToken ?? '' },
      stdin: (async function* () {})(),
      stdout: { write: (text) => write(said, 'out', text) },
      stderr: { write: (text) => write(said, 'err', text) },
      fetch,
      isTty: false,
      clock: systemClock,
    },
  })
  return said
}
async function here(name: string, flags: Record<string, string> = {}): Promise<Said> {
  const said: Said = { code: 0, out: '', err: '' }
  const io = {
    env: { PATH: process.env['PATH'] },
    out: (text: string) => write(said, 'out', text),
    err: (text: string) => write(said, 'err', text),
    ...{ errIsTty: false, onStop: () => {}, clock: systemClock },
  }
  said.code = await runLocalRender({ filename: resources, dir: join(folder, 'remote/work'), ...FLAGS, ...flags }, io, name)
  return said
}
const SHIP = { clusterName: 'ship', clusterLabels: 'env=prod,region=eu' }
const SHORE = { clusterName: 'shore', clusterLabels: 'env=prod,region=us' }

test.skipIf(!hasPrograms).each([
  ['raw', ['a:2', 'team: a']],
  ['liquid', ['cluster: ship', 'color: green']],
  ['chart', ['name: chart-demo', 'host: ship.example']],
  ['kust', ['name: k-a', 'name: k-made-']],
  ['sites', ['name: of-ship']],
] as const)('RH1 %s renders to the same bytes on the server and here', async (name, holds) => {
  for (const output of ['yaml', 'json', 'name']) {
    const [there, local] = [await onServer(name, '--cluster', 'ship', '-o', output), await here(name, { ...SHIP, output })]
    expect(there.code).toBe(0)
    expect(there.err).toMatch(name === 'raw' ? /^(warning: raw\/a\.yaml:4:\d+: the key .*\n {4}data: .*\n +\^\n){2}$/ : /^$/)
    expect(local).toEqual(there)
    if (output === 'yaml') for (const text of holds) expect(there.out).toContain(text)
  }
  expect((await here(name, SHORE)).out).toBe((await onServer(name, '--cluster', 'shore')).out)
})

test('RD11 RH1 a cluster that has no folder is told so, with those that there are', async () => {
  const { code, err } = await here('sites', { clusterName: 'barge' })
  expect([code, err]).toEqual([1, 'error: folder sites/barge does not exist at local; folders in sites: ship, shore\n'])
  expect((await here('sites')).err).toContain('hint: Name the cluster: --cluster-name NAME')
})

test.skipIf(!hasPrograms)('RH1 RH4 what is wrong is the same, with file, line, column, the line and a caret; exit code 1', async () => {
  const [there, local] = [await onServer('broken', '--cluster', 'ship'), await here('broken', SHIP)]
  expect([local.code, local.out, there.code, there.out]).toEqual([1, '', 1, ''])
  expect(local.err).toBe(there.err)
  expect(local.err).toMatch(/^error: .*\nbroken\/a\.yaml\.liquid:3:\d+: .*\n {4}metadata: \{name: \{\{ config\.nmae \}\}\}\n {4} +\^\n$/)
  const [, column = ''] = /:3:(\d+): /.exec(local.err) ?? []
  expect(local.err.split('\n')[3]?.length).toBe(4 + Number(column))
})

test.skipIf(!hasPrograms)(
  'RH2 no secret is shown: data of Secrets and what came of a Config’s secrets are marks, equal for equal values',
  async () => {
    for (const said of [await onServer('secret', '--cluster', 'ship'), await here('secret', SHIP)]) {
      expect([said.code, said.err]).toEqual([0, ''])
      expect(said.out).not.toMatch(/hunter2|literal|aHVudGVyMg|: hun\b|f52fbd32b2b3b86ff88ef6c490628285f482af15ddcb29541f94bcf526a3f6c7/)
      const [, url = ''] = /https:\/\/x:(hmac:[0-9a-f]{16})@db/.exec(said.out) ?? []
      expect(said.out).toContain(`password: ${url}\n`)
    }
  },
)

test('RH2 CG9 CG13 DF3 a value from outside is a mark in a render, an explanation and a comparison, and a placeholder here', async () => {
  await eventually('the value is read', async () => {
    const { out, err } = await onServer('outside', '--cluster', 'ship')
    if (!out.includes('url:')) throw new Error(err)
    return true
  })
  const explained = await onServer('outside', '--cluster', 'ship', '--explain')
  expect(explained.out).toMatch(/^license +"hmac:[0-9a-f]{16}" +Config\/outside\n$/)
  const dir = changed({ 'outside/a.yaml.liquid': FILES['outside/a.yaml.liquid'].replace('x:', 'y:') })
  const compared = await typed('diff', 'outside', '--dir', dir)
  expect([compared.code, compared.err]).toEqual([1, ''])
  for (const { out } of [await onServer('outside', '--cluster', 'ship'), await here('outside', SHIP), compared]) {
    expect(out).toMatch(/https:\/\/[xy]:hmac:[0-9a-f]{16}@db/)
    expect(out).toMatch(/upper: HMAC:[0-9A-F]{16}/)
    expect(out).not.toMatch(/hunter3/i)
  }
})

test.skipIf(!hasPrograms)('RH2 what does not render with marks in place of secrets is shown without contents', async () => {
  for (const said of [await onServer('coded', '--cluster', 'ship'), await here('coded', SHIP)]) {
    expect([said.code, said.err]).toEqual([0, expect.stringContaining('the contents of its objects are not shown')])
    expect(said.out).toBe('---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: coded\n  namespace: shop\n')
  }
})

test('RH3 who has to name a cluster, or the service, is told how', async () => {
  const { code, err } = await here('liquid')
  expect([code, err]).toEqual([1, expect.stringContaining('\nhint: Name the cluster: --cluster-name NAME, --cluster-labels K=V,…\n')])
  expect((await here('')).err).toStartWith('skerry render: service missing: the files have raw, ')
})

test.skipIf(!hasPrograms)('RH3 without a cluster it is for nobody, or for the first of its targets, and says so', async () => {
  expect(await onServer('kust')).toMatchObject({ code: 0, err: '' })
  const needs = await onServer('liquid')
  expect(needs).toMatchObject({ code: 0, err: expect.stringMatching(/^note: .* rendered for ship, the first of its targets\n$/) })
  expect(needs.out).toBe((await onServer('liquid', '--cluster', 'ship')).out)
  expect(await onServer('raw', '--cluster', 'none')).toMatchObject({
    code: 1,
    out: '',
    err: expect.stringContaining('cluster none does not exist'),
  })
  expect(await onServer('none')).toMatchObject({ code: 1, err: expect.stringContaining('there is no service none') })
})

test('RD10 RH1 a service that no cluster matches says what is wrong, on the server as here, and with a cluster it is for that one', async () => {
  const [there, local] = [await onServer('nowhere'), await here('nowhere')]
  const problems = (err: string) => err.split('\n').filter((line) => line.startsWith('liquid/'))
  expect(problems(there.err)).toHaveLength(3)
  expect(problems(there.err)).toEqual(problems(local.err))
  expect([there.code, there.out]).toEqual([1, ''])
  expect(there.err).toStartWith('error: no cluster matches its targets, and it does not render without a cluster')
  expect((await onServer('nowhere', '--cluster', 'ship')).err).toContain('unknown name config.color; set it')
  const out = await eventually('its pass is done', async () => {
    const said = await typed('describe', 'service', 'nowhere')
    return said.out.includes('not rendered yet') ? undefined : said.out
  })
  expect(out).toContain(
    'spec.targets matches no cluster, and without one it does not render: liquid/a.yaml.liquid:4:98: unknown name config.color; this is rendered for no cluster',
  )
  expect(out).toMatch(/WARNINGS of the last render \(1\):\n {2}liquid\/a\.yaml\.liquid:4:98: unknown name config\.color; /)
})

test.skipIf(!hasPrograms)('RH3 --all-clusters: which clusters share a render, and for which there is none', async () => {
  expect((await onServer('raw', '--all-clusters')).out).toMatch(
    /^One render for all of them:\n[0-9a-f]{12} {2}2 objects in 2 clusters: ship, shore\n$/,
  )
  expect((await onServer('liquid', '--all-clusters')).out).toMatch(/^2 different renders:\n.*1 cluster: ship\n.*1 cluster: shore\n$/)
  const failing = await onServer('broken', '--all-clusters')
  expect([failing.code, failing.out]).toEqual([
    1,
    expect.stringMatching(/does not render for 2 clusters: ship, shore\n.*\nbroken\/a\.yaml\.liquid:3:/),
  ])
})

test.each([
  ['two services, none named', '', {}, 'service missing:'],
  ['a service that is not there', 'none', {}, 'the files have no Service none'],
  ['labels that are none', 'raw', { clusterLabels: 'a' }, 'expected key=value'],
  ['a repository without a folder', 'raw', { dir: 'other=/tmp' }, 'does not name the folder of repository apps'],
  ['a file that is not there', 'raw', { filename: 'none.yaml' }, 'none.yaml cannot be read'],
  ['what the server is asked for', 'raw', { cluster: 'ship' }, '--cluster-name'],
])('RH4 %s: exit code 2 and what to type', async (_, name, flags, message) => {
  expect(await here(name, flags)).toMatchObject({ code: 2, out: '', err: expect.stringContaining(message) })
})

test('RH6 a chart on this machine is the one that is asked for, in a version of the range, and never plain manifests', async () => {
  const dir = join(folder, 'charts')
  for (const [name, version] of Object.entries({ podinfo: '7.0.0', other: '1.0.0' })) {
    mkdirSync(join(dir, name, 'templates'), { recursive: true })
    writeFileSync(join(dir, name, 'Chart.yaml'), `apiVersion: v2\nname: ${name}\nversion: ${version}\n`)
    writeFileSync(join(dir, name, 'templates', 'a.yaml'), FILES['raw/a.yaml'])
  }
  writeFileSync(join(dir, 'a.yaml'), FILES['raw/a.yaml'])
  const filename = join(folder, 'chart.yaml')
  const said = async (chart: string, version: string, at: string) => {
    writeFileSync(filename, toYaml(service('one', { source: { repository: 'charts', chart, version } })))
    return here('one', { filename, dir: at })
  }
  expect((await said('podinfo', '>=6 <7', dir)).err).toContain(`${join(dir, 'podinfo')} has 7.0.0, which is not in >=6 <7`)
  expect((await said('podinfo', '>=6 <7', join(dir, 'podinfo'))).err).toContain('has 7.0.0, which is not in >=6 <7')
  expect((await said('podinof', '^7', dir)).err).toContain('charts holds no chart podinof')
  expect((await said('podinfo', '^1', join(dir, 'other'))).err).toContain('charts holds no chart podinfo')
  expect((await said('podinof', '^7', dir)).out).toBe('')
  for (const at of [dir, join(dir, 'podinfo')]) expect((await said('podinfo', '^7', at)).code).toBe(hasPrograms ? 0 : 1)
})

test('RH4 a resource that is wrong is told by file and line, with the nearest right name', async () => {
  const filename = join(folder, 'wrong.yaml')
  writeFileSync(filename, toYaml(service('raw', { render: { helm: { valuesFile: ['a'] } }, overides: [] })))
  const said = await here('raw', { filename })
  expect([said.code, said.out]).toEqual([1, ''])
  expect(said.err).toContain(`${filename}:16: spec.render.helm.valuesFile: unknown field; did you mean "valuesFiles"?`)
  expect(said.err).toContain('spec.overides: unknown field; did you mean "overrides"?')
  expect(Object.keys(LOCAL_RENDER_OPTIONS)).toContain('kubeVersion')
})

test('RH4 the server is asked for one service, and for one cluster or for all', async () => {
  expect(await onServer()).toMatchObject({ code: 2, out: '', err: expect.stringContaining('service missing:') })
  expect(await onServer('raw', '--cluster', 'ship', '--all-clusters')).toMatchObject({
    code: 2,
    err: expect.stringContaining('--all-clusters'),
  })
  expect(await onServer('raw', '-o', 'wide')).toMatchObject({ code: 2 })
})

test('CG9 the variables of a render are explained: value, level, and what is below it', async () => {
  const { code, out } = await onServer('liquid', '--cluster', 'ship', '--explain', '-o', 'json')
  expect(code).toBe(0)
  expect(JSON.parse(out)).toEqual([
    { path: 'color', value: 'green', secret: false, from: 'overrides[0]', over: ['Config/vars'] },
    { path: 'password', value: expect.stringMatching(/^hmac:[0-9a-f]{16}$/), secret: true, from: 'Config/vars', over: [] },
  ])
  const text = (await onServer('liquid', '--cluster', 'ship', '--explain')).out
  expect(text).toMatch(/^color +"green" +overrides\[0\] +over Config\/vars\n/)
  expect(await onServer('liquid', '--explain', '--all-clusters')).toMatchObject({ code: 2 })
  const chart = (await onServer('chart', '--cluster', 'ship', '--explain')).out
  expect(chart).toMatch(
    /^Helm values of apps:\n\.Values\.host +"ship\.example" +render\.helm\.values +over chart values\.yaml\n\.Values\.replicas +1 +chart values\.yaml\n$/,
  )
})

test('RH3 what is rendered by hand changes nothing: no revision, no event, no row', async () => {
  const look = async () => JSON.stringify([await ask('GET', '/api/v1/events'), await ask('GET', '/api/v1/projects/default/services/raw'), await ask('GET', '/api/v1/clusters/ship/services')]) // biome-ignore format: three looks
  const before = await look()
  await onServer('raw', '--cluster', 'ship')
  await onServer('raw', '--all-clusters')
  await onServer('liquid')
  expect(await look()).toBe(before)
})

/** A copy of the repository with other files. */
function changed(files: Record<string, string>): string {
  const copy = mkdtempSync(join(folder, 'changed-'))
  cpSync(join(folder, 'remote/work'), copy, { recursive: true })
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(copy, name, '..'), { recursive: true })
    writeFileSync(join(copy, name), text)
  }
  return copy
}

test('DF1 DF2 a folder is compared with what clusters have, each group of clusters once, and nothing changes', async () => {
  expect(await typed('diff', 'raw', '--dir', join(folder, 'remote/work'))).toMatchObject({ code: 0, out: 'no differences in 2 clusters\n' })
  const dir = changed({
    'raw/a.yaml': FILES['raw/a.yaml'].replace('n: "1"', 'n: "2"').replace('a:1', 'a:3'),
    'raw/new.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\n',
  })
  const all = await typed('diff', 'raw', '--dir', dir)
  expect([all.code, all.out.split('\n')[0]]).toEqual([1, '# 2 clusters: ship, shore'])
  expect(all.out).toContain("-  'false': '1'\n+  'false': '2'")
  expect(all.out.trimEnd().split('\n').at(-1)).toBe('1 change, 1 create in 2 of 2 clusters')
  expect((await typed('diff', 'raw', '--dir', dir, '--cluster', 'ship', '-o', 'summary')).out).toBe(
    '# 1 cluster: ship\n+ ConfigMap shop/new\n~ ConfigMap shop/raw\n1 change, 1 create in 1 of 1 cluster\n',
  )
  expect((await typed('diff', 'raw', '--dir', dir, '-l', 'region=us', '-o', 'summary')).out).toContain('# 1 cluster: shore')
  expect(await typed('diff', 'raw', '--dir', dir, '--cluster', 'barge')).toMatchObject({ code: 2 })
})

test('DF1 a branch or a commit is compared, and a Service that does not exist', async () => {
  const work = join(folder, 'remote/work')
  const run = (...args: string[]) =>
    Bun.spawnSync(['git', '-C', work, ...args])
      .stdout.toString()
      .trim()
  await Bun.write(join(work, 'liquid/a.yaml.liquid'), FILES['liquid/a.yaml.liquid'].replace('name: liquid', 'name: liquid2'))
  run('-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '--quiet', '--no-verify', '-am', 'other')
  const commit = run('rev-parse', 'HEAD')
  run('push', '--quiet', 'origin', 'HEAD:refs/heads/other')
  run('reset', '--quiet', '--hard', 'HEAD~1')
  for (const ref of ['other', commit]) {
    const { code, out, err } = await typed('diff', 'liquid', '--ref', ref, '-o', 'summary')
    expect([code, err]).toEqual([1, ''])
    // Two groups: the region of a cluster is in its object.
    expect(out).toContain('+ ConfigMap shop/liquid2\n')
    expect(out).toEndWith('1 create, 1 delete in 2 of 2 clusters\n')
  }
  expect(await typed('diff', 'liquid', '--ref', 'nothing-like-it')).toMatchObject({ code: 2 })
  const file = join(folder, 'fresh.yaml')
  writeFileSync(file, toYaml(service('fresh')))
  const fresh = await typed('diff', '-f', file, '--dir', changed({ 'fresh/a.yaml': FILES['raw/a.yaml'] }), '-o', 'summary')
  expect([fresh.code, fresh.out.split('\n')[0]]).toEqual([1, '# 2 clusters: ship, shore (the service is added)'])
  expect(await ask('GET', '/api/v1/projects/default/services/fresh')).toMatchObject({ status: 404 })
})

test('DF3 proposed content gets no secret, whatever it makes of it', async () => {
  const text =
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: leak}\ndata: {a: {{ config.password | json }}, b: {{ config.password | split: "" | join: "." | json }}}\n'
  const { code, out } = await typed('diff', 'secret', '--dir', changed({ 'secret/a.yaml.liquid': text }))
  expect([code, out.includes('hunter2'), out.includes('h.u.n.t.e.r.2')]).toEqual([1, false, false])
  expect(out).toContain('+  a: hmac:')
})

test('DF3 a guess at one place tells nothing of a value at another; an unchanged value is no change', async () => {
  const guessing = FILES['secret/a.yaml.liquid'].replace('other: literal', 'other: literal, guess: literal')
  const { code, out } = await typed('diff', 'secret', '--dir', changed({ 'secret/a.yaml.liquid': guessing }))
  const [, guess] = /^\+ +guess: (hmac:[0-9a-f]{16})$/m.exec(out) ?? []
  const [, other] = /^ +other: (hmac:[0-9a-f]{16})$/m.exec(out) ?? []
  expect([code, typeof guess, typeof other, guess === other]).toEqual([1, 'string', 'string', false])
})

test('DF4 content that does not render, unknown repositories and archives that are none are errors', async () => {
  const wrong = await typed('diff', 'raw', '--dir', changed({ 'raw/a.yaml': 'kind: [\n' }))
  expect([wrong.code, wrong.err.includes('raw/a.yaml:')]).toEqual([2, true])
  const at = '/api/v1/projects/default/services/raw/diff'
  expect(await ask('POST', at, { content: { other: { ref: 'main' } } })).toMatchObject({ status: 422 })
  expect(await ask('POST', at, { content: { apps: { archive: 'AAAA' } } })).toMatchObject({ body: { code: 'source_refused' } })
  expect(await ask('POST', at, { service: service('other') })).toMatchObject({ status: 400 })
})

/** `file:line` of an object of a service for the cluster `ship`, or why there is none. */
async function originOf(name: string, object: string, query = ''): Promise<string> {
  const asked = `cluster=ship&object=${encodeURIComponent(object)}${query}`
  const { status, body } = await ask('GET', `/api/v1/projects/default/services/${name}/origin?${asked}`)
  const { repository, file, line, note, code } = body as Partial<OriginView> & { code?: string }
  if (status !== 200) return `${status} ${code}`
  return file == null ? String(note) : `${repository} ${file}${line === null ? '' : `:${line}`}`
}

test('RH8 the file that an object is made of: manifest with line, template, chart, what kustomize built it from', async () => {
  expect(await originOf('raw', '/ConfigMap/shop/raw')).toBe('apps raw/a.yaml:1')
  expect(await originOf('raw', 'apps/Deployment/shop/raw')).toBe('apps raw/a.yaml:6')
  expect(await originOf('liquid', '/ConfigMap/shop/liquid')).toBe('apps liquid/a.yaml.liquid')
  expect(await originOf('sites', '/ConfigMap/shop/of-ship')).toBe('apps sites/ship/a.yaml:1')
  expect(await originOf('raw', '/ConfigMap/shop/other')).toBe('the service does not render this object')
  expect(await originOf('broken', '/ConfigMap/shop/other')).toMatch(/^the service does not render: /)
  expect(await originOf('raw', 'ConfigMap')).toBe('400 bad_request')
  expect(await originOf('nope', '/ConfigMap/shop/raw')).toBe('404 not_found')
})

test.skipIf(!hasPrograms)('RH8 of charts and kustomizations', async () => {
  expect(await originOf('chart', '/ConfigMap/shop/chart-demo')).toBe('apps chart/templates/a.yaml')
  expect(await originOf('kust', '/ConfigMap/shop/k-a')).toBe('apps kust/a.yaml')
  const { body } = await ask('GET', '/api/v1/projects/default/services/kust/render?cluster=ship')
  const made = (body as RenderView).objects
    .map((one) => (one['metadata'] as { name: string }).name)
    .find((name) => name.startsWith('k-made-'))
  expect(await originOf('kust', `/ConfigMap/shop/${made}`)).toBe('apps kust/kustomization.yaml')
  // What is rendered to find the file is not what clusters get.
  expect(JSON.stringify(body)).not.toContain('config.kubernetes.io/origin')
})

test('RH8 a revision is looked up in its own commit', async () => {
  const moved = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: raw}\ndata: {on: "no"}\n'
  const deployment = (FILES['raw/a.yaml'] ?? '').split('---\n')[1] ?? ''
  await git?.commit({ 'raw/a.yaml': deployment, 'raw/b.yaml': moved }, 'move')
  expect(await ask('POST', '/api/v1/projects/default/repositories/apps/refresh')).toMatchObject({ status: 202 })
  await eventually('the move is read', async () => {
    const place = await originOf('raw', '/ConfigMap/shop/raw')
    if (place !== 'apps raw/b.yaml:1') throw new Error(place)
    return true
  })
  expect(await originOf('raw', '/ConfigMap/shop/raw', '&revision=1')).toBe('apps raw/a.yaml:1')
  expect(await originOf('raw', '/ConfigMap/shop/raw', '&revision=99')).toBe('apps raw/b.yaml:1')
})
