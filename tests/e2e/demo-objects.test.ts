// Real manifests of twenty and more kinds, as people wrote them: all of it arrives and becomes healthy, by our word and
// by kubectl's.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { demoRepository } from '../../scripts/local-cluster/demo-repository.ts'
import type { ObjectView } from '../../shared/model/views.ts'
import { CLUSTER_START_TIMEOUT_MS } from '../support/kube-cluster.ts'
import { agentWrites, type Scenario, serviceYaml, startScenario } from '../support/scenario.ts'

setDefaultTimeout(120_000)
const repository = demoRepository()
let scenario: Scenario
const cluster = () => {
  const found = scenario.sites['harbour']?.cluster
  if (found === undefined) throw new Error('no site')
  return found
}

beforeAll(async () => {
  scenario = await startScenario({ sites: { harbour: {} } })
  const services = repository.services.map(({ name, path, namespace }) => serviceYaml({ name, path, namespace }))
  await scenario.push(repository.files, 'everything')
  await scenario.fleet.run(['apply', '-f', '-'], { stdin: services.join('') })
  await scenario.settled(
    'harbour',
    repository.services.map(({ name }) => name),
    { timeoutMs: 90_000 },
  )
}, CLUSTER_START_TIMEOUT_MS + 90_000)
afterAll(() => scenario?.stop())

async function objects(): Promise<ObjectView[]> {
  const { items } = await scenario.fleet.api<{ items: ObjectView[]; continue: string | null }>('/objects?cluster=harbour&limit=500')
  return items
}

test('E2E1 the demo’s objects of 20 and more kinds are Synced and Healthy, each by itself', async () => {
  const all = await objects()
  expect(all.length).toBeGreaterThanOrEqual(150)
  expect(new Set(all.map(({ group, kind }) => `${group}/${kind}`)).size).toBeGreaterThanOrEqual(20)
  expect(
    all
      .filter(({ sync, health }) => sync !== 'Synced' || health !== 'Healthy')
      .map(({ kind, name, message }) => `${kind} ${name}: ${message}`),
  ).toEqual([])
})

interface KubectlItem {
  kind: string
  metadata: { namespace: string; name: string }
  status: { replicas?: number; readyReplicas?: number; conditions?: Array<{ type: string; status: string }> }
}

test('E2E1 kubectl says the same of what it can judge; what cannot be healthy here is listed with its reason', async () => {
  const text = await cluster().kubectl(['get', 'deployments,statefulsets,hpa', '-A', '-l', 'skerry.dev/service', '-o', 'json'])
  const { items } = JSON.parse(text) as { items: KubectlItem[] }
  expect(items.length).toBeGreaterThan(10)
  const unhealthy = items.filter(({ kind, status }) =>
    kind === 'HorizontalPodAutoscaler'
      ? status.conditions?.some(({ type, status: is }) => type === 'ScalingActive' && is === 'False')
      : (status.replicas ?? 0) !== (status.readyReplicas ?? 0),
  )
  const names = unhealthy.map(({ kind, metadata }) => `${kind}/${metadata.namespace}/${metadata.name}`)
  const listed = repository.expectedUnhealthy.map(({ what }) => what)
  // The autoscaler's controller gives its verdict every 15 s only.
  expect(names.filter((name) => !listed.includes(name))).toEqual([])
})

test('RC7 CM5 an agent that starts again and looks at all of it writes nothing', async () => {
  const since = cluster().auditMark()
  await scenario.sites['harbour']?.agent.kill()
  await scenario.sites['harbour']?.agent.start()
  await Bun.sleep(4_000)
  const writes = agentWrites(cluster(), since).map(({ verb, requestURI }) => `${verb} ${requestURI}`)
  expect(writes).toEqual([])
})
