// Secrets that the server cannot read, on a real API server with a real server and agent: files of SOPS from Git to
// objects, Sealed Secrets and External Secrets with their own CRDs.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSearch, filesIn } from '../support/canaries.ts'
import { CLUSTER_START_TIMEOUT_MS, eventually } from '../support/kube-cluster.ts'
import { textsInMemory } from '../support/process-memory.ts'
import { searchPath } from '../support/render-programs.ts'
import { configMapYaml, deploymentYaml, type Scenario, serviceYaml, startScenario } from '../support/scenario.ts'
import { keyFile, newAgeKey, sopsEncrypt } from '../support/sops-kit.ts'
import { ROOT } from '../support/source-files.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(90_000)
const [key, operatorKey] = await Promise.all([newAgeKey(), newAgeKey()])
const labels = { env: 'prod' }
/** By the way on which it comes to the site. */
const SEEN = {
  raw: 'canary-of-raw-81d5c3f0',
  clear: 'canary-of-clear-6e2f90ab',
  kust: 'canary-of-kust-07bc4d1e',
  env: 'canary-of-env-d93a5f62',
  bin: 'canary-of-bin-5b08e7c4',
  chart: 'canary-of-chart-f24c6a9d',
  values: 'canary-of-values-3a7e1d85',
}
let scenario: Scenario

beforeAll(async () => {
  const keys = tempDir()
  mkdirSync(join(keys, 'default'))
  writeFileSync(join(keys, 'default', 'operator.agekey'), keyFile(operatorKey))
  const path = [join(ROOT, 'build', 'render'), ...searchPath()].join(':')
  scenario = await startScenario({ sites: { harbour: { labels } }, serverEnv: { PATH: path, SKERRY_SOPS_KEYS: keys } })
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => scenario?.stop())

const kubectl = (args: string[], stdin?: string) => {
  const site = scenario.sites['harbour']
  if (site === undefined) throw new Error('no site')
  return site.cluster.kubectl(args, stdin === undefined ? {} : { stdin })
}
const kubeApply = (object: object) => kubectl(['apply', '-f', '-'], JSON.stringify(object))
const apply = (...documents: string[]) => scenario.fleet.run(['apply', '-f', '-'], { stdin: documents.join('') })
const secretValue = (namespace: string, name: string, entry: string) =>
  kubectl(['get', 'secret', name, '-n', namespace, '-o', `jsonpath={.data.${entry}}`])
    .then((text) => Buffer.from(text, 'base64').toString())
    .catch(() => null)
const becomes = (namespace: string, name: string, entry: string, wanted: string) =>
  eventually(`${namespace}/${name} has ${wanted}`, async () => {
    const found = await secretValue(namespace, name, entry)
    if (found === wanted) return true
    throw new Error(`${found}; ${JSON.stringify(await scenario.status('harbour', namespace))}`)
  })
const secret = (name: string, value: string) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData: { password: value } })
const rule = { encrypted_regex: '^(data|stringData)$' }

