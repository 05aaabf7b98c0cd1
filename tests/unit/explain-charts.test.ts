// CG9 of Helm values: where each comes from, and that no form of a secret is shown.
import { expect, test } from 'bun:test'
import { explainCharts, type PipelineInput } from '../../server/render/pipeline.ts'
import { createRenderers } from '../../server/render/renderers.ts'
import type { RenderSpec } from '../../shared/model/render.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { memoryTree } from '../support/render-job.ts'

const FILES = {
  'app/Chart.yaml': 'apiVersion: v2\nname: app\nversion: 1.0.0\ndependencies: [{name: db, version: 1.0.0}]\n',
  'app/values.yaml': 'replicas: 1\nhost: none\nimage: {tag: a, name: web}\nlist: [1]\ndb: {size: 5}\n',
  'app/charts/db/Chart.yaml': 'apiVersion: v2\nname: db\nversion: 1.0.0\n',
  'app/charts/db/values.yaml': 'size: 1\nport: 5432\n',
  'app/prod.yaml': 'image: {tag: b}\n',
  'app/secret.yaml.liquid': 'fromFile: {{ config.password }}\nplain: 1\n',
}
const SECRET = 'hunter2-and-more'

async function explained(helm: NonNullable<RenderSpec['helm']>, values: PipelineInput['settings']['helmValues'] = []) {
  const input: PipelineInput = {
    id: { project: 'default', service: 'shop' },
    namespace: 'web',
    render: { helm },
    sources: [
      {
        name: undefined,
        label: 'apps',
        render: undefined,
        filesOnly: false,
        opened: { tree: memoryTree(FILES), root: 'app', version: 'c' },
      },
    ],
    cluster: { name: 'ship', labels: {}, facts: { kubernetesVersion: 'v1.36.0', apiVersions: {} } },
    configs: new Map([['vars', { values: { tier: 'gold', password: SECRET }, secrets: new Set(['password']) }]]),
    settings: { config: { values: { password: SECRET, color: 'blue' }, secrets: new Set(['password']) }, helmValues: values, patches: [] },
  }
  const deps = {
    renderers: createRenderers(),
    sandbox: { run: () => Promise.reject(new AppError('renderer_missing')), version: async () => null },
    once: (_: readonly string[], work: () => Promise<Uint8Array>) => work(),
    signal: new AbortController().signal,
  }
  const found = await explainCharts(deps, input)
  expect(found.every((one) => one.helm === 'apps')).toBe(true)
  return new Map(found.map(({ path, value, secret, from, over }) => [path, { value, secret, from, over }]))
}

test('CG9 each Helm value has its level, from the chart to the cluster', async () => {
  const values = await explained(
    {
      valuesFiles: ['prod.yaml'],
      valuesFrom: [{ name: 'vars', key: 'tier', at: 'tier' }],
      values: { host: '{{ cluster.name }}.example', list: null },
    },
    [
      { from: 'overrides[0]', values: { replicas: 3 } },
      { from: 'cluster overrides[0]', values: { replicas: 5 } },
    ],
  )
  expect(Object.fromEntries(values)).toEqual({
    '.Values.db.port': { value: 5432, secret: false, from: 'chart charts/db/values.yaml', over: [] },
    '.Values.db.size': { value: 5, secret: false, from: 'chart values.yaml', over: ['chart charts/db/values.yaml'] },
    '.Values.host': { value: 'ship.example', secret: false, from: 'render.helm.values', over: ['chart values.yaml'] },
    '.Values.image.name': { value: 'web', secret: false, from: 'chart values.yaml', over: [] },
    '.Values.image.tag': { value: 'b', secret: false, from: 'app/prod.yaml', over: ['chart values.yaml'] },
    '.Values.list': { value: null, secret: false, from: 'render.helm.values', over: ['chart values.yaml'] },
    '.Values.replicas': {
      value: 5,
      secret: false,
      from: 'cluster overrides[0].helm.values',
      over: ['chart values.yaml', 'overrides[0].helm.values'],
    },
    '.Values.tier': { value: 'gold', secret: false, from: 'Config/vars', over: [] },
  })
})

test('CG9 whatever was made of a secret is masked: a slice, an encoding, a list that has it, a file, a value of a Config', async () => {
  const values = await explained({
    valuesFiles: ['secret.yaml.liquid'],
    valuesFrom: [{ name: 'vars', key: 'password', at: 'auth.password' }],
    values: {
      slice: '{{ config.password | slice: 0, 3 }}',
      upper: '{{ config.password | upcase }}',
      encoded: '{{ config.password | b64enc }}',
      length: '{{ config.password | size }}',
      list: ['a', '{{ config.password }}'],
      nested: { deep: { url: 'https://x:{{ config.password }}@db', other: '{{ config.color }}' } },
    },
  })
  const shown = (path: string) => values.get(`.Values.${path}`)
  for (const path of ['slice', 'upper', 'encoded', 'length', 'list', 'nested.deep.url', 'auth.password', 'fromFile', 'plain'])
    expect([path, shown(path)?.secret, shown(path)?.value]).toEqual([path, true, '[secret]'])
  expect(shown('nested.deep.other')).toMatchObject({ secret: false, value: 'blue' })
  expect(shown('host')).toMatchObject({ secret: false, value: 'none' })
  for (const form of [SECRET, SECRET.toUpperCase(), btoa(SECRET), 'hun']) expect(JSON.stringify([...values])).not.toContain(form)
})

test('CG9 a value that is committed in clear is masked by its name; names of Secrets, switches and empty texts are shown', async () => {
  const auth = { rootPassword: 'in-clear', apiKeys: ['a'], pin: 1234, token: 7, existingSecret: 'db', password: '', createToken: true }
  const env = [{ name: 'DB_PASSWORD', value: 'in-clear' }]
  const named = [{ name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'db', key: 'token' } } }]
  const lists = { env, named, users: [{ name: 'a', password: 'in-clear' }], imagePullSecrets: [{ name: 'registry' }] }
  const values = await explained({ values: { auth, ...lists, secret: {} } })
  const masked = [...values].filter(([, { secret }]) => secret).map(([path]) => path)
  const ofAuth = ['.Values.auth.apiKeys', '.Values.auth.rootPassword', '.Values.auth.token']
  expect(masked).toEqual([...ofAuth, '.Values.env', '.Values.users'])
  expect(JSON.stringify([...values])).not.toContain('in-clear')
  expect(values.get('.Values.auth.existingSecret')?.value).toBe('db')
})

test('CG9 the name of a values file that a template made of a secret is made of its mark', async () => {
  const values = await explained({ valuesFiles: ['prod.yaml', '{{ config.password }}.yaml?'] })
  expect(JSON.stringify([...values])).not.toContain(SECRET)
  expect(values.get('.Values.image.tag')).toMatchObject({ value: 'b' })
})
