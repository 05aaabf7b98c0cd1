// Failure catalogue: the agent is killed in the middle of its work, on a real API server. The fake goes through every
// place (tests/sim/killed-agent.test.ts); here a sample.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { K8sObject } from '../../shared/kube/object.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { type KilledWorld, tellStory } from '../support/killed-story.ts'
import { CLUSTER_START_TIMEOUT_MS, type KubeCluster, startKubeCluster } from '../support/kube-cluster.ts'
import { MortalAgent } from '../support/mortal-agent.ts'
import { connect } from '../support/real-cluster.ts'
import { until } from '../support/watch-probe.ts'

/** Every so many places one run; coprime to the steps of an object, so that all kinds of places are met. */
const EACH = 11
const CHAPTER_MAX_MS = 60_000

let server: KubeCluster
beforeAll(async () => {
  server = await startKubeCluster({ name: 'killed', controllers: false })
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => server.stop(), CLUSTER_START_TIMEOUT_MS)

async function live(namespace: string, dieAt: ReadonlySet<number>): Promise<{ places: string[]; lives: number }> {
  const cluster = await connect(server, `skerry-agent/${namespace}`)
  const agent = new MortalAgent({ cluster, clock: systemClock, dieAt })
  await server.kubectl(['create', 'namespace', namespace])
  let lives = 1
  const objects = async (): Promise<K8sObject[]> => {
    const answer = await fetch(`${server.server}/api/v1/namespaces/${namespace}/configmaps`, access())
    const secrets = await fetch(`${server.server}/api/v1/namespaces/${namespace}/secrets`, access())
    return [...(await items(answer, 'ConfigMap')), ...(await items(secrets, 'Secret'))]
  }
  const world: KilledWorld = {
    live: objects,
    edit: async ({ name }, key, value) =>
      void (await server.kubectl([
        'patch',
        'configmap',
        name,
        '-n',
        namespace,
        '--type=merge',
        '-p',
        JSON.stringify({ data: { [key]: value } }),
      ])),
    remove: async ({ name }) => void (await server.kubectl(['delete', 'configmap', name, '-n', namespace, '--wait=false'])),
    applyClientSide: async (object) => void (await server.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(object) })),
    hook: null, // without a controller no Job ends
    until: (what, check) =>
      until(
        what,
        async () => {
          if (agent.isAlive()) return check()
          agent.checkInventory(await objects()) // a live one moves on while we look
          agent.revive()
          lives += 1
          return false
        },
        CHAPTER_MAX_MS,
      ).then(() => {}),
  }
  try {
    await tellStory(agent, world, namespace)
  } catch (error) {
    const deaths = [...dieAt].map((place) => `${place} (${agent.places[place]})`).join(', ')
    throw new Error(`killed at ${deaths}: ${error instanceof Error ? error.message : error}`)
  } finally {
    await agent.stop()
    cluster.close()
  }
  expect(agent.wrong).toEqual([])
  return { places: agent.places, lives }
}

const access = () => ({ headers: { authorization: `Bearer ${server.token}` }, tls: { ca: server.caPem } })
async function items(answer: Response, kind: string): Promise<K8sObject[]> {
  const list = (await answer.json()) as { items: K8sObject[] }
  return list.items.filter(({ metadata }) => metadata.name !== 'kube-root-ca.crt').map((object) => ({ ...object, apiVersion: 'v1', kind }))
}

test('IV8 killed at one of many steps, on a real API server: nothing wanted is deleted, no inventory lost, the same end', async () => {
  const { places } = await live('killed-never', new Set())
  expect(places.length).toBeGreaterThan(80)
  let killed = 0
  for (let place = 3; place < places.length; place += EACH) {
    const { lives } = await live(`killed-${place}`, new Set([place]))
    if (lives > 1) killed += 1
  }
  process.stdout.write(`killed at ${killed} of ${places.length} places\n`)
  expect(killed).toBeGreaterThan(8)
}, 240_000)

test('IV8 killed six times in one life', async () => {
  const { lives } = await live('killed-often', new Set([5, 17, 29, 41, 60, 83]))
  expect(lives).toBeGreaterThan(3)
}, 120_000)
