// Projects share the workers of ingest: one that renders for minutes, or whose Git servers are slow, does not delay
// others.
import { expect, test } from 'bun:test'
import { loopWorld } from '../support/loop-world.ts'

const SECOND = 1_000
const LARGE = Array.from({ length: 40 }, (_, n) => `large-${n}`)
const projectOf = (name: string) => (name.startsWith('large') ? 'large' : 'small')

test('IN16 a project with 40 services that render slowly delays the commit of another project by one render at most', async () => {
  const { clock, world, renders, ingest, end } = loopWorld({ names: [...LARGE, 'small'], projectOf })
  let isSlow = true
  const { raw } = world
  world.raw = async (job) => {
    if (isSlow && job.id.project === 'large') await clock.sleep(60 * SECOND)
    return raw(job)
  }
  await clock.advance(5 * 60 * SECOND)
  world.commit = 'c2'
  const before = renders.length
  void ingest.repositoryChanged('small', 'small')
  await clock.advance(61 * SECOND)
  expect(renders.slice(before).some(({ name }) => name === 'small')).toBe(true)
  isSlow = false
  await clock.advance(60 * SECOND)
  await end()
})

test('IN16 two slow Git servers of one project leave a worker for the repositories of others', async () => {
  const names = LARGE.slice(0, 20)
  const hostOf = (name: string) => `${name === 'small' ? 'quick' : `slow-${Number(name.slice(6)) % 2}`}.example`
  const { clock, world, polls, ingest, end } = loopWorld({ names: [...names, 'small'], projectOf, hostOf })
  await clock.advance(5 * SECOND)
  world.ask = async (name) => {
    if (name !== 'small') await clock.sleep(600 * SECOND)
  }
  await clock.advance(120 * SECOND)
  const before = polls.length
  void ingest.repositoryChanged('small', 'small')
  await clock.advance(SECOND)
  expect(polls.slice(before).map(({ name }) => name)).toEqual(['small'])
  world.ask = async () => {}
  await clock.advance(600 * SECOND)
  await end()
})
