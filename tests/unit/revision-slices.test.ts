// A large revision is read in slices: what others see between them, and that nothing is left out.
import { afterAll, afterEach, expect, test } from 'bun:test'
import type { ApiResource } from '../../agent/cluster/cluster.ts'
import { recallService } from '../../agent/reconcile/apply/remember.ts'
import type { DesiredRevision } from '../../agent/replica/replica.ts'
import { openAgentState } from '../../agent/state/sqlite-agent-state.ts'
import { refOf } from '../../shared/kube/object.ts'
import { objectRowId, type ServiceRow } from '../../shared/model/desired.ts'
import { setup, stopAll } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey } from '../support/reconcile-kit.ts'

const state = openAgentState(':memory:')
afterAll(() => state.close())
afterEach(stopAll)

const ID = { project: 'web', service: 'shop' }
const resource: ApiResource = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
  verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
}
const context = { clusterId: 'c-1', find: () => ({ kind: 'served', resource }) as const }
const names = (from: number, below: number) => Array.from({ length: below - from }, (_, n) => `m${from + n}`)
function revision(digest: string, of: readonly string[]): DesiredRevision {
  const objects = new Map(of.map((name) => [objectRowId(ID, refOf(configMap(name))), JSON.stringify(configMap(name))]))
  return { ...ID, row: { digest, count: of.length, sync: {} } as unknown as ServiceRow, objects }
}

test('RC37 the reading of a revision can stop at each row, and the former one stands until all are read', () => {
  const model = recallService(ID, state)
  for (const _row of model.take(revision('one', names(0, 3)), context));
  const seen: string[] = []
  for (const _row of model.take(revision('two', names(2, 402)), context)) {
    seen.push(`${model.row?.digest} ${[...model.wanted.keys()].length} ${model.revisionPending}`)
  }
  expect(seen).toEqual(Array.from({ length: 400 }, () => 'one 3 true'))
  expect([...model.wanted.keys()].sort()).toEqual(
    names(2, 402)
      .map((name) => configMapKey(name))
      .sort(),
  )
  expect(model.row?.digest).toBe('two')
})

test('RC37 RC14 a revision that comes while one is read is read next', async () => {
  const { cluster, clock, kit, run } = setup()
  await run()
  const read = kit.replica.read.bind(kit.replica)
  let isFirst = true
  kit.replica.read = (id) => {
    const answer = read(id)
    if (isFirst) {
      isFirst = false
      // Between the read and the end of the slices.
      void Promise.resolve().then(() => kit.desire([configMap('second')]))
    }
    return answer
  }
  kit.desire([configMap('first')])
  await clock.advance(1_000)
  expect(cluster.object({ group: '', kind: 'ConfigMap', namespace: 'default', name: 'second' })).not.toBeNull()
  expect(kit.service()?.sync).toBe('Synced')
})
