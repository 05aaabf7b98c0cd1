// explain: what a field is, from the schemas; nobody is asked.
import { expect, test } from 'bun:test'
import { createTestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'

const admin = await createTestAdmin()
const explain = (argv: string) =>
  runTestCli(admin, ['explain', ...argv.split(' ')], {
    env: { SKERRY_SERVER: '', SKERRY_TOKEN: undefined },
    fetch: () => Promise.reject(new Error('a server was asked')),
  })

test('CL17 a kind: its fields with types', async () => {
  expect(await explain('service')).toEqual({
    code: 0,
    err: '',
    out: 'KIND:   Service (skerry.dev/v1)\n\nFIELDS:\n  apiVersion <skerry.dev/v1> required\n  kind <Service> required\n  metadata <object> required\n  spec <object> required\n',
  })
  for (const kind of ['svc', 'services', 'repository', 'config', 'cluster']) expect((await explain(kind)).code).toBe(0)
})

test.each([
  ['service.spec.sync.pruneWhen', 'FIELD:  spec.sync.pruneWhen <healthy | applied>, default "healthy"\n\nhealthy: prune once'],
  ['service.spec.sync', '\n  maxPrunePercent <integer>, default 50\n      More than this part'],
  ['service.spec.render.helm', '\n  valuesFiles <list of string>\n      Later ones win.'],
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
  expect((await explain('--help')).out).toStartWith('Examples:\n  skerry explain service.spec\n')
  expect((await explain('service --nope')).code).toBe(2)
})
