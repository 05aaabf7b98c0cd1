// AP4, PT: what a field holds is told as precisely as its name: patches, keys of labels, ranges of versions. Also by
// `skerry render -f`, with the line.
import { expect, test } from 'bun:test'
import { specProblems } from '../../server/http/resource-checks.ts'
import { readResources } from '../../server/local-render/read-job.ts'
import { checkPatchesHere } from '../../server/render/patch/patches.ts'
import { explainIssues } from '../../shared/model/explain.ts'
import { applicableSchema } from '../../shared/model/resources.ts'
import { naming } from '../support/naming.ts'

const head = { apiVersion: 'skerry.dev/v1', metadata: { name: 'a' } }
const service = (more: Record<string, unknown>) => ({ ...head, kind: 'Service', spec: { source: { repository: 'r', path: 'p' }, targets: { selector: {} }, ...more } }) // biome-ignore format: short
const patches = (patch: unknown, target: unknown = { kind: 'Deployment' }) => service({ render: { patches: [{ target, ...(patch === undefined ? {} : { patch }) }] } }) // biome-ignore format: short
const repository = (spec: unknown) => ({ ...head, kind: 'Repository', spec })
const RANGE = '^1.4, ~1.2.3 or >=1.2.0 <2.0.0'
const OPS = ['"add"', '"test"', '"replace"?']

async function told(input: unknown): Promise<string[]> {
  const read = applicableSchema.safeParse(input)
  const found = read.success ? await specProblems(read.data, checkPatchesHere) : explainIssues(applicableSchema, input, read.error)
  return found.map(({ path, message }) => `${path}: ${message}`)
}

test.each<[string, unknown, string[]]>([
  ['an op that is none', patches([{ op: 'replce', path: '/a', value: 1 }]), ['spec.render.patches[0].patch[0].op: ', ...OPS]],
  ['a field of an op', patches([{ op: 'add', pth: '/a', path: '/a', value: 1 }]), ['spec.render.patches[0].patch[0].pth: ', '"path"?']],
  ['an op without a path', patches([{ op: 'remove' }]), ['spec.render.patches[0].patch[0].path: ', 'required', 'string']],
  ['an op that is none, as YAML', patches('- {op: replce, path: /a, value: 1}'), ['spec.render.patches[0]: [0].op: ', ...OPS]],
  ['YAML that is none', patches('spec:\n  a: 1\n b: [\n'), ['spec.render.patches[0]: line 3']],
  ['no patch', patches(undefined), ['spec.render.patches[0].patch: ', 'required', 'list', 'mapping', 'text']],
  ['a number for a patch', patches(3), ['spec.render.patches[0].patch: ', 'list', 'mapping', 'text']],
  ['a key of common labels', service({ render: { commonLabels: { 'a b': 'x' } } }), ['spec.render.commonLabels["a b"]: ', 'label key']],
  ['a range of tags', repository({ git: { url: 'https://git.example/a', semver: 'newest' } }), ['spec.git.semver: ', RANGE]],
  ['a range of an artifact', repository({ oci: { url: 'oci://registry.example/a', semver: '>=new' } }), ['spec.oci.semver: ', RANGE]],
  ['a range of a chart', service({ source: { repository: 'r', chart: 'c', version: 'latest' } }), ['spec.source.version: ', RANGE]],
  [
    'a range of a chart among sources',
    {
      ...head,
      kind: 'Service',
      spec: {
        targets: { selector: {} },
        sources: [
          { repository: 'r', path: 'p' },
          { repository: 'r', chart: 'c', version: '6.x.y.z' },
        ],
      },
    },
    ['spec.sources[1].version: ', RANGE],
  ],
])('AP4 PT5 SO42 %s is told with its place and what to write', async (_, input, expected) => {
  expect(await told(input)).toEqual([naming(...expected)])
})

test.each(['^1.4', '~1.2.3', '>=1.2.0 <2.0.0', '1.x', 'v1.2.3', '1.2.3-rc.1', '1.2.3+build.5', '>=1, <2', '*'])(
  'SO42 %s is a range',
  async (version) => {
    expect(await told(service({ source: { repository: 'r', chart: 'c', version } }))).toEqual([])
    expect(await told(repository({ git: { url: 'https://git.example/a', semver: version } }))).toEqual([])
  },
)

test('RH6 of files on this machine the line of the field is told, for whatever is wrong', async () => {
  const text = `apiVersion: skerry.dev/v1
kind: Service
metadata: {name: a}
spec:
  source:
    repository: r
    chart: c
    version: latest
  targets: {selector: {}}
---
apiVersion: skerry.dev/v1
kind: Service
metadata: {name: b}
spec:
  source: {repository: r, path: p}
  targets: {selector: {}}
  render:
    patches:
      - target: {kind: Deployment}
        patch:
          - op: replce
            path: /a
    overides: []
`
  const { resources, problems } = await readResources([{ name: 'fleet.yaml', text }])
  expect(resources).toEqual([])
  expect(problems.map(({ path, message }) => `${path} ${message}`)).toEqual([
    naming('fleet.yaml:8 spec.source.version: ', RANGE),
    naming('fleet.yaml:21 spec.render.patches[0].patch[0].op: ', ...OPS),
    naming('fleet.yaml:23 spec.render.overides: ', 'kustomize, typescript, exec'),
  ])
})
