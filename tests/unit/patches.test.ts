// Which objects a patch is of, what is wrong with patches, and the patterns of their targets. What they do to an object
// is held against kubectl in tests/contract.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { specProblems } from '../../server/http/resource-checks.ts'
import { applyPatches, checkPatchesHere, patchProblems } from '../../server/render/patch/patches.ts'
import { compilePattern } from '../../server/render/patch/safe-pattern.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import type { Patch } from '../../shared/model/render.ts'
import { applicableSchema } from '../../shared/model/resources.ts'
import { naming } from '../support/naming.ts'

const object = (kind: string, name: string, more: Record<string, unknown> = {}, apiVersion = kind === 'Deployment' ? 'apps/v1' : 'v1') => ({
  object: { apiVersion, kind, metadata: { name, ...more } } as K8sObject,
  place: `${name}.yaml:1`,
})
const FOUND = [
  object('Deployment', 'web', { labels: { app: 'web', tier: 'front' }, annotations: { note: 'x' } }),
  object('Deployment', 'worker', { namespace: 'jobs', labels: { app: 'worker' } }),
  object('ConfigMap', 'web'),
  object('Thing', 'web', {}, 'example.com/v1beta1'),
]
const MARK = { metadata: { labels: { met: 'yes' } } }
const met = (target: Patch['target'], found = FOUND) => {
  const result = applyPatches(found, [{ target, patch: MARK }], 'spec.render.patches', 'shop')
  if (result.kind === 'failed') return result.problems.map(({ path, message }) => `${path}: ${message}`)
  return result.found.flatMap(({ object: { kind, metadata } }) => (metadata.labels?.['met'] === 'yes' ? [`${kind} ${metadata.name}`] : []))
}
const NONE = [naming('spec.render.patches[0]: ', 'no object')]

test.each<[string, Patch['target'], string[]]>([
  ['a kind', { kind: 'Deployment' }, ['Deployment web', 'Deployment worker']],
  ['a name', { name: 'web' }, ['Deployment web', 'ConfigMap web', 'Thing web']],
  ['a pattern is of the whole name', { name: 'w' }, NONE],
  ['a pattern', { name: 'w.*' }, ['Deployment web', 'Deployment worker', 'ConfigMap web', 'Thing web']],
  ['anchors are taken', { name: '^wo.*$' }, ['Deployment worker']],
  ['a group', { group: 'example.com' }, ['Thing web']],
  ['an empty text is any', { group: '', kind: 'ConfigMap' }, ['ConfigMap web']],
  ['a version', { version: 'v1beta.' }, ['Thing web']],
  ['two of them', { kind: 'Deployment|Thing', name: 'web' }, ['Deployment web', 'Thing web']],
  ['the service’s namespace for those without one', { kind: 'Deployment', namespace: 'shop' }, ['Deployment web']],
  ['a namespace', { namespace: 'jo.s' }, ['Deployment worker']],
  ['labels', { labelSelector: 'app=web,tier' }, ['Deployment web']],
  ['labels it shall not have', { kind: 'Deployment', labelSelector: 'app notin (web)' }, ['Deployment worker']],
  ['annotations', { annotationSelector: 'note=x' }, ['Deployment web']],
  ['nothing', {}, ['Deployment web', 'Deployment worker', 'ConfigMap web', 'Thing web']],
  ['none', { kind: 'Secret' }, NONE],
])('PT4 a target of %s', (_, target, expected) => expect(met(target)).toEqual(expected))

