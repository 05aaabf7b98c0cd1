// SP7: SOPS files that helm and kustomize read in clear: refused without a key of the operator, opened with one, sealed
// as a whole, and shown as marks.
import { expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadSopsKeys, NO_SOPS_KEYS, type ServerSopsKeys } from '../../server/access/sops-keys.ts'
import { markBy, markPlacesBy } from '../../server/render/for-people.ts'
import type { Mark } from '../../server/render/marks.ts'
import { explainCharts, type PipelineDeps, type PipelineInput, runPipeline } from '../../server/render/pipeline.ts'
import { createRenderers } from '../../server/render/renderers.ts'
import type { RenderSpec } from '../../shared/model/render.ts'
import { isSealed, sealingKeysOf } from '../../shared/model/sealed-object.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { isSopsRow } from '../../shared/sops/parcel.ts'
import { naming } from '../support/naming.ts'
import { realSandbox } from '../support/real-sandbox.ts'
import { memoryTree } from '../support/render-job.ts'
import { keyFile, newAgeKey, sopsEncrypt } from '../support/sops-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(30_000)
const [key, other] = await Promise.all([newAgeKey(), newAgeKey()])
const sandbox = realSandbox({ mode: 'limits' })
const renderers = createRenderers()
const id = { project: 'default', service: 'shop' }
const seal = sealingKeysOf({ id: '00000001', secret: new Uint8Array(32) }, id)

function keyFolder(...of: Array<readonly [file: string, text: string]>): string {
  const folder = tempDir()
  for (const [file, text] of of) {
    mkdirSync(join(folder, file, '..'), { recursive: true })
    writeFileSync(join(folder, file), text)
  }
  return folder
}

interface Asked {
  files: Record<string, string>
  render?: RenderSpec
  keys?: ServerSopsKeys
  forPeople?: boolean
  mark?: Mark
}

function pipelineOf({
  files,
  render = {},
  keys = NO_SOPS_KEYS,
  forPeople = false,
  mark = markBy('00'),
}: Asked): [PipelineDeps, PipelineInput] {
  return [
    {
      ...{ renderers, sandbox, signal: new AbortController().signal },
      once: (_, run) => run(),
      openSops: async ({ age }) => ({ key: await keys.dataKey(id.project, age), recipients: keys.recipients(id.project) }),
    },
    {
      ...{ id, namespace: 'shop', render, cluster: null, configs: new Map(), seal, forPeople, mark },
      sources: [
        {
          name: undefined,
          label: 'a',
          render: undefined,
          filesOnly: false,
          opened: { tree: memoryTree(files), root: 'app', version: 'c' },
        },
      ],
      settings: { config: { values: {}, secrets: new Set<string>() }, helmValues: [], patches: [] },
    },
  ]
}

async function rendered(asked: Asked) {
  const outcome = await runPipeline(...pipelineOf(asked))
  const { result } = outcome
  if (result instanceof AppError) throw result
  return { ...outcome, result }
}
const problemsOf = async (asked: Asked) => {
  const { result } = await rendered(asked)
  return result.kind === 'failed' ? result.problems.map(({ path, message }) => `${path}: ${message}`).join('\n') : result.kind
}

const CHART = {
  'app/Chart.yaml': 'apiVersion: v2\nname: demo\nversion: 1.0.0\n',
  'app/values.yaml': 'color: red\n',
  'app/templates/a.yaml':
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {url: "x:{{ .Values.auth.password | upper }}@db", count: "{{ .Values.auth.count }}", color: {{ .Values.color }}}\n',
}
const helm: RenderSpec = { helm: { valuesFiles: ['secrets.yaml'] } }
const VALUES = sopsEncrypt('secrets.yaml', 'auth: {password: hunter2, count: 3}\n', { to: [key] })
const chart = { ...CHART, 'app/secrets.yaml': VALUES }
const kustomization = (more: string) => `resources: []\n${more}`
const ENV = sopsEncrypt('a.env', 'PASSWORD=hunter2\nCOUNT=3\n', { to: [key] })
const kust = {
  'app/kustomization.yaml': kustomization('secretGenerator: [{name: db, envs: [a.env], options: {disableNameSuffixHash: true}}]\n'),
  'app/a.env': ENV,
}

test('SP7 without a key of the operator: refused, with the file, its recipients and the way to keep it encrypted', async () => {
  for (const [files, render, file] of [
    [chart, helm, 'app/secrets.yaml'],
    [kust, {}, 'app/a.env'],
  ] as const) {
    const told = await problemsOf({ files, render })
    expect(told).toStartWith(`${file}: `)
    expect(told).toEqual(naming('SOPS', key.recipient, 'no age key', '--sops-keys', 'Secret'))
  }
  const others = await loadSopsKeys(keyFolder(['other.agekey', keyFile(other)], ['shop/site.agekey', keyFile(key)]))
  expect(await problemsOf({ files: chart, render: helm, keys: others })).toEqual(naming(other.recipient))
  expect([others.version('default'), others.version('shop')]).toEqual([
    expect.stringMatching(/^[0-9a-f]{16}$/),
    expect.not.stringMatching(/^$/),
  ])
  expect(others.version('default')).not.toBe(others.version('shop'))
})

