// explain: what a field is, from the schemas; nobody is asked.
import { expect, test } from 'bun:test'
import { createTestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'

const admin = await createTestAdmin()
const explain = (argv: string) =>
  runTestCli(admin, ['explain', ...argv.split(' ').filter(Boolean)], {
    env: { SKERRY_SERVER: '', SKERRY_TOKEN: undefined },
    fetch: () => Promise.reject(new Error('a server was asked')),
  })

test('CL17 a kind: its fields with types', async () => {
  expect(await explain('service')).toEqual({
    code: 0,
    err: '',
    out: 'KIND:   Service (skerry.dev/v1)\n\nFIELDS:\n  apiVersion <skerry.dev/v1> required\n      Version of the resource schema.\n  kind <Service> required\n      Kind of the resource.\n  metadata <object> required\n      Name, project and labels.\n  spec <object> required\n      Manifests to deliver, and the clusters that get them.\n',
  })
  for (const kind of ['svc', 'services', 'repository', 'config', 'cluster']) expect((await explain(kind)).code).toBe(0)
})

test('CL17 without a field: the kinds, each with what its spec is', async () => {
  const { code, out } = await explain('')
  expect(code).toBe(0)
  expect([...out.matchAll(/^([a-z]+)\.spec\n {6}\S.*\.$/gm)].map(([, kind]) => kind)).toEqual([
    'service',
    'repository',
    'config',
    'cluster',
    'project',
    'role',
  ])
})

test.each([
  ['service.spec.sync.pruneWhen', 'FIELD:  spec.sync.pruneWhen <healthy | applied>, default "healthy"\n\nhealthy: prune once'],
  ['service.spec.sync', '\n  maxPrunePercent <integer>, default 50\n      A prune of more than 5 objects'],
  ['service.spec.render.helm', '\n  valuesFiles <list of string>\n      Values files, relative to the folder of the service'],
  ['service.spec.render.helm', '\n  helm <3 | 4>\n'],
  ['service.spec.sources[0].repository', 'FIELD:  spec.sources.repository <string> required\n'],
  ['service.spec.config', '<map of any>'],
  ['service.spec.render.patches', '\n  patch <(list of object or map of any or string)> required\n'],
  ['repository.spec.git', '\n  url <string> required\n'],
  ['repository.spec', '\n  poll <string>, default "60s"\n'],
  ['config.spec', '\n  secrets <map of string>, default {}\n'],
  ['cluster.spec.overrides', '\n  service <string> required\n'],
])('CL17 explain %s', async (path, text) => {
  const { code, out } = await explain(path)
  expect(code).toBe(0)
  expect(out).toContain(text)
})

test('CL17 --recursive is the tree of all fields', async () => {
  const { out } = await explain('service.spec.targets --recursive')
  expect(out).toContain('  selector <object> required\n    matchLabels <map of string>')
  expect((await explain('service -R')).out).toContain('\n        valuesFiles <list of string>\n')
})

test.each([
  ['service.spec.rendr', 'service.spec has no field "rendr"; did you mean "render"?\nFields: source, sources, render,'],
  ['servce.spec', 'unknown kind "servce"; did you mean "service"?'],
  ['service.spec.namespace.x', 'service.spec.namespace has no field "x"\nIt has no fields'],
  ['service.constructor', 'service has no field "constructor"'],
])('CL17 what does not exist is told what is near: %s', async (path, text) => {
  const { code, err } = await explain(path)
  expect(code).toBe(2)
  expect(err).toContain(text)
})

test('CL8 --help of explain, and an unknown flag', async () => {
  expect((await explain('--help')).out).toStartWith('Examples:\n  skerry explain\n  skerry explain service.spec\n')
  expect((await explain('service --nope')).code).toBe(2)
})

const KINDS = ['repository', 'service', 'config', 'cluster']
/** Every path below a kind with what is said of it. */
async function meanings(path: string): Promise<Array<{ path: string; meaning: string }>> {
  const { out } = await explain(path)
  const fields = [...out.matchAll(/^ {2}(\S+) <[^\n]*>[^\n]*\n(?: {6}(\S[^\n]*)\n)?/gm)]
  const below = await Promise.all(fields.map(([, name = '']) => meanings(`${path}.${name}`)))
  return [...fields.map(([, name, meaning = '']) => ({ path: `${path}.${name}`, meaning })), ...below.flat()]
}

test.each(KINDS)('CL17 every field of a %s has a type, a default if there is one, and a meaning', async (kind) => {
  const found = await meanings(kind)
  expect(found.length).toBeGreaterThan(8)
  expect(found.filter(({ meaning }) => meaning === '').map(({ path }) => path)).toEqual([])
  for (const { path, meaning } of found) expect(meaning, path).toMatch(/^[A-Za-z].*[.]$/)
})
