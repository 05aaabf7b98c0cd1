// Two agents on one cluster, on a real API server: the one that came later enforces, the earlier one stops writing at
// once.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { CLAIM_NAME } from '../../agent/reconcile/claim/claim.ts'
import { TRACKING_ANNOTATION } from '../../shared/kube/marks.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { CLUSTER_START_TIMEOUT_MS, type KubeCluster, startKubeCluster, WRITE_VERBS } from '../support/kube-cluster.ts'
import { connect } from '../support/real-cluster.ts'
import { CLUSTER_ID, configMap, createReconcileKit, type KitOptions, type ReconcileKit } from '../support/reconcile-kit.ts'
import { until } from '../support/watch-probe.ts'

/** In which the earlier agent may still finish what it had begun. */
const STOPS_WITHIN_MS = 1_000

let server: KubeCluster
beforeAll(async () => {
  server = await startKubeCluster({ name: 'claim', controllers: false })
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => server.stop())

const ends: Array<() => Promise<void>> = []
afterAll(async () => {
  for (const end of ends) await end()
})

let started = 0
/** Told apart in the API server's log by its user agent, and in the objects by its value. */
async function agent(name: string, incarnation: number, options: Partial<KitOptions> = {}): Promise<ReconcileKit> {
  const cluster = await connect(server, name)
  const kit = createReconcileKit({ cluster, clock: systemClock, agentId: 'a-1', incarnation, place: name, seed: ++started, ...options })
  ends.push(async () => {
    await kit.stop()
    cluster.close()
  })
  kit.desire([configMap('one', { by: name }), configMap('two', { by: name })])
  kit.start()
  return kit
}
const lastClaim = (kit: ReconcileKit) => kit.claims.at(-1)?.kind
const writesOf = (name: string) => server.auditLines({ userAgent: name, verbs: WRITE_VERBS })
const claimedAtMs = (name: string) =>
  Math.min(...writesOf(name).flatMap((event) => (event.objectRef?.name === CLAIM_NAME ? Date.parse(event.stageTimestamp) : [])))

test.each([
  ['CM3 of two copies of equal incarnation the later one', 1, 1],
  ['CM2 of one agent twice the one of a higher incarnation', 2, 3],
] as const)(
  '%s enforces, and the other writes no more within a second',
  async (_, before, after) => {
    const [elderName, youngerName] = [`elder-${before}`, `younger-${after}`]
    const elder = await agent(elderName, before)
    await until('the elder enforces', () => lastClaim(elder) === 'held' && elder.service()?.sync === 'Synced')
    const younger = await agent(youngerName, after)
    await until('the younger enforces', () => lastClaim(elder) === 'superseded' && younger.service()?.sync === 'Synced')

    await server.kubectl(['delete', 'configmap', 'one', '--wait=true'])
    await server.kubectl(['patch', 'configmap', 'two', '--type=merge', '-p', '{"data":{"by":"somebody"}}'])
    elder.desire([configMap('one', { by: 'late' })])
    const liveValue = async (name: string) =>
      (await server.kubectl(['get', 'configmap', name, '-o', 'jsonpath={.data.by}', '--ignore-not-found'])).trim()
    await until('both are healed', async () => (await liveValue('one')) === youngerName && (await liveValue('two')) === youngerName)
    await systemClock.sleep(STOPS_WITHIN_MS * 2)

    const endMs = claimedAtMs(youngerName) + STOPS_WITHIN_MS
    const late = writesOf(elderName).filter((event) => Date.parse(event.requestReceivedTimestamp) > endMs)
    expect(late.map(({ verb, requestURI }) => `${verb} ${requestURI}`)).toEqual([])
    expect(writesOf(elderName).length).toBeGreaterThan(2)
    expect([await liveValue('one'), await liveValue('two')]).toEqual([youngerName, youngerName])
  },
  60_000,
)

test('CM5 RC7 an agent that starts again at its place writes nothing', async () => {
  const kit = await agent('again', 4)
  await until('it enforces', () => lastClaim(kit) === 'held' && kit.service()?.sync === 'Synced')
  await kit.stop()
  const since = server.auditMark()
  kit.claims.length = 0
  kit.start()
  await until('it enforces again', () => lastClaim(kit) === 'held')
  // What it would write it would write by now: a drift is healed within milliseconds.
  await server.kubectl(['delete', 'configmap', 'one', '--wait=true'])
  await until('it heals', async () => (await server.kubectl(['get', 'configmap', 'one', '--ignore-not-found', '-o', 'name'])) !== '')
  const writes = server
    .auditLines({ userAgent: 'again', verbs: WRITE_VERBS, since })
    .map(({ verb, objectRef }) => `${verb} ${objectRef?.name}`)
  expect(writes).toEqual(['patch one'])
}, 60_000)

const OTHER_ID = 'c-00000000000000ff'
const AGAIN_ID = 'c-00000000000000aa'
const ownerOf = async (name: string) =>
  (JSON.parse(await server.kubectl(['get', 'configmap', name, '-o', 'json'])) as K8sObject).metadata.annotations?.[
    TRACKING_ANNOTATION
  ]?.split('/')[0]

test('CM6 CM7 CM8 a second agent waits beside an active one, a person decides, and it takes over what the first applied', async () => {
  const first = await agent('first', 5)
  await until('the first enforces', () => lastClaim(first) === 'held' && first.service()?.sync === 'Synced')
  const second = await agent('second', 9, { agentId: 'a-2', clusterId: OTHER_ID, told: { kubeEvents: 'problems' } })
  await until('the second knows of the first', () => lastClaim(second) === 'contested')
  const events = await until('Kubernetes has the Event', async () => {
    const { items } = JSON.parse(await server.kubectl(['get', 'events', '-n', 'skerry-system', '-o', 'json'])) as { items: K8sObject[] }
    return items.length > 0 && items
  })
  expect(events).toMatchObject([{ reason: 'AnotherAgentActive', involvedObject: { kind: 'ConfigMap', name: CLAIM_NAME } }])
  const asked = server.auditMark()
  await systemClock.sleep(STOPS_WITHIN_MS)
  expect(server.auditLines({ userAgent: 'second', verbs: WRITE_VERBS, since: asked })).toEqual([])
  expect([lastClaim(first), await ownerOf('one')]).toEqual(['held', CLUSTER_ID])

  expect(second.reconciler.order({ kind: 'take_over', by: 'ola', why: 'moved' })).toMatchObject({ kind: 'done' })
  await until('the second enforces', () => lastClaim(second) === 'held' && second.service()?.sync === 'Synced')
  await until('the first has stopped', () => lastClaim(first) === 'superseded')
  expect([await ownerOf('one'), await ownerOf('two')]).toEqual([OTHER_ID, OTHER_ID])

  // It leaves with its claim, and the cluster joins again: by the word of the server the objects are its own.
  await Promise.all([first.stop(), second.stop()])
  await server.kubectl(['delete', 'configmap', CLAIM_NAME, '-n', 'skerry-system'])
  const again = await agent('joined-again', 1, { agentId: 'a-3', clusterId: AGAIN_ID, formerClusters: [OTHER_ID] })
  await until('it enforces', () => lastClaim(again) === 'held' && again.service()?.sync === 'Synced')
  expect([await ownerOf('one'), await ownerOf('two')]).toEqual([AGAIN_ID, AGAIN_ID])
}, 60_000)
