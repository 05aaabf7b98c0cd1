// HM: what the renderer looks at, what it gives to helm, what it warns of, and when helm is not run again.
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { InputRead } from '../../server/render/inputs.ts'
import { KIND_ONLY } from '../../server/render/inputs.ts'
import { leastReads } from '../../server/render/record/reads.ts'
import { CHARTS_FOLDER, createCaseRenderer, FACTS, filesOfFolder, type HelmCase, renderedTexts } from '../support/helm-kit.ts'

const renderCase = createCaseRenderer()

const all = filesOfFolder(CHARTS_FOLDER)
const chart = (root: string, more: Partial<HelmCase> = {}): HelmCase => ({ root, files: all, ...more })
const own = (text: string, more: Partial<HelmCase> = {}): HelmCase => ({
  root: '',
  files: { 'Chart.yaml': 'apiVersion: v2\nname: own\nversion: 1.0.0\n', 'templates/a.yaml': text },
  ...more,
})
const looks = (reads: readonly InputRead[]) => leastReads(reads.filter((path) => path.at(-1) !== KIND_ONLY)).map((path) => path.join(' '))
const map = (data: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: ${data}}\n`

describe('HM4', () => {
  test('a chart that asks for nothing is rendered without a look at the cluster', async () => {
    const { reads, runs } = await renderCase(chart('basic'))
    expect(reads).toEqual([])
    expect(runs[0]?.args.filter((arg) => /version/.test(arg))).toEqual([])
  })

  test('what it names literally is looked at, and nothing else', async () => {
    const { reads, runs, result } = await renderCase(chart('capabilities'))
    expect(looks(reads)).toEqual(
      [
        'apps/v1',
        'extensions/v1beta1',
        'gateway.networking.k8s.io/v1',
        'monitoring.coreos.com/v1/ServiceMonitor',
        'policy/v1beta1',
        'v1',
      ].map((name) => `cluster facts apiVersions ${name}`),
    )
    expect(runs[0]?.args.filter((arg) => /version/.test(arg))).toEqual(['--api-versions=apps/v1,monitoring.coreos.com/v1/ServiceMonitor'])
    expect(renderedTexts(result).join()).toContain('apiVersion: policy/v1\n')
    expect(result.kind === 'rendered' ? result.warnings : []).toEqual([])
  })

  test('the version is looked at when a template or Chart.yaml asks', async () => {
    for (const root of ['kube-version', 'kube-constraint']) {
      const { reads, runs } = await renderCase(chart(root))
      expect(looks(reads)).toEqual(['cluster facts kubernetesVersion'])
      expect(runs[0]?.args).toContain('--kube-version=v1.36.3')
    }
  })

  test('a look that cannot be read takes all, and says so', async () => {
    const { reads, runs, result } = await renderCase(chart('api-range'))
    expect(looks(reads)).toContain('cluster facts apiVersions')
    expect(runs[0]?.args).toContain(`--api-versions=${Object.keys(FACTS.apiVersions).sort().join(',')}`)
    expect(result.kind === 'rendered' ? result.warnings.map(({ path }) => path) : []).toEqual(['api-range/templates/cm.yaml:6:16'])
  })

  test('facts that are not known: helm’s defaults, and a warning if the chart asks', async () => {
    const facts = { kubernetesVersion: '', apiVersions: {} }
    const warnings = async (root: string, cluster: HelmCase['cluster']) => {
      const { result, runs } = await renderCase(chart(root, { cluster: cluster ?? null }))
      expect(runs[0]?.args.filter((arg) => /version/.test(arg))).toEqual([])
      return result.kind === 'rendered' ? result.warnings.map(({ message }) => message) : ['failed']
    }
    expect(await warnings('basic', null)).toEqual([])
    expect(await warnings('capabilities', null)).toEqual([expect.stringContaining('rendered for no cluster')])
    expect(await warnings('kube-version', { facts })).toEqual([expect.stringContaining('has not reported')])
    expect(await warnings('capabilities', { facts })).toEqual([expect.stringContaining('has not reported')])
  })

  test('in a text that tpl renders, of the chart and of values', async () => {
    const text = '{{ tpl .Values.a . }}'
    const { reads } = await renderCase(
      own(map(text), { helm: { values: { a: '{% raw %}{{ .Capabilities.KubeVersion.Minor | quote }}{% endraw %}' } } }),
    )
    expect(looks(reads)).toEqual(['cluster facts kubernetesVersion'])
  })
})

describe('HM8', () => {
  test('clusters that differ where the chart does not look are one and the same call', async () => {
    const parts = async (more: Partial<HelmCase>, root = 'capabilities') => (await renderCase(chart(root, more))).parts.join('\n')
    const facts = { ...FACTS, kubernetesVersion: 'v1.29.0', apiVersions: { ...FACTS.apiVersions, 'x/v1': true as const } }
    const first = await parts({})
    expect(await parts({ cluster: { name: 'us-1', labels: {}, facts } })).toBe(first)
    const { 'monitoring.coreos.com/v1/ServiceMonitor': _, ...fewer } = FACTS.apiVersions
    const others = await Promise.all([
      parts({ cluster: { facts: { ...FACTS, apiVersions: fewer } } }),
      parts({ cluster: { facts: { ...FACTS, apiVersions: { ...FACTS.apiVersions, 'policy/v1beta1': true } } } }),
      parts({ namespace: 'other' }),
      parts({ helm: { values: { a: 1 } } }),
      parts({ helm: { helm: '3' } }),
      parts({ helm: { skipCrds: true } }),
      parts({ helm: { skipSchemaValidation: true } }),
      parts({ helm: { releaseName: 'x' } }),
      parts({ files: { ...all, 'capabilities/values.yaml': 'a: 1\n' } }),
      parts({ files: { ...all, 'capabilities/values.yaml': 'a: 2\n' } }),
    ])
    expect(new Set([first, ...others]).size).toBe(others.length + 1)
  })

  test('the same chart in another folder is another call: what is wrong with it names its own files', async () => {
    const files = { ...own(map('x')).files, 'b/Chart.yaml': own('').files['Chart.yaml'] ?? '', 'b/templates/a.yaml': map('x') }
    const [a, b] = [await renderCase({ root: '', files: own(map('x')).files }), await renderCase({ root: 'b', files })]
    expect(a.parts.join('\n')).not.toBe(b.parts.join('\n'))
  })

  test('values that come to the same by another way are the same call', async () => {
    const parts = async (helm: HelmCase['helm'], values: HelmCase['values']) =>
      (await renderCase(own(map('x'), { helm: helm ?? {}, values: values ?? [] }))).parts
    expect(await parts({ values: { b: 1, a: { c: 1, d: 2 } } }, [{ from: 'cluster', values: { a: { c: 2 } } }])).toEqual(
      await parts({ values: { a: { d: 2, c: 2 }, b: 1 } }, []),
    )
  })

  test('no value is in what is asked for', async () => {
    const { parts } = await renderCase(own(map('x'), { helm: { values: { password: 'hunter2' } } }))
    expect(parts.join()).not.toContain('hunter2')
  })
})

describe('HM3', () => {
  test('a packed chart is seen like an unpacked one', async () => {
    const packed = Bun.spawnSync(['tar', '-czf', '-', '-C', join(CHARTS_FOLDER, 'sub-global/charts'), 'child']).stdout
    const rest = Object.fromEntries(
      Object.entries(all).filter(([path]) => path.startsWith('sub-global/') && !path.startsWith('sub-global/charts')),
    )
    const { result } = await renderCase({ root: 'sub-global', files: { ...rest, 'sub-global/charts/child-0.1.0.tgz': packed } })
    const { result: unpacked } = await renderCase(chart('sub-global'))
    expect(renderedTexts(result)).toEqual(renderedTexts(unpacked))
    expect(renderedTexts(result).length).toBeGreaterThan(1)
  })

  test('a dependency comes in the version of Chart.lock from a Repository', async () => {
    const asked: string[] = []
    const { result } = await renderCase({
      root: '',
      files: {
        'Chart.yaml':
          'apiVersion: v2\nname: own\nversion: 1.0.0\ndependencies:\n  - {name: shade, version: ">=0.1.0", repository: "https://charts.example.com", alias: tint}\n',
        'Chart.lock': 'dependencies:\n  - {name: shade, version: 0.1.0, repository: "https://charts.example.com"}\ndigest: sha256:x\n',
      },
      charts: async (...wanted) => {
        asked.push(wanted.join(' '))
        const folder = 'sub-alias/charts/shade/'
        return new Map(
          Object.entries(all).flatMap(([path, bytes]) => (path.startsWith(folder) ? [[path.slice(folder.length), bytes]] : [])),
        )
      },
    })
    expect(asked).toEqual(['https://charts.example.com shade 0.1.0'])
    expect(renderedTexts(result).join()).toContain('name: release-tint')
  })

  test('helm gets the files of the chart that it can see, and no others', async () => {
    const { runs } = await renderCase(chart('helmignore'))
    expect([...(runs[0]?.files.keys() ?? [])].sort()).toEqual([
      'chart/.helmignore',
      'chart/Chart.yaml',
      'chart/sub/secret/key',
      'chart/templates/cm.yaml',
      'values.json',
    ])
  })
})

describe('HM7', () => {
  const warned = async (one: HelmCase) => {
    const { result } = await renderCase(one)
    return result.kind === 'rendered'
      ? result.warnings.map(({ path, message, excerpt }) => `${path} ${message.split(' ').slice(0, 3).join(' ')} ${excerpt ?? ''}`.trim())
      : ['failed']
  }
  test('RD7 random values and the time, in a Secret: their places, and no line of it', async () => {
    expect(await warned(chart('random'))).toEqual([
      'random/templates/secret.yaml:7:26 now is the',
      'random/templates/secret.yaml:9:16 randAlphaNum returns a',
    ])
  })
  test('lookup and the kind of release', async () => {
    expect((await warned(chart('lookup'))).map((text) => text.split(' ').slice(0, 2).join(' '))).toEqual([
      'lookup/templates/secret.yaml:1:13 lookup',
      'lookup/templates/secret.yaml:11:15 .Release.IsInstall',
    ])
  })
  test('hooks that helm does not know, of both versions', async () => {
    for (const helm of ['3', '4'] as const)
      expect(await warned(chart('hook-unknown', { helm: { helm } }))).toEqual(['hook-unknown/templates/crd.yaml an object with'])
  })
  test('values without a mapping where the chart has one, without the value', async () => {
    for (const helm of ['3', '4'] as const) {
      const { result } = await renderCase(chart('sub-alias', { helm: { helm, values: { blue: { text: { deep: 'hunter2' } } } } }))
      const warnings = result.kind === 'rendered' ? result.warnings : []
      expect(warnings.map(({ path }) => path)).toEqual(['render.helm.values'])
      expect(JSON.stringify(warnings)).not.toContain('hunter2')
    }
  })
  test('the namespace of a service that has none', async () => {
    expect(await warned(chart('basic', { namespace: undefined }))).toEqual([
      'basic/templates/service.yaml:5:17 .Release.Namespace is `default`,',
    ])
    expect(await warned(chart('notes', { namespace: undefined }))).toEqual([])
  })
})

test('HM5 what is rendered goes by the name of its template', async () => {
  const { result } = await renderCase(chart('sub-global'))
  expect(result.kind === 'rendered' ? [...result.files.keys()].sort() : []).toEqual([
    'sub-global/charts/child/charts/grandchild/templates/cm.yaml',
    'sub-global/charts/child/templates/cm.yaml',
  ])
})
