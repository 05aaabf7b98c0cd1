// Every option of a service from the file that a person wrote to what the server keeps and shows: what is taken, what
// is refused and how that is told, and circles of services.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { toYaml } from '../../shared/adapters/yaml.ts'
import { serviceSpecSchema } from '../../shared/model/resources.ts'
import { createTestAdmin, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { naming } from '../support/naming.ts'
import { tempDir } from '../support/temp-dir.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
})
afterEach(() => admin.store.close())

const withSpec = (spec: Record<string, unknown>, name = 'web') => {
  const doc = serviceDoc(name)
  return { ...doc, spec: { ...doc.spec, ...spec } }
}
const dependsOn = (name: string, ...others: string[]) => withSpec({ dependsOn: others.map((other) => ({ name: other })) }, name)
const rule = { apiVersion: 'example.com/v1', kind: 'Thing', current: "status.phase == 'Ready'" }

async function applyFile(text: string) {
  const file = join(tempDir(), 'fleet.yaml')
  await Bun.write(file, text)
  const result = await runTestCli(admin, ['apply', '-f', file])
  return { ...result, err: result.err.replaceAll(file, 'fleet.yaml') }
}

describe('what is taken', () => {
  test.each<[string, Record<string, unknown>]>([
    ['mode', { sync: { mode: 'manual' } }],
    ['mode, as it is by default', { sync: { mode: 'auto' } }],
    ['waitForHealth', { sync: { waitForHealth: false } }],
    ['driftAdditions', { sync: { driftAdditions: 'report' } }],
    ['serviceAccount', { sync: { serviceAccount: 'deployer' } }],
    ['serviceAccount of a namespace', { sync: { serviceAccount: 'tools/web-deployer' } }],
    ['namespaceLabels', { sync: { namespaceLabels: { 'pod-security.kubernetes.io/enforce': 'baseline' } } }],
    ['namespaceAnnotations', { sync: { namespaceAnnotations: { 'example.com/owner': 'Team Web, 3rd floor' } } }],
    ['deleteNamespace', { sync: { deleteNamespace: true } }],
    ['enforceNamespace', { sync: { enforceNamespace: true } }],
    ['waitForAddress', { sync: { waitForAddress: true } }],
    ['ignore by pointers', { ignore: [{ group: 'apps', kind: 'Deployment', name: 'web', jsonPointers: ['/spec/replicas', '/metadata/annotations/a~1b'] }] }], // biome-ignore format: short
    ['ignore by managers', { ignore: [{ kind: 'Service', namespace: 'web', managers: ['cloud-controller'] }] }],
    ['health', { health: [{ ...rule, inProgress: 'has(status.phase)', failed: "status.phase == 'Failed'" }] }],
    ['dependsOn', { dependsOn: [{ name: 'cert-manager' }, { name: 'dns', project: 'net' }] }],
  ])('AP4 %s: applied from a file, shown as it was written, and applied again unchanged', async (_, spec) => {
    expect(await applyFile(toYaml(withSpec(spec)))).toMatchObject({ code: 0, out: 'service/web created\n' })
    const shown = await runTestCli(admin, ['get', 'svc/web', '-o', 'yaml'])
    for (const line of toYaml(spec).trim().split('\n')) expect(shown.out).toContain(line.trim())
    expect(await applyFile(shown.out)).toMatchObject({ code: 0, out: 'service/web unchanged\n' })
  })
})

