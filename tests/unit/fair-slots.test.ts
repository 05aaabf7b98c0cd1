// Which project has the next place, for a job of a worker or a program of the sandbox.
import { expect, test } from 'bun:test'
import { JobCosts } from '../../server/control/workers/job-costs.ts'
import { FairSlots } from '../../server/render/sandbox/fair-slots.ts'
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts'

/** Jobs of projects, each for a time; `began` has the projects in order, `usedMs` what each got. */
function jobsOn(count: number, ofOneMax = count) {
  const clock: VirtualClock = createVirtualClock()
  const slots = new FairSlots(count, clock, ofOneMax)
  const began: string[] = []
  const usedMs: Record<string, number> = {}
  const ask = (
    project: string,
    tookMs: number,
    { subject = 'apps', signal = undefined as AbortSignal | undefined, processorMs = null as number | null } = {},
  ) =>
    slots.run(
      { project, subject },
      async (spent) => {
        if (processorMs !== null) spent(processorMs)
        began.push(`${project}/${subject}`)
        await clock.sleep(tookMs)
        usedMs[project] = (usedMs[project] ?? 0) + tookMs
      },
      signal,
    )
  return { clock, ask, began, usedMs }
}

test('WK9 a project with a thousand jobs delays another project by the one that runs, not by those that wait', async () => {
  const { clock, ask, began } = jobsOn(1)
  for (let n = 0; n < 1_000; n++) void ask('large', 1_000)
  await clock.advance(5_500)
  void ask('small', 1_000)
  await clock.advance(1_000)
  expect(began.slice(5)).toEqual(['large/apps', 'small/apps'])
})

test('WK9 projects share time, not turns: long jobs get no more of it than short ones', async () => {
  const { clock, ask, usedMs } = jobsOn(1)
  for (let n = 0; n < 1_000; n++) {
    void ask('long', 4_000)
    void ask('short', 200)
  }
  await clock.advance(120_000)
  expect((usedMs['long'] ?? 0) / (usedMs['short'] ?? 1)).toBeWithin(0.8, 1.3)
})

test('WK9 a project pays for processor time, not for the time that its jobs wait', async () => {
  const { clock, ask, began } = jobsOn(1)
  for (let n = 0; n < 100; n++) {
    void ask('waiting', 1_000, { processorMs: 10 })
    void ask('computing', 1_000, { processorMs: 1_000 })
  }
  await clock.advance(20_500)
  expect(began.filter((one) => one === 'waiting/apps').length).toBeGreaterThan(15)
})

test('WK10 a project has at most the places that one project may have, and the others are free for others', async () => {
  const { clock, ask, began } = jobsOn(2, 1)
  for (let n = 0; n < 3; n++) void ask('large', 60_000)
  await clock.advance(0)
  void ask('small', 10)
  await clock.advance(0)
  expect(began).toEqual(['large/apps', 'small/apps'])
})

test('WK9 jobs that share a process share the processor time while they run together', () => {
  let nowMs: number | null = 0
  const costs = new JobCosts(() => nowMs)
  const [first, second] = [costs.begin(), costs.begin()]
  nowMs = 100
  expect(costs.end(second)).toBe(50)
  nowMs = 130
  expect(costs.end(first)).toBe(80)
  const last = costs.begin()
  nowMs = null // it ended
  expect(costs.end(last)).toBe(0)
})

test('WK9 no project has all places while another one may ask', async () => {
  const { clock, ask, began } = jobsOn(4)
  void ask('small', 10)
  await clock.advance(10)
  for (let n = 0; n < 10; n++) void ask('large', 60_000)
  await clock.advance(1_000)
  expect(began).toHaveLength(1 + 3)
  void ask('small', 10)
  await clock.advance(0)
  expect(began.at(-1)).toBe('small/apps')
})

test('WK9 within a project each repository and service has one turn after the other, and one that gives up has none', async () => {
  const { clock, ask, began } = jobsOn(1)
  const stop = new AbortController()
  for (let n = 0; n < 3; n++) void ask('p', 100, { subject: 'a' })
  const given = ask('p', 100, { subject: 'c', signal: stop.signal }).catch((error: unknown) => error)
  void ask('p', 100, { subject: 'b' })
  stop.abort(new Error('enough'))
  expect(await given).toBe(stop.signal.reason)
  await clock.advance(400)
  expect(began).toEqual(['p/a', 'p/a', 'p/b', 'p/a'])
})
