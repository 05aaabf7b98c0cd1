// HM3 HM10: what helm gets of a tree, and the limits of a chart and of its values, at their edges.
import { describe, expect, test } from 'bun:test'
import { chartPath, readChart } from '../../server/render/helm/chart.ts'
import { createHelmRenderer } from '../../server/render/helm/helm-renderer.ts'
import { gatherValues, HELM_VALUES_BYTES_MAX } from '../../server/render/helm/layers.ts'
import type { RenderInputs } from '../../server/render/inputs.ts'
import type { RenderJob } from '../../server/render/renderer.ts'
import type { SandboxOutcome } from '../../server/render/sandbox.ts'
import { treePath } from '../../server/render/tree-path.ts'
import { SOURCE_TREE_BYTES_MAX, type SourceTree } from '../../server/sources/source.ts'
import type { RenderSpec } from '../../shared/model/render.ts'
import { naming } from '../support/naming.ts'

const inputs: RenderInputs = {
  cluster: null,
  config: {},
  service: { name: 'web', project: 'default', namespace: null },
  source: { version: '1' },
}
type Files = Readonly<Record<string, string | Uint8Array>>

function treeOf(files: Files): SourceTree {
  const fileOf = (path: string) => {
    const text = files[path]
    return text === undefined ? null : { oid: `oid of ${path}`, bytes: typeof text === 'string' ? new TextEncoder().encode(text) : text }
  }
  return {
    id: async () => null,
    list: async () => null,
    file: async (path) => fileOf(path),
    files: async (root, wanted) => {
      const paths = Object.keys(files).filter((path) => path.startsWith(root === '' ? '' : `${root}/`) && wanted(path))
      return new Map(paths.sort().flatMap((path) => [[path, fileOf(path) ?? { oid: '', bytes: new Uint8Array() }] as const]))
    },
  }
}

function jobOf(files: Files, root = '', helm: NonNullable<RenderSpec['helm']> = {}): RenderJob {
  return {
    id: { project: 'default', service: 'web' },
    spec: { helm },
    namespace: 'web',
    source: { tree: treeOf(files), root },
    named: new Map(),
    inputs,
    plainInputs: inputs,
    recordInput: () => {},
    values: [],
    configValue: () => undefined,
    sandbox: { run: () => Promise.reject(new Error('nothing runs here')), version: async () => null },
    once: (_, run) => run(),
    signal: new AbortController().signal,
  }
}

const meta = (name: string, more = '') => `apiVersion: v2\nname: ${name}\nversion: 1.0.0\n${more}`
const read = async (files: Files, root = '') => {
  const found = await readChart(jobOf(files, root))
  if (found.kind === 'refused') return { paths: [], problems: found.problems, chart: null }
  return { paths: [...found.chart.files.keys()].sort(), problems: [], chart: found.chart }
}

describe('HM3', () => {
  test('neighbours of neighbours come along, and messages know all by their names', async () => {
    const { paths, chart } = await read(
      {
        'apps/web/Chart.yaml': meta('web', 'dependencies: [{name: one, version: 1.x, repository: "file://../one", alias: uno}]\n'),
        'apps/one/Chart.yaml': meta('one', 'dependencies: [{name: two, version: ~1.0, repository: "file://../../lib/two"}]\n'),
        'apps/one/templates/a.yaml': '',
        'apps/one/.helmignore': 'README.md\n',
        'apps/one/README.md': 'hidden',
        'lib/two/Chart.yaml': meta('two'),
        'lib/two/templates/b.yaml': '',
        'lib/other/Chart.yaml': meta('other'),
      },
      'apps/web',
    )
    expect(paths).toEqual([
      'Chart.yaml',
      'charts/one/.helmignore',
      'charts/one/Chart.yaml',
      'charts/one/charts/two/Chart.yaml',
      'charts/one/charts/two/templates/b.yaml',
      'charts/one/templates/a.yaml',
    ])
    if (chart === null) throw new Error('no chart')
    const named = 'web/charts/uno/charts/two/templates/b.yaml'
    expect(chart.files.get(chartPath(chart, named) ?? '')?.origin).toBe('lib/two/templates/b.yaml')
    expect(chartPath(chart, 'web/charts/none/templates/b.yaml')).toBeNull()
    expect(chartPath(chart, 'web/templates/none.yaml')).toBeNull()
  })

  test('a file of charts/ that is no chart is none of helm’s either, and charts that begin with a dot or underscore are left', async () => {
    const files = { 'Chart.yaml': meta('web'), 'charts/README.md': 'x', 'charts/_off/Chart.yaml': 'not: [', 'charts/.off.tgz': 'x' }
    const { paths, problems } = await read(files)
    expect(problems).toEqual([])
    expect(paths).toContain('charts/_off/Chart.yaml')
  })

  test.each([
    ['apps/web', 'values.yaml', 'apps/web/values.yaml'],
    ['apps/web', '../../prod.yaml', 'prod.yaml'],
    ['apps/web', './x//y.yaml', 'apps/web/x/y.yaml'],
    ['', '../x', null],
    ['apps', '../../x', null],
    ['apps', '/x', null],
    ['apps', '..\\x', 'apps/..\\x'],
  ])('HM2 from %p, %s is %p', (root, path, expected) => expect(treePath(root, path)).toBe(expected))
})

