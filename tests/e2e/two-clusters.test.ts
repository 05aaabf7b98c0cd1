// Two clusters, one server: each gets its own rows only, and a label moves a service from one to the other.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { CLUSTER_START_TIMEOUT_MS, eventually } from '../support/kube-cluster.ts'
import { configMapYaml, type Scenario, serviceYaml, startScenario } from '../support/scenario.ts'

setDefaultTimeout(60_000)
let scenario: Scenario

beforeAll(async () => {
  scenario = await startScenario({
    sites: { east: { labels: { side: 'east' }, controllers: true }, west: { labels: { side: 'west' }, controllers: true } },
  })
  await scenario.fleet.run(['apply', '-f', '-'], {
    stdin:
      serviceYaml({ name: 'east-only', labels: { side: 'east' } }) +
      serviceYaml({ name: 'west-only', labels: { side: 'west' } }) +
      serviceYaml({ name: 'both' }),
  })
  await scenario.push({
    'east-only/a.yaml': configMapYaml('a', { marker: 'EASTERN-MARKER' }),
    'east-only/kept.yaml': configMapYaml('kept', { marker: 'EASTERN-KEPT' }).replace(
      'metadata:',
      'metadata:\n  annotations: {helm.sh/resource-policy: keep}',
    ),
    'west-only/a.yaml': configMapYaml('a', { marker: 'WESTERN-MARKER' }),
    'both/a.yaml': configMapYaml('a', { marker: 'COMMON-MARKER' }),
  })
  await scenario.settled('east', ['east-only', 'both'])
  await scenario.settled('west', ['west-only', 'both'])
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => scenario?.stop())

/** All bytes that an agent keeps. */
function bytesOf(dir: string): string {
  return readdirSync(dir)
    .map((name) => join(dir, name))
    .map((path) => (statSync(path).isDirectory() ? bytesOf(path) : statSync(path).isFile() ? readFileSync(path, 'latin1') : ''))
    .join('')
}

test('PL7 E2E5 each agent holds its own rows only, to the byte', () => {
  const east = bytesOf(scenario.sites['east']?.agent.dataDir ?? '')
  const west = bytesOf(scenario.sites['west']?.agent.dataDir ?? '')
  expect([east.includes('EASTERN-MARKER'), east.includes('COMMON-MARKER'), east.includes('WESTERN-MARKER')]).toEqual([true, true, false])
  expect([west.includes('WESTERN-MARKER'), west.includes('COMMON-MARKER'), west.includes('EASTERN-MARKER')]).toEqual([true, true, false])
})

test('E2E5 relabelling moves a service by removal order and revision, and keeps what says so', async () => {
  const { fleet, sites } = scenario
  const label = (side: string) =>
    fleet.run(['apply', '-f', '-'], {
      stdin: `apiVersion: skerry.dev/v1\nkind: Cluster\nmetadata: {name: east, labels: {side: ${side}}}\n`,
    })
  const names = async (namespace: string) => {
    const text = (await sites['east']?.cluster.kubectl(['get', 'configmaps', '-n', namespace, '-o', 'name'])) ?? ''
    return text.split('\n').filter((name) => name !== '' && !name.endsWith('kube-root-ca.crt'))
  }
  await label('west')
  await scenario.settled('east', ['west-only', 'both'])
  await eventually(
    'the eastern service is gone from the server’s view',
    async () => (await scenario.status('east', 'east-only')) === undefined,
  )
  expect(await names('east-only')).toEqual(['configmap/kept'])
  expect(await names('west-only')).toEqual(['configmap/a'])
  await label('east')
  await scenario.settled('east', ['east-only', 'both'])
  expect((await names('east-only')).sort()).toEqual(['configmap/a', 'configmap/kept'])
  expect(await eventually('the western copy left', async () => (await names('west-only')).length === 0)).toBe(true)
}, 120_000)

test('TG a deleted service is removed by order, and its resource goes last', async () => {
  const { fleet, sites } = scenario
  await fleet.run(['delete', 'service', 'both', '--yes'])
  for (const site of ['east', 'west']) {
    await eventually(
      `gone in ${site}`,
      async () => !((await sites[site]?.cluster.kubectl(['get', 'configmaps', '-n', 'both', '-o', 'name'])) ?? '').includes('configmap/a'),
    )
  }
  await eventually('the resource is gone', async () => (await fleet.skerry(['get', 'service', 'both'])).code !== 0)
}, 60_000)
