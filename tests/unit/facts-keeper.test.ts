import { expect, test } from 'bun:test'
import type { Discovery } from '../../agent/cluster/cluster.ts'
import { FactsKeeper } from '../../agent/facts-keeper.ts'
import type { FactsStatus } from '../../shared/model/status.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const MINUTE = 60_000
const pod = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true, verbs: [] }
const job = { group: 'batch', version: 'v1', kind: 'Job', plural: 'jobs', namespaced: true, verbs: [] }

function setup(version = 'v1.36.3') {
  const clock = createVirtualClock()
  const own = clock.process(0)
  const world = {
    version: 'v1.36.3',
    discovery: { resources: [pod, job], staleGroups: [] } as Discovery,
    failing: false,
    away: false,
    diskFull: false,
  }
  const looks: number[] = []
  const asked: number[] = []
  const said: FactsStatus[] = []
  const keeper: FactsKeeper = new FactsKeeper({
    clock: own,
    random: seededRandom(3),
    log: silentLogger,
    version,
    state: {
      report: (rows) => {
        if (world.diskFull) throw new Error('disk full')
        said.push(...rows.map(({ doc }) => doc as FactsStatus))
      },
      lastReported: () => said.at(-1) ?? null,
    },
    look: async () => {
      looks.push(clock.nowMs())
      if (world.failing) throw new Error('no answer')
      keeper.noteDiscovery(world.discovery)
    },
    info: async () => {
      asked.push(clock.nowMs())
      if (world.away) throw new Error('no answer')
      return { version: world.version }
    },
  })
  const stop = new AbortController()
  const running = keeper.run(stop.signal)
  const end = async () => {
    stop.abort()
    await running
  }
  return { clock, own, world, looks, asked, said, keeper, end }
}

test('FA4 an idle cluster is looked at about once an hour, and nothing is written', async () => {
  const { clock, world, looks, said, keeper, end } = setup()
  keeper.noteDiscovery(world.discovery)
  await clock.advance(24 * 60 * MINUTE)
  expect(looks.length).toBeGreaterThan(18)
  expect(looks.length).toBeLessThan(32)
  expect(said).toHaveLength(1)
  await end()
})

test('FA4 a new version of Kubernetes is said with the next look', async () => {
  const { clock, world, said, keeper, end } = setup()
  keeper.noteDiscovery(world.discovery)
  world.version = 'v1.37.0'
  await clock.advance(91 * MINUTE)
  expect(said.map(({ kubernetesVersion }) => kubernetesVersion)).toEqual(['v1.36.3', 'v1.37.0'])
  await end()
})

test('FA1 FA4 what went missing is looked at again after ten minutes; without an answer then it stays', async () => {
  const { clock, world, looks, said, keeper, end } = setup()
  keeper.noteDiscovery(world.discovery)
  world.discovery = { resources: [pod], staleGroups: [] }
  keeper.noteDiscovery(world.discovery)
  world.failing = true
  await clock.advance(10 * MINUTE)
  expect([looks.length, said.length]).toEqual([1, 1])
  world.failing = false
  await clock.advance(10 * MINUTE)
  expect([looks.length, said.at(-1)?.apis]).toEqual([2, { v1: ['Pod'] }])
  await end()
})

test('FA4 what was served before the version was known is said as soon as it is: only the version is asked for', async () => {
  const { clock, world, looks, asked, said, keeper, end } = setup('')
  world.away = true
  keeper.noteDiscovery(world.discovery)
  await clock.advance(0)
  expect([asked.length, said]).toEqual([1, []])
  world.away = false
  await clock.advance(MINUTE)
  expect([asked.length, looks.length, said.length]).toEqual([2, 0, 1])
  await clock.advance(20 * MINUTE)
  expect([asked.length, looks.length]).toEqual([2, 0])
  await end()
})

test('FA4 a version that stays unknown is asked for once a minute', async () => {
  const { clock, world, asked, said, keeper, end } = setup('')
  world.version = ''
  keeper.noteDiscovery(world.discovery)
  await clock.advance(10 * MINUTE)
  expect([asked.length, said]).toEqual([11, []])
  await end()
})

test('FA4 that a version is asked for is not put off by those who ask meanwhile what is served', async () => {
  const { clock, world, asked, said, keeper, end } = setup('')
  world.away = true
  for (let half = 0; half < 6; half++) {
    keeper.noteDiscovery(world.discovery)
    await clock.advance(MINUTE / 2)
  }
  expect([asked.length, said]).toEqual([4, []])
  await end()
})

test('FA1 without a version nothing is said; what a full disk kept is said later', async () => {
  const { clock, world, said, keeper, end } = setup('')
  world.diskFull = true
  keeper.noteDiscovery(world.discovery)
  await clock.advance(MINUTE - 1)
  expect(said).toEqual([])
  world.diskFull = false
  await clock.advance(MINUTE)
  expect(said).toHaveLength(1)
  await end()
})

test('FA1 RC17 a date that is set makes no missing API gone, and puts no look off', async () => {
  const { clock, own, world, looks, said, keeper, end } = setup()
  keeper.noteDiscovery(world.discovery)
  world.discovery = { resources: [pod], staleGroups: [] }
  keeper.noteDiscovery(world.discovery)
  own.setBy(3_600_000)
  keeper.noteDiscovery(world.discovery)
  expect(said).toHaveLength(1)
  own.setBy(-366 * 24 * 3_600_000)
  await clock.advance(11 * MINUTE)
  expect([said.length, looks.length]).toEqual([2, 1])
  await end()
})