describe('what is refused', () => {
  const head =
    'apiVersion: skerry.dev/v1\nkind: Service\nmetadata: {name: web}\nspec:\n  source: {repository: apps, path: web}\n  targets: {selector: {matchLabels: {env: prod}}}\n'
  // Line 7 is the first of these.
  test.each([
    ['  sync:\n    mode: manul\n', ['fleet.yaml:8: spec.sync.mode: ', '"auto"', '"manual"?']],
    ['  sync:\n    waitForHelth: false\n', ['fleet.yaml:8: spec.sync.waitForHelth: ', '"waitForHealth"?']],
    ['  sync:\n    waitForHealth: "no"\n', ['fleet.yaml:8: spec.sync.waitForHealth: ', 'boolean']],
    ['  sync:\n    driftAdditions: reprt\n', ['spec.sync.driftAdditions: ', '"ignore"', '"report"?']],
    ['  sync:\n    serviceAccount: a/b/c\n', ['spec.sync.serviceAccount: ', 'ServiceAccount', 'namespace/name']],
    ['  sync:\n    namespaceLabels: {env: [a]}\n', ['spec.sync.namespaceLabels.env: ', 'string']],
    ['  sync:\n    namespaceAnnotations: [a]\n', ['fleet.yaml:8: spec.sync.namespaceAnnotations: ', 'map']],
    ['  sync:\n    deleteNamespace: 1\n', ['spec.sync.deleteNamespace: ', 'boolean']],
    ['  ignore:\n  - kind: Deployment\n', ['fleet.yaml:8: spec.ignore[0]: ', 'jsonPointers', 'managers']],
    ['  ignore:\n  - kind: Deployment\n    jsonPointers: [spec/replicas]\n', ['JSON pointer', '/spec/replicas']],
    ['  ignore:\n  - kind: Deployment\n    jsonPointer: [/a]\n', ['fleet.yaml:9: spec.ignore[0].jsonPointer: ', '"jsonPointers"?']],
    ['  health:\n  - kind: Thing\n    current: "true"\n', ['spec.health[0].apiVersion: ', 'required', 'string']],
    ['  health:\n  - {apiVersion: a/v1, kind: Thing, current: "true"}\n  - {apiVersion: a/v1, kind: Thing, current: "status.phase =="}\n', ['fleet.yaml:9: spec.health[1]: ', 'current', 'Thing of a/v1: ']], // biome-ignore format: short
    ['  health:\n  - {apiVersion: a/v1, kind: Thing, current: "1 + 1"}\n', ['type int']],
    ['  dependsOn:\n  - nam: dns\n', ['fleet.yaml:8: spec.dependsOn[0].nam: ', '"name"?']],
    ['  dependsOn: [dns]\n', ['spec.dependsOn[0]: ', 'object']],
    ['  dependsOn:\n  - name: dns\n  - name: web\n', ['fleet.yaml:9: spec.dependsOn[1]: ', 'cycle', 'web → web']], // biome-ignore format: short
    ['  dependson: []\n', ['fleet.yaml:7: spec.dependson: ', '"dependsOn"?']],
  ])('AP4 CL4 TG15 %p: %s', async (lines, expected) => {
    const { code, err, out } = await applyFile(head + lines)
    expect(code).toBe(1)
    expect(err).toEqual(naming(...expected))
    expect(out).toBe('')
    expect(await admin.store.getResource({ kind: 'Service', project: 'default', name: 'web' })).toBeNull()
  })

  test('AP4 a rule that no version can tell is refused by PUT too', async () => {
    const answer = await admin.call('PUT', '/api/v1/projects/default/services/web', withSpec({ health: [{ ...rule, failed: 'steal()' }] }))
    expect(answer).toMatchObject({
      status: 422,
      body: { problems: [{ path: 'spec.health[0]', message: expect.stringContaining('failed of') }] },
    })
  })
})

describe('services that would wait for each other', () => {
  const apply = (...resources: unknown[]) => admin.call('POST', '/api/v1/apply', { resources })

  test('TG15 a circle in one request is told once, at an entry that closes it, and nothing is written', async () => {
    const result = await apply(serviceDoc('other'), dependsOn('a', 'x', 'b'), dependsOn('b', 'c'), dependsOn('c', 'a'))
    expect(result).toMatchObject({
      status: 422,
      body: {
        problems: [
          { path: 'resources[1].spec.dependsOn[1]', message: naming('cycle', 'a → b → c → a') },
        ],
      },
    }) // biome-ignore format: short
    expect((await admin.store.listResources('Service', { limit: 10 })).items).toEqual([])
  })

  test('TG15 with what is there already, over projects, by apply, PUT and a dry run', async () => {
    const inNet = { ...withSpec({ dependsOn: [{ name: 'web', project: 'default' }] }, 'dns'), metadata: { name: 'dns', project: 'net' } }
    expect((await apply(inNet)).status).toBe(200)
    const closing = withSpec({ dependsOn: [{ name: 'dns', project: 'net' }] })
    const message = naming('cycle', 'default/web → net/dns → default/web')
    for (const result of [
      await apply(closing),
      await admin.call('PUT', '/api/v1/projects/default/services/web', closing),
      await admin.call('POST', '/api/v1/apply', { resources: [closing], dryRun: true }),
    ])
      expect(result).toMatchObject({ status: 422, body: { problems: [{ path: expect.stringMatching(/spec\.dependsOn\[0\]$/), message }] } })
  })

  test('TG15 a request that turns a dependency round is taken, in whatever order it is written', async () => {
    expect((await apply(dependsOn('a', 'b'), dependsOn('b'))).status).toBe(200)
    expect((await apply(dependsOn('b', 'a'), dependsOn('a'))).status).toBe(200)
    expect((await apply(dependsOn('b'), dependsOn('c', 'b'), dependsOn('a', 'c', 'b'))).body).toMatchObject({
      results: [{ name: 'b' }, { name: 'c' }, { name: 'a' }],
    })
    expect((await apply(dependsOn('a'), dependsOn('c', 'a'), dependsOn('b', 'c', 'a'))).status).toBe(200)
  })

  test('TG15 what does not exist may be named', async () => {
    expect(await apply(dependsOn('web', 'not-yet'))).toMatchObject({ status: 200 })
  })
})

test('AP10 the OpenAPI document describes every option, and a sync', async () => {
  const { body } = await admin.call('GET', '/api/v1/openapi.json')
  const text = JSON.stringify(body)
  const { sync, ...others } = serviceSpecSchema.shape
  for (const option of [...Object.keys(others), ...Object.keys(sync.unwrap().shape)]) expect(text).toContain(`"${option}"`)
  expect(Object.keys((body as { paths: Record<string, object> }).paths['/api/v1/projects/{project}/services/{name}/sync'] ?? {})).toEqual([
    'get',
    'post',
  ])
})
