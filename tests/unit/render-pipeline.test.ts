// The order of what happens to one service, with renderers that say what they were asked for.
import { describe, expect, test } from 'bun:test'
import { type PipelineInput, type PipelineSource, runPipeline } from '../../server/render/pipeline.ts'
import { renderRaw } from '../../server/render/render-raw.ts'
import type { RenderJob } from '../../server/render/renderer.ts'
import type { RendererName, RenderSpec } from '../../shared/model/render.ts'
import { AppError } from '../../shared/protocol/error.ts'
import { memoryTree } from '../support/render-job.ts'

const configMap = (name: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: ${name}, namespace: web }\ndata: {}\n`
const asked: string[] = []
const said = (name: RendererName) => async (job: RenderJob) => {
  asked.push(name)
  const files = new Map([['x.yaml', new TextEncoder().encode(configMap('x'))]])
  return name === 'raw' ? renderRaw(job) : { kind: 'rendered' as const, files, warnings: [] }
}
const renderers = { raw: said('raw'), helm: said('helm'), kustomize: said('kustomize'), typescript: said('typescript'), exec: said('exec') }

interface Given {
  sources: ReadonlyArray<{ files: Record<string, string>; root?: string } & Partial<PipelineSource>>
  render?: RenderSpec
  settings?: Partial<PipelineInput['settings']>
  helm?: Parameters<typeof runPipeline>[0]['renderers']['helm']
  cluster?: PipelineInput['cluster']
}

function run({ sources, render = {}, settings = {}, helm = renderers.helm, cluster = null }: Given) {
  asked.length = 0
  const deps = {
    renderers: { ...renderers, helm },
    sandbox: { run: () => Promise.reject(new AppError('renderer_missing')), version: async () => 'tool 1.0.0' },
    once: (_: readonly string[], work: () => Promise<Uint8Array>) => work(),
    signal: new AbortController().signal,
  }
  const opened = sources.map(({ files, root = 'app', ...rest }, index) => ({
    ...{ name: undefined, label: `s${index}`, render: undefined, filesOnly: false },
    ...rest,
    opened: { tree: memoryTree(files), root, version: 'c'.repeat(40) },
  }))
  const none = { config: { values: {}, secrets: new Set<string>() }, helmValues: [], patches: [] }
  const given = {
    id: { project: 'default', service: 'shop' },
    namespace: 'web',
    render,
    sources: opened,
    cluster,
    configs: new Map(),
  }
  return runPipeline(deps, { ...given, settings: { ...none, ...settings } })
}

async function docs(given: Given): Promise<Record<string, unknown>> {
  const { result } = await run(given)
  if (result instanceof AppError || result.kind === 'failed') throw new Error(JSON.stringify(result))
  const objects = [...result.objects.values()].map((doc) => JSON.parse(doc))
  return Object.fromEntries(objects.map(({ metadata, data }) => [metadata.name, { ...data, ...metadata.labels }]))
}
async function problems(given: Given): Promise<string[]> {
  const { result } = await run(given)
  if (result instanceof AppError) return [result.code]
  return result.kind === 'failed' ? result.problems.map(({ path, message }) => `${path}: ${message}`) : []
}

test('CG2 what a program says of a secret that it was given is in no problem and in no warning', async () => {
  const key = '-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA7\n-----END KEY-----'
  const config = { values: { password: 'hunter2', key, short: 'a', color: 'red' }, secrets: new Set(['password', 'key', 'short']) }
  const words = `a red hunter2, ${Buffer.from('hunter2').toString('base64')}, MIIEpAIBAAKCAQEA7`
  const problem = { path: 'main.ts:1:1', message: words, excerpt: 'throw hunter2' }
  const helm = async () => ({ kind: 'failed' as const, problems: [problem] })
  const given = { sources: [{ files: { 'app/Chart.yaml': 'name: c\n' } }], settings: { config }, helm }
  const { result } = await run(given)
  const expected = [{ path: 'main.ts:1:1', message: 'a red …, …, …', excerpt: 'throw …' }]
  expect(result).toMatchObject({ kind: 'failed', problems: expected })
  const files = new Map([['x.yaml', new TextEncoder().encode(configMap('x'))]])
  const warned = await run({ ...given, helm: async () => ({ kind: 'rendered' as const, files, warnings: [problem] }) })
  expect(warned.result).toMatchObject({ kind: 'rendered', warnings: expected })
})

test('CG2 a path that is made of a secret and cannot be read is told without it', async () => {
  const config = { values: { password: 'hunter2' }, secrets: new Set(['password']) }
  const problem = { path: 'x', message: 'hunter2' }
  const helm = async () => Promise.reject(new AppError('source_refused', { detail: 'up/hunter2 leads out', problems: [problem] }))
  const { result } = await run({ sources: [{ files: { 'app/Chart.yaml': 'name: c\n' } }], settings: { config }, helm })
  expect(result).toMatchObject({ code: 'source_refused', message: 'up/… leads out', data: { problems: [{ path: 'x', message: '…' }] } })
})

describe('RD10 a render for nobody', () => {
  const [always, perhaps] = [
    { path: 'a', message: 'always' },
    { path: 'b', message: 'perhaps' },
  ]
  const failing = (look: (job: RenderJob) => unknown, cluster: PipelineInput['cluster'], leavesOut: boolean) => {
    const helm = async (job: RenderJob) => {
      look(job)
      const files = new Map([['x.yaml', new TextEncoder().encode('kind: ConfigMap')]])
      return { kind: 'failed' as const, problems: [always, perhaps], ofInputs: [perhaps], files }
    }
    return problems({ sources: [{ files: { 'app/Chart.yaml': '' } }], helm, cluster, settings: { leavesOut } })
  }
  const DOUBT = '; this is rendered for no cluster: one may bring what is missing'
  const plain = ['a: always', 'b: perhaps', 'x.yaml:1:1: ConfigMap has no metadata', 'x.yaml:1:1: apiVersion is missing']
  const doubtful = plain.map((text, index) => (index === 0 ? text : `${text}${DOUBT}`))
  const atCluster = ({ inputs }: RenderJob) => inputs.cluster?.name
  const atValues = ({ values }: RenderJob) => values.length
  const oslo = { name: 'oslo', labels: {}, facts: { kubernetesVersion: '', apiVersions: {} } }
  test.each([
    ['what looks at no cluster is wrong', () => {}, null, false, plain],
    ['what looks at one may be right with one, but for what no input mends', atCluster, null, false, doubtful],
    ['overrides for clusters may bring values', atValues, null, true, doubtful],
    ['where there are none, values are what they are', atValues, null, false, plain],
    ['for a cluster nothing is doubted', atCluster, oslo, true, plain],
  ] as const)('RD10 %s', async (_, look, cluster, leavesOut, expected) => {
    expect((await failing(look, cluster, leavesOut)).sort()).toEqual([...expected].sort())
  })

  test('RD10 a plain manifest beside a template that looks at a cluster is wrong', async () => {
    const files = { 'app/a.yaml.liquid': configMap('{{ cluster.name }}'), 'app/b.yaml': 'kind: ConfigMap\n' }
    expect(await problems({ sources: [{ files }] })).toEqual([
      'app/a.yaml.liquid:3:22: cluster.name: this is rendered for no cluster, so there is none to ask',
      'app/b.yaml:1:1: apiVersion is missing',
      'app/b.yaml:1:1: ConfigMap has no metadata',
    ])
  })
})

describe('which renderer', () => {
  test.each([
    ['Chart.yaml', 'helm'],
    ['kustomization.yaml', 'kustomize'],
    ['kustomization.yml', 'kustomize'],
    ['Kustomization', 'kustomize'],
    ['kustomization.yaml.liquid', 'kustomize'],
    ['other.yaml', 'raw'],
  ])('RD1 a folder with %s is rendered by %s', async (name, renderer) => {
    await run({ sources: [{ files: { [`app/${name}`]: configMap('a'), 'app/z.yaml': configMap('z') } }] })
    expect(asked).toEqual([renderer])
  })
  test('RD1 a chart wins over a kustomization, and what the spec names over both; folders below do not count', async () => {
    const files = { 'app/Chart.yaml': 'x: 1', 'app/kustomization.yaml': 'x: 1', 'app/deep/main.ts': '' }
    await run({ sources: [{ files }] })
    expect(asked).toEqual(['helm'])
    await run({ sources: [{ files }], render: { type: 'kustomize' } })
    expect(asked).toEqual(['kustomize'])
    await run({ sources: [{ files: { 'app/entry.ts': '' } }], render: { typescript: { entry: 'entry.ts' } } })
    expect(asked).toEqual(['typescript'])
  })
  test('RD1 that there is no such file is remembered: it may come with another commit', async () => {
    const { reads } = await run({ sources: [{ files: { 'app/a.yaml': configMap('a') } }] })
    expect(reads.files.map(({ path, id }) => `${path} ${id === null}`)).toContain('app/Chart.yaml true')
  })
})

describe('several sources', () => {
  test('RD2 each by its own render spec or that of the service, and nothing of those that are files only', async () => {
    const sources = [
      { files: { 'app/a.yaml': configMap('a') } },
      { files: { 'app/b.yaml': configMap('b') }, render: { type: 'helm' as const } },
      { files: { 'app/c.yaml': 'not: read' }, filesOnly: true, name: 'values' },
    ]
    expect(Object.keys(await docs({ sources }))).toEqual(['a', 'x'])
    expect(asked).toEqual(['raw', 'helm'])
  })
  test('RD2 all errors of all of them at once, sorted, each with its source', async () => {
    const second = { files: { 'app/a.yaml': 'kind: Y' }, name: 'second', label: 'second' }
    const found = await problems({ sources: [{ files: { 'app/b.yaml': 'kind: X', 'app/a.yaml': 'a: [' } }, second] })
    const places = [...new Set(found.map((text) => text.split(': ')[0]?.replace(/:\d+$/, '')))]
    expect(places).toEqual(['s0/app/a.yaml:1', 's0/app/b.yaml:1', 'second/app/a.yaml:1'])
  })
})

describe('after the renderer', () => {
  const set = (value: string) => [{ target: { kind: 'ConfigMap', name: 'a' }, patch: [{ op: 'add' as const, path: '/data/v', value }] }]
  const files = { 'app/a.yaml': configMap('a') }
  test('RD3 patches of the service < of its overrides < of the cluster', async () => {
    const layers = [
      { from: 'overrides[0]', patches: set('override') },
      { from: 'cluster overrides[0]', patches: set('cluster') },
    ]
    const given = { sources: [{ files }], render: { patches: set('service') } }
    expect(await docs(given)).toEqual({ a: { v: 'service' } })
    expect(await docs({ ...given, settings: { patches: layers.slice(0, 1) } })).toEqual({ a: { v: 'override' } })
    expect(await docs({ ...given, settings: { patches: layers } })).toEqual({ a: { v: 'cluster' } })
  })
  test('RD3 patches of a source are for its own objects, those of the service for all sources that have none', async () => {
    const other = { files: { 'app/b.yaml': configMap('b') } }
    expect(await docs({ sources: [{ files }, other], render: { patches: set('service') } })).toEqual({ a: { v: 'service' }, b: {} })
    const wrong = { ...other, render: { patches: set('x') } }
    expect(await problems({ sources: [{ files }, wrong] })).toEqual([expect.stringMatching(/^render.patches of s1\[0\]: /)])
  })
  test('RD3 with an error in the manifests, patches say nothing: what they miss may be what could not be read', async () => {
    expect(await problems({ sources: [{ files: { 'app/a.yaml': 'a: [' } }], render: { patches: set('x') } })).toHaveLength(1)
  })
  test('RD4 labels of the render spec that an object came by, after every patch', async () => {
    const label = [{ target: { name: 'a' }, patch: { metadata: { labels: { team: 'patched', own: 'yes' } } } }]
    const sources = [{ files }, { files: { 'app/b.yaml': configMap('b') }, render: { commonLabels: { team: 'second' } } }]
    const settings = { patches: [{ from: 'overrides[0]', patches: label }] }
    const found = await docs({ sources, render: { commonLabels: { team: 'first' } }, settings })
    expect(found).toEqual({ a: { team: 'first', own: 'yes' }, b: { team: 'second' } })
  })
})

const chart = [{ files: { 'app/Chart.yaml': 'x: 1' } }]

test('IC1 what a render looked at is known also when the server could not do it', async () => {
  const helm = async (job: RenderJob): Promise<never> => {
    await job.sandbox.version('helm')
    void job.inputs.config['color']
    void job.values
    job.configValue('db', 'password')
    throw new AppError('renderer_missing')
  }
  const { result, reads } = await run({ sources: chart, helm })
  expect(result).toBeInstanceOf(AppError)
  expect(reads.inputs).toEqual([['config', 'color'], ['configs', 'db', 'password'], ['tools', 'helm'], ['values']])
})

test.each([
  ['a secret', (job: RenderJob) => job.inputs.config['password'], true],
  ['all variables', (job: RenderJob) => JSON.stringify(job.inputs.config), true],
  ['everything', (job: RenderJob) => JSON.stringify(job.inputs), true],
  ['another variable', (job: RenderJob) => job.inputs.config['color'], false],
  ['what another process says', (job: RenderJob) => job.recordInput(['config', 'password']), true],
] as const)('IC6 a render that looked at %s', async (_, look, secret) => {
  const helm = async (job: RenderJob) => {
    look(job)
    return { kind: 'failed' as const, problems: [] }
  }
  const config = { values: { password: 'x', color: 'red' }, secrets: new Set(['password']) }
  expect((await run({ sources: chart, settings: { config }, helm })).reads.secret).toBe(secret)
})

describe('RD11 a path that is a template', () => {
  const oslo = { name: 'oslo', labels: { env: 'prod' } }
  const files = {
    'base/all.yaml': configMap('all'),
    'sites/oslo/a.yaml': configMap('of-oslo'),
    'sites/bergen/a.yaml': configMap('of-bergen'),
    'envs/prod/a.yaml': configMap('of-prod'),
  }
  const placed = (root: string, cluster: Given['cluster'] = oslo as never): Given => ({ sources: [{ files, root }], cluster })

  test.each([
    ['sites/{{ cluster.name }}', ['of-oslo']],
    ['{{ cluster.labels.env | prepend: "envs/" }}', ['of-prod']],
    ['{% if cluster.name == "oslo" %}sites/bergen{% else %}base{% endif %}', ['of-bergen']],
    ['./sites//{{ cluster.name }}/', ['of-oslo']],
  ])('%s is a folder for each cluster', async (root, names) => expect(Object.keys(await docs(placed(root)))).toEqual(names))

  test('what it is made of is looked at, and nothing else of the cluster', async () => {
    const { reads } = await run(placed('sites/{{ cluster.name }}'))
    const looks = reads.inputs.filter(([first]) => first === 'cluster').map((path) => path.join('.'))
    expect(looks).toContain('cluster.name')
    expect(looks.filter((look) => look.startsWith('cluster.labels'))).toEqual([])
  })

  test.each([
    [
      'one that leads out',
      '{{ cluster.name | replace: "oslo", "../other" }}',
      /^source\.path: the template of this path must result in a relative path/,
    ],
    ['an absolute one', '{{ cluster.name | prepend: "/" }}', /^source\.path: the template of this path must result in a relative path/],
    ['nothing', '{{ cluster.name | remove: "oslo" }}', /^source\.path: the template of this name results in nothing/],
    ['a name that is not there', 'sites/{{ cluster.nmae }}', /^source\.path.* unknown name cluster\.nmae; did you mean cluster\.name\?/],
    ['what is no template', 'sites/{{ cluster.name', /^source\.path/],
  ] as const)('%s is told with the field', async (_, root, told) => {
    const found = await problems(placed(root))
    expect(found).toHaveLength(1)
    expect(found[0]).toMatch(told)
  })

  test('a folder that is not there is told by the name that was made', async () => {
    const { result } = await run(placed('sites/{{ cluster.labels.env }}'))
    expect(result).toMatchObject({ kind: 'failed', code: 'no_manifests', message: expect.stringContaining('sites/prod') })
  })

  test('of several sources each has its own, and the field says which', async () => {
    const given = (root: string): Given => ({
      sources: [
        { files, root: 'base' },
        { files, root },
      ],
      cluster: oslo as never,
    })
    expect(Object.keys(await docs(given('sites/{{ cluster.name }}'))).sort()).toEqual(['all', 'of-oslo'])
    expect((await problems(given('{{ cluster.nmae }}')))[0]).toMatch(/^sources\[1\]\.path/)
  })

  test('a secret in it is not told', async () => {
    const config = { values: { token: 'hunter2-hunter2' }, secrets: new Set(['token']) }
    const { result, reads } = await run({ ...placed('sites/{{ config.token }}'), settings: { config } })
    expect(JSON.stringify(result)).not.toContain('hunter2')
    expect(reads.secret).toBe(true)
  })

  test('RD10 without a cluster nothing is wrong with it', async () => {
    const { result } = await run(placed('sites/{{ cluster.name }}', null))
    expect(result).toMatchObject({ kind: 'failed' })
    expect(JSON.stringify(result)).toContain('this is rendered for no cluster')
  })
})
