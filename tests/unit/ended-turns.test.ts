// The records of turns that end together: one transaction, and each turn has its own outcome.
import { describe, expect, test } from 'bun:test'
import { createReports } from '../../agent/reconcile/report/reports.ts'
import type { AgentState, TurnRecord } from '../../agent/state/agent-state.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const turn = (service: string): TurnRecord => ({ service: { project: 'web', service } as ServiceId, applied: [], state: null })
const row = (key: string) => ({ kind: 'service', key, doc: {} }) as never

function setup({ failing }: { failing?: string } = {}) {
  const stored: string[] = []
  const report: AgentState['report'] = (rows, turns = []) => {
    if (turns.some(({ service }) => service.service === failing)) throw new Error('no space')
    stored.push(`${rows.map(({ key }) => key).join(' ')} | ${turns.map(({ service }) => service.service).join(' ')}`)
  }
  const clock = createVirtualClock()
  const stop = new AbortController()
  const deps = { clock, log: silentLogger, state: { report }, podLogs: undefined, traceOf: () => undefined, signal: stop.signal }
  return { stored, clock, stop, reports: createReports(deps, () => {}) }
}

describe('RC39 turns that end together', () => {
  test('RC39 share a transaction, each with its rows', async () => {
    const { stored, clock, reports } = setup()
    const done = ['a', 'b', 'c'].map((id) => {
      reports.report([row(id)])
      return reports.recordTurn(turn(id))
    })
    expect(stored).toEqual([])
    await clock.advance(0)
    await Promise.all(done)
    expect(stored).toEqual(['a b c | a b c'])
  })

  test('RC39 a record that cannot be stored fails its own turn alone', async () => {
    const { stored, clock, reports } = setup({ failing: 'b' })
    const done = ['a', 'b', 'c'].map((id) => {
      reports.report([row(id)])
      return reports.recordTurn(turn(id))
    })
    const outcomes = Promise.allSettled(done)
    await clock.advance(0)
    expect((await outcomes).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(stored).toEqual(['a | a', 'c | c'])
  })

  test('RC39 what is stored at once comes after the turns that ended before', async () => {
    const { stored, reports } = setup()
    reports.report([row('older')])
    const done = reports.recordTurn(turn('a'))
    reports.report([row('newer')])
    reports.flushReports()
    await done
    expect(stored).toEqual(['older | a', 'newer | '])
  })

  test('RC39 the end of the run stores what ended', async () => {
    const { stored, stop, reports } = setup()
    const done = reports.recordTurn(turn('a'))
    stop.abort()
    await done
    expect(stored).toEqual([' | a'])
  })
})