describe('SOPS', () => {
  test('SP1 SP4 SP5 plain manifests, a kustomization and a chart wait for the key of the site, and arrive with it', async () => {
    const generated = 'secretGenerator:\n  - name: files\n    files: [app.env, "bin=key.bin"]\n    options: {disableNameSuffixHash: true}\n'
    await scenario.push({
      'raw/secret.yaml': sopsEncrypt('secret.yaml', secret('plain', SEEN.raw), { to: [key], rule }),
      'raw/map.yaml': configMapYaml('beside', { a: 'b' }),
      'raw/clear.yaml': secret('clear', SEEN.clear),
      'kust/kustomization.yaml': `namePrefix: pre-\nlabels: [{pairs: {team: a}}]\nresources: [secret.yaml]\n${generated}`,
      'kust/secret.yaml': sopsEncrypt('secret.yaml', secret('patched', SEEN.kust), { to: [key], rule }),
      'kust/app.env': sopsEncrypt('app.env', `A=${SEEN.env}\n`, { to: [key] }),
      'kust/key.bin': sopsEncrypt('key.bin', SEEN.bin, { to: [key] }),
      'chart/Chart.yaml': 'apiVersion: v2\nname: chart\nversion: 1.0.0\n',
      'chart/files/s.yaml': sopsEncrypt('s.yaml', secret('of-chart', SEEN.chart), { to: [key], rule }),
      'chart/templates/s.yaml':
        '{{ .Files.Get "files/s.yaml" }}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: values}\nstringData: {password: {{ .Values.password | quote }}}\n',
      'chart/secrets.yaml': sopsEncrypt('secrets.yaml', `password: ${SEEN.values}\n`, { to: [operatorKey] }),
    })
    await apply(
      serviceYaml({ name: 'raw', labels }),
      serviceYaml({ name: 'kust', labels }),
      serviceYaml({ name: 'chart', labels, extra: 'render: {helm: {valuesFiles: [secrets.yaml]}}' }),
    )
    const told = await eventually('the state names the recipient', async () => {
      const text = await scenario.fleet.run(['describe', 'service', 'raw'])
      return text.includes('SopsKeyMissing') ? text : undefined
    })
    expect(told).toContain(key.recipient)
    expect(await kubectl(['get', 'configmap', 'beside', '-n', 'raw', '-o', 'name'])).toContain('beside')
    await becomes('chart', 'values', 'password', SEEN.values)
    expect(await secretValue('raw', 'plain', 'password')).toBeNull()
    const metadata = { name: 'sops-keys', namespace: 'skerry-system', labels: { 'skerry.dev/sops-keys': 'true' } }
    await kubeApply({ apiVersion: 'v1', kind: 'Secret', metadata, stringData: { 'site.agekey': keyFile(key) } })
    await becomes('raw', 'plain', 'password', SEEN.raw)
    await becomes('kust', 'pre-patched', 'password', SEEN.kust)
    await becomes('kust', 'pre-files', 'app\\.env', `A=${SEEN.env}\n`)
    await becomes('kust', 'pre-files', 'bin', SEEN.bin)
    await becomes('chart', 'of-chart', 'password', SEEN.chart)
    await scenario.settled('harbour', ['raw', 'kust', 'chart'])
    const shown = await scenario.fleet.run(['render', 'raw', '--cluster', 'harbour'])
    expect(shown).not.toMatch(/canary|\$sops|ENC\[/)
    const status = JSON.stringify(await scenario.sites['harbour']?.agent.command(['status']))
    expect(status).toContain(key.recipient)
  })

  test('SP5 a file that was encrypted to another key again keeps what is applied', async () => {
    const other = await newAgeKey()
    await scenario.push({ 'raw/secret.yaml': sopsEncrypt('secret.yaml', secret('plain', 'second'), { to: [other], rule }) })
    await eventually('the state names the other recipient', async () => {
      const text = await scenario.fleet.run(['describe', 'service', 'raw'])
      return text.includes('SopsKeyMissing') && text.includes(other.recipient)
    })
    expect(await secretValue('raw', 'plain', 'password')).toBe(SEEN.raw)
    await scenario.push({ 'raw/secret.yaml': sopsEncrypt('secret.yaml', secret('plain', 'third'), { to: [other, key], rule }) })
    await becomes('raw', 'plain', 'password', 'third')
  })
})

test('SL7 SP1 SP7 the control process has no secret of a repository in its memory, and no file or log has one', async () => {
  const { fleet, sites } = scenario
  const { agent, cluster } = sites['harbour'] ?? {}
  if (agent === undefined || cluster === undefined) throw new Error('no site')
  for (const service of ['raw', 'kust', 'chart']) {
    await fleet.run(['render', service, '--cluster', 'harbour', '--explain'])
    await fleet.skerry(['diff', service, '--ref', 'main'])
  }
  const secrets = [...Object.values(SEEN), key.identity]
  // What is certainly there shows that the search finds something.
  expect(textsInMemory(fleet.serverPid(), [...secrets, fleet.dataDir])).toEqual([fleet.dataDir])
  const [, token = ''] = /token: *"?([^"\s]+)/.exec(readFileSync(cluster.kubeconfigPath, 'utf8')) ?? []
  expect(token.length).toBeGreaterThan(8)
  const search = createSearch([...secrets, operatorKey.identity, token])
  const clones = join(fleet.dataDir, 'git')
  const files = [...filesIn(fleet.dataDir), ...filesIn(agent.dataDir)].filter(({ path }) => !path.startsWith(clones))
  const found = files.flatMap(({ path, bytes }) => search(path, bytes))
  expect([...found, ...search('server log', Buffer.from(fleet.serverLog())), ...search('agent log', Buffer.from(agent.log()))]).toEqual([])
})

