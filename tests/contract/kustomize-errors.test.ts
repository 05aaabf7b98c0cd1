// What is wrong with a kustomization, as its author reads it: by the real kustomize in the sandbox. And what a service
// adds, against `kustomize edit`.
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Sandbox, SandboxRun } from '../../server/render/sandbox.ts'
import type { SourceTree } from '../../server/sources/source.ts'
import type { RenderSpec } from '../../shared/model/render.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { filesOfFolder, writeFiles } from '../support/helm-kit.ts'
import { bareBuild, KUSTOMIZE, kustomized, objectsOf, problemLines, renderedObjects } from '../support/kustomize-kit.ts'
import { naming } from '../support/naming.ts'
import { realSandbox } from '../support/real-sandbox.ts'
import { tempDir } from '../support/temp-dir.ts'

const sandbox = realSandbox()
const CM = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n'
const FUNCTION = '{name: f, annotations: {config.kubernetes.io/function: "exec: {path: ./x}"}}'

interface Case {
  name: string
  files: Record<string, string>
  /** Of each problem its place, and words of its message. */
  problems: Array<[place: string, ...words: string[]]>
}

const CASES: readonly Case[] = [
  {
    name: 'LQ1 a file and a template that becomes it, the kustomization too',
    files: {
      'b/kustomization.yaml': 'resources: [cm.yaml]\n',
      'b/kustomization.yaml.liquid': 'resources: [cm.yaml]\nnamePrefix: prod-\n',
      'b/cm.yaml': CM,
      'b/cm.yaml.liquid': CM,
    },
    problems: [
      ['b/kustomization.yaml.liquid', 'b/kustomization.yaml'],
      ['b/cm.yaml.liquid', 'b/cm.yaml'],
    ],
  },
  {
    name: 'KU3 what is elsewhere is refused, without its secrets, with all that is missing',
    files: {
      'b/kustomization.yaml':
        'resources:\n- cm.yaml\n- missing.yaml\n- ../other\n- github.com/x/y//z?ref=v1\n- https://u:hunter2@h/x?token=hunter2\npatches:\n- path: p.yaml\nconfigMapGenerator:\n- name: g\n  files: [nix.conf]\n  envs:\n  - no.env\n',
      'b/cm.yaml': CM,
    },
    problems: [
      ['b/kustomization.yaml:3', 'missing.yaml'],
      ['b/kustomization.yaml:4', '../other'],
      ['b/kustomization.yaml:5', 'github.com/x/y//z', 'copy'],
      ['b/kustomization.yaml:6', 'https://h/x', 'copy'],
      ['b/kustomization.yaml:8', 'patches[].path', 'p.yaml'],
      ['b/kustomization.yaml:11', 'nix.conf'],
      ['b/kustomization.yaml:13', 'no.env'],
    ],
  },
  {
    name: 'KU3 an address that looks like inline YAML, below a folder of plugins, and fields in other capitals',
    files: {
      'b/kustomization.yaml':
        'Resources: [https://h/a]\nresources: [cm.yaml]\npatchesStrategicMerge:\n- https://h/b?{\ngenerators:\n- "https://h/c:"\n- ../g\npatches:\n- Path: https://h/d\nreplacements:\n- path: r.yaml\nopenapi: {patH: https://h/e}\n',
      ...{ 'b/cm.yaml': CM, 'b/r.yaml': 'source: {}\n' },
      'g/kustomization.yaml': 'resources: [g.yaml]\n',
      'g/g.yaml': 'apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\nFiles: [x=https://h/f]\n',
    },
    problems: [
      ['b/kustomization.yaml:1', 'field Resources', 'write resources'],
      ['b/kustomization.yaml:9', 'field Path', 'write path'],
      ['b/kustomization.yaml:12', 'field patH', 'write path'],
      ['b/kustomization.yaml:6', 'https://h/c', 'copy'],
      ['b/kustomization.yaml:4', 'https://h/b', 'copy'],
      ['g/g.yaml:1', 'https://h/f', 'copy'],
    ],
  },
  {
    name: 'KU8 a JSON patch without a target is told without what it would write',
    files: {
      'b/kustomization.yaml': 'resources: [cm.yaml]\npatches:\n- patch: |-\n    - op: add\n      path: /data\n      value: hunter2\n',
      'b/cm.yaml': CM,
    },
    problems: [['b/kustomization.yaml', 'must specify a target for JSON patch']],
  },
  {
    name: 'KU8 two generators of one name are told in the same words each time',
    files: { 'b/kustomization.yaml': 'secretGenerator:\n- {name: s, literals: [a=hunter2]}\n- {name: s, literals: [b=hunter2]}\n' },
    problems: [['b/kustomization.yaml', 'merging from a generator: id', 'behavior must be merge or replace']],
  },
  {
    name: 'KU8 a patch of nothing names the patch',
    files: {
      'b/kustomization.yaml': 'resources: [cm.yaml]\npatches: [{path: p.yaml}]\n',
      'b/cm.yaml': CM,
      'b/p.yaml': CM.replace('a}', 'zz}'),
    },
    problems: [['b/p.yaml:1:1', 'ConfigMap zz']],
  },
  {
    name: 'KU8 all files that cannot be read at once',
    files: {
      'b/kustomization.yaml': 'resources: [cm.yaml, d.yaml, e.yaml]\n',
      ...{ 'b/cm.yaml': 'a: b: c\n', 'b/d.yaml': 'x: [\n', 'b/e.yaml': 'apiVersion: v1\nmetadata: {name: zz}\n' },
    },
    problems: [['b/cm.yaml:1:5'], ['b/d.yaml:1:4'], ['b/e.yaml:1:1', 'kind is missing']],
  },
  {
    name: 'KU8 an unknown field of a base has its line',
    files: {
      'b/kustomization.yaml': 'resources: [../c]\n',
      ...{ 'c/kustomization.yaml': 'resources: [cm.yaml]\nfoo: 1\n', 'c/cm.yaml': CM },
    },
    problems: [['c/kustomization.yaml:2', 'unknown field "foo"']],
  },
  {
    name: 'KU8 a wrong type has its line',
    files: { 'b/kustomization.yaml': 'resources: [cm.yaml]\nnamePrefix: 5\n', 'b/cm.yaml': CM },
    problems: [['b/kustomization.yaml:2', 'namePrefix']],
  },
  {
    name: 'KU8 two of one identity name both places',
    files: {
      ...{ 'b/kustomization.yaml': 'resources: [cm.yaml, ../c]\n', 'b/cm.yaml': CM },
      ...{ 'c/kustomization.yaml': 'resources: [cm.yaml]\n', 'c/cm.yaml': CM },
    },
    problems: [['c/cm.yaml:1:1', 'ConfigMap a', 'b/cm.yaml:1:1']],
  },
  {
    name: 'KU5 files outside of the folder',
    files: {
      'b/kustomization.yaml': 'resources: [../c/cm.yaml]\npatches:\n- path: ../c/p.yaml\n',
      ...{ 'c/cm.yaml': CM, 'c/p.yaml': CM },
    },
    problems: [
      ['b/kustomization.yaml:1', 'c/cm.yaml', 'outside b'],
      ['b/kustomization.yaml:3', 'c/p.yaml', 'outside b'],
    ],
  },
  {
    name: 'KU5 out of the tree',
    files: { 'b/kustomization.yaml': 'resources:\n- ../../etc\n- /etc/passwd\n' },
    problems: [
      ['b/kustomization.yaml:2', 'outside'],
      ['b/kustomization.yaml:3', 'outside'],
    ],
  },
  {
    name: 'KU8 a circle',
    files: { 'b/kustomization.yaml': 'resources: [../c]\n', 'c/kustomization.yaml': 'resources: [../b]\n' },
    problems: [['b/kustomization.yaml', 'cycle detected']],
  },
  {
    name: 'KU4 functions and plugins, inline and in files',
    files: {
      'b/kustomization.yaml': `resources: [cm.yaml]\ntransformers: [t.yaml]\ngenerators:\n- |-\n  apiVersion: v1\n  kind: Foo\n  metadata: ${FUNCTION}\n`,
      ...{
        'b/cm.yaml': CM,
        'b/t.yaml': `apiVersion: x/v1\nkind: Foo\nmetadata: ${FUNCTION}\n---\napiVersion: x/v1\nkind: Bar\nmetadata: {name: f}\n`,
      },
    },
    problems: [
      ['b/kustomization.yaml:5', 'KRM function'],
      ['b/t.yaml:1', 'KRM function'],
      ['b/t.yaml:5', 'Bar is a plugin'],
    ],
  },
  {
    name: 'KU7 charts are not inflated unasked',
    files: { 'b/kustomization.yaml': 'resources: [cm.yaml]\nhelmCharts:\n- name: a\n', 'b/cm.yaml': CM },
    problems: [['b/kustomization.yaml:3', 'render.kustomize.helmCharts']],
  },
  {
    name: 'KU8 a literal that is none keeps its value to itself',
    files: { 'b/kustomization.yaml': 'secretGenerator: [{name: s, literals: [hunter2]}]\n' },
    problems: [['b/kustomization.yaml', 'expected key=value']],
  },
  {
    name: 'KU8 a patch that is none keeps its text to itself',
    files: {
      'b/kustomization.yaml': "resources: [cm.yaml]\npatches: [{target: {kind: ConfigMap}, patch: '[{hunter2: x}]'}]\n",
      'b/cm.yaml': CM,
    },
    problems: [['b/kustomization.yaml', 'unable to parse SM or JSON patch']],
  },
  { name: 'KU8 no kustomization', files: { 'c/x.yaml': CM }, problems: [['b', 'kustomization.yaml']] },
  {
    name: 'KU8 a kustomization that cannot be read',
    files: { 'b/kustomization.yaml': 'resources: [cm.yaml\nfoo: 1\n' },
    problems: [['b/kustomization.yaml:2:1']],
  },
  {
    name: 'KU9 errors of templates',
    files: {
      'b/kustomization.yaml': 'resources: [cm.yaml, d.yaml]\n',
      ...{ 'b/cm.yaml.liquid': `${CM}data: {c: "{{ config.colr }}"}\n`, 'b/d.yaml.liquid': `a: {{ config.color }}: {{ config.color }}\n` },
    },
    problems: [['b/cm.yaml.liquid:4:15', 'did you mean config.color']],
  },
  {
    name: 'KU9 what a template became is told by the name of the template',
    files: { 'b/kustomization.yaml': 'resources: [d.yaml]\n', 'b/d.yaml.liquid': `a: {{ config.color }}: {{ config.color }}\n` },
    problems: [['b/d.yaml.liquid']],
  },
]

