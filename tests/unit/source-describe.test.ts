// What people read of sources, renders and repositories: where they come from, with what, and what to be warned of.
import { expect, test } from 'bun:test'
import { repositoryPlaceFacts, sourceFacts, WEBHOOK_HELP, warningsText } from '../../server/cli/source-facts.ts'
import type { RepositoryReadTimes } from '../../server/ingest/read-times.ts'
import { repositorySpecSchema, serviceSpecSchema } from '../../shared/model/resources.ts'
import { type RepositoryView, repositoryViewSchema, type ServiceView, serviceViewSchema } from '../../shared/model/views.ts'
import { createTestAdmin, repositoryDoc } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { naming } from '../support/naming.ts'

const metadata = (name: string) => ({
  name,
  project: 'default',
  labels: {},
  uid: 'u',
  generation: 1,
  version: 1,
  createdMs: 0,
  updatedMs: 0,
})
const service = (spec: unknown, status: Record<string, unknown> = {}): ServiceView =>
  serviceViewSchema.parse({
    apiVersion: 'skerry.dev/v1',
    kind: 'Service',
    metadata: metadata('web'),
    spec: serviceSpecSchema.parse({ targets: { selector: {} }, ...(spec as object) }),
    status: { sync: 'Synced', health: 'Healthy', reason: '', message: '', next: '', sinceMs: null, commit: null, objectCount: 1, renderedMs: 1, clusters: { total: 1, synced: 1, healthy: 1, offline: 0 }, problems: [], confirmationId: null, ...status }, // biome-ignore format: short
  })
const repository = (spec: unknown, status: Record<string, unknown> = {}): RepositoryView =>
  repositoryViewSchema.parse({
    apiVersion: 'skerry.dev/v1',
    kind: 'Repository',
    metadata: metadata('apps'),
    spec: repositorySpecSchema.parse(spec),
    status: {
      ready: true,
      commit: null,
      tag: null,
      fetchedMs: null,
      reason: '',
      message: '',
      next: '',
      sinceMs: null,
      problems: [],
      ...status,
    },
  })
const lines = (facts: ReturnType<typeof sourceFacts>) =>
  facts.flatMap(([name, value]) => (value === null || value === undefined || value === '' ? [] : [`${name}: ${value}`]))

test('CL14 a service says what it is made of: sources with what was resolved, renderer, tools, variables, patches, how many renders', () => {
  const plain = service({ source: { repository: 'apps', path: 'web' } }, { commit: 'c0ffee' })
  expect(lines(sourceFacts(plain))).toEqual(['Source: apps/web at c0ffee', 'Renderer: auto'])
  const base = service({ source: { repository: 'apps', path: 'web' } }, { revisions: { apps: 'c0ffee', 'https://h/o/r?ref=v1': 'beef' } })
  expect(lines(sourceFacts(base))).toContain('Remote base: https://h/o/r?ref=v1 at beef')
  const chart = service(
    {
      sources: [
        { repository: 'charts', chart: 'podinfo', version: '^6' },
        { repository: 'apps', path: 'values', name: 'v', filesOnly: true },
      ],
      render: { type: 'helm', helm: { valuesFiles: ['$v/prod.yaml'], valuesFrom: [{ name: 'shared' }] }, patches: [{ target: {}, patch: {} }], commonLabels: { team: 'a' } }, // biome-ignore format: short
      configFrom: [{ name: 'vars', optional: true }],
      config: { color: 'blue' },
      overrides: [{ selector: {} }],
    },
    { commit: '6.5.2 sha256:abc', tools: { helm: '4.3.1' }, revisions: { charts: 'sha256:1', apps: '3f2c1a' }, variants: 3 },
  )
  expect(lines(sourceFacts(chart))).toEqual([
    'Source: charts/podinfo ^6 at 6.5.2 sha256:abc',
    'Source: apps/values as $v at 3f2c1a, files only',
    'Renderer: helm',
    'Tools: helm 4.3.1',
    'Values files: $v/prod.yaml',
    'Values from: config/shared[values]',
    'Patches: 1, after the renderer',
    'Common labels: team=a',
    'Variables: config/vars (optional); own: color',
    'Overrides: 1, for some of its clusters',
    'Renders: 3 different; `skerry render web -p default --all-clusters` shows the clusters of each',
  ])
})

