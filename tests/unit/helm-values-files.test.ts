// HM2: names of values files are templates, and stay names of files in the tree.
import { expect, test } from 'bun:test'
import { specProblems } from '../../server/http/resource-checks.ts'
import { gatherValues } from '../../server/render/helm/layers.ts'
import { checkPatchesHere } from '../../server/render/patch/patches.ts'
import { recordedInputs } from '../../server/render/record/inputs.ts'
import type { RenderJob } from '../../server/render/renderer.ts'
import { applicableSchema } from '../../shared/model/resources.ts'
import { naming } from '../support/naming.ts'
import { memoryTree } from '../support/render-job.ts'

const FILES = {
  'web/values.yaml': 'a: chart\n',
  'web/base.yaml': 'a: base\nseen: [base]\n',
  'web/eu-1.yaml': 'a: eu-1\n',
  'web/late.yaml': 'a: late\n',
  'outside.yaml': 'a: outside\n',
}
const OTHER = { 'envs/eu-1.yaml': 'a: other\n', 'secret.yaml': 'a: secret\n' }

async function gather(valuesFiles: string[], more: Partial<RenderJob> = {}, config: Record<string, unknown> = {}) {
  const reads: string[] = []
  const plain = {
    cluster: { name: 'eu-1', labels: { region: 'eu' }, facts: { kubernetesVersion: '', apiVersions: {} } },
    config,
    service: { name: 'web', project: 'default', namespace: null },
    source: { version: '1' },
  }
  const job: RenderJob = {
    id: { project: 'default', service: 'web' },
    spec: { helm: { valuesFiles } },
    namespace: 'web',
    source: { tree: memoryTree(FILES), root: 'web' },
    named: new Map([['envs', { tree: memoryTree(OTHER), root: 'envs' }]]),
    inputs: recordedInputs(plain, (path) => reads.push(path.join('.'))),
    plainInputs: plain,
    recordInput: () => {},
    values: [],
    configValue: () => undefined,
    sandbox: { run: () => Promise.reject(new Error('nothing runs here')), version: async () => null },
    once: (_, run) => run(),
    signal: new AbortController().signal,
    ...more,
  }
  const result = await gatherValues(job)
  const said = result.kind === 'values' ? result.merged['a'] : result.problems.map(({ path, message }) => `${path}: ${message}`).join('\n')
  return { said, reads }
}

test.each<[string, string[], Record<string, unknown>, unknown]>([
  ['of the cluster', ['base.yaml', '{{ cluster.name }}.yaml'], {}, 'eu-1'],
  ['that may be missing', ['base.yaml', '{{ cluster.labels.region }}.yaml?'], {}, 'base'],
  ['of another source', ['base.yaml', '$envs/{{ cluster.name }}.yaml?'], {}, 'other'],
  ['that leads up inside the tree', ['{{ config.up }}/outside.yaml'], { up: '..' }, 'outside'],
])('HM2 the name of a values file %s is a template', async (_, files, config, expected) => {
  const { said, reads } = await gather(files, {}, config)
  expect(said).toBe(expected)
  expect(reads.length).toBeGreaterThan(0)
})

test.each<[string, string, Record<string, unknown>, RegExp]>([
  [
    'an unknown name, though the file may be missing',
    '{{ cluster.nmae }}.yaml?',
    {},
    /^render\.helm\.valuesFiles\[0\]: .*cluster\.nmae; .*cluster\.name\?/,
  ],
  ['out of the tree', '{{ config.x }}.yaml?', { x: '../../secret' }, /inside/],
  ['out of the tree of another source', '$envs/{{ config.x }}.yaml?', { x: '../../secret' }, /inside/],
  ['an absolute path', '{{ config.x }}?', { x: '/etc/passwd' }, /inside/],
  ['a second line', '{{ config.x }}?', { x: 'a\nb' }, /one line/],
  ['nothing', '{{ config.x }}?', { x: '' }, /nothing/],
  ['too much', '{{ config.x }}?', { x: 'a'.repeat(1_025) }, /too long/],
  [
    'a file that is not there',
    '$envs/{{ config.x }}.yaml',
    { x: 'none' },
    /^\$envs\/envs\/none\.yaml: .*\{\{ config\.x \}\}\.yaml.*templates/,
  ],
  [
    'another source by its value: a name like any other',
    '{{ config.x }}',
    { x: '$envs/eu-1.yaml' },
    /^web\/\$envs\/eu-1\.yaml: .*not found/,
  ],
])('HM2 the template of a name that makes %s is refused', async (_, file, config, expected) => {
  // biome-ignore format: one case a line
  expect((await gather([file], {}, config)).said).toMatch(expected)
})

