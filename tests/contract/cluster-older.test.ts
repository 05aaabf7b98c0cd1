// The Cluster contract on an older Kubernetes minor, and what is different there: 1.33 refuses to stream a first list,
// so that it is read by pages.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { refOf } from '../../shared/kube/object.ts'
import { configMap } from '../support/contract-kit.ts'
import { CLUSTER_START_TIMEOUT_MS } from '../support/kube-cluster.ts'
import { type RealCluster, realHarness, resourceNamed, startRealCluster, USER_AGENT } from '../support/real-cluster.ts'
import { comparable, readCorpus, recordRefusals } from '../support/refusal-corpus.ts'
import { WatchProbe } from '../support/watch-probe.ts'
import { clusterContract } from './cluster.contract.ts'

const VERSION = 'v1.33.13'

clusterContract('Kubernetes 1.33', () => realHarness({ name: 'older', kubernetes: 'older' }), CLUSTER_START_TIMEOUT_MS, VERSION)

describe('an older API server', () => {
  let real: RealCluster
  beforeAll(async () => {
    // Watches last 2 to 4 s here, so that renewals happen within a test.
    real = await startRealCluster({ name: 'older-renewals', kubernetes: 'older', extraApiServerFlags: ['--min-request-timeout=2'] })
  }, CLUSTER_START_TIMEOUT_MS)
  afterAll(() => real.stop(), CLUSTER_START_TIMEOUT_MS)

  const requests = (since: number) =>
    real.server
      .auditLines({ userAgent: USER_AGENT, since })
      .filter(({ verb, objectRef }) => (verb === 'list' || verb === 'watch') && objectRef?.resource === 'configmaps')

  test('KA28 KA22 it is asked once to stream the list, lists by pages, and a watch that it ends goes on without another list', async () => {
    const resource = resourceNamed(real.resources, 'ConfigMap')
    const object = configMap('default', 'before', {})
    await real.cluster.apply(resource, object, { force: true })
    const mark = real.server.auditMark()
    const watch = new WatchProbe(real.cluster, resource)
    await watch.seen('synced')
    const renewals = () => requests(mark).filter(({ verb, stage }) => verb === 'watch' && stage === 'ResponseComplete').length
    const before = renewals()
    const expected: string[] = []
    for (let index = 0; renewals() < before + 3; index += 1) {
      await real.cluster.apply(resource, configMap('default', `renewed-${index}`, {}), { force: true })
      expected.push(`changed:renewed-${index}`)
      await Bun.sleep(50)
    }
    await watch.seen(expected.at(-1) ?? '')
    expect(watch.story()).toBe(['reset', 'present:before', 'synced', ...expected].join(' '))
    const asked = requests(mark)
    expect(asked.filter(({ verb, stage }) => verb === 'list' && stage === 'ResponseComplete')).toHaveLength(1)
    const refused = asked.filter(({ requestURI, stage }) => requestURI.includes('sendInitialEvents') && stage === 'ResponseComplete')
    expect(refused.flatMap(({ responseStatus }) => responseStatus?.code ?? [])).toEqual([422])
    await watch.stop()
    const found = await real.cluster.get(resource, refOf(object))
    if (found.kind === 'found') await real.cluster.delete(resource, refOf(object), found.object.metadata.uid ?? '')
  }, 60_000)

  test('KA31 it refuses in the recorded words, of which no value leaves', async () => {
    const said = await recordRefusals(real)
    expect(said.map(comparable)).toEqual(readCorpus('v1.33.jsonl').map(comparable))
  }, 60_000)
})
