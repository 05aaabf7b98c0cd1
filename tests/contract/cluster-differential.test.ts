// The fake cluster against a real API server on the same random applies and edits: values, owners, conflicts and
// generations must agree. What the fake leaves out on purpose (fake-field-sets.ts: the containers of an Update entry)
// is left out of the comparison.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { ApiResource } from '../../agent/cluster/cluster.ts'
import { objectPath } from '../../agent/cluster/discovery.ts'
import { asObject } from '../../agent/cluster/watch-stream.ts'
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { KUBERNETES_MINORS } from '../support/extent.ts'
import { FakeCluster } from '../support/fake-cluster.ts'
import { CLUSTER_START_TIMEOUT_MS } from '../support/kube-cluster.ts'
import { MERGE_PATCH, type RealCluster, resourceNamed, type Somebody, somebodyElse, startRealCluster } from '../support/real-cluster.ts'

const SEEDS = 120
const STEPS = 6

type Json = Record<string, unknown>
type Step = { kind: 'apply'; object: K8sObject; force: boolean } | { kind: 'patch'; manager: string; body: Json }

const PATCHES: Record<string, readonly Json[]> = {
  Deployment: [
    { spec: { replicas: 5 } },
    { metadata: { labels: { a: 'z', q: 'z' } } },
    { metadata: { labels: { a: null } } },
    { metadata: { annotations: { n: '1' } } },
    { metadata: { annotations: { n: '2' } } },
  ],
  ConfigMap: [
    { data: { k: 'z' } },
    { data: { k: null } },
    { data: { n: 'z' } },
    { data: null },
    { metadata: { labels: { a: 'z' } } },
    { metadata: { labels: null } },
    { metadata: { finalizers: null } },
  ],
}

function stepsOf(seed: number, { kind, name }: ObjectRef): Step[] {
  const random = seededRandom(seed)
  const chance = (probability: number) => random() < probability
  const pick = <T>(values: readonly [T, ...T[]]): T => values[Math.floor(random() * values.length)] ?? values[0]
  const some = (keys: readonly string[]) => Object.fromEntries(keys.flatMap((key) => (chance(0.6) ? [[key, pick(['1', '2'])]] : [])))
  const metadata = () => ({
    name,
    namespace: 'default',
    ...(chance(0.7) ? { labels: some(['a', 'b']) } : {}),
    ...(chance(0.2) ? { finalizers: [pick(['e.x/a', 'e.x/b'])] } : {}),
  })
  const containers = () => {
    const env = Object.entries(some(['A', 'B', 'C'])).map(([key, value]) => ({ name: key, value }))
    const first = {
      name: 'c',
      image: pick(['i:1', 'i:2']),
      ...(env.length > 0 ? { env: chance(0.3) ? env.reverse() : env } : {}),
      ...(chance(0.3) ? { ports: [{ containerPort: pick([80, 81]) }] } : {}),
      ...(chance(0.3) ? { args: [pick(['x', 'y'])] } : {}),
    }
    return chance(0.3) ? [first, { name: 'd', image: 'j:1' }] : [first]
  }
  const document = (): K8sObject => {
    if (kind === 'ConfigMap')
      return { apiVersion: 'v1', kind, metadata: metadata(), ...(chance(0.9) ? { data: some(['k', 'l', 'm']) } : {}) }
    const podSpec = { containers: containers(), ...(chance(0.3) ? { nodeSelector: { n: pick(['1', '2']) } } : {}) }
    const template = { metadata: { labels: { x: 'y' } }, spec: podSpec }
    const spec = { ...(chance(0.6) ? { replicas: pick([1, 2]) } : {}), selector: { matchLabels: { x: 'y' } }, template }
    return { apiVersion: 'apps/v1', kind, metadata: metadata(), spec }
  }
  return Array.from({ length: STEPS }, (_, index): Step => {
    if (index === 0 || chance(0.6)) return { kind: 'apply', object: document(), force: index === 0 || chance(0.7) }
    const patches = PATCHES[kind] ?? []
    return { kind: 'patch', manager: pick(['kubectl-edit', 'other']), body: patches[Math.floor(random() * patches.length)] ?? {} }
  })
}

