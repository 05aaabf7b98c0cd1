// health-check: files in, health and the rule that decided out; a server is asked only with --from-server.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createTestAdmin, type TestAdmin } from '../support/admin-app.ts'
import { type CliSetup, runTestCli } from '../support/cli-run.ts'
import { tempDir } from '../support/temp-dir.ts'

let admin: TestAdmin
let asked = 0
beforeAll(async () => {
  admin = await createTestAdmin()
})
afterAll(() => admin.store.close())

const dir = tempDir()
const file = (name: string, ...documents: unknown[]): string => {
  const path = join(dir, name)
  writeFileSync(path, documents.map((document) => JSON.stringify(document)).join('\n---\n'))
  return path
}
const cli = (argv: string[], setup: CliSetup = {}) =>
  runTestCli(admin, ['health-check', ...argv], {
    ...setup,
    fetch: (url, init) => {
      asked += 1
      return admin.app.fetch(new Request(url, init)) as Promise<Response>
    },
  })
const told = async (argv: string[], setup?: CliSetup) => {
  const { code, out } = await cli([...argv, '-o', 'json'], setup)
  const found = JSON.parse(out) as { items?: Told[] } & Told
  return [code, ...(found.items ?? [found]).map(({ health, rule }) => `${health} ${rule}`)]
}
interface Told {
  health: string
  rule: string
}

const thing = (phase: string, metadata = {}) => ({
  apiVersion: 'example.com/v1',
  kind: 'Thing',
  metadata: { name: 't', namespace: 'shop', ...metadata },
  status: { phase },
})
const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' } }
const rule = (name: string, verdicts: object, project?: string) => ({
  apiVersion: 'skerry.dev/v1',
  kind: 'HealthRule',
  metadata: { name, ...(project === undefined ? {} : { project }) },
  spec: { group: 'example.com', kind: 'Thing', ...verdicts },
})
const healthy = { healthy: { when: 'true' } }
const service = {
  apiVersion: 'skerry.dev/v1',
  kind: 'Service',
  metadata: { name: 's', project: 'web' },
  spec: { source: { repository: 'a', path: 'b' }, targets: { selector: {} } },
}

test.each([
  ['a kind with a rule', { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, status: { phase: 'Succeeded' } }, 'Healthy kind:Pod', 0],
  ['a kind without health', configMap, 'Healthy existence', 0],
  ['a custom kind', thing('Failed'), 'Degraded general', 1],
  ['a stop asked for', { ...thing('Ready'), spec: { suspend: true } }, 'Suspended stop', 0],
  ['deletion', thing('Ready', { deletionTimestamp: '2026-01-01T00:00:00Z' }), 'Progressing deletion', 1],
  ['observedGeneration', { ...thing('Ready', { generation: 2 }), status: { observedGeneration: 1 } }, 'Progressing observedGeneration', 1],
  [
    'a condition',
    { ...thing('Ready'), status: { conditions: [{ type: 'Stalled', status: 'True', reason: 'Stuck', message: 'm' }] } },
    'Degraded condition:Stalled',
    1,
  ],
] as const)('HR7 names the rule that decides: %s', async (_, object, said, code) => {
  expect(await told(['-f', file('object.json', object)])).toEqual([code, said])
})

test('HR7 HR2 rules of files judge as in an agent: of the service, of its project, of the fleet', async () => {
  const object = file('thing.json', thing('Failed'))
  const rules = file('rules.json', rule('a', { degraded: { when: 'true' } }), rule('z', healthy, 'web'), rule('o', healthy, 'other'))
  expect(await told(['-f', object, '--rule', rules])).toEqual([0, 'Healthy healthrule:other/o'])
  const ofService = file('service.json', service)
  expect(await told(['-f', object, '--rule', rules, '--service', ofService])).toEqual([0, 'Healthy healthrule:web/z'])
  const own = { ...service, spec: { ...service.spec, health: [{ apiVersion: 'example.com/v1', kind: 'Thing', current: 'false' }] } }
  expect(await told(['-f', object, '--rule', rules, '--service', file('own.json', own)])).toEqual([1, 'Progressing service'])
})

test('HR7 several documents, a list and stdin are read; the exit code is of the worst', async () => {
  const list = { apiVersion: 'v1', kind: 'List', items: [configMap, thing('Ready')] }
  expect(await told(['-f', file('many.json', configMap, list)])).toEqual([0, 'Healthy existence', 'Healthy existence', 'Healthy general'])
  expect(await told(['-f', '-'], { stdin: JSON.stringify(thing('Failed')) })).toEqual([1, 'Degraded general'])
  const { out } = await cli(['-f', file('thing.json', thing('Failed'))])
  expect(out).toBe(
    [
      'KIND    NAMESPACE   NAME   HEALTH     REASON   RULE      MESSAGE',
      'Thing   shop        t      Degraded   Failed   general   status.phase is Failed',
      '',
    ].join('\n'),
  )
})

test('HR7 HE17 a CRD tells whether a kind has a status to report', async () => {
  const versions = [{ name: 'v1', subresources: { status: {} } }, { name: 'v2' }]
  const crd = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'things.example.com' },
    spec: { group: 'example.com', names: { kind: 'Thing' }, versions },
  }
  const { status: _, ...silent } = thing('Ready', { creationTimestamp: '1970-01-01T00:00:00Z' })
  const files = (version: string) => ['-f', file(`${version}.json`, { ...silent, apiVersion: `example.com/${version}` })]
  const given = ['--crd', file('crd.json', crd)]
  expect(await told(files('v1'))).toEqual([1, 'Progressing general'])
  expect(await told([...files('v1'), ...given])).toEqual([0, 'Healthy general'])
  expect(await told([...files('v2'), ...given])).toEqual([0, 'Healthy general'])
  expect(await told([...files('v3'), ...given])).toEqual([1, 'Progressing general'])
})

test('HR7 no server is asked, unless for its rules', async () => {
  const object = file('thing.json', thing('Failed'))
  asked = 0
  await cli(['-f', object])
  expect(asked).toBe(0)
  await admin.call('POST', '/api/v1/apply', { resources: [rule('served', healthy)] })
  expect([await told(['-f', object, '--from-server']), asked]).toEqual([[0, 'Healthy healthrule:served'], 1])
})

test.each([
  ['no file', []],
  ['a file that is not there', ['-f', join(dir, 'none.yaml')]],
  ['what is no object', ['-f', file('none.json', { kind: 'Thing' })]],
  [
    'an expression that is not available',
    ['-f', file('c.json', configMap), '--rule', file('bad.json', rule('x', { healthy: { when: '1 +' } }))],
  ],
  ['what is no rule', ['-f', file('c.json', configMap), '--rule', file('c2.json', configMap)]],
  ['a file without a service', ['-f', file('c.json', configMap), '--service', file('r.json', rule('x', healthy))]],
  ['what is no CRD', ['-f', file('c.json', configMap), '--crd', file('c4.json', configMap)]],
  ['stdin twice', ['-f', '-', '--rule', '-']],
])('HR7 what cannot be judged is exit code 2: %s', async (_, argv) => {
  const { code, out, err } = await cli(argv)
  expect([code, out]).toEqual([2, ''])
  expect(err).toStartWith('error: ')
})