test('SP7 with the key of its project it renders, every object of the render is sealed, and people see marks', async () => {
  const keys = await loadSopsKeys(keyFolder(['default/site.agekey', keyFile(key)]))
  for (const [files, render] of [
    [chart, helm],
    [kust, {}],
  ] as const) {
    const { result, reads } = await rendered({ files, render, keys })
    if (result.kind === 'failed') throw new Error(JSON.stringify(result.problems))
    expect([reads.secret, [...result.objects.values()].every(isSealed)]).toEqual([true, true])
    expect(reads.inputs).toContainEqual(['sops'])
  }
  const { result } = await rendered({ files: chart, render: helm, keys, forPeople: true })
  if (result.kind === 'failed') throw new Error(JSON.stringify(result.problems))
  const [text = ''] = result.objects.values()
  expect(text).not.toMatch(/hunter2/i)
  const placed = await rendered({ files: chart, render: helm, keys, forPeople: true, mark: markPlacesBy('00') })
  if (placed.result.kind === 'failed') throw new Error(JSON.stringify(placed.result.problems))
  // DF3: marks of proposed content are those of a place, too.
  expect([...placed.result.objects.values()].join()).not.toContain(JSON.parse(text).data.count)
  expect(JSON.parse(text).data).toMatchObject({ url: expect.stringMatching(/^x:HMAC:[0-9A-F]{16}@db$/), color: 'red' })
})

test('CG9 SP7 Helm values of a SOPS file are explained by their names, without what is in them', async () => {
  const keys = await loadSopsKeys(keyFolder(['default/site.agekey', keyFile(key)]))
  const explained = await explainCharts(...pipelineOf({ files: chart, render: helm, keys }))
  expect(explained.map(({ path, value, secret, from }) => [path, value, secret, from])).toEqual([
    ['.Values.auth.count', '[secret]', true, 'app/secrets.yaml'],
    ['.Values.auth.password', '[secret]', true, 'app/secrets.yaml'],
    ['.Values.color', 'red', false, 'chart values.yaml'],
  ])
  expect(await explainCharts(...pipelineOf({ files: chart, render: helm }))).toEqual([])
})

test('SP7 a changed file is refused, and so is one that helm or a ConfigMap would read by itself', async () => {
  const keys = await loadSopsKeys(keyFolder(['site.agekey', keyFile(key)]))
  const changed = { ...CHART, 'app/secrets.yaml': VALUES.replace('auth:', 'auht:') }
  expect(await problemsOf({ files: changed, render: helm, keys })).toEqual(naming('MAC'))
  const own = { ...CHART, 'app/values.yaml': sopsEncrypt('values.yaml', 'color: red\n', { to: [key] }) }
  expect(await problemsOf({ files: own, keys })).toEqual(naming('app/values.yaml:', 'SOPS', 'helm', 'render.helm.valuesFiles'))
  const map = { ...kust, 'app/kustomization.yaml': kustomization('configMapGenerator: [{name: db, envs: [a.env]}]\n') }
  expect(await problemsOf({ files: map, keys })).toEqual(naming('ConfigMap', 'values'))
})

test('SP1 SP7 manifests, and files of a secretGenerator, stay encrypted also where the operator has a key', async () => {
  const keys = await loadSopsKeys(keyFolder(['site.agekey', keyFile(key)]))
  const secret = JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, stringData: { p: 'hunter2' } })
  const map = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm' }, data: { p: 'hunter2' } })
  const rule = { encrypted_regex: '^(data|stringData)$' }
  const files = {
    'app/kustomization.yaml':
      'namespace: other\nlabels: [{pairs: {team: a}}]\nresources: [s.yaml]\nsecretGenerator: [{name: db, files: [a.env], options: {disableNameSuffixHash: true}}]\n',
    'app/s.yaml': sopsEncrypt('s.yaml', `${secret}\n---\n${map}\n`, { to: [key], rule }),
    'app/a.env': ENV,
  }
  const { result, reads } = await rendered({ files, keys })
  if (result.kind === 'failed') throw new Error(JSON.stringify(result.problems))
  expect(reads.secret).toBe(false)
  const rows = [...result.objects]
  expect(rows.map(([row, doc]) => [row.split('/').slice(-2).join('/'), isSealed(doc), isSopsRow(doc)])).toEqual([
    ['other/m', false, true],
    ['other/db', true, true],
    ['other/s', true, true],
  ])
  expect(rows.map(([, doc]) => doc).join()).not.toContain('hunter2')
  const moved = {
    ...files,
    'app/kustomization.yaml': `${files['app/kustomization.yaml']}patches: [{patch: '[{"op": "copy", "from": "/data/p", "path": "/data/q"}]', target: {kind: ConfigMap}}]\n`,
  }
  expect(await problemsOf({ files: moved })).toEqual(naming('encrypted', 'copied'))
})

test('SP7 a folder of keys with anything that cannot be used stops the server from starting', async () => {
  for (const folder of [keyFolder(), keyFolder(['a.agekey', 'no key']), join(tempDir(), 'missing')])
    await expect(loadSopsKeys(folder)).rejects.toMatchObject({ code: 'bad_options' })
})
