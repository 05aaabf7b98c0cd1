// An agent that is killed at every step of its life: before each request, after each request whose answer it never
// heard, before and after each write to its disk. Whatever the place: nothing is deleted that is wanted, nothing that
// carries its marks is out of the inventory, and the next life brings all of it to the same end.
import { expect, test } from 'bun:test'
import type { K8sObject } from '../../shared/kube/object.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { type KilledWorld, tellStory } from '../support/killed-story.ts'
import { MortalAgent } from '../support/mortal-agent.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const NAMESPACE = 'default'
/** Of virtual time, for one chapter. */
const CHAPTER_MAX_MS = 60 * 60_000

const HOOK_REF = { group: 'batch', kind: 'Job', namespace: NAMESPACE, name: 'migrate' }
const HOOK = {
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: 'migrate', namespace: NAMESPACE, annotations: { 'skerry.dev/hook': 'pre-sync' } },
  spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'a', image: 'registry.example/a:1' }] } } },
} as K8sObject

/** How often it passed a place where it could have died, and what was wrong. */
async function live(dieAt: ReadonlySet<number>): Promise<{ places: string[]; lives: number }> {
  const clock = createVirtualClock()
  const cluster = createFakeCluster({ clock })
  const agent = new MortalAgent({ cluster, clock, dieAt })
  let lives = 1
  const runs = new Set<string>()
  /** Jobs take a moment, and end well. */
  const work = () => {
    for (const { kind, metadata, status } of cluster.objects()) {
      if (kind !== 'Job') continue
      runs.add(metadata.uid ?? '')
      if (status === undefined) cluster.setStatus(HOOK_REF, { succeeded: 1, conditions: [{ type: 'Complete', status: 'True' }] })
    }
  }
  const objects = async () =>
    cluster.objects().filter(({ kind, metadata }) => metadata.namespace === NAMESPACE && (kind === 'ConfigMap' || kind === 'Secret'))
  const world: KilledWorld = {
    live: objects,
    edit: async (ref, key, value) => void cluster.patchAs('somebody', ref, { data: { [key]: value } }),
    remove: async (ref) => cluster.deleteAs('somebody', ref),
    applyClientSide: async (object) =>
      void cluster.editAs(
        'kubectl-client-side-apply',
        { group: '', kind: 'ConfigMap', namespace: NAMESPACE, name: object.metadata.name ?? '' },
        (made) => Object.assign(made, { data: object['data'] }),
      ),
    hook: HOOK,
    async until(what, check) {
      const untilMs = clock.nowMs() + CHAPTER_MAX_MS
      for (let stepMs = 20; ; stepMs = Math.min(stepMs * 2, 60_000)) {
        await clock.advance(stepMs)
        work()
        agent.checkInventory(await objects())
        if (!agent.isAlive()) {
          agent.revive()
          lives += 1
          continue
        }
        if (await check()) return
        if (clock.nowMs() > untilMs)
          throw new Error(`${what}: not within an hour; ${JSON.stringify(agent.service({ project: 'web', service: 'giver' }))}`)
      }
    },
  }
  try {
    await tellStory(agent, world, NAMESPACE)
    if (runs.size !== 1) agent.wrong.push(`the hook ran ${runs.size} times`)
    if (agent.wrong.length > 0) throw new Error(agent.wrong.join('\n'))
  } catch (error) {
    const deaths = [...dieAt].map((place) => `${place} (${agent.places[place]})`).join(', ')
    throw new Error(`killed at ${deaths}: ${error instanceof Error ? error.message : error}`)
  } finally {
    await agent.stop()
  }
  return { places: agent.places, lives }
}

test('IV8 HK2 killed at any one step of its life, it loses no inventory, deletes nothing that is wanted, runs no hook twice, and gets there', async () => {
  const { places } = await live(new Set())
  expect(places.length).toBeGreaterThan(80)
  const failed: string[] = []
  for (let place = 0; place < places.length; place += 1)
    await live(new Set([place])).then(
      ({ lives }) => lives === 2 || failed.push(`${place}: ${lives} lives`),
      (error: Error) => failed.push(error.message),
    )
  process.stdout.write(`killed at each of ${places.length} places\n`)
  expect(failed).toEqual([])
}, 300_000)

test('IV8 HK2 killed again and again, at places that a seed draws', async () => {
  const random = seededRandom(20)
  const failed: string[] = []
  for (let n = 0; n < 60; n += 1) {
    const dieAt = new Set(Array.from({ length: 6 }, () => Math.floor(random() * 160)))
    await live(dieAt).catch((error: Error) => failed.push(error.message))
  }
  expect(failed).toEqual([])
}, 300_000)