/** The parts that must agree, with the defaults that a server fills in. */
function viewOf(object: K8sObject): Json {
  const { labels, annotations, finalizers, generation, managedFields } = object.metadata
  const owners = (managedFields ?? []).map(({ manager, operation, fieldsV1 }) => ({
    owner: `${manager}/${operation}`,
    fields: operation === 'Update' ? withoutContainers(fieldsV1 ?? {}) : fieldsV1,
  }))
  return {
    labels,
    annotations: annotations?.['n'],
    finalizers: [...(finalizers ?? [])].sort(),
    generation,
    data: object['data'],
    spec: object['spec'],
    owners: owners.filter(({ fields }) => Object.keys(fields ?? {}).length > 0).sort((a, b) => (a.owner < b.owner ? -1 : 1)),
  }
}

const CONTAINERS = new Set(['f:labels', 'f:annotations', 'f:data', 'f:finalizers', 'f:metadata'])

function withoutContainers(fields: Json): Json {
  const entries = Object.entries(fields).flatMap(([key, value]) => {
    if (key === '.') return []
    const inner = withoutContainers(value as Json)
    return CONTAINERS.has(key) && Object.keys(inner).length === 0 ? [] : [[key, inner] as const]
  })
  return Object.fromEntries(entries)
}

const failed = (failure: { kind: string; message: string }): Json =>
  // The words of a conflict are promised by the fake; those of other failures only in kind.
  ({ failed: failure.kind, message: failure.kind === 'conflict' ? failure.message : '' })

async function onReal({ cluster: real, others: { http } }: Real, step: Step, resource: ApiResource, ref: ObjectRef): Promise<Json> {
  if (step.kind === 'apply') {
    const result = await real.apply(resource, step.object, { force: step.force })
    return result.kind === 'applied' ? viewOf(result.object) : failed(result.failure)
  }
  const path = `${objectPath(resource, ref.namespace, ref.name)}?fieldManager=${step.manager}`
  const body = { type: MERGE_PATCH, json: step.body }
  const answer = await http.request({ method: 'PATCH', path, plural: resource.plural, body })
  const object = answer.kind === 'answer' ? asObject(answer.body) : null
  return object === null ? { failed: true } : viewOf(object)
}

async function onFake(fake: FakeCluster, step: Step, resource: ApiResource, ref: ObjectRef): Promise<Json> {
  if (step.kind === 'patch') return viewOf(fake.patchAs(step.manager, ref, step.body))
  const result = await fake.apply(resource, step.object, { force: step.force })
  return result.kind === 'applied' ? viewOf(result.object) : failed(result.failure)
}

interface Real extends RealCluster {
  others: Somebody
}

describe.each(KUBERNETES_MINORS.map((minor) => [minor] as const))('the %s Kubernetes', (kubernetes) => {
  let real: Real
  beforeAll(async () => {
    const started = await startRealCluster({ name: `differential-${kubernetes}`, kubernetes })
    real = { ...started, others: somebodyElse(started.credentials, started.resources) }
  }, CLUSTER_START_TIMEOUT_MS)
  afterAll(() => real.stop(), CLUSTER_START_TIMEOUT_MS)

  test('KA13 KA14 KA15 the fake answers random applies and edits as the real API server does', async () => {
    const fake = new FakeCluster({ clock: systemClock })
    const met = { conflicts: 0, edits: 0 }
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const resource = resourceNamed(real.resources, seed % 2 === 0 ? 'Deployment' : 'ConfigMap')
      const ref = { group: resource.group, kind: resource.kind, namespace: 'default', name: `seed-${seed}` }
      const steps = stepsOf(seed, ref)
      for (const [index, step] of steps.entries()) {
        const expected = await onReal(real, step, resource, ref)
        const found = await onFake(fake, step, resource, ref)
        const story = `seed ${seed}, step ${index}: ${JSON.stringify(steps.slice(0, index + 1))}`
        expect({ story, ...JSON.parse(JSON.stringify(found)) }).toEqual({ story, ...JSON.parse(JSON.stringify(expected)) })
        if (expected['failed'] === 'conflict') met.conflicts += 1
        if (step.kind === 'patch') met.edits += 1
      }
    }
    // The run is worth something only if it met what it is about.
    expect(met.conflicts).toBeGreaterThan(3)
    expect(met.edits).toBeGreaterThan(SEEDS)
  }, 60_000)
})
