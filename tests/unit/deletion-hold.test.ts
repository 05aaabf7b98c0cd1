// What holds a prune holds every other deletion of a service, too: of objects that are made again, and of the objects
// of hooks.
import { afterEach, describe, expect, test } from 'bun:test'
import { deletionText } from '../../agent/messages/deletion-messages.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { annotated, hook, job, jobKey, jobRef, POLICY, succeed } from '../support/hook-fixtures.ts'
import { setup, stopAll, writes } from '../support/reconcile-fixtures.ts'
import { configMap, type RowOptions } from '../support/reconcile-kit.ts'

afterEach(stopAll)

const FORCE = { 'skerry.dev/sync-options': 'Force' }
const claim = (storageClassName: string, name = 'data'): K8sObject =>
  ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: 'default', annotations: FORCE },
    spec: { storageClassName, accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  }) as K8sObject
const CLAIM = { group: '', kind: 'PersistentVolumeClaim', namespace: 'default', name: 'data' }
const CLAIM_NAME = 'PersistentVolumeClaim default/data'
const withImage = (object: K8sObject, image: string): K8sObject =>
  ({ ...object, spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'a', image }] } } } }) as K8sObject
const forcedJob = (image: string) => withImage(annotated(job('work', {}), FORCE), image)

async function applied(objects: K8sObject[]) {
  let current = true
  const parts = setup({ isCurrent: () => current })
  const { cluster, kit, clock, run } = parts
  kit.desire([...objects, configMap('a')])
  await run()
  writes(cluster)
  const next = async (changed: K8sObject[], row: RowOptions = {}) => {
    kit.desire([...changed, configMap('a')], row)
    await clock.advance(20_000)
  }
  /** The agent starts again with a disk of which nobody knows how old it is. */
  const restartOlder = async () => {
    await kit.stop()
    current = false
    kit.start()
    await clock.advance(20_000)
  }
  const contact = async () => {
    current = true
    kit.reconciler.becameCurrent()
    await clock.advance(20_000)
  }
  const deletes = () => writes(cluster).filter((write) => write.startsWith('delete'))
  return { ...parts, next, restartOlder, contact, deletes }
}

