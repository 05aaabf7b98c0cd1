// The order of what happens to one service, with renderers that say what they were asked for.
import { describe, expect, test } from 'bun:test'
import { type PipelineInput, type PipelineSource, runPipeline } from '../../server/render/pipeline.ts'
import { renderRaw } from '../../server/render/render-raw.ts'
import type { RendererResult, RenderJob } from '../../server/render/renderer.ts'
import { dependenciesFromLines, dependenciesToLines } from '../../server/worker/channel/render-lines.ts'
import type { RendererName, RenderSpec } from '../../shared/model/render.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { naming } from '../support/naming.ts'
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
  /** Rendered for people, with these marks. */
  people?: (text: string) => string
}

function run({ sources, render = {}, settings = {}, helm = renderers.helm, cluster = null, people }: Given) {
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
    ...(people === undefined ? {} : { forPeople: true, mark: people }),
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

describe('CG2 texts of a render that read a secret', () => {
  const config = { values: { password: 'hunter2', color: 'red' }, secrets: new Set(['password']) }
  const files = new Map([['x.yaml', new TextEncoder().encode(configMap('x'))]])
  /** Whatever a chart makes of it. */
  const derived = ({ inputs }: RenderJob) => {
    const { password, color } = inputs.config as { password: string; color: string }
    return [password.toUpperCase(), password.slice(0, 3), password.length, Buffer.from(password).toString('base64'), color].join(' ')
  }
  const given = (helm: (job: RenderJob) => Promise<RendererResult>) => ({
    ...{ sources: [{ files: { 'app/Chart.yaml': 'name: c\n' } }], settings: { config }, helm },
  })
  const told = (text: string) => {
    expect(text).not.toMatch(/hun|HUN|aHVudGVy| 7 /)
    expect(text).toContain('red')
  }

  test('CG2 are those of a render with marks: problems, warnings, errors', async () => {
    const problem = (job: RenderJob) => ({ path: `main.ts:${derived(job)}`, message: derived(job), excerpt: derived(job) })
    const failed = await run(given(async (job) => ({ kind: 'failed', problems: [problem(job)] })))
    expect(failed.result).toMatchObject({ kind: 'failed', problems: [{}] })
    told(JSON.stringify(failed.result))
    expect(failed.reads.secret).toBe(true)
    const warned = await run(given(async (job) => ({ kind: 'rendered', files, warnings: [problem(job)] })))
    expect(warned.result).toMatchObject({ kind: 'rendered', warnings: [{}], count: 1 })
    told(JSON.stringify((warned.result as { warnings: unknown }).warnings))
    const thrown = await run(
      given((job) => Promise.reject(new AppError('source_refused', { detail: derived(job), problems: [problem(job)] }))),
    )
    expect(thrown.result).toMatchObject({ code: 'source_refused' })
    told(JSON.stringify((thrown.result as AppError).data))
  })

  test('CG2 are hidden where they depend on the value of the secret', async () => {
    const only = (text: string) =>
      given(async ({ inputs }) => {
        const isReal = inputs.config['password'] === 'hunter2'
        if (isReal && text === 'throw') throw new AppError('source_refused', { detail: 'it is hunter2' })
        if (isReal && text === 'fail') return { kind: 'failed', problems: [{ path: 'a', message: 'it is hunter2' }] }
        return { kind: 'rendered', files, warnings: isReal ? [{ path: 'a', message: 'it is hunter2' }] : [] }
      })
    for (const way of ['throw', 'fail', 'warn']) {
      const { result } = await run(only(way))
      expect(JSON.stringify([result, (result as AppError).data])).not.toContain('hunter2')
    }
    expect((await run(only('fail'))).result).toMatchObject({
      kind: 'failed',
      problems: [{ path: 'render', message: naming('secret') }],
    })
  })

  test('CG2 a render that read no secret says what it says', async () => {
    const { result } = await run(given(async () => ({ kind: 'failed', problems: [{ path: 'a', message: 'hunter2 is a word' }] })))
    expect(result).toMatchObject({ problems: [{ message: 'hunter2 is a word' }] })
  })
})

describe('RH2 a render for people', () => {
  const mark = (text: string) => `<${text.length}>`
  const shown = async (texts: Record<string, string>, values: Record<string, unknown> = { password: 'hunter2' }) => {
    const settings = { config: { values, secrets: new Set(['password']) } }
    const { result } = await run({ sources: [{ files: texts }], settings, people: mark })
    if (result instanceof AppError || result.kind === 'failed') throw new Error(JSON.stringify(result))
    return [...result.objects.values()].map((doc) => JSON.parse(doc))
  }
  const map = (data: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a, namespace: web }\ndata: { ${data} }\n`

  test('RH2 whatever a filter makes of a secret is made of its mark', async () => {
    const text = map(
      'a: "{{ config.password | upcase }}", b: "{{ config.password | b64enc }}", c: "{{ config.password | slice: 1, 2 }}", d: "{{ config.password | size }}", e: "{{ config.password | split: \'n\' | join: \'.\' }}", f: "{{ config.password | sha256sum }}"',
    )
    const [{ data }] = await shown({ 'app/a.yaml.liquid': text })
    expect(data).toEqual({
      a: '<7>',
      b: btoa('<7>'),
      c: '7>',
      d: '3',
      e: '<7>',
      f: new Bun.CryptoHasher('sha256').update('<7>').digest('hex'),
    })
  })

  test('RH2 contents of Secrets are marks, by the value and not its base64; values of SOPS, too', async () => {
    const last = 'kubectl.kubernetes.io/last-applied-configuration'
    const secret = `apiVersion: v1\nkind: Secret\nmetadata: { name: s, namespace: web, annotations: { ${last}: "{}", b: c } }\ndata: { p: ${btoa('literal')} }\nstringData: { q: literal }\ntype: Opaque\n`
    const [object] = await shown({ 'app/s.yaml': secret })
    expect(object).toMatchObject({
      data: { p: '<7>' },
      stringData: { q: '<7>' },
      type: 'Opaque',
      metadata: { annotations: { [last]: '<2>', b: 'c' } },
    })
    const enc = 'ENC[AES256_GCM,data:AA==,iv:AA==,tag:AA==,type:str]'
    const sops = `${map(`url: "${enc}"`)}sops: { mac: "${enc}", lastmodified: "2026-01-01T00:00:00Z", age: [{ recipient: age1x, enc: x }] }\n`
    const [config] = await shown({ 'app/m.yaml': sops })
    expect(config).toMatchObject({ data: { url: `sops:<${enc.length}>` } })
    expect(Object.keys(config)).toEqual(['apiVersion', 'data', 'kind', 'metadata'])
    expect(config.metadata).not.toHaveProperty('annotations')
  })
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
      naming('app/a.yaml.liquid:3:22:', 'cluster.name', 'no cluster'),
      naming('app/b.yaml:1:1: ', 'apiVersion'),
      naming('app/b.yaml:1:1: ', 'ConfigMap', 'no metadata'),
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
    ['one that leads out', '{{ cluster.name | replace: "oslo", "../other" }}', /^source\.path: .*relative path/],
    ['an absolute one', '{{ cluster.name | prepend: "/" }}', /^source\.path: .*relative path/],
    ['nothing', '{{ cluster.name | remove: "oslo" }}', /^source\.path: .*nothing/],
    ['a name that is not there', 'sites/{{ cluster.nmae }}', /^source\.path.* cluster\.nmae; .*cluster\.name\?/],
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
    expect(JSON.stringify(result)).toEqual(naming('no cluster'))
  })
})

describe('WK8 a name that a template makes longer than a message of a worker takes', () => {
  const grown = `{% assign s = "\\u0001\\u0001aaaa" %}{% for i in (1..13) %}{% assign s = s | append: s %}{% endfor %}`
  const asking = (text: string): Given => ({
    sources: [{ files: { 'app/a.yaml.liquid': configMap(`{{ cluster.name }}`).replace('{}', `{ a: "${grown}${text}" }`) } }],
    cluster: { name: 'oslo', labels: {}, facts: { kubernetesVersion: '', apiVersions: {} } },
  })

  test('becomes a dependency on the object that the name is of', async () => {
    const { result, reads } = await run(asking('{{ cluster.labels | hasKey: s }}'))
    expect(result).toMatchObject({ kind: 'rendered' })
    expect(reads.inputs).toContainEqual(['cluster', 'labels'])
    const sent = dependenciesToLines(reads.dependencies)
    expect(await dependenciesFromLines(sent, () => undefined)).toEqual([...reads.dependencies])
  })

  test('counts as a read of every secret of that object', async () => {
    const config = { values: { token: 'hunter2-hunter2' }, secrets: new Set(['token']) }
    const { reads } = await run({ ...asking('{{ config | hasKey: s }}'), settings: { config } })
    expect([reads.secret, reads.inputs]).toEqual([true, expect.arrayContaining([['config']])])
  })
})
