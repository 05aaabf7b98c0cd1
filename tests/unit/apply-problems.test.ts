// `skerry apply` of documents of which some are wrong by schema and others by what only the server sees: one answer.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { naming } from '../support/naming.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
})
afterEach(() => admin.store.close())

const yaml = (...documents: object[]) => documents.map((document) => JSON.stringify(document)).join('\n---\n')
const apply = (stdin: string, argv: string[] = [], env: Record<string, string> = {}) =>
  runTestCli(admin, ['apply', '-f', '-', ...argv], { stdin, env })
const problemsOf = (err: string) => err.split('\n').filter((line) => line.startsWith('  '))

const misspelt = { ...serviceDoc('api'), spec: { ...serviceDoc('api').spec, targts: {} } }
const wrongRule = {
  ...serviceDoc('web'),
  spec: { ...serviceDoc('web').spec, health: [{ apiVersion: 'a/v1', kind: 'A', current: 'object.(' }] },
}
const unknownCluster = { apiVersion: 'skerry.dev/v1', kind: 'Cluster', metadata: { name: 'nope' }, spec: {} }
const dependent = (name: string, on: string) => ({ ...serviceDoc(name), spec: { ...serviceDoc(name).spec, dependsOn: [{ name: on }] } })

test.each([[], ['--dry-run']])(
  'AP4 what is wrong by schema and what the server alone sees is told at once, in the order of the files %p',
  async (...argv) => {
    const { code, err } = await apply(yaml(wrongRule, misspelt, unknownCluster, repositoryDoc('apps')), argv)
    const [rule = '', unknown = '', cluster = '', ...more] = problemsOf(err)
    expect({ code, more }).toEqual({ code: 1, more: [] })
    expect(rule).toStartWith('  stdin:1: spec.health[0]')
    expect(unknown).toContain('stdin:3: spec.targts: ')
    expect(cluster).toStartWith('  stdin:5: ')
    expect(cluster).toEqual(naming('cluster nope'))
    expect(err).toStartWith('error: 3 problems; ')
    expect((await admin.store.listResources('Repository', { limit: 10 })).items).toEqual([])
  },
)

test('AP4 nothing is said of a document that is wrong by schema but that', async () => {
  const both = { ...misspelt, spec: { ...misspelt.spec, health: [{ apiVersion: 'a/v1', kind: 'A', current: 'object.(' }] } }
  expect(problemsOf((await apply(yaml(both, repositoryDoc('apps')))).err)).toHaveLength(1)
})

test('AP4 a circle is not told that goes through what a wrong document had before', async () => {
  await apply(yaml(repositoryDoc('apps'), serviceDoc('web'), dependent('api', 'web')))
  const { err } = await apply(yaml(misspelt, dependent('web', 'api')))
  expect(problemsOf(err)).toHaveLength(1)
  expect(err).toContain('spec.targts')
})

test('AP4 what a file says is told without the server, too, and that it was not asked', async () => {
  const { code, err } = await apply(yaml(misspelt, wrongRule), [], { SKERRY_TOKEN: '' })
  expect({ code, told: problemsOf(err).length }).toEqual({ code: 1, told: 1 })
  expect(err).toEqual(naming('1 problem', 'nothing was changed', 'server did not answer'))
})

test('AP4 of a file that is no YAML the others are looked at', async () => {
  const { err } = await apply(`${yaml(wrongRule)}\n---\na: [\n`)
  expect(problemsOf(err).length).toBeGreaterThan(0)
  expect((await admin.call('POST', '/api/v1/apply', { resources: [misspelt, wrongRule], dryRun: true })).body).toMatchObject({
    problems: [{ path: 'resources[0].spec.targts' }, { path: 'resources[1].spec.health[0]' }],
  })
})