const told = (problems: string[]): string => problems.join('\n')

test.each(CASES.map((one) => [one.name, one] as const))('%s', async (_, { files, problems }) => {
  const { result } = await kustomized({ files, root: 'b', sandbox })
  const lines = problemLines(result)
  expect(lines.length, told(lines)).toBe(problems.length)
  for (const [index, [place, ...words]] of problems.entries()) {
    expect(lines[index]?.split(' ')[0]).toBe(place)
    for (const word of words) expect(lines[index]).toContain(word)
  }
  expect(told(lines)).not.toMatch(/hunter2|source-tree|\/work|\/tmp|ld-secret/)
})

test('RD1 KU9 Kustomization.liquid is a kustomization', async () => {
  const files = { 'b/Kustomization.liquid': 'resources: [cm.yaml]\nnamePrefix: {{ config.color }}-\n', 'b/cm.yaml': CM }
  const { result } = await kustomized({ files, root: 'b', sandbox })
  expect(renderedObjects(result).join()).toContain('"name":"blue-a"')
})

test('KU2 what a kustomization does not name is not looked at', async () => {
  const files = { 'b/kustomization.yaml': 'resources: [../c, cm.yaml]\n', 'b/cm.yaml': CM, 'b/not.yaml': CM }
  const base = {
    'c/kustomization.yaml': 'resources: [s.yaml]\n',
    'c/s.yaml': CM.replace('ConfigMap', 'Secret'),
    'c/not.yaml': CM,
    'd/kustomization.yaml': '',
  }
  const { result, files: looked } = await kustomized({ files: { ...files, ...base }, root: 'b', sandbox })
  expect(renderedObjects(result)).toHaveLength(2)
  expect(looked).toEqual(['b/cm.yaml', 'b/kustomization.yaml', 'c/kustomization.yaml', 'c/s.yaml'])
})