describe('PT5 what is wrong is told by the path of the patch', () => {
  const TARGET = { kind: 'ConfigMap' }
  test.each<[string, Patch, RegExp]>([
    ['a pattern', { target: { name: '(' }, patch: MARK }, /^target\.name: .*"\)"/],
    ['a selector', { target: { labelSelector: 'a=b=c' }, patch: MARK }, /^target\.labelSelector: expected key=value/],
    ['a JSON patch without a target', { patch: [{ op: 'remove', path: '/data' }] }, /JSON patch .*target/],
    ['a patch of nobody', { patch: MARK }, /target, .*apiVersion, kind and metadata\.name/],
    ['a text that is no YAML', { target: TARGET, patch: 'a: b: c' }, /^line 1: /],
    ['an empty text', { target: TARGET, patch: '# nothing\n' }, /no patch/],
    ['a text that is a text', { target: TARGET, patch: 'hello' }, /list of operations/],
    ['an operation that is none', { target: TARGET, patch: '[{op: jump, path: /a}]' }, /^\[0\]\.op: expected "add"/],
    ['add without a value', { target: TARGET, patch: [{ op: 'add', path: '/a' }] }, /^\[0\] add .*value/],
    ['move without from', { target: TARGET, patch: [{ op: 'move', path: '/a' }] }, /^\[0\] move .*from/],
    ['a prototype', { target: TARGET, patch: [{ op: 'add', path: '/metadata/__proto__/x', value: 1 }] }, /__proto__/],
    ['a prototype in a text', { target: TARGET, patch: 'metadata: {__proto__: {x: 1}}' }, /__proto__/],
  ])('%s, also before there is an object', (_, patch, message) => {
    const fine: Patch = { target: TARGET, patch: MARK }
    expect(patchProblems([fine, patch], 'spec.render.patches')).toEqual([
      { path: 'spec.render.patches[1]', message: expect.stringMatching(message) },
    ])
    expect(applyPatches(FOUND, [fine, patch], 'spec.render.patches')).toMatchObject({
      kind: 'failed',
      problems: [{ path: 'spec.render.patches[1]', message: expect.stringMatching(message) }],
    })
  })

  test.each<[string, Patch['patch'], RegExp]>([
    ['a pointer to nothing', [{ op: 'remove', path: '/data/x' }], /^ConfigMap web: \[0\] remove \/data\/x: .*\/data/],
    ['a test that fails', [{ op: 'test', path: '/kind', value: 'x' }], /^ConfigMap web: \[0\] test \/kind: /],
    ['no pointer', [{ op: 'add', path: 'data', value: {} }], /pointer/],
    ['a bad escape', [{ op: 'add', path: '/da~2ta', value: {} }], /~0/],
    ['the whole object', [{ op: 'remove', path: '' }], /cannot be removed/],
    ['into itself', [{ op: 'move', from: '/metadata', path: '/metadata/x' }], /into itself/],
    ['no object is left', [{ op: 'remove', path: '/kind' }], /not an object/],
    ['a name with a slash', [{ op: 'replace', path: '/metadata/name', value: 'a/b' }], /not an object: .*metadata\.name/],
    ['no name', [{ op: 'remove', path: '/metadata/name' }], /not an object: .*metadata\.name/],
    [
      'a name made anew each time',
      [{ op: 'move', from: '/metadata/name', path: '/metadata/generateName' }],
      /not an object: .*generateName/,
    ],
    ['an empty name', [{ op: 'replace', path: '/metadata/name', value: '' }], /not an object: .*metadata\.name/],
    ['a namespace that is none', [{ op: 'add', path: '/metadata/namespace', value: 'a/b' }], /not an object: .*metadata\.namespace/],
    ['a kind that', [{ op: 'replace', path: '/kind', value: 'a/b' }], /not an object: .*kind/],
    ['an apiVersion that leads elsewhere', [{ op: 'replace', path: '/apiVersion', value: '../../v1' }], /not an object: .*apiVersion/],
    ['labels that are no texts', { metadata: { labels: { a: 1 } } }, /not an object/],
  ])('%s', (_, patch, message) => {
    const result = applyPatches(FOUND, [{ target: TARGET, patch }], 'spec.render.patches')
    expect(result).toEqual({ kind: 'failed', problems: [{ path: 'spec.render.patches[0]', message: expect.stringMatching(message) }] })
  })

  test('all of them at once, and no value of an object', () => {
    const secret = [object('Secret', 's', { annotations: { password: 'hunter2' } })]
    const bad: Patch[] = [
      { target: { kind: 'None' }, patch: MARK },
      { target: { kind: 'Secret' }, patch: [{ op: 'test', path: '/metadata/annotations/password', value: 'guess' }] },
      { target: { kind: 'Secret' }, patch: { metadata: { annotations: ['hunter3'] } } },
    ]
    const result = applyPatches(secret, bad, 'p')
    expect(result.kind === 'failed' && result.problems.map(({ path }) => path)).toEqual(['p[0]', 'p[1]', 'p[2]'])
    expect(JSON.stringify(result)).not.toMatch(/hunter|guess/)
  })
})

