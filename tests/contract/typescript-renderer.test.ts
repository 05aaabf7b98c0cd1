// TypeScript manifests by the real runner in the real sandbox.
import { expect, test } from 'bun:test'
import type { RendererResult } from '../../server/render/renderer.ts'
import { renderTypescript } from '../../server/render/typescript/typescript-renderer.ts'
import { naming } from '../support/naming.ts'
import { realSandbox } from '../support/real-sandbox.ts'
import { INPUTS, renderJob } from '../support/render-job.ts'

const sandbox = realSandbox()
/** Written as TypeScript wants it, of a file that ends with .ts. */
const LATER = ['./later', 'js'].join('.')
const render = async (texts: Record<string, string>, root = '') => {
  const { job, inputReads } = renderJob({ texts, root, sandbox })
  return { result: await renderTypescript(job), reads: inputReads() }
}
const objectsOf = (result: RendererResult): unknown[] => {
  if (result.kind === 'failed') throw new Error(JSON.stringify(result.problems, null, 1))
  return [...result.files.values()].map((bytes) => JSON.parse(new TextDecoder().decode(bytes)) as unknown)
}
const problemsOf = (result: RendererResult) => (result.kind === 'failed' ? result.problems : [])
const map = (name: string, more = '') => `{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: '${name}' }${more} }`

test.each([
  ['an object', `export default ${map('a')}`, ['a']],
  ['an array, with what is false or absent left out', `export default [${map('a')}, false, null, [${map('b')}]]`, ['a', 'b']],
  ['a function', `export default () => (${map('a')})`, ['a']],
  ['an async function', `export default async () => { await 1; return [${map('a')}] }`, ['a']],
  ['a promise', `export default Promise.resolve(${map('a')})`, ['a']],
  ['a function of its inputs', `export default ({ cluster }) => ({ ...${map('x')}, metadata: { name: cluster.name } })`, ['berlin']],
])('TS1 the entry exports %s', async (_, text, names) => {
  const { result } = await render({ 'main.ts': text })
  expect(objectsOf(result)).toEqual(names.map((name) => expect.objectContaining({ metadata: { name } })))
})

test('TS2 what was looked at of the inputs is recorded, and nothing else', async () => {
  const text = `export default ({ cluster, config }) => ({ ...${map('a')}, data: { region: cluster.labels.region, tag: config.image.tag } })`
  const { reads } = await render({ 'main.ts': text })
  expect(reads).toEqual([
    ['cluster', 'labels', 'region'],
    ['config', 'image', 'tag'],
  ])
  const whole = await render({
    'main.ts': `export default ({ cluster, service }) => ({ ...${map('a')}, data: { ...cluster.labels, x: 'y' in service } })`,
  })
  expect(whole.reads).toEqual([
    ['cluster', 'labels'],
    ['service', 'y'],
  ])
  expect((await render({ 'main.ts': `export default () => (${map('a')})` })).reads).toEqual([])
})

test('TS3 imports: relative ones of any kind, and packages of a node_modules folder of the tree', async () => {
  const { result } = await render(
    {
      'apps/web/main.ts': `import { label } from '../lib/names'\nimport data from './data.json'\nimport settings from './settings.yaml'\nimport { pad } from 'left'\nimport { readFileSync } from 'node:fs'
import { later } from '${LATER}'\nexport default () => ({ ...${map('a')}, data: { label, ...data, ...settings, pad: pad('x'), text: readFileSync(import.meta.dir + '/note.txt', 'utf8'), later } })`,
      'apps/lib/names.ts': `export const label: string = 'web'`,
      'apps/web/later.ts': `export const later = 'later'`,
      'apps/web/data.json': '{"json":"1"}',
      'apps/web/settings.yaml': 'yaml: "2"\n',
      'apps/web/note.txt': 'note',
      'node_modules/left/package.json': '{"name":"left","main":"index.js","dependencies":{"right":"1"}}',
      'node_modules/left/index.js': `const r = require('right'); exports.pad = (x) => r + x`,
      'node_modules/right/package.json': '{"name":"right","main":"main.js"}',
      'node_modules/right/main.js': `module.exports = '>'`,
    },
    'apps/web',
  )
  expect(objectsOf(result)).toEqual([
    expect.objectContaining({ data: { label: 'web', json: '1', yaml: '2', pad: '>x', text: 'note', later: 'later' } }),
  ])
})