test('KU2 a thousand folders', async () => {
  const chain = (length: number) =>
    Object.fromEntries(
      Array.from({ length }, (_, i) => [`f${i}/kustomization.yaml`, i === length - 1 ? 'namePrefix: a\n' : `resources: [../f${i + 1}]\n`]),
    )
  const { sandbox: scripted } = scriptedSandbox([{ exitCode: 0, stderr: '' }])
  expect((await kustomized({ files: chain(1_000), root: 'f0', sandbox: scripted })).result.kind).toBe('rendered')
  expect(problemLines((await kustomized({ files: chain(1_001), root: 'f0', sandbox: scripted })).result)).toEqual([
    naming('f1000', '1000 folders'),
  ])
})

test('KU1 warnings of kustomize are told, without the time of day', async () => {
  const files = { 'b/kustomization.yaml': 'bases: [../c]\n', 'c/kustomization.yaml': 'resources: [cm.yaml]\n', 'c/cm.yaml': CM }
  const { result } = await kustomized({ files, root: 'b', sandbox })
  expect(result.kind === 'rendered' && result.warnings.map(({ message }) => message.split('.')[0])).toEqual(["'bases' is deprecated"])
})

test('KU8 the second mode tells the same', async () => {
  const limits = realSandbox({ mode: 'limits' })
  for (const { files } of CASES) {
    const [one, two] = await Promise.all([sandbox, limits].map((each) => kustomized({ files, root: 'b', sandbox: each })))
    expect(JSON.stringify(two?.result)).toBe(JSON.stringify(one?.result))
  }
}, 60_000)

