// The line beside an error: as its author wrote it, with the right column, and never one that may hold a secret.
import { describe, expect, test } from 'bun:test'
import { runPipeline } from '../../server/render/pipeline.ts'
import type { Renderer } from '../../server/render/renderer.ts'
import { createRenderers } from '../../server/render/renderers.ts'
import { problemText } from '../../shared/adapters/render-text.ts'
import { AppError, type Problem } from '../../shared/runtime/error.ts'
import { naming } from '../support/naming.ts'
import { memoryTree } from '../support/render-job.ts'

type Files = Record<string, string>

/** What is wrong, or warned of. */
async function told(sources: readonly Files[], helm?: Renderer): Promise<Problem[]> {
  const renderers = createRenderers()
  const opened = sources.map((files, index) => ({
    ...{ name: `s${index}`, label: `s${index}`, render: undefined, filesOnly: false },
    opened: { tree: memoryTree(files), root: 'app', version: 'c'.repeat(40) },
  }))
  const { result } = await runPipeline(
    {
      renderers: helm === undefined ? renderers : { ...renderers, helm },
      sandbox: { run: () => Promise.reject(new AppError('renderer_missing')), version: async () => 'tool 1.0.0' },
      once: (_, work) => work(),
      signal: new AbortController().signal,
    },
    {
      ...{ id: { project: 'default', service: 'shop' }, namespace: 'web', render: {}, sources: opened, cluster: null, configs: new Map() },
      settings: { config: { values: { color: 'dark-red' }, secrets: new Set() }, helmValues: [], patches: [] },
    },
  )
  if (result instanceof AppError) throw result
  return result.kind === 'failed' ? result.problems : result.warnings
}

const shown = async (files: Files) => (await told([files])).map(problemText).join('')

describe('RH4 file, line, column and the line itself', () => {
  test.each([
    ['a list that never ends', 'a: b\nc: [d\n', ['app/a.yaml:2:4: this [ is never closed\n    c: [d\n       ^\n'], ''],
    ['a syntax error in the middle', 'a:\n  b: c: d\n', ['app/a.yaml:2:', '      b: c: d\n'], '         ^'],
    ['a key that is there twice', 'a: 1\n"a": 2\n', ['app/a.yaml:2:2: the key "a"', '    "a": 2\n     ^\n'], ''],
    ['no object at all', '- a\n- b\n', ['app/a.yaml:1:1: expected an object', '    - a\n    ^\n'], ''],
    [
      'what is missing, at what should have it',
      '# x\nkind: Web\nmetadata:\n  name: a\n',
      ['app/a.yaml:2:1: apiVersion is missing\n    kind: Web\n    ^\n'],
      '',
    ],
    [
      'a missing name',
      'apiVersion: v1\nkind: Web\nmetadata:\n  labels: {}\n',
      ['app/a.yaml:3:1: Web has no metadata.name\n    metadata:\n    ^\n'],
      '',
    ],
    [
      'a name that is none',
      'apiVersion: v1\nkind: Web\nmetadata:\n  name: a%b\n',
      ['app/a.yaml:4:3: metadata.name "a%b"', '      name: a%b\n      ^\n'],
      '',
    ],
    [
      'a value of another type',
      'apiVersion: v1\nkind: Web\nmetadata:\n  name: a\n  labels:\n    b: 1\n',
      ['app/a.yaml:6:5: Web: metadata.labels.b: ', '        b: 1\n        ^\n'],
      '',
    ],
    ['one of a list', 'kind: List\nitems:\n  - kind: Web\n', ['app/a.yaml:3:5: apiVersion is missing\n      - kind: Web\n        ^\n'], ''],
    ['JSON', '{\n  "kind": "Web"\n}\n', ['app/a.yaml:1:1: apiVersion is missing\n    {\n    ^\n'], ''],
  ] as const)('%s', async (_, text, parts, caret) => {
    const output = await shown({ 'app/a.yaml': text })
    for (const part of [...parts, caret]) expect(output).toContain(part)
  })
  test('an object that is there twice', async () => {
    const map = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n'
    const problems = await told([{ 'app/a.yaml': map }, { 'app/b.yaml': `# second\n${map}` }])
    expect(problems).toEqual([
      { path: 's1/app/b.yaml:2:1', message: naming('ConfigMap web/a', 's0/app/a.yaml:1:1'), excerpt: 'apiVersion: v1' },
    ])
  })
  test('a warning', async () => {
    const files = { 'app/a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  yes: x\n' }
    expect(await told([files])).toMatchObject([{ path: 'app/a.yaml:5:3', excerpt: '  yes: x' }])
  })
  test('of a long line what is around the column, without a caret', async () => {
    const [problem] = await told([{ 'app/a.yaml': `{a: ${'x'.repeat(1_000)}, b: 1, b: 2}\n` }])
    expect(problem?.excerpt).toMatch(/^…x.*b: 1, b: 2\}$/)
    expect(problem?.excerpt?.length).toBeLessThanOrEqual(201)
    expect(problem === undefined ? '' : problemText(problem)).not.toContain('^')
  })
  test('under the indented line of a template the caret is at its column', async () => {
    expect(await shown({ 'app/a.yaml.liquid': 'a:\n  b: {{ config.colour }}\n' })).toContain(
      '      b: {{ config.colour }}\n            ^\n',
    )
  })
})