test('HM2 a name of 1024 characters is one', async () => {
  expect((await gather(['base.yaml', '{{ config.x }}?'], {}, { x: 'a'.repeat(1_024) })).said).toBe('base')
})

test('HM2 level by level the later wins, and in a level files < valuesFrom < values: whichever of them say something', async () => {
  const levels = ['render', 'overrides[0]', 'overrides[3]', 'cluster overrides[0]']
  const places = levels.flatMap((level) => [`${level} files`, ...(level === 'render' ? ['render from'] : []), `${level} values`])
  for (let chosen = 1; chosen < 2 ** places.length; chosen++) {
    const says = (place: string) => (chosen >> places.indexOf(place)) % 2 === 1
    const level = (from: string) => ({
      ...{ from, values: says(`${from} values`) ? { a: `${from} values` } : {} },
      valuesFiles: says(`${from} files`) ? [`${from} files`] : [],
    })
    const [own, ...values] = levels.map(level)
    const helm = { ...own, valuesFrom: says('render from') ? [{ name: 'c', key: 'k' }] : [] }
    const tree = memoryTree(Object.fromEntries(places.map((place) => [`web/${place}`, `a: ${place}\n`])))
    const more = { values, spec: { helm }, source: { tree, root: 'web' }, configValue: () => 'a: render from\n' }
    const highest = places.findLast(says)
    expect((await gather([], more)).said).toBe(highest)
  }
})

test('HM2 files of overrides may be missing or be named by a template, and what is wrong with them names the override', async () => {
  const values = [
    { from: 'overrides[0]', values: {}, valuesFiles: ['{{ cluster.name }}.yaml'] },
    { from: 'cluster overrides[0]', values: {}, valuesFiles: ['late.yaml', 'none.yaml?'] },
  ]
  expect((await gather(['base.yaml'], { values })).said).toBe('late')
  expect((await gather(['base.yaml'], { values: values.slice(0, 1) })).said).toBe('eu-1')
  const wrong = [{ from: 'overrides[0]', values: {}, valuesFiles: ['{{ nope }}'] }]
  expect((await gather([], { values: wrong })).said).toEqual(naming('overrides[0].helm.valuesFiles[0]:', 'name nope'))
})

test('HM2 overrides of a service and of a cluster take valuesFiles, and something is said', async () => {
  const helm = { valuesFiles: ['a.yaml'] }
  const head = { apiVersion: 'skerry.dev/v1', metadata: { name: 'a' } }
  const targets = { selector: {} }
  const source = { repository: 'r', path: 'p' }
  const service = (overrides: unknown) => applicableSchema.safeParse({ ...head, kind: 'Service', spec: { source, targets, overrides } })
  const read = service([{ selector: {}, helm }])
  expect(read.success ? await specProblems(read.data, checkPatchesHere) : read.error.issues).toEqual([])
  expect(applicableSchema.safeParse({ ...head, kind: 'Cluster', spec: { overrides: [{ service: 's', helm }] } }).success).toBe(true)
  expect(service([{ selector: {}, helm: {} }]).error?.issues.map(({ message }) => message)).toEqual([naming('values', 'valuesFiles')])
})