describe('KU6 what a service adds is what kustomize edit does', () => {
  const IMAGES = 'images:\n- {name: nginx, newTag: "1"}\n- {name: redis, newName: mirror/redis}\n'
  const DEPLOYMENT =
    'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w}\nspec: {template: {spec: {containers: [{name: a, image: nginx:0}, {name: b, image: redis:7}, {name: c, image: "reg:5000/app"}]}}}\n'
  const files = {
    'b/kustomization.yaml': `resources: [d.yaml]\nnamePrefix: old-\n${IMAGES}patches:\n- target: {kind: Deployment}\n  patch: |-\n    - {op: add, path: /metadata/labels, value: {p: "1"}}\n`,
    'b/d.yaml': DEPLOYMENT,
    'b/extra/kustomization.yaml': 'apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [cm.yaml]\n',
    'b/extra/cm.yaml': CM,
  }
  const TABLE: ReadonlyArray<[name: string, options: NonNullable<RenderSpec['kustomize']>, edits: string[][]]> = [
    ['a prefix', { namePrefix: 'new-' }, [['nameprefix', '--', 'new-']]],
    ['a suffix', { nameSuffix: '-v2' }, [['namesuffix', '--', '-v2']]],
    ['a tag', { images: ['nginx:2.10'] }, [['image', 'nginx:2.10']]],
    ['another name', { images: ['nginx=mirror.example:5000/n:3'] }, [['image', 'nginx=mirror.example:5000/n:3']]],
    ['another name alone', { images: ['redis=other/redis'] }, [['image', 'redis=other/redis']]],
    ['a digest', { images: [`reg:5000/app@sha256:${'a'.repeat(64)}`] }, [['image', `reg:5000/app@sha256:${'a'.repeat(64)}`]]],
    [
      'several',
      { images: ['redis=r:1', 'nginx=n:1'], namePrefix: 'x-' },
      [
        ['image', 'redis=r:1', 'nginx=n:1'],
        ['nameprefix', '--', 'x-'],
      ],
    ],
  ]
  test.each(TABLE)('%s', async (_, options, edits) => {
    const { result } = await kustomized({ files, root: 'b', sandbox, spec: { kustomize: options } })
    const folder = tempDir()
    writeFiles(folder, new Map(Object.entries(files)))
    for (const edit of edits) {
      const run = Bun.spawnSync([KUSTOMIZE, 'edit', 'set', ...edit], { cwd: join(folder, 'b'), env: { HOME: '/tmp' } })
      expect(run.stderr.toString()).toBe('')
    }
    expect(renderedObjects(result)).toEqual(objectsOf(bareBuild([KUSTOMIZE, 'build', join(folder, 'b')])))
  })

  test('a component', async () => {
    const { result, files: read } = await kustomized({ files, root: 'b', sandbox, spec: { kustomize: { components: ['extra'] } } })
    const folder = tempDir()
    writeFiles(folder, new Map(Object.entries(files)))
    Bun.spawnSync([KUSTOMIZE, 'edit', 'add', 'component', 'extra'], { cwd: join(folder, 'b'), env: { HOME: '/tmp' } })
    expect(renderedObjects(result)).toEqual(objectsOf(bareBuild([KUSTOMIZE, 'build', join(folder, 'b')])))
    expect(read).toContain('b/extra/cm.yaml')
    const missing = await kustomized({ files, root: 'b', sandbox, spec: { kustomize: { components: ['nix'] } } })
    expect(problemLines(missing.result)).toEqual([naming('kustomize.components', 'nix', 'kustomization')])
  })
})

