// A hold and a closed window shut hooks as well: a migration is a change like any other.
import { afterEach, describe, expect, test } from 'bun:test'
import { serviceText } from '../../agent/messages/service-messages.ts'
import { hook, jobRef, succeed } from '../support/hook-fixtures.ts'
import { setup, stopAll, writes } from '../support/reconcile-fixtures.ts'
import { configMap } from '../support/reconcile-kit.ts'
import { SOME, said } from '../support/said.ts'

afterEach(stopAll)

const HOLD = { kind: 'hold', service: 'web/shop', by: 'ola', why: 'stocktaking' } as const
const UNHOLD = { kind: 'unhold', service: 'web/shop', by: 'ola' } as const

describe('holds and windows', () => {
  test('HO1 no hook begins while its service is held, one that runs is seen to its end, and it goes on afterwards', async () => {
    const { cluster, kit, run, settle } = setup()
    const objects = (v: string) => [hook('before', 'pre-sync'), hook('after', 'post-sync'), configMap('a', { v })]
    kit.desire(objects('1'))
    await run()
    expect(writes(cluster)).toEqual(['apply Job before'])
    kit.reconciler.order(HOLD)
    succeed(cluster, 'before')
    await settle()
    expect(writes(cluster)).toEqual([])
    expect(kit.events().map(({ reason }) => reason)).toContain('HookSucceeded')
    expect(kit.service()).toMatchObject({ reason: 'Held', held: { by: 'ola', why: 'stocktaking', sinceMs: expect.any(Number) } })
    expect(kit.service()?.held).not.toHaveProperty('scope')
    expect(kit.service()?.message).toMatch(said(serviceText('Held', { by: SOME, since: SOME, until: '', why: SOME, scope: 'web/shop' })))
    kit.reconciler.order(UNHOLD)
    await settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap a', 'apply Job after'])
    succeed(cluster, 'after')
    await settle()

    kit.reconciler.order(HOLD)
    kit.desire(objects('2'))
    await settle()
    expect(writes(cluster)).toEqual([])
    kit.reconciler.order(UNHOLD)
    await settle()
    expect(writes(cluster)).toEqual(['delete Job before', 'apply Job before'])
  })

  test('HO1 a removal that is held runs no pre-delete hook', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([hook('bye', 'pre-delete'), configMap('a')])
    await run()
    writes(cluster)
    kit.reconciler.order(HOLD)
    kit.reconciler.order({ ...HOLD, service: null })
    kit.remove('prune')
    await settle()
    kit.reconciler.order(UNHOLD)
    await settle()
    expect(kit.service()?.message).toMatch(said(serviceText('Held', { by: SOME, since: SOME, until: '', why: SOME, scope: '--all' })))
    expect(kit.service()?.sync).toBe('OutOfSync')
    expect(writes(cluster)).toEqual([])
    kit.reconciler.order({ ...UNHOLD, service: null })
    await settle()
    expect(writes(cluster)).toEqual(['apply Job bye'])
    succeed(cluster, 'bye')
    await settle()
    expect(cluster.object(jobRef('bye'))).toBeNull()
    expect(kit.service()?.removed).toBe(true)
  })

  test('WI1 outside of its window no hook begins', async () => {
    // 2023-11-14T22:13Z: the clock of the tests.
    const windows = [{ kind: 'allow', schedule: '0 23 * * *', duration: '1h', timeZone: 'UTC' }] as const
    const { cluster, kit, run, clock } = setup({ windowsOf: () => ({ windows }) })
    kit.desire([hook('before', 'pre-sync'), configMap('a')])
    await run()
    expect(writes(cluster)).toEqual([])
    await clock.advance(50 * 60_000)
    expect(writes(cluster)).toEqual(['apply Job before'])
  })
})