test('CL14 warnings of a render stand on their own, with their place, and control characters of a chart move no cursor', () => {
  expect(warningsText(service({ source: { repository: 'a', path: 'b' } }).status)).toBe('')
  const warnings = [{ path: 'templates/a.yaml:3', message: 'uses lookup\u001b[2J, which finds nothing here' }]
  const text = warningsText(service({ source: { repository: 'a', path: 'b' } }, { warnings }).status)
  expect(text).toStartWith('WARNINGS of the last render (1):\n  templates/a.yaml:3: uses lookup')
  expect(text).not.toContain('\u001b')
})

test.each([
  ['git', { git: { url: 'https://git.example/a.git', ref: 'v1', auth: { secretRef: 'apps-git' }, submodules: true, verify: { keys: ['k'] } } }, { commit: 'c0ffee' }, ['Kind: git', 'URL: https://git.example/a.git', 'Ref: v1', 'Options: submodules', 'Verified: only commits signed by its key', 'Auth: config/apps-git', 'Poll: 60s', 'Commit: c0ffee']], // biome-ignore format: a line a case
  [
    'helm',
    { helm: { url: 'https://charts.example' } },
    { commit: 'abc' },
    ['Kind: helm', 'URL: https://charts.example', 'Content: index', 'Poll: 60s', 'Index: abc'],
  ],
  ['oci', { oci: { url: 'oci://reg.example/a', semver: '^1' } }, { commit: 'sha256:abc' }, ['Kind: oci', 'URL: oci://reg.example/a', 'Semver: ^1', 'Poll: 60s', 'Digest: sha256:abc']], // biome-ignore format: a line a case
  ['one that is down', { helm: { url: 'https://charts.example' } }, { commit: 'abc', ready: false, fetchedMs: 0 }, ['Kind: helm', 'URL: https://charts.example', 'Content: index', 'Poll: 60s', 'Index: abc', 'Last content: the version of 60m ago stays in use']], // biome-ignore format: a line a case
] as const)(
  'CL15 a repository of kind %s says what it is, whose credentials it uses (by name), and what is read of it',
  (_, spec, status, expected) => expect<unknown>(lines(repositoryPlaceFacts(repository(spec, status), 3_600_000))).toEqual(expected),
)

test.each([
  [{}, null],
  [{ lastReadMs: null, nextReadMs: 103_000 }, 'not since the server started; next in about 3s'],
  [{ lastReadMs: 88_000, nextReadMs: 148_000 }, '12s ago; next in about 48s'],
  [{ lastReadMs: 88_000, nextReadMs: 100_000 }, '12s ago; next now'],
  [{ lastReadMs: 88_000, nextReadMs: 148_000, ready: false }, '12s ago, failed; next in about 48s'],
  [{ lastReadMs: null, nextReadMs: 99_000, ready: false }, 'not since the server started; next now'],
])('SO52 of a repository with %j describe says when it was looked at: %s', (status, expected) => {
  const facts = repositoryPlaceFacts(repository({ git: { url: 'https://git.example/a.git' } }, status), 100_000)
  expect(facts.find(([name]) => name === 'Last read')?.[1] ?? null).toBe(expected)
})

test('SO52 the API, describe and get -o wide show when a repository was looked at', async () => {
  const looks: Record<string, RepositoryReadTimes> = { apps: { lastReadMs: 988_000, nextReadMs: 1_048_000 } }
  const admin = await createTestAdmin({ readTimesOf: (project, name) => (project === 'default' ? (looks[name] ?? null) : null) })
  for (const name of ['apps', 'new']) await admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc(name)] })
  const { body } = await admin.call('GET', '/api/v1/repositories?project=default')
  const shown = (body as { items: RepositoryView[] }).items.map(({ status: { lastReadMs, nextReadMs } }) => [lastReadMs, nextReadMs])
  expect(shown).toEqual([
    [988_000, 1_048_000],
    [null, null],
  ])
  const cli = async (...argv: string[]) => (await runTestCli(admin, argv)).out
  expect(await cli('describe', 'repository', 'apps')).toMatch(/^Last read: +12s ago, failed; next in about 48s$/m)
  expect(await cli('describe', 'repository', 'new')).not.toContain('Last read')
  const table = (await cli('get', 'repositories', '-o', 'wide')).trimEnd().split('\n').map((line) => line.split(/ {2,}/)) // biome-ignore format: one line
  const at = table[0]?.indexOf('READ') ?? -1
  expect(table.map((cells) => cells[at])).toEqual(['READ', '12s', '-'])
  expect(await cli('get', 'repositories')).not.toMatch(/ READ /)
  await admin.store.close()
})