describe('KU7 charts in the tree', () => {
  const files = {
    ...Object.fromEntries(
      Object.entries(filesOfFolder(join(import.meta.dir, '../fixtures/kustomizations/helm-charts'))).filter(
        ([path]) => !path.endsWith('cm.yaml'),
      ),
    ),
    'build/charts/tiny/templates/cm.yaml':
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: k}\ndata: {version: "{{ .Capabilities.KubeVersion }}", has: "{{ .Capabilities.APIVersions.Has "example.com/v1" }}"}\n',
  }
  const spec = { kustomize: { helmCharts: true } }
  test('what the cluster reports is what charts see, and only then it is looked at', async () => {
    const facts = { kubernetesVersion: 'v1.33.7', apiVersions: { 'example.com/v1': true as const } }
    const { result, inputs } = await kustomized({
      files,
      root: 'build',
      sandbox,
      spec,
      inputs: { cluster: { name: 'a', labels: {}, facts } },
    })
    expect(renderedObjects(result).join()).toContain('"data":{"has":"true","version":"v1.33.7"}')
    expect(inputs.some(([, second]) => second === 'facts')).toBe(true)
    const plain = await kustomized({
      files: { 'b/kustomization.yaml': 'resources: [cm.yaml]\n', 'b/cm.yaml': CM },
      root: 'b',
      sandbox,
      spec,
    })
    expect(plain.inputs).toEqual([])
  })
  test('a chart that is not there is not downloaded', async () => {
    const text = 'helmCharts:\n- name: other\n  repo: https://charts.example/x\n  version: 1.2.3\n'
    const { result } = await kustomized({ files: { 'b/kustomization.yaml': text }, root: 'b', sandbox, spec })
    expect(problemLines(result)).toEqual([naming('b/kustomization.yaml:2', 'helmCharts', 'charts/other')])
  })
})

/** Says what it is told to, one after the other. */
function scriptedSandbox(outcomes: Array<{ exitCode: number; stderr: string }>): { sandbox: Sandbox; runs: SandboxRun[] } {
  const runs: SandboxRun[] = []
  return {
    runs,
    sandbox: {
      async run(run) {
        runs.push(run)
        const { exitCode, stderr } = outcomes[runs.length - 1] ?? { exitCode: 1, stderr: 'Error: asked too often' }
        return { kind: 'done', exitCode, stderr, stdout: new TextEncoder().encode(CM) }
      },
      version: async () => '5',
    },
  }
}

