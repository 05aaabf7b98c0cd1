// What only the tools or the clusters themselves change, with the real helm 4 and helm 3 in the real sandbox, and
// templates that ask a cluster what it serves.
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test'
import type { Sandbox, SandboxProgram } from '../../server/render/sandbox.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { configMap, confirmationId, createIngestKit, type IngestKit, SHOP } from '../support/ingest-kit.ts'
import { eventually } from '../support/kube-cluster.ts'
import { realSandbox } from '../support/real-sandbox.ts'
import { memoryRendering } from '../support/render-kit.ts'

setDefaultTimeout(60_000)

let kit: IngestKit
afterEach(() => kit.close())

/** A server whose `helm` is helm 3 from the moment that somebody put that in its place. */
function swapped() {
  const sandbox = realSandbox()
  const state = { isOld: false }
  const of = (program: SandboxProgram): SandboxProgram => (program === 'helm' && state.isOld ? 'helm3' : program)
  const swap: Sandbox = {
    run: (run, signal) => sandbox.run({ ...run, program: of(run.program) }, signal),
    version: (program) => sandbox.version(of(program)),
  }
  return { swap, state }
}

const CHART = { 'shop/Chart.yaml': 'apiVersion: v2\nname: shop\nversion: 1.0.0\n' }
const MAP = (name: string, value: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\ndata: {value: "${value}"}\n`
const HELM_VERSION = '{{ .Capabilities.HelmVersion.Version }}'

test('RL3 another helm that renders the same goes unnoticed; one that renders something else waits for a yes, and commits with it', async () => {
  const { swap, state } = swapped()
  kit = await createIngestKit({ rendering: () => memoryRendering(swap) })
  const one = await kit.join('1')
  const version = async () => (await kit.store.renderState(SHOP)).release?.tools
  await kit.git.commit({ ...CHART, 'shop/templates/a.yaml': MAP('a', '1') }, 'first')
  await kit.repository()
  await kit.service()
  const four = await version()
  expect(Object.values(four ?? {}).join()).toMatch(/4\./)
  const first = await kit.row(one)
  state.isOld = true
  await kit.ingest.serviceChanged(SHOP)
  expect(Object.values((await version()) ?? {}).join()).toMatch(/3\.17/)
  expect([await kit.row(one), await kit.store.listConfirmations()]).toEqual([first, []])

  const named = await kit.push({ 'shop/templates/a.yaml': MAP('a', HELM_VERSION) })
  const three = await kit.row(one)
  expect(three?.commit).toBe(named)
  state.isOld = false
  await kit.ingest.serviceChanged(SHOP)
  const [question] = await kit.store.listConfirmations()
  expect(question).toMatchObject({ kind: 'release', names: ['ConfigMap shop/a'] })
  expect(question?.why).toMatch(/helm 3\.17\.\d+ → 4\.\d+\.\d+: .*1 of 1 clusters, 1 object/)
  const waiting = await kit.push({ 'shop/templates/b.yaml': MAP('b', '1') })
  expect([await kit.row(one), await confirmationId(kit.store)]).toEqual([three, question?.id ?? ''])
  await kit.actions.confirm(question?.id ?? '', 'ada')
  expect((await kit.row(one))?.commit).toBe(waiting)
  expect([await version(), await kit.store.listConfirmations()]).toEqual([four, []])
})

const say = async (clusterId: ClusterId, kubernetesVersion: string, rev: number) => {
  const doc = { kubernetesVersion, apis: { v1: ['ConfigMap'] } }
  const { changed } = await kit.store.upsertStatus(clusterId, [{ kind: 'facts', key: 'cluster', rev, doc }], { complete: false, nowMs: 1 })
  kit.actions.onStatus({ clusterId, clusterName: 'cluster-1' }, changed)
}
const ASKING = `apiVersion: v1
kind: ConfigMap
metadata:
  name: of-{{ cluster.facts.kubernetesVersion | replace: ".", "-" | default: "nobody" }}
`

test('RL5 FA5 a cluster that serves another version is rendered anew, and what that drops waits for a yes', async () => {
  kit = await createIngestKit()
  const one = await kit.join('1')
  await kit.git.commit({ 'shop/a.yaml.liquid': ASKING, 'shop/b.yaml': configMap('b', '1') }, 'first')
  await kit.repository()
  await kit.service()
  const unknown = await kit.row(one)
  await say(one, 'v1.35.0', 1)
  await eventually('it is rendered for that version', async () => (await kit.row(one))?.digest !== unknown?.digest)
  const first = await kit.row(one)
  expect(first?.factsOnly).toBe(true)
  await say(one, 'v1.36.0', 2)
  await eventually('and for the next one', async () => (await kit.row(one))?.digest !== first?.digest)
  const second = await kit.row(one)
  expect([second?.factsOnly, second?.commit]).toEqual([true, first?.commit ?? ''])
  // The row is stored before the shard file has it.
  const held = new Set<string>()
  await eventually('it is pulled', async () => {
    for (const id of await kit.pull(one)) id.startsWith('-') ? held.delete(id.slice(1)) : held.add(id)
    return [...held].filter((id) => id.includes('of-v')).join(' ') === 'object/default/shop//ConfigMap/shop/of-v1-36-0'
  })
  await kit.push({ 'shop/b.yaml': configMap('b', '2') })
  const third = await kit.row(one)
  expect([third?.digest === second?.digest, third?.factsOnly]).toEqual([false, true])
})