test('WH2 WH3 a new webhook secret is shown once, with what to enter in each forge; no other command shows it', async () => {
  const admin = await createTestAdmin()
  const doc = {
    apiVersion: 'skerry.dev/v1',
    kind: 'Repository',
    metadata: { name: 'charts' },
    spec: { helm: { url: 'https://charts.example' } },
  }
  await admin.call('POST', '/api/v1/apply', { resources: [doc] })
  const shown = await runTestCli(admin, ['webhook-secret', 'create', 'charts'])
  expect(shown.out).toContain('Webhook secret: hook-secret\n')
  expect(shown.err).toEndWith(WEBHOOK_HELP)
  for (const forge of ['GitHub', 'GitLab', 'Gitea', 'Forgejo', 'Bitbucket', 'Registries', 'X-Skerry-Signature'])
    expect(WEBHOOK_HELP).toContain(forge)
  expect((await runTestCli(admin, ['describe', 'repository', 'charts'])).out).not.toContain('Webhook secret: ')
  expect((await runTestCli(admin, ['get', 'repositories'])).out).toMatch(/^NAME +KIND +READY.*\ncharts +helm +False/)
  await admin.store.close()
})

test('CL14 a service with several repositories says which of them is in its way, and what to do', async () => {
  const admin = await createTestAdmin()
  const head = { apiVersion: 'skerry.dev/v1' }
  const doc = (name: string) => ({ ...head, kind: 'Repository', metadata: { name }, spec: { git: { url: 'https://git.example/a' } } })
  const sources = ['a', 'b', 'c'].map((repository) => ({ repository, path: '.', name: repository }))
  const web = { ...head, kind: 'Service', metadata: { name: 'web' }, spec: { sources, targets: { selector: {} } } }
  const status = async () => ((await admin.call('GET', '/api/v1/projects/default/services/web')).body as ServiceView).status
  await admin.call('POST', '/api/v1/apply', { resources: [doc('a'), doc('b'), web] })
  expect(await status()).toMatchObject({ reason: 'RepositoryNotFound', message: expect.stringContaining('repository c ') })
  await admin.call('POST', '/api/v1/apply', { resources: [doc('c')] })
  const error = { code: 'source_unreachable', message: 'charts.example cannot be reached', problems: [], sinceMs: 1 }
  await admin.store.setRepositoryState('default', 'a', { commit: 'c1', fetchedMs: 1, tag: null, error: null })
  await admin.store.setRepositoryState('default', 'b', { commit: 'c1', fetchedMs: 1, tag: null, error })
  expect(await status()).toMatchObject({
    reason: 'RepositoryUnreadable',
    message: 'repository b: charts.example cannot be reached',
    next: naming('last content'),
  })
  await admin.store.close()
})

test('CL14 problems of a render are shown with their line and a caret below the column', async () => {
  const admin = await createTestAdmin()
  const resources = [
    { apiVersion: 'skerry.dev/v1', kind: 'Repository', metadata: { name: 'a' }, spec: { git: { url: 'https://git.example/a' } } },
    {
      apiVersion: 'skerry.dev/v1',
      kind: 'Service',
      metadata: { name: 'web' },
      spec: { source: { repository: 'a', path: '.' }, targets: { selector: {} } },
    },
  ]
  await admin.call('POST', '/api/v1/apply', { resources })
  const id = { project: 'default', service: 'web' }
  const problems = [{ path: 'a.yaml.liquid:3:7', message: 'there is no config.x', excerpt: 'data: {{ config.x }}' }]
  const error = { code: 'render_failed', message: '1 error in the manifests', problems, sinceMs: 1 }
  await admin.store.setRenderState(id, { ...(await admin.store.renderState(id)), generation: 1, error })
  const { out } = await runTestCli(admin, ['describe', 'service', 'web'])
  expect(out).toContain('Problems:\n  a.yaml.liquid:3:7: there is no config.x\n      data: {{ config.x }}\n            ^\n')
  await admin.store.close()
})
