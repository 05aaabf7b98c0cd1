// etcd is restored from a snapshot under a running agent, with etcd's own tools: everything is older then, also the
// resourceVersions, and nothing tells the agent so.
import { afterAll, beforeAll, describe, test } from 'bun:test'
import type { K8sObject } from '../../shared/kube/object.ts'
import { KUBERNETES_MINORS } from '../support/extent.ts'
import { CLUSTER_START_TIMEOUT_MS, type Etcd, eventually, type KubeCluster, startEtcd } from '../support/kube-cluster.ts'
import { type RealCluster, resourceNamed, settled, startRealAgent } from '../support/real-cluster.ts'
import { configMap, configMapRef, type ReconcileKit } from '../support/reconcile-kit.ts'

const TEST_MS = 60_000

describe.each(KUBERNETES_MINORS.map((minor) => [minor] as const))('etcd restored under the %s API server', (kubernetes) => {
  let etcd: Etcd
  let real: RealCluster & { kit: ReconcileKit }
  let server: KubeCluster
  beforeAll(async () => {
    etcd = await startEtcd()
    real = await startRealAgent({ name: `restored-${kubernetes}`, kubernetes, etcd, userAgent: 'restored-agent' })
    server = real.server
  }, CLUSTER_START_TIMEOUT_MS)
  afterAll(async () => {
    await real?.stop()
    await etcd?.stop()
  }, CLUSTER_START_TIMEOUT_MS)

  const dataOf = async (name: string): Promise<string | null> => {
    const answer = await real.cluster.get(resourceNamed(real.resources, 'ConfigMap'), configMapRef(name))
    if (answer.kind === 'failed') throw new Error(answer.failure.message)
    return answer.kind === 'absent' ? null : ((answer.object['data'] as { v?: string } | undefined)?.v ?? '')
  }
  const cluster = async () =>
    Object.fromEntries(await Promise.all(['a', 'b', 'c', 'd', 'theirs'].map(async (name) => [name, await dataOf(name)])))
  const one = (name: string, v: string): K8sObject => configMap(name, { v })

  // The older one differs only in how a position that it has not reached is found.
  test.each(
    kubernetes === 'newest'
      ? ([
          ['with revisions that go back', false],
          ['with a bumped revision', true],
        ] as const)
      : ([['with revisions that go back', false]] as const),
  )(
    'LS3 %s: what the restore undid is done again, what it brought back is pruned, and nothing of others is touched',
    async (_, bump) => {
      const { kit } = real
      await settled(kit, kit.desire([one('a', '1'), one('b', '1'), one('d', '1')]))
      await server.kubectl(['create', 'configmap', 'theirs', '--from-literal=v=1'])
      await etcd.saveSnapshot()
      // a is changed, b pruned, c made; d was deleted by hand and made again, so that its uid is another one.
      await server.kubectl(['delete', 'configmap', 'd'])
      const digest = kit.desire([one('a', '2'), one('c', '1'), one('d', '1')])
      await settled(kit, digest)
      await server.kubectl(['delete', 'configmap', 'theirs'])
      await eventually('before', async () => (await dataOf('b')) === null && (await dataOf('d')) === '1')

      await server.stopApiServer()
      await etcd.restoreSnapshot({ bump })
      await server.startApiServer()

      const wanted = { a: '2', b: null, c: '1', d: '1', theirs: '1' }
      const isThere = async () => Bun.deepEquals(await cluster(), wanted)
      await eventually('the cluster is what the rows say', isThere, 40_000).catch(async (error) => {
        throw new Error(`${error}: ${JSON.stringify(await cluster())}`)
      })
      await settled(kit, digest)
      // What is changed from now on is noticed, too.
      await server.kubectl(['patch', 'configmap', 'a', '-p', '{"data":{"v":"by hand"}}'])
      await eventually('healed', async () => (await dataOf('a')) === '2')
      await server.kubectl(['delete', 'configmap', 'theirs'])
    },
    TEST_MS,
  )
})