const crd = (name: string) => readFileSync(join(ROOT, 'build/install/crds', `${name}.yaml`), 'utf8')
const placement = (service: string, wanted: object) =>
  eventually(`${service} is as expected`, async () => {
    const found = await scenario.status('harbour', service)
    expect(found).toMatchObject(wanted)
    return true
  })
const exists = (...args: string[]) =>
  kubectl(['get', ...args, '-o', 'name']).then(
    () => true,
    () => false,
  )
const setStatus = (kind: string, name: string, namespace: string, status: object) =>
  kubectl(['patch', kind, name, '-n', namespace, '--subresource=status', '--type=merge', '-p', JSON.stringify({ status })])
const condition = (type: string, status: string, reason: string, message = '') => ({
  ...{ type, status, reason, message, lastTransitionTime: '2026-01-01T00:00:00Z', lastUpdateTime: '2026-01-01T00:00:00Z' },
})

test('SL14 server, workers and agent write no core dumps', () => {
  const childrenOf = (pid: number) => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  const server = scenario.fleet.serverPid()
  const pids = [server, ...childrenOf(server), scenario.sites['harbour']?.agent.pid() ?? 0]
  expect(pids.length).toBeGreaterThan(2)
  for (const pid of pids) expect(readFileSync(`/proc/${pid}/limits`, 'utf8')).toMatch(/^Max core file size +0 +0 /m)
})

