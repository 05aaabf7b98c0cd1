// Joins at all their edges, incarnation and epoch, what goes with a cluster.
import { expect, test } from 'bun:test'
import { agentId, clusterId, joinCluster, joinInput, makeToken, publishOne, type StoreHarness } from '../support/store-fixtures.ts'

export function agentContract({ store }: StoreHarness): void {
  test('ST5 a join makes cluster, agent and Cluster resource with the labels of the token', async () => {
    await makeToken(store(), 't', 2, { env: 'prod' })
    const result = await store().join(joinInput('a'))
    const agent = {
      agentId: agentId('a'),
      clusterId: clusterId('a'),
      clusterName: 'cluster-a',
      publicKey: 'key-a',
      recipient: 'recipient-a',
      incarnation: 1,
      epoch: 1,
      revoked: false,
      joinedMs: 500,
    }
    expect(result).toEqual({ kind: 'joined', agent, repeated: false })
    expect(await store().agent(agentId('a'))).toEqual(agent)
    expect(await store().listAgents()).toEqual([agent])
    expect(await store().clusterByName('cluster-a')).toEqual({
      clusterId: clusterId('a'),
      name: 'cluster-a',
      labels: { env: 'prod' },
      revoked: false,
      joinedMs: 500,
      lastSeenMs: null,
      waitSeconds: 0,
      agentId: agentId('a'),
    })
    expect(await store().getResource({ kind: 'Cluster', project: '', name: 'cluster-a' })).toMatchObject({
      uid: clusterId('a'),
      generation: 1,
    })
    expect((await store().listJoinTokens())[0]).toMatchObject({ id: 't', usesLeft: 1, uses: 2 })
  })

  test('ST5 unknown, expired at its very millisecond, and used-up tokens', async () => {
    expect(await store().join(joinInput('a'))).toEqual({ kind: 'token_unknown' })
    await makeToken(store(), 't', 1)
    expect(await store().join(joinInput('a', { nowMs: 1_000 }))).toEqual({ kind: 'token_expired' })
    expect(await store().join(joinInput('a', { nowMs: 999 }))).toMatchObject({ kind: 'joined' })
    expect(await store().join(joinInput('b'))).toEqual({ kind: 'token_used_up' })
    expect(await store().listClusters()).toHaveLength(1)
  })

  test('ST5 the same token and key again answer the same and use nothing, even used up, expired or deleted', async () => {
    await makeToken(store(), 't', 1)
    const first = await store().join(joinInput('a'))
    const again = await store().join(joinInput('a', { clusterId: clusterId('b'), agentId: agentId('b'), nowMs: 5_000 }))
    expect(again).toEqual({ ...first, repeated: true } as typeof again)
    await store().deleteJoinToken('t')
    expect(await store().join(joinInput('a'))).toMatchObject({ kind: 'joined', repeated: true })
  })

  test('ST5 twenty joins at once with a token of three uses make three clusters', async () => {
    await makeToken(store(), 't', 3)
    const digits = [...'0123456789abcdef']
    const results = await Promise.all(digits.map((digit) => store().join(joinInput(digit))))
    expect(results.filter((result) => result.kind === 'joined')).toHaveLength(3)
    expect(results.filter((result) => result.kind === 'token_used_up')).toHaveLength(13)
  })

  test('ST5 a taken name or a key of another cluster is refused and uses nothing', async () => {
    await makeToken(store(), 't', 5)
    await store().join(joinInput('a'))
    expect(await store().join(joinInput('b', { clusterName: 'cluster-a' }))).toEqual({ kind: 'name_taken' })
    expect(await store().join(joinInput('a', { clusterName: 'other' }))).toEqual({ kind: 'name_taken' })
    expect((await store().listJoinTokens())[0]?.usesLeft).toBe(4)
  })

  test('ST5 a known key with another token re-joins its cluster: next incarnation and epoch, labels stay', async () => {
    await makeToken(store(), 't', 1, { env: 'prod' })
    await makeToken(store(), 'second', 1, { env: 'other' })
    await store().join(joinInput('a'))
    const again = await store().join(joinInput('a', { tokenHash: 'hash-second', clusterId: clusterId('b') }))
    expect(again).toMatchObject({ kind: 'joined', repeated: false, agent: { clusterId: clusterId('a'), incarnation: 2, epoch: 2 } })
    expect((await store().clusterByName('cluster-a'))?.labels).toEqual({ env: 'prod' })
  })

  test('JN8 a join with an earlier token of the key changes nothing, and makes no cluster that was deleted', async () => {
    const [first, second] = [await makeToken(store(), 't', 5), await makeToken(store(), 'second', 5)]
    await store().join(joinInput('a', { tokenHash: first }))
    await store().join(joinInput('a', { tokenHash: second, recipient: 'new' }))
    const replay = () => store().join(joinInput('a', { tokenHash: first, clusterId: clusterId('b'), agentId: agentId('b') }))
    expect(await replay()).toMatchObject({ kind: 'joined', repeated: true, agent: { incarnation: 2, epoch: 2, recipient: 'recipient-a' } })
    expect((await store().listJoinTokens()).map(({ usesLeft }) => usesLeft)).toEqual([4, 4])
    await store().deleteCluster('cluster-a')
    expect(await replay()).toEqual({ kind: 'token_used_up' })
    await store().deleteJoinToken('t')
    expect(await replay()).toEqual({ kind: 'token_unknown' })
  })

  test('ST5 a join does not undo a revocation, and uses nothing', async () => {
    await makeToken(store(), 't', 1)
    await makeToken(store(), 'second', 1)
    await store().join(joinInput('a'))
    await store().applyResource({ kind: 'Cluster', project: '', name: 'cluster-a' }, { labels: {}, spec: '{"revoked":true}', nowMs: 1 })
    expect((await store().clusterByName('cluster-a'))?.revoked).toBe(true)
    expect(await store().join(joinInput('a', { tokenHash: 'hash-second' }))).toMatchObject({ kind: 'joined', agent: { revoked: true } })
    expect((await store().listJoinTokens()).map((token) => token.usesLeft)).toEqual([1, 0])
  })

  test('ST5 people write the labels of a cluster through its resource', async () => {
    await joinCluster(store(), 'a', { env: 'prod' })
    await store().applyResource(
      { kind: 'Cluster', project: '', name: 'cluster-a' },
      { labels: { env: 'dev' }, spec: '{"revoked":false}', nowMs: 1 },
    )
    expect((await store().listClusters())[0]?.labels).toEqual({ env: 'dev' })
  })

  test('ST6 a deleted cluster takes everything along and frees name and key', async () => {
    const a = await joinCluster(store(), 'a')
    await publishOne(store(), { clusterId: a, project: 'p', service: 's', doc: null, setSha: 'x', placedBy: '' })
    await store().upsertStatus(a, [{ kind: 'object', key: 'p/s//Pod/n/x', rev: 1, doc: {} }], { complete: false, nowMs: 1 })
    expect(await store().deleteCluster('cluster-a')).toBe(true)
    expect(await store().deleteCluster('cluster-a')).toBe(false)
    expect(await store().agent(agentId('a'))).toBeNull()
    expect(await store().getResource({ kind: 'Cluster', project: '', name: 'cluster-a' })).toBeNull()
    expect(await store().desiredInCluster(a)).toEqual([])
    expect(await store().listStatus({ clusterId: a, kind: 'object' })).toEqual([])
    expect((await store().clusterOrdinals()).size).toBe(0)
    await makeToken(store(), 't')
    const result = await store().join(joinInput('a', { clusterId: clusterId('b'), agentId: agentId('b') }))
    expect(result).toMatchObject({ kind: 'joined', repeated: false, agent: { clusterId: clusterId('b'), incarnation: 1 } })
  })

  test('ST6 deleting the Cluster resource deletes the cluster', async () => {
    await joinCluster(store(), 'a')
    expect(await store().deleteResource({ kind: 'Cluster', project: '', name: 'cluster-a' })).toBe(true)
    expect(await store().listAgents()).toEqual([])
  })

  test('PU1 incarnations grow one by one, and not for an agent that is gone', async () => {
    await joinCluster(store(), 'a')
    expect(await store().raiseIncarnation(agentId('a'))).toBe(2)
    expect(await store().raiseIncarnation(agentId('a'))).toBe(3)
    expect((await store().agent(agentId('a')))?.incarnation).toBe(3)
    await expect(store().raiseIncarnation(agentId('b'))).rejects.toMatchObject({ code: 'cluster_unknown' })
  })

  test('CU2a the epoch grows with another shard file, once, and for its clusters only', async () => {
    const a = await joinCluster(store(), 'a')
    await joinCluster(store(), 'b')
    const epochs = async () => (await store().listAgents()).map((agent) => agent.epoch)
    const adopt = (dbId: string) =>
      store().adoptShards([
        { index: 0, dbId, clusterIds: [a] },
        { index: 1, dbId: 'other', clusterIds: [] },
      ])
    expect(await adopt('one')).toEqual([a])
    expect(await epochs()).toEqual([2, 1])
    expect(await adopt('one')).toEqual([])
    expect(await epochs()).toEqual([2, 1])
    expect(await adopt('two')).toEqual([a])
    expect(await epochs()).toEqual([3, 1])
  })

  test('ST5 last seen is written at the first time and then after ten seconds', async () => {
    const a = await joinCluster(store(), 'a')
    const seenAt = async (atMs: number) => {
      await store().markSeen(new Map([[a, atMs]]))
      return (await store().clusterByName('cluster-a'))?.lastSeenMs
    }
    expect(await seenAt(1_000)).toBe(1_000)
    expect(await seenAt(10_999)).toBe(1_000)
    expect(await seenAt(11_000)).toBe(11_000)
    expect(await seenAt(5)).toBe(11_000)
  })

  test('AP11 how long an agent waits is kept until it waits for another time', async () => {
    const [a, b] = [await joinCluster(store(), 'a'), await joinCluster(store(), 'b')]
    const waits = async () => (await store().listClusters()).map(({ waitSeconds }) => waitSeconds)
    await store().markSeen(new Map([[a, 1]]), new Map([[a, 900]]))
    expect(await waits()).toEqual([900, 0])
    await store().markSeen(
      new Map(),
      new Map([
        [a, 60],
        [b, 900],
      ]),
    )
    expect(await waits()).toEqual([60, 900])
    await store().markSeen(new Map([[a, 2]]))
    expect(await waits()).toEqual([60, 900])
  })

  test('ST5 join tokens: listed by age, deleted once', async () => {
    await makeToken(store(), 'b', 3, { env: 'prod' })
    await makeToken(store(), 'a')
    expect((await store().listJoinTokens()).map((token) => token.id)).toEqual(['a', 'b'])
    expect(await store().deleteJoinToken('b')).toBe(true)
    expect(await store().deleteJoinToken('b')).toBe(false)
  })
}