test('KU10 the same files and options are built once, others anew', async () => {
  const files = { 'b/kustomization.yaml': 'resources: [cm.yaml]\n', 'b/cm.yaml': CM, 'b/other.yaml': CM }
  const ok = { exitCode: 0, stderr: '# Warning: old' }
  const { sandbox: scripted, runs } = scriptedSandbox([ok, { exitCode: 1, stderr: 'Error: no' }, ok])
  const known = new Map<string, Uint8Array>()
  const once = async (parts: readonly string[], run: () => Promise<Uint8Array>) => {
    const key = JSON.stringify(parts)
    const bytes = known.get(key) ?? (await run())
    known.set(key, bytes)
    return bytes
  }
  const first = await kustomized({ files, root: 'b', sandbox: scripted, once })
  const again = await kustomized({ files: { ...files, 'b/other.yaml': 'x' }, root: 'b', sandbox: scripted, once })
  expect(JSON.stringify(again.result)).toBe(JSON.stringify(first.result))
  expect(first.result.kind === 'rendered' && first.result.warnings.length).toBe(1)
  expect(runs.length).toBe(1)
  const changed = { ...files, 'b/cm.yaml': `${CM}data: {}\n` }
  expect((await kustomized({ files: changed, root: 'b', sandbox: scripted, once })).result.kind).toBe('failed')
  expect((await kustomized({ files: changed, root: 'b', sandbox: scripted, once })).result.kind).toBe('failed')
  expect(runs.length).toBe(2)
  known.clear()
  expect((await kustomized({ files: changed, root: 'b', sandbox: scripted, once })).result.kind).toBe('rendered')
  expect(runs.length).toBe(3)
})

test('KU8 what a source refuses is told with all the rest', async () => {
  const files = { 'b/kustomization.yaml': 'resources: [link.yaml, nix.yaml]\n' }
  const refusing = (tree: SourceTree): SourceTree => ({
    ...tree,
    file: async (path) => {
      if (path === 'b/link.yaml') throw new AppError('source_refused', { detail: 'b/link.yaml: a link that leads out' })
      return tree.file(path)
    },
  })
  const { result } = await kustomized({ files, root: 'b', sandbox, wrap: refusing })
  expect(problemLines(result)).toEqual([
    naming('b/kustomization.yaml:1', 'b/link.yaml', 'leads out'),
    naming('b/kustomization.yaml:1', 'resources', 'nix.yaml'),
  ])
})

describe('KU11 a file that the scan did not see', () => {
  const files = { 'b/kustomization.yaml': 'resources: [cm.yaml]\n', 'b/cm.yaml': CM, 'b/hidden.txt': 'x', 'c/other.txt': 'y' }
  const asks = {
    exitCode: 1,
    stderr:
      "Error: evalsymlink failure on '/somewhere/source-tree/b/hidden.txt' : lstat /somewhere/source-tree/b/hidden.txt: no such file or directory",
  }
  test('is found with the whole tree', async () => {
    const { sandbox: scripted, runs } = scriptedSandbox([asks, { exitCode: 0, stderr: '' }])
    const { result } = await kustomized({ files, root: 'b', sandbox: scripted })
    expect(result.kind).toBe('rendered')
    expect(runs.map((run) => [...run.files.keys()].length)).toEqual([2, 4])
  })
  test('once', async () => {
    const { sandbox: scripted, runs } = scriptedSandbox([asks, asks])
    const { result } = await kustomized({ files, root: 'b', sandbox: scripted })
    expect(runs.length).toBe(2)
    expect(problemLines(result)[0]).toContain('b/hidden.txt')
  })
  test('another error asks no second time', async () => {
    const { sandbox: scripted, runs } = scriptedSandbox([{ exitCode: 1, stderr: 'Error: no' }])
    expect(problemLines((await kustomized({ files, root: 'b', sandbox: scripted })).result)).toEqual(['b/kustomization.yaml no'])
    expect(runs.length).toBe(1)
  })
})
