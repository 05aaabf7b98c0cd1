// One suite for every Cluster: the fake is honest only as long as it passes what a real API server passes. What only
// controllers bring about (contents of a namespace that go with it, owners' dependents) is no part of it: the fake does
// the first at once and the second never.
import { afterAll, beforeAll, describe } from 'bun:test'
import type { ApiResource } from '../../agent/cluster/cluster.ts'
import { type ClusterHarness, contractKit } from '../support/contract-kit.ts'
import { refusalCases } from './cluster-refusals.contract.ts'
import { discoveryCases, watchCases } from './cluster-watch.contract.ts'
import { applyCases, deleteCases } from './cluster-writes.contract.ts'

export function clusterContract(name: string, start: () => Promise<ClusterHarness>, startTimeoutMs: number, version = 'v1.36.3'): void {
  describe(`Cluster contract: ${name}`, () => {
    let harness: ClusterHarness
    let resources: readonly ApiResource[] = []
    beforeAll(async () => {
      harness = await start()
      resources = (await harness.cluster.discover()).resources
    }, startTimeoutMs)
    afterAll(() => harness.stop(), startTimeoutMs)

    const kit = contractKit(
      () => harness,
      () => resources,
    )
    applyCases(kit)
    refusalCases(kit)
    deleteCases(kit)
    watchCases(kit)
    discoveryCases(kit, version)
  })
}