test.each([
  ['a package that is not there', { 'main.ts': `\nimport z from 'zod'\nexport default z` }, 'main.ts:2:15', 'imports the package zod'],
  ['a file that is not there', { 'main.ts': `import { a } from './a'\nexport default a` }, 'main.ts:1:19', 'imports ./a'],
  ['a way out of the source', { 'main.ts': `import { a } from '../../../etc/passwd'\nexport default a` }, 'main.ts:1:19', 'outside'],
  ['an address', { 'main.ts': `import a from 'https://example.com/a.ts'\nexport default a` }, 'main.ts:1:15', 'files of the source'],
  ['no such entry', { 'other.ts': '' }, 'main.ts', 'file not found'],
])('TS3 %s is an error with its place', async (_, texts, path, message) => {
  const problems = problemsOf((await render(texts as unknown as Record<string, string>)).result)
  expect(problems).toEqual([expect.objectContaining({ path, message: expect.stringContaining(message) })])
})

test('TS8 YAML that is imported means what kubectl takes it for; as text it is its text', async () => {
  const { result } = await render({
    'main.ts': `import one from './one.yaml'\nimport many from './many.yml'\nimport raw from './raw.yaml' with { type: 'text' }\nexport default { ...${map('a')}, data: { one, many, raw } }`,
    'one.yaml': 'mode: 0644\nwanted: yes\ntext: "0644"\nagain: &a [1]\nmore: *a\n',
    'many.yml': '# nothing\n---\na: 1\n---\nb: off\n',
    'raw.yaml': 'mode: 0644\n',
  })
  const [{ data }] = objectsOf(result) as [{ data: unknown }]
  expect(data).toEqual({
    one: { mode: 420, wanted: true, text: '0644', again: [1], more: [1] },
    many: [{ a: 1 }, { b: false }],
    raw: 'mode: 0644\n',
  })
})

test('TS8 YAML that kubectl does not accept is an error with its place', async () => {
  const { result } = await render({ 'main.ts': `import a from './a.yaml'\nexport default a`, 'a.yaml': 'a: 1\na: 2\n' })
  expect(problemsOf(result)).toMatchObject([{ path: 'a.yaml:2:1' }])
  const long = `a: &a ${'x'.repeat(100_000)}\nb: [${'*a, '.repeat(200)}]\n`
  const bomb = await render({ 'main.ts': `import a from './a.yaml'\nexport default a`, 'a.yaml': long })
  expect(problemsOf(bomb.result)).toMatchObject([{ path: 'a.yaml', message: expect.stringContaining('with aliases expanded') }])
})

test('TS4 syntax errors of all files are told at once', async () => {
  const { result } = await render({
    'main.ts': `import './a'\nimport './b'\nexport default []`,
    'a.ts': 'const a = ;',
    'b.ts': '\nlet b = = 1',
  })
  expect(problemsOf(result).map(({ path }) => path)).toEqual(['a.ts:1:11', 'b.ts:2:9'])
})

test('TS4 what is thrown is told with the place in the source', async () => {
  const { result } = await render(
    {
      'svc/main.ts': `import { deep } from './deep'\n\nexport default () => deep(1)`,
      'svc/deep.ts': `type A = number\nexport function deep(a: A) {\n  throw new RangeError('no ' + a)\n}`,
    },
    'svc',
  )
  expect(problemsOf(result)).toEqual([
    { path: expect.stringMatching(/^svc\/deep\.ts:3:\d+$/), message: 'RangeError: no 1', excerpt: "  throw new RangeError('no ' + a)" },
  ])
})