describe('PR14 an object that is made again', () => {
  test('AO5 a claim is asked about by name, once, and goes when that very name is confirmed', async () => {
    const { cluster, kit, clock, next, deletes } = await applied([claim('slow')])
    await next([claim('fast')])
    await clock.advance(3_600_000)
    expect(deletes()).toEqual([])
    expect(kit.service()).toMatchObject({ reason: 'ConfirmationPending', refusal: { names: [CLAIM_NAME], count: 1 } })
    expect(kit.object('/PersistentVolumeClaim/default/data')).toMatchObject({ reason: 'Immutable' })
    expect(kit.events().filter(({ reason }) => reason === 'ConfirmationPending')).toHaveLength(1)
    expect(kit.confirm()).toMatchObject({ kind: 'done' })
    await clock.advance(20_000)
    expect(deletes()).toEqual(['delete PersistentVolumeClaim data'])
    expect(cluster.object(CLAIM)?.['spec']).toMatchObject({ storageClassName: 'fast' })
    expect(kit.service()?.refusal).toBeUndefined()
    expect(kit.service()?.sync).toBe('Synced')
  })

  test('AO5 a claim that the row confirms by name goes, and for the next document it is asked about again', async () => {
    const { kit, next, deletes } = await applied([claim('slow')])
    const digest = kit.desire([claim('fast'), configMap('a')])
    await next([claim('fast')], { pruneConfirmed: digest, confirmed: [CLAIM_NAME] })
    expect(deletes()).toEqual(['delete PersistentVolumeClaim data'])
    await next([claim('other')])
    expect(deletes()).toEqual([])
    expect(kit.service()?.refusal?.names).toEqual([CLAIM_NAME])
  })

  test('PR4 its question is one with that of the prune', async () => {
    const { kit, clock, next, deletes } = await applied([claim('slow'), claim('slow', 'more')])
    await next([claim('fast')], { sync: { pruneWhen: 'applied' } })
    expect(kit.service()?.refusal?.names.toSorted()).toEqual([CLAIM_NAME, 'PersistentVolumeClaim default/more'])
    expect(kit.confirm()).toMatchObject({ kind: 'done' })
    await clock.advance(20_000)
    expect(deletes().sort()).toEqual(['delete PersistentVolumeClaim data', 'delete PersistentVolumeClaim more'])
  })

  test('PR7 a Job waits for the first contact after a start', async () => {
    const { kit, next, restartOlder, contact, deletes } = await applied([forcedJob('v1')])
    await restartOlder()
    await next([forcedJob('v2')])
    expect(deletes()).toEqual([])
    expect(kit.object(jobKey('work'))?.message).toContain(deletionText('recreated_when_current'))
    await contact()
    expect(deletes()).toEqual(['delete Job work'])
    expect(kit.object(jobKey('work'))?.sync).toBe('Synced')
  })

  test.each<[string, RowOptions]>([
    ['RP2', { restored: true }],
    ['RL5', { factsOnly: true }],
  ])('%s a Job of a doubtful revision waits for a person', async (_, row) => {
    const { kit, clock, next, deletes } = await applied([forcedJob('v1')])
    await next([forcedJob('v2')], row)
    expect(deletes()).toEqual([])
    expect(kit.service()?.refusal?.names).toEqual(['Job default/work'])
    expect(kit.confirm()).toMatchObject({ kind: 'done' })
    await clock.advance(20_000)
    expect(deletes()).toEqual(['delete Job work'])
  })

  test('RP2 it goes with the next commit', async () => {
    const { next, deletes } = await applied([forcedJob('v1')])
    await next([forcedJob('v2')], { restored: true })
    await next([forcedJob('v2')])
    expect(deletes()).toEqual(['delete Job work'])
  })
})

describe('PR14 the object of a hook', () => {
  const migrate = (image: string, more: Record<string, string> = {}) => withImage(hook('migrate', 'pre-sync', more), image)

  test('PR7 that of the run before waits for the first contact after a start', async () => {
    const { cluster, kit, clock, next, restartOlder, contact, deletes } = await applied([migrate('v1')])
    succeed(cluster, 'migrate')
    await clock.advance(1_000)
    await restartOlder()
    await next([migrate('v2')])
    expect(deletes()).toEqual([])
    expect(kit.service()).toMatchObject({ reason: 'WaitingForHook' })
    expect(kit.service()?.message).toContain(deletionText('recreated_when_current'))
    await contact()
    expect(deletes()).toEqual(['delete Job migrate'])
  })

  test('RP2 that of the run before is asked about', async () => {
    const { cluster, kit, clock, next, deletes } = await applied([migrate('v1')])
    succeed(cluster, 'migrate')
    await clock.advance(1_000)
    await next([migrate('v2')], { restored: true })
    expect(deletes()).toEqual([])
    expect(kit.service()?.refusal?.names).toEqual(['Job default/migrate'])
    expect(kit.confirm()).toMatchObject({ kind: 'done' })
    await clock.advance(20_000)
    expect(deletes()).toEqual(['delete Job migrate'])
    expect(kit.service()?.refusal).toBeUndefined()
  })

  test('HK6 one that goes by its policy waits for the first contact after a start', async () => {
    const { cluster, clock, restartOlder, contact, deletes } = await applied([migrate('v1', { [POLICY]: 'hook-succeeded' })])
    await restartOlder()
    succeed(cluster, 'migrate')
    await clock.advance(20_000)
    expect(deletes()).toEqual([])
    await contact()
    expect(deletes()).toEqual(['delete Job migrate'])
    expect(cluster.object(jobRef('migrate'))).toBeNull()
  })
})