describe('secrets of operators in the cluster', () => {
  test('HE4 OR3 a SealedSecret waits for its CRD; what needs it waits until it is unsealed, and the Secret is left to its controller', async () => {
    const sealed = `apiVersion: bitnami.com/v1alpha1
kind: SealedSecret
metadata: {name: db, annotations: {skerry.dev/wave: "-1"}}
spec:
  encryptedData: {password: AgBy}
  template: {metadata: {name: db}}
`
    await scenario.push({
      'sealed-crd/crd.yaml': crd('bitnami.com_sealedsecrets'),
      'shop/sealed.yaml': sealed,
      'shop/app.yaml': deploymentYaml('app'),
    })
    await apply(serviceYaml({ name: 'shop', labels, extra: 'dependsOn: [{name: sealed-crd}]' }))
    await apply(serviceYaml({ name: 'sealed-crd', labels }))
    await scenario.settled('harbour', ['sealed-crd'])
    await eventually('the SealedSecret is applied', () => exists('sealedsecret', 'db', '-n', 'shop'))
    await placement('shop', { reason: 'WaitingForWave' })
    expect(await exists('deployment', 'app', '-n', 'shop')).toBe(false)
    await setStatus('sealedsecret', 'db', 'shop', {
      observedGeneration: 1,
      conditions: [condition('Synced', 'False', 'ErrUnsealFailed', 'no key could decrypt secret (password)')],
    })
    await placement('shop', { health: 'Degraded', message: expect.stringContaining('no key could decrypt secret') })
    // As the controller does: an owner, and no mark of Skerry.
    const uid = await kubectl(['get', 'sealedsecret', 'db', '-n', 'shop', '-o', 'jsonpath={.metadata.uid}'])
    const owner = { apiVersion: 'bitnami.com/v1alpha1', kind: 'SealedSecret', name: 'db', uid, controller: true }
    await kubeApply({
      ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'db', namespace: 'shop', ownerReferences: [owner] } },
      stringData: { password: 'unsealed' },
    })
    await setStatus('sealedsecret', 'db', 'shop', { observedGeneration: 1, conditions: [condition('Synced', 'True', 'Unsealed')] })
    await scenario.settled('harbour', ['shop'])
    expect([await exists('deployment', 'app', '-n', 'shop'), await secretValue('shop', 'db', 'password')]).toEqual([true, 'unsealed'])
  })

  test('HE4 OR3 PR1 an ExternalSecret waits for its store; a Secret with copies of our marks is neither ours nor pruned', async () => {
    const store = `apiVersion: external-secrets.io/v1
kind: SecretStore
metadata: {name: vault, annotations: {skerry.dev/wave: "-2"}}
spec:
  provider: {vault: {server: "https://vault.example", path: kv, version: v2, auth: {tokenSecretRef: {name: token, key: token}}}}
`
    const external = `apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: db, labels: {team: a}, annotations: {skerry.dev/wave: "-1"}}
spec:
  refreshInterval: 1h
  secretStoreRef: {name: vault, kind: SecretStore}
  target: {name: db}
  data: [{secretKey: password, remoteRef: {key: db, property: password}}]
`
    await scenario.push({
      'eso-crd/store.yaml': crd('external-secrets.io_secretstores'),
      'eso-crd/secret.yaml': crd('external-secrets.io_externalsecrets'),
      'bank/store.yaml': store,
      'bank/secret.yaml': external,
      'bank/app.yaml': deploymentYaml('app'),
    })
    await apply(serviceYaml({ name: 'eso-crd', labels }), serviceYaml({ name: 'bank', labels, extra: 'dependsOn: [{name: eso-crd}]' }))
    await scenario.settled('harbour', ['eso-crd'])
    await eventually('the store is applied', () => exists('secretstore', 'vault', '-n', 'bank'))
    expect(await exists('externalsecret', 'db', '-n', 'bank')).toBe(false)
    await setStatus('secretstore', 'vault', 'bank', { conditions: [condition('Ready', 'True', 'Valid')] })
    await eventually('the ExternalSecret is applied', () => exists('externalsecret', 'db', '-n', 'bank'))
    await setStatus('externalsecret', 'db', 'bank', {
      conditions: [condition('Ready', 'False', 'SecretSyncedError', 'could not get secret data from provider')],
    })
    await placement('bank', { health: 'Degraded', message: expect.stringContaining('could not get secret data') })
    // As the operator does: labels and annotations of the ExternalSecret are on its Secret.
    const copied = JSON.parse(await kubectl(['get', 'externalsecret', 'db', '-n', 'bank', '-o', 'json']))
    const owner = { apiVersion: 'external-secrets.io/v1', kind: 'ExternalSecret', name: 'db', uid: copied.metadata.uid, controller: true }
    const { labels: marks, annotations } = copied.metadata
    expect(marks).toHaveProperty(['skerry.dev/service'])
    const metadata = { name: 'db', namespace: 'bank', labels: marks, annotations, ownerReferences: [owner] }
    await kubeApply({ apiVersion: 'v1', kind: 'Secret', metadata, stringData: { password: 'fetched' } })
    await setStatus('externalsecret', 'db', 'bank', { conditions: [condition('Ready', 'True', 'SecretSynced')] })
    await scenario.settled('harbour', ['bank'])
    // A later revision that prunes leaves the Secret of the operator alone.
    const commit = await scenario.push({ 'bank/app.yaml': null, 'bank/map.yaml': configMapYaml('after', { a: 'b' }) })
    await scenario.settled('harbour', ['bank'], { commit })
    await eventually('the Deployment is pruned', async () => !(await exists('deployment', 'app', '-n', 'bank')))
    expect(await secretValue('bank', 'db', 'password')).toBe('fetched')
  })
})