describe('HM10', () => {
  const many = (count: number) => ({
    'Chart.yaml': meta('web'),
    ...Object.fromEntries(Array.from({ length: count - 1 }, (_, number) => [`charts/c${number}/Chart.yaml`, meta(`c${number}`)])),
  })
  test('100 charts, and no more', async () => {
    expect((await read(many(100))).problems).toEqual([])
    const { problems } = await read(many(101))
    expect(problems.map(({ message }) => message)).toEqual([naming('100 charts', '10 deep')])
    expect((await read(many(300))).problems.length).toBe(1)
  })
  test('100 dependencies of a chart, and no more', async () => {
    const depending = (count: number) => {
      const list = Array.from({ length: count }, (_, number) => `{name: c${number}, version: 1.0.0, repository: "https://x"}`)
      return { 'Chart.yaml': meta('web', `dependencies: [${list.join(', ')}]\n`) }
    }
    expect((await read(depending(100))).problems.length).toBe(100)
    expect((await read(depending(101))).problems.map(({ message }) => message)).toEqual(['more than 100 dependencies'])
  })
  test('charts 10 deep, and no more', async () => {
    const nested = (depth: number) =>
      Object.fromEntries(Array.from({ length: depth + 1 }, (_, level) => [`${'charts/x/'.repeat(level)}Chart.yaml`, meta('x')]))
    expect((await read(nested(10))).problems).toEqual([])
    expect((await read(nested(11))).problems.length).toBe(1)
  })
  test('64 MiB with all charts, and no more', async () => {
    const head = meta('web', 'dependencies: [{name: lib, version: 1.x, repository: "file://../lib"}]\n')
    const lib = meta('lib')
    const files = (bytes: number) => ({ 'web/Chart.yaml': head, 'lib/Chart.yaml': lib, 'lib/large': new Uint8Array(bytes) })
    const rest = SOURCE_TREE_BYTES_MAX - head.length - lib.length
    expect((await read(files(rest), 'web')).problems).toEqual([])
    expect((await read(files(rest + 1), 'web')).problems.map(({ path }) => path)).toEqual(['lib/large'])
  })
  test('values of 4 MiB, and no more', async () => {
    const gathered = async (length: number) =>
      (await gatherValues(jobOf({ 'v.yaml': `a: ${'x'.repeat(length)}\n` }, '', { valuesFiles: ['v.yaml'] }))).kind
    const rest = HELM_VALUES_BYTES_MAX - 13 // the mapping itself, the key and the quotes
    expect(await gathered(rest)).toBe('values')
    expect(await gathered(rest + 1)).toBe('refused')
  })
})

describe('HM8', () => {
  const render = async (outcome: SandboxOutcome) => {
    const kept: Uint8Array[] = []
    const result = await createHelmRenderer()({
      ...jobOf({ 'Chart.yaml': meta('web') }),
      sandbox: { run: async () => outcome, version: async () => 'helm 4.0.0' },
      once: async (_, run) => {
        const bytes = await run()
        kept.push(bytes)
        return bytes
      },
    })
    return { result, kept: kept.length }
  }
  test('a limit that was met is told and not kept', async () => {
    const message = 'helm used more than 512 MiB of memory and was stopped'
    const { result, kept } = await render({ kind: 'stopped', why: 'memory', message, stderr: '' })
    expect(result).toMatchObject({ kind: 'failed', problems: [{ path: 'Chart.yaml', message }] })
    expect(kept).toBe(0)
  })
  test('an error is an answer like another', async () => {
    const { result, kept } = await render({ kind: 'done', exitCode: 1, stdout: new Uint8Array(), stderr: 'Error: no\n' })
    expect(result).toMatchObject({ kind: 'failed', problems: [{ path: 'Chart.yaml', message: 'no' }] })
    expect(kept).toBe(1)
  })
  test('what helm wrote is kept whole', async () => {
    const stdout = new TextEncoder().encode('---\n# Source: web/a.yaml\na: "\\n"\n')
    const { result, kept } = await render({ kind: 'done', exitCode: 0, stdout, stderr: '' })
    expect(result.kind === 'rendered' ? [...result.files].map(([name, bytes]) => [name, new TextDecoder().decode(bytes)]) : []).toEqual([
      ['web/a.yaml', 'a: "\\n"\n'],
    ])
    expect(kept).toBe(1)
  })
})

describe('HM3 a dependency without a Chart.lock', () => {
  const ask = async (version: string, lock?: string) => {
    const asked: string[][] = []
    const files = {
      'Chart.yaml': meta('web', `dependencies: [{name: db, version: "${version}", repository: "https://charts.example"}]\n`),
      ...(lock === undefined ? {} : { 'Chart.lock': lock }),
    }
    const charts = async (...of: [string, string, string]) => {
      asked.push(of)
      return new Map([['Chart.yaml', new TextEncoder().encode(`apiVersion: v2\nname: db\nversion: ${of[2]}\n`)]])
    }
    const found = await readChart({ ...jobOf(files), charts })
    return { asked, problems: found.kind === 'refused' ? found.problems.map(({ path }) => path) : [] }
  }
  test.each([
    ['1.2.3', '1.2.3'],
    ['=1.2.3', '1.2.3'],
    ['= v1.2.3-rc.1+b', 'v1.2.3-rc.1+b'],
  ])('comes in the exact version %s', async (version, expected) => {
    expect(await ask(version)).toEqual({ asked: [['https://charts.example', 'db', expected]], problems: [] })
  })
  test.each(['^1.2.3', '1.2', '1.2.x', '>=1.2.3', '1.2.3 || 2.0.0', ''])('is an error with the range %p', async (version) => {
    expect(await ask(version)).toEqual({ asked: [], problems: ['Chart.yaml'] })
  })
  test('Chart.lock wins', async () => {
    const lock = 'dependencies: [{name: db, version: 1.2.3, repository: "https://mirror.example"}]\n'
    expect((await ask('1.2.3', lock)).asked).toEqual([['https://mirror.example', 'db', '1.2.3']])
  })
})