test('PT6 without a target a strategic patch is of the object that it names; with one, its name is none', () => {
  const named = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'web', labels: { met: 'yes' } } }
  const run = (patch: Patch) => {
    const result = applyPatches(FOUND, [patch], 'p', 'shop')
    return result.kind === 'failed' ? result.problems : result.found.filter(({ object: { metadata } }) => metadata.labels?.['met'] === 'yes').map(({ object: { kind, metadata } }) => `${kind} ${metadata.name}`) // biome-ignore format: short
  }
  expect(run({ patch: named })).toEqual(['ConfigMap web'])
  expect(run({ patch: { ...named, metadata: { ...named.metadata, namespace: 'shop' } } })).toEqual(['ConfigMap web'])
  expect(run({ patch: { ...named, metadata: { ...named.metadata, namespace: 'other' } } })).toMatchObject([
    { message: naming('no object') },
  ])
  expect(run({ target: { kind: 'Deployment' }, patch: named })).toEqual(['Deployment web', 'Deployment worker'])
})

test('PT6 a text is YAML: several documents are several patches, each of which has to meet something', () => {
  const text = (name: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}, labels: {met: "yes"}}\n`
  const both = `${text('web')}---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: worker, annotations: {a: b}}\n`
  const done = applyPatches(FOUND, [{ patch: both }], 'p')
  expect(
    done.kind === 'patched' && done.found.map(({ object: { metadata } }) => [metadata.labels?.['met'], metadata.annotations?.['a']]),
  ).toEqual([
    [undefined, undefined],
    [undefined, 'b'],
    ['yes', undefined],
    [undefined, undefined],
  ])
  expect(applyPatches(FOUND, [{ patch: `${text('web')}---\n${text('none')}` }], 'p')).toMatchObject({
    kind: 'failed',
    problems: [{ path: 'p[0]' }],
  })
})

test('PT7 patches are in order, on what the ones before left; what was given stays as it is; $patch: delete takes the object away', () => {
  const before = canonicalJson(FOUND)
  const target = { kind: 'ConfigMap' }
  const data = (value: unknown): Patch => ({ target, patch: [{ op: 'add', path: '/data', value: value as string }] })
  const result = applyPatches(
    FOUND,
    [data({ a: '1' }), { target, patch: { data: { b: '2' } } }, { target: { kind: 'Thing' }, patch: { $patch: 'delete' } }],
    'p',
  )
  expect(result.kind === 'patched' && result.found.map(({ object, place }) => [object['data'], place])).toEqual([
    [undefined, 'web.yaml:1'],
    [undefined, 'worker.yaml:1'],
    [{ a: '1', b: '2' }, 'web.yaml:1'],
  ])
  expect(canonicalJson(FOUND)).toBe(before)
})

test('PT3 a kind that is not built in is merged as JSON: lists are replaced, and directives are refused', () => {
  const things = [
    { object: { apiVersion: 'example.com/v1', kind: 'Thing', metadata: { name: 't' }, spec: { list: [{ name: 'a' }] } } as K8sObject },
  ]
  const run = (patch: Patch['patch']) => applyPatches(things, [{ target: { kind: 'Thing' }, patch }], 'p')
  expect(run({ spec: { list: [{ name: 'b' }] } })).toMatchObject({ found: [{ object: { spec: { list: [{ name: 'b' }] } } }] })
  expect(run({ spec: { list: { $patch: 'delete' } } })).toMatchObject({
    problems: [{ message: naming('built-in kinds') }],
  })
})

test('PT8 what copies add is bounded: doubling thirty times fails before the memory does', () => {
  const copies = Array.from({ length: 30 }, (_, n) => ({
    op: 'copy' as const,
    from: '/metadata/annotations',
    path: `/metadata/annotations/x${n}`,
  }))
  const result = applyPatches([object('ConfigMap', 'a', { annotations: { a: 'x'.repeat(100) } })], [{ target: {}, patch: copies }], 'p')
  expect(result).toMatchObject({ kind: 'failed', problems: [{ message: naming('1048576 characters') }] })
})

describe('PT9 patterns of targets', () => {
  const PATTERNS = ['a', 'a*', 'a+b?', '(a|b)*c', '[a-c]{2,3}', '[^a]b', 'a.c', '(?:ab)+|c', '\\d+-\\w', 'a{2}', 'a{1,}b', '[]a]+', '[a-]', '\\.a', '(a|ab)(c|bcd)', '', 'a||b', '((a)b)*', '[\\d.]+', 'a*?b'] // biome-ignore format: short
  test.each(PATTERNS)('PT9 %s matches what a regular expression matches', (pattern) => {
    const [own, known] = [compilePattern(pattern), new RegExp(`^(?:${pattern.replace('[]a]', '[\\]a]')})$`, 'u'.replace('u', ''))]
    const texts = fc.string({ unit: fc.constantFrom('a', 'b', 'c', 'd', '1', '-', '.', ']'), maxLength: 6 })
    fc.assert(
      fc.property(texts, (text) => own(text) === known.test(text)),
      { numRuns: 500 },
    )
  })

  test.each(['(a+)+b', '(a*)*b', '(a|a)*b', '(.*)*x', 'a?'.repeat(60) + 'a'.repeat(60)])(
    'PT9 %s costs what the text is long',
    (pattern) => {
      const startedNs = Bun.nanoseconds()
      expect(compilePattern(pattern)('a'.repeat(253))).toBe(false)
      expect((Bun.nanoseconds() - startedNs) / 1e6).toBeLessThan(1_000)
    },
  )

  test('PT9 a pattern that spells out to 5,000 characters is too long', () => {
    expect(compilePattern('(a{100}){49}')('a'.repeat(4_900))).toBe(true)
    expect(() => compilePattern('(a{100}){50}')).toThrow('repetitions')
  })

  test.each([
    '(',
    ')',
    'a)',
    '[a',
    '*a',
    'a**',
    '(?=a)',
    '(?i)a',
    '\\b',
    '\\1',
    'a{3,2}',
    'a{999}',
    'a{',
    '[b-a]',
    '[[:alpha:]]',
    'a^b',
    'a$b',
    '\\',
    '((a{200}){200}){200}',
    `${'('.repeat(21)}a${')'.repeat(21)}`,
    `${'a'.repeat(253)}.`,
  ])(
    // biome-ignore format: short
    'PT9 %s is refused, not guessed at',
    (pattern) => expect(() => compilePattern(pattern)).toThrow(),
  )
})

test('PT5 a service and a cluster whose patches cannot be read are refused when they are written', async () => {
  const bad: Patch = { target: { name: '(' }, patch: MARK }
  const paths = async (resource: unknown) =>
    (await specProblems(applicableSchema.parse(resource), checkPatchesHere)).map(({ path }) => path)
  const head = { apiVersion: 'skerry.dev/v1', metadata: { name: 'a' } }
  const targets = { selector: {} }
  const overrides = [{ selector: {}, patches: [bad] }]
  const sources = [
    { repository: 'r', path: 'a' },
    { repository: 'r', path: 'b', render: { patches: [bad] } },
  ]
  expect(await paths({ ...head, kind: 'Service', spec: { sources, targets, overrides, render: { patches: [bad] } } })).toEqual([
    'spec.render.patches[0]',
    'spec.sources[1].render.patches[0]',
    'spec.overrides[0].patches[0]',
  ])
  expect(await paths({ ...head, kind: 'Cluster', spec: { overrides: [{ service: 'web', patches: [bad] }] } })).toEqual([
    'spec.overrides[0].patches[0]',
  ])
})

test('PT8 a list of two hundred thousand items is merged in the time of a few looks at each', () => {
  const items = (count: number, from: number) => Array.from({ length: count }, (_, n) => ({ name: `v${n + from}`, value: 'x' }))
  const merged = (count: number): number => {
    const containers = [{ name: 'a', env: items(count, 0) }]
    const object: K8sObject = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: { containers } }
    const patch = { spec: { containers: [{ name: 'a', env: items(count, count / 2) }] } }
    const startedNs = Bun.nanoseconds()
    expect(applyPatches([{ object }], [{ target: {}, patch }], 'p').kind).toBe('patched')
    return Bun.nanoseconds() - startedNs
  }
  // A second here; with a look from each at each, many minutes.
  expect(merged(200_000) / 1e9).toBeLessThan(30)
}, 60_000)
