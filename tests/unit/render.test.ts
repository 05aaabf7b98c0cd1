import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { isManifestPath } from '../../server/render/manifest-path.ts'
import { RENDER_OBJECTS_MAX, type RenderResult } from '../../server/render/object-rows.ts'
import { setDigest } from '../../shared/kube/canonical.ts'
import { naming } from '../support/naming.ts'
import { renderFiles } from '../support/render-files.ts'

const GOLDEN = join(import.meta.dir, 'render-golden')
const bytes = (text: string) => new TextEncoder().encode(text)
const render = (files: Record<string, string> | Map<string, Uint8Array>, namespace: string | undefined = 'web'): RenderResult =>
  renderFiles({
    project: 'default',
    service: 'shop',
    path: 'shop',
    commit: '0123456789abcdef',
    namespace,
    files: files instanceof Map ? files : new Map(Object.entries(files).map(([path, text]) => [path, bytes(text)])),
  })
const configMap = (name: string, extra = '') => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\n${extra}`
const problems = (result: RenderResult) =>
  result.kind === 'failed' ? result.problems.map(({ path, message }) => `${path}: ${message}`) : []

function folder(dir: string): Map<string, Uint8Array> {
  const names = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return new Map(names.map((entry) => join(entry.parentPath, entry.name)).map((path) => [path.slice(dir.length + 1), readFileSync(path)]))
}

/** `out.json`, or `errors.txt`, beside `in/`; SKERRY_UPDATE_GOLDEN=1 writes them, for a person to read in the diff. */
describe('golden folders', () => {
  for (const name of readdirSync(GOLDEN)) {
    test(`RN1 ${name}`, () => {
      const result = render(folder(join(GOLDEN, name, 'in')))
      const [file, text] =
        result.kind === 'failed'
          ? ['errors.txt', `${[result.code, ...problems(result)].join('\n')}\n`]
          : ['out.json', `${JSON.stringify(Object.fromEntries([...result.objects].map(([id, doc]) => [id, JSON.parse(doc)])), null, 2)}\n`]
      const path = join(GOLDEN, name, file)
      if (process.env['SKERRY_UPDATE_GOLDEN'] === '1') writeFileSync(path, text)
      expect(text).toBe(readFileSync(path, 'utf8'))
    })
  }
})

describe('what is read', () => {
  test.each([
    ['a.yaml', true],
    ['deep/a.YML', true],
    ['a.json', true],
    ['README.md', false],
    ['.a.yaml', false],
    ['.github/ci.yaml', false],
    ['deep/.hidden/', false],
    ['deep/', true],
    ['Chart.yaml', true],
    ['Kustomization', true],
    ['Kustomization.liquid', true],
    ['partial.liquid', false],
    ['yaml', false],
  ])('RN2 %s: %p', (path, expected) => expect(isManifestPath(path)).toBe(expected))

  test('RN3 a path without manifests is an error that names path and commit', () => {
    for (const files of [{}, { 'README.md': 'x' }, { 'a.yaml': '# only a comment\n---\n' }])
      expect(render(files)).toEqual({
        kind: 'failed',
        code: 'no_manifests',
        message: naming('shop', 'commit 0123456789ab'),
        problems: [],
      })
  })
})

test('RN7 members of metadata that a chart left empty are as if left out', () => {
  const empty = render({
    'a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: web\n  labels:\n  annotations: null\ndata: {}\n',
  })
  const without = render({ 'a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a, namespace: web }\ndata: {}\n' })
  expect(empty).toEqual(without)
  expect(empty.kind).toBe('rendered')
})

describe('namespaces', () => {
  test('RN4 a namespaced object without a namespace anywhere is an error with the remedy', () => {
    const result = renderFiles({
      project: 'default',
      service: 'shop',
      path: '.',
      commit: 'abc',
      namespace: undefined,
      files: new Map([['a.yaml', bytes(`\n\n${configMap('a')}`)]]),
    })
    expect(problems(result)).toEqual([naming('a.yaml:3:1:', 'ConfigMap a', 'metadata.namespace', 'spec.namespace')])
  })
  test('RN4 without a namespace of the service, cluster-scoped and unknown kinds stay as they are', () => {
    const text =
      'apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: x.example.com/v1\nkind: Thing\nmetadata: {name: b}\n'
    const result = renderFiles({
      project: 'default',
      service: 'shop',
      path: '.',
      commit: 'abc',
      namespace: undefined,
      files: new Map([['a.yaml', bytes(text)]]),
    })
    expect(result.kind === 'rendered' ? [...result.objects.keys()] : problems(result)).toEqual([
      'object/default/shop//Namespace//a',
      'object/default/shop/x.example.com/Thing//b',
    ])
  })
})

describe('limits', () => {
  test('RN5 one manifest of more than 3 MiB', () => {
    const result = render({ 'a.yaml': configMap('big', `data: {a: "${'x'.repeat(3 * 1024 * 1024)}"}\n`) })
    expect(problems(result)).toEqual([naming('a.yaml:1:1:', 'ConfigMap web/big', '3 MiB')])
  })
  test('RN5 one object more than a service may have', () => {
    const items = (count: number) =>
      JSON.stringify({
        kind: 'List',
        items: Array.from({ length: count }, (_, n) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `c${n}` } })),
      })
    expect(render({ 'a.json': items(RENDER_OBJECTS_MAX) }).kind).toBe('rendered')
    expect(problems(render({ 'a.json': items(RENDER_OBJECTS_MAX + 1) }))).toEqual([naming('shop:', 10_001, 10_000)])
  })
  test('RN5 bytes that are no text', () => {
    expect(problems(render(new Map([['a.yaml', new Uint8Array([0xff, 0xfe, 0x00])]])))).toEqual(['a.yaml: is not UTF-8 text'])
  })
})

test('RN6 the order of files changes nothing', () => {
  const names = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,6}$/), { minLength: 1, maxLength: 8 })
  fc.assert(
    fc.property(
      names.chain((list) => fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length }), fc.boolean())),
      ([list, shuffled, broken]) => {
        const file = (name: string): [string, Uint8Array] => [
          `${name}.yaml`,
          bytes(broken ? `${configMap('same')}x: .nan\n` : configMap(name)),
        ]
        const [one, other] = [render(new Map(list.map(file))), render(new Map(shuffled.map(file)))]
        expect(other).toEqual(one)
        if (one.kind === 'rendered' && other.kind === 'rendered') {
          expect([...other.objects]).toEqual([...one.objects])
          expect(one.digest).toBe(setDigest(one.objects))
        }
      },
    ),
    { numRuns: 200 },
  )
})