describe('RD7 what is no line of the source', () => {
  test('is not shown: what a template became', async () => {
    const [problem] = await told([{ 'app/a.yaml.liquid': 'kind: {{ config.color }}\n' }])
    expect(problem).toEqual({ path: 'app/a.yaml:1:1', message: 'apiVersion is missing' })
  })
  test('is not shown: what a program made under the name of a file that is there', async () => {
    const files = { 'app/Chart.yaml': 'name: c\n', 'app/x.yaml': 'kind: X\n' }
    const made = (text: string) => async () => ({
      ...{ kind: 'rendered' as const, warnings: [] },
      files: new Map([['app/x.yaml', new TextEncoder().encode(text)]]),
    })
    expect((await told([files], made('kind: Y\n')))[0]).not.toHaveProperty('excerpt')
    expect((await told([files], made('kind: X\n')))[0]).toHaveProperty('excerpt', 'kind: X')
  })
  test.each([
    ['a Secret', 'kind: Secret\napiVersion: v1\nmetadata: {name: a}\nstringData: {a: hunter2, a: b}\n'],
    ['a Secret in JSON', '{"kind" :"Secret", "stringData": {"a": "hunter2"}}'],
    ['a Secret by an anchor', 'x: &s Secret\nkind: *s\nstringData: {a: hunter2, a: b}\n'],
    ['a list of Secrets', 'kind: SecretList\nitems: [{data: {a: hunter2}}]\n'],
    ['one that will be a Secret', '{metadata: {name: a}, stringData: {a: hunter2}}\n'],
  ])('is not shown: a line of a file with %s', async (_, text) => {
    const problems = await told([{ 'app/a.yaml': text, 'app/b.yaml': 'kind: Web\n' }])
    expect(problems.length).toBeGreaterThan(1)
    expect(JSON.stringify(problems)).not.toContain('hunter2')
    expect(problems.some(({ path, excerpt }) => path.startsWith('app/b.yaml') && excerpt === 'kind: Web')).toBe(true)
  })
  test.each([
    ['a template of a Secret', { 'app/s.yaml.liquid': 'kind: Secret\nx: hunter2-{{ cluster.nope }}\n' }],
    ['a generator of Secrets', { 'app/s.yaml': 'secretGenerator:\n- literals:\n  - "hunter2\n' }],
    ['a line that says so', { 'app/s.yaml': 'adminPassword: "hunter2\n' }],
    ['a template of one', { 'app/s.yaml.liquid': 'x:\n  DB_PASSWD: hunter2-{{ nope }}\n' }],
    ['a line below one that says so', { 'app/s.yaml.liquid': 'tls.key: |\n  a\n\n  hunter2 {{ nope }}\n' }],
    ['an item below one that says so', { 'app/s.yaml.liquid': 'tokens:\n- a\n- b: c\n  d: hunter2 {{ nope }}\n' }],
    ['the value of such a name', { 'app/s.yaml.liquid': 'env:\n- name: API_KEY\n  value: hunter2 {{ nope }}\n' }],
    ['a URL with a password', { 'app/s.yaml.liquid': 'db: postgres://web:hunter2@{{ nope }}\n' }],
  ])('is not shown: %s', async (_, files) => {
    const problems = await told([files])
    expect(problems.length).toBeGreaterThan(0)
    expect(JSON.stringify(problems)).not.toContain('hunter2')
  })
  test('is not shown: what a renderer brought of a line that says so', async () => {
    const brought = (excerpt: string, line: number) => ({ path: `app/main.ts:${line}:1`, message: 'no', excerpt })
    const refused = async () => ({
      kind: 'failed' as const,
      problems: [brought('const apiKey = "hunter2"', 1), brought('const keyboard = 1', 2)],
    })
    expect(await told([{ 'app/Chart.yaml': 'name: c\n' }], refused)).toEqual([
      { path: 'app/main.ts:1:1', message: 'no' },
      brought('const keyboard = 1', 2),
    ])
  })
  test('is shown beside them: a line that says nothing of the kind', async () => {
    const text = 'password: x\nother: 1\nenv:\n- name: PORT\n  value: {{ nope }}\n'
    expect((await told([{ 'app/s.yaml.liquid': text }]))[0]).toHaveProperty('excerpt', '  value: {{ nope }}')
  })
  test('is not shown: one of a file that is refused', async () => {
    const refused = async () => ({
      kind: 'failed' as const,
      problems: [
        { path: '../x:1:1', message: 'no' },
        { path: 'gone.yaml:1', message: 'no' },
      ],
    })
    expect(await told([{ 'app/Chart.yaml': 'name: c\n' }], refused)).toEqual([
      { path: '../x:1:1', message: 'no' },
      { path: 'gone.yaml:1', message: 'no' },
    ])
  })
})