test.each([
  ['a BigInt', `{ ...${map('a')}, data: { n: [1, 2n] } }`, 'default.data.n[1] is a BigInt'],
  ['a cycle', `(() => { const a = ${map('a')}; a.self = { a }; return a })()`, 'default.self.a is a circular'],
  ['NaN', `{ ...${map('a')}, spec: { replicas: 0 / 0 } }`, 'default.spec.replicas is NaN'],
  ['a Map', `{ ...${map('a')}, data: new Map() }`, 'default.data is a Map'],
  ['a promise inside', `{ ...${map('a')}, data: Promise.resolve() }`, 'default.data is a promise'],
  ['a text', `'kind: x'`, 'default is a string'],
])('TS5 %s is an error that names its place', async (_, text, message) => {
  const { result } = await render({ 'main.ts': `export default ${text}` })
  expect(problemsOf(result)).toEqual([expect.objectContaining({ path: 'main.ts', message: expect.stringContaining(message) })])
})

test('TS5 functions, undefined and symbols are dropped as JSON drops them', async () => {
  const { result } = await render({
    'main.ts': `export default { ...${map('a')}, f() {}, u: undefined, s: Symbol(), l: [undefined, () => 1], d: new Date(0) }`,
  })
  expect(objectsOf(result)).toEqual([
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, l: [null, null], d: '1970-01-01T00:00:00.000Z' },
  ])
})

test('TS6 what says something else each time is warned about', async () => {
  const { result } = await render({ 'main.ts': `export default {\n  ...${map('a')}, data: { t: String(Date.now()) } } // Math.random()` })
  expect(result.kind === 'rendered' && result.warnings.map(({ path }) => path)).toEqual([expect.stringMatching(/^main\.ts:2:\d+$/)])
})

test('TS7 what it prints confuses nobody, and a server that it leaves behind is not waited for', async () => {
  const { result } = await render({
    'main.ts': `import { writeSync } from 'node:fs'\nconsole.log('{"objects":[]}')\nprocess.stdout.write('x\\n')\nwriteSync(1, '\\n[]\\n')\nsetInterval(() => {}, 1000)\nexport default ${map('a')}`,
  })
  expect(objectsOf(result)).toHaveLength(1)
})

test('TS7 a program that ends before it said its objects is an error, with what it said', async () => {
  const { result, reads } = await render({ 'main.ts': `console.error('give up')\nprocess.exit(3)\nexport default 1` })
  expect(problemsOf(result)).toEqual([{ path: 'main.ts', message: naming('code 3', '\ngive up') }])
  expect(reads).toEqual([[]])
})

test('TS1 equal inputs give equal bytes, whatever the order in which they were written', async () => {
  const texts = { 'main.ts': `export default ({ config }) => ({ ...${map('a')}, data: { ...config } })` }
  const other = { ...INPUTS, config: { image: { name: 'web', tag: '1.2.3' }, replicas: 3 } }
  const [one, two] = await Promise.all([INPUTS, other].map((inputs) => renderTypescript(renderJob({ texts, sandbox, inputs }).job)))
  // A function is equal to itself only.
  const comparable = (result: RendererResult | undefined) => ({ ...result, fileOf: null })
  expect(comparable(one)).toEqual(comparable(two))
})

test.each([
  ['fetch', "await fetch('http://10.0.0.1/x')"],
  ['fetch of a name', "await fetch('https://api.example.com/x')"],
  ['a socket', "const net = await import('node:net')\n  await new Promise((_, no) => net.connect(80, '10.0.0.1').on('error', no))"],
  ['a name of a host', "const dns = await import('node:dns/promises')\n  await dns.lookup('api.example.com')"],
])('TS9 what wants a network hears that there is none: %s', async (_, text) => {
  const { result } = await render({ 'main.ts': `export default async () => {\n  ${text}\n  return ${map('a')}\n}` })
  expect(problemsOf(result).map(({ message }) => message)).toEqual([naming('no network')])
  const other = await render({ 'main.ts': "export default () => { throw new Error('no such thing') }" })
  expect(problemsOf(other.result).map(({ message }) => message)).toEqual(['no such thing'])
})
