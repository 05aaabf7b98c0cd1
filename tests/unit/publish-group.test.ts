import { expect, test } from 'bun:test'
import type { Publication } from '../../server/desired/publisher.ts'
import { GATHER_MAX, GATHER_MS, PublishGroup } from '../../server/ingest/publish-group.ts'
import { clusterIdSchema } from '../../shared/runtime/ids.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const clusterId = clusterIdSchema.parse('c-0123456789abcdef')
const publication = (service: string, rows = 1): Publication => ({
  project: 'web',
  service,
  clusterId,
  doc: null,
  placedBy: '{}',
  objects: new Map(Array.from({ length: rows }, (_, n) => [`object/${service}/${n}`, '{}'])),
})

function setUp({ fails = '' } = {}) {
  const clock = createVirtualClock()
  const published: string[][] = []
  let underWay = 0
  const group = new PublishGroup({
    clock,
    stopping: new AbortController().signal,
    underWay: () => underWay,
    publish: async (publications) => {
      const names = publications.map(({ service }) => service)
      if (names.includes(fails)) throw new Error(`${fails} cannot be published`)
      published.push(names)
      return publications.map(({ service }) => service !== 'same')
    },
  })
  return {
    clock,
    published,
    /** A pass that has its hand begins; `come`: it has something to publish. */
    pass: () => {
      underWay += 1
      let isHanded = true
      const release = () => {
        if (isHanded) underWay -= 1
        isHanded = false
      }
      return {
        come: (publications: readonly Publication[], clusters = 1) => group.publish(publications, { clusters, release }),
        isHanded: () => isHanded,
        end: () => {
          release()
          group.passEnded()
        },
      }
    },
  }
}

test('RV7 a pass that ends alone is published without a wait', async () => {
  const { pass, published } = setUp()
  expect(await pass().come([publication('a')])).toEqual([true])
  expect(published).toEqual([['a']])
})

test('RV7 passes that are under way together are published together, and each hears of its own', async () => {
  const { pass, published } = setUp()
  const [a, b, none] = [pass(), pass(), pass()]
  const first = a.come([publication('a'), publication('same')])
  const second = b.come([publication('b')])
  none.end() // without anything new
  expect(await Promise.all([first, second])).toEqual([[true, false], [true]])
  expect(published).toEqual([['a', 'same', 'b']])
})

test('RV7 nobody waits longer than a moment for a pass that takes its time', async () => {
  const { pass, published, clock } = setUp()
  const slow = pass()
  const first = pass().come([publication('a')])
  await clock.advance(GATHER_MS - 1)
  expect(published).toEqual([])
  await clock.advance(1)
  expect(await first).toEqual([true])
  expect(await slow.come([publication('b')])).toEqual([true])
  expect(published).toEqual([['a'], ['b']])
})

test.each([
  ['many', Array.from({ length: GATHER_MAX }, (_, n) => publication(`s${n}`)), GATHER_MAX],
  ['large ones', Array.from({ length: 2 }, (_, n) => publication(`s${n}`, 6_000)), 1],
])('RV7 %s are one group only up to its bound, and wait for no more', async (_, publications, most) => {
  const { pass, published } = setUp()
  pass() // never ends
  const came = publications.map((one) => pass().come([one]))
  await came[0]
  expect(published[0]?.length).toBeLessThanOrEqual(most)
  await came[1]
  expect(published.flat().length).toBeGreaterThan(1)
})

test('RV7 what cannot be published fails alone', async () => {
  const { pass, published } = setUp({ fails: 'b' })
  const [a, b, c] = [pass(), pass(), pass()]
  const settled = await Promise.allSettled([a.come([publication('a')]), b.come([publication('b')]), c.come([publication('c')])])
  expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(published).toEqual([['a'], ['c']])
})

test('RV7 passes that have much in memory keep their hands while they wait', async () => {
  const { pass, published } = setUp()
  const passes = [pass(), pass(), pass()]
  const came = passes.map((one, n) => one.come([publication(`s${n}`)], 10_000))
  expect(passes.map((one) => one.isHanded())).toEqual([false, false, true])
  await Promise.all(came)
  expect(published).toEqual([['s0', 's1', 's2']])
})
