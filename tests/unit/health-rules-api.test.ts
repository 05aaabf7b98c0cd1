// HealthRules from a file to the store and back, by the API and the command line: one of the fleet, and one of a
// project.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createTestAdmin, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { naming } from '../support/naming.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
})
afterEach(() => admin.store.close())

const THING = { group: 'example.com', kind: 'Thing', healthy: { when: "status.phase == 'Ready'" } }
const ruleDoc = (name: string, spec: object = THING, project?: string) => ({
  apiVersion: 'skerry.dev/v1',
  kind: 'HealthRule',
  metadata: { name, ...(project === undefined ? {} : { project }) },
  spec,
})
const apply = (...resources: unknown[]) => admin.call('POST', '/api/v1/apply', { resources })
const cli = (...argv: string[]) => runTestCli(admin, argv)

test('HR3 a rule without a project is of the fleet, and one of a project beside it may have its name', async () => {
  expect((await apply(ruleDoc('thing'), ruleDoc('thing', THING, 'web'))).body).toMatchObject({
    results: [
      { kind: 'HealthRule', project: '', name: 'thing', action: 'created' },
      { kind: 'HealthRule', project: 'web', name: 'thing', action: 'created' },
    ],
  })
  expect(admin.asked).toEqual(['changed HealthRule /thing, changed HealthRule web/thing'])
  expect(await admin.call('GET', '/api/v1/health-rules/thing')).toMatchObject({ status: 200, body: { spec: THING } })
  expect((await admin.call('GET', '/api/v1/health-rules?project=web')).body).toMatchObject({ items: [{ metadata: { project: 'web' } }] })
  expect(((await admin.call('GET', '/api/v1/health-rules')).body as { items: unknown[] }).items).toHaveLength(2)
})

test('HR3 what an expression has wrong is told by its place, and nothing is written', async () => {
  const wrong = ruleDoc('thing', { ...THING, degraded: { when: 'status.phase ==', message: 'x' } })
  const spec = { group: 'example.com', kind: 'Thing', healthy: { whn: 'true' } }
  expect((await apply(wrong, ruleDoc('other', spec), ruleDoc('none', { group: '', kind: 'Pod' }))).body).toMatchObject({
    code: 'invalid_resource',
    problems: [
      { path: 'resources[1].spec.healthy.when' },
      { path: 'resources[1].spec.healthy.whn', message: naming('"when"') },
      { path: 'resources[2].spec', message: naming('degraded, suspended, progressing, healthy') },
      { path: 'resources[0].spec.degraded.when' },
    ],
  })
  expect((await admin.store.listResources('HealthRule', { limit: 10 })).items).toEqual([])
})

test('HR3 put, get and delete answer as for every resource', async () => {
  const put = (path: string, doc: unknown) => admin.call('PUT', `/api/v1/${path}`, doc)
  expect((await put('health-rules/thing', ruleDoc('thing'))).status).toBe(201)
  expect((await put('projects/web/health-rules/thing', ruleDoc('thing', THING, 'web'))).status).toBe(201)
  expect((await put('projects/web/health-rules/thing', ruleDoc('thing'))).status).toBe(400)
  expect((await put('health-rules/thing', ruleDoc('thing', { ...THING, healthy: { when: '1' } }))).status).toBe(422)
  const { headers, body } = await admin.call('GET', '/api/v1/health-rules/thing')
  expect([headers.get('etag'), (await apply(body)).body]).toEqual([
    expect.any(String),
    expect.objectContaining({ results: [expect.objectContaining({ action: 'unchanged' })] }),
  ])
  expect((await admin.call('DELETE', '/api/v1/health-rules/thing')).body).toMatchObject({ outcome: 'deleted' })
  expect((await admin.call('DELETE', '/api/v1/health-rules/thing')).status).toBe(404)
  expect((await admin.call('GET', '/api/v1/projects/web/health-rules/thing')).status).toBe(200)
})

test('HR3 the command line lists rules of all projects, and shows and deletes that of the fleet unless a project is named', async () => {
  const full = {
    ...THING,
    versions: ['v1'],
    degraded: { when: "status.phase == 'Failed'", messageExpression: "'it says ' + status.reason" },
  }
  await apply(ruleDoc('thing', full), ruleDoc('thing', THING, 'web'))
  expect((await cli('get', 'health-rules')).out).toBe(
    [
      'PROJECT   NAME    JUDGES              VERDICTS           AGE',
      '*         thing   Thing.example.com   degraded,healthy   0s',
      'web       thing   Thing.example.com   healthy            0s',
      '',
    ].join('\n'),
  )
  expect((await cli('get', 'hr', '-p', 'web', '-o', 'name')).out).toBe('health-rule/thing\n')
  expect((await cli('get', 'healthrule/thing', '-o', 'yaml')).out).toContain('messageExpression')
  expect((await cli('describe', 'health-rule', 'thing')).out).toBe(
    [
      'Health rule:   thing',
      'Project:       none: for all services of the fleet',
      'Judges:        Thing of example.com (v1)',
      "Degraded when: status.phase == 'Failed'",
      "  message:     'it says ' + status.reason",
      "Healthy when:  status.phase == 'Ready'",
      'Otherwise:     Progressing',
      'Clusters:      0',
      'Age:           0s',
      '',
    ].join('\n'),
  )
  const deleted = await cli('delete', 'health-rule', 'thing', '-p', 'web', '--yes')
  expect([deleted.code, deleted.err, deleted.out]).toEqual([
    0,
    'HealthRule thing of project web is deleted. Objects of Thing of example.com in 0 clusters are then evaluated by the next rule, or by the built-in rules.\n',
    'health-rule/thing deleted\n',
  ])
  expect((await cli('get', 'health-rules', '-o', 'name')).out).toBe('health-rule/thing\n')
  expect((await cli('delete', 'health-rule', 'thing', '-p', 'web', '--yes')).code).toBe(1)
})

test('HR3 explain knows its fields', async () => {
  expect((await cli('explain')).out).toContain('health-rule.spec')
  expect((await cli('explain', 'healthrule.spec.degraded')).out).toContain('messageExpression <string>')
})
