// `skerry wait` against the real admin API: what ends it, what it says when time is up, and that the feed wakes it.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { parseCondition } from '../../server/cli/wait-conditions.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { type CliSetup, runTestCli } from '../support/cli-run.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
  await admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc('apps'), serviceDoc('web'), serviceDoc('api')] })
})
afterEach(() => admin.store.close())

const GATHERED_MS = 1_000
/** Short waits are over at once; timeouts and the look now and then only where a test says so. */
const never: CliSetup['sleep'] = (ms, signal) => systemClock.sleep(ms < GATHERED_MS ? 1 : 600_000, signal)
const cli = (argv: string, setup: CliSetup = {}) => runTestCli(admin, argv.split(' '), { sleep: never, ...setup })

/** After the first read, when the wait listens to the feed, something happens once. */
function whenWaiting(happens: () => Promise<unknown>): CliSetup {
  let reads = 0
  return {
    fetch: async (url, init) => {
      const answer = await admin.app.fetch(new Request(url, init))
      if (!url.includes('/changes')) reads += 1
      if (reads === 2 && !url.includes('/changes')) setImmediate(() => void happens())
      return answer
    },
  }
}

test('CL37 what already holds ends it at once, without the feed', async () => {
  const asked: string[] = []
  const { code, out } = await cli('wait svc/web --for=jsonpath=.metadata.name=web', {
    fetch: async (url, init) => {
      asked.push(url)
      return admin.app.fetch(new Request(url, init))
    },
  })
  expect([code, out]).toEqual([0, 'service/web has web at .metadata.name\n'])
  expect(asked).toHaveLength(1)
})

test('CL37 a change in the feed ends it: a label that is applied', async () => {
  const labelled = { ...serviceDoc('web'), metadata: { name: 'web', labels: { team: 'red' } } }
  const apply = () => admin.call('POST', '/api/v1/apply', { resources: [labelled] })
  expect(await cli('wait svc/web --for=jsonpath={.metadata.labels.team}=red', whenWaiting(apply))).toEqual({
    code: 0,
    out: 'service/web has red at {.metadata.labels.team}\n',
    err: '',
  })
})

test('CL37 when time is up the exit code is 1, and each one that lacks something is said with its reason', async () => {
  const atOnce: CliSetup = { sleep: (_, signal) => systemClock.sleep(1, signal) }
  const { code, out, err } = await cli('wait services --all --for=healthy --timeout 10m', atOnce)
  expect([code, out]).toEqual([1, ''])
  expect(err).toStartWith('error: timed out after 10m: 2 of 2 services: not healthy\n')
  expect(err).toMatch(/^ {2}service\/web: OutOfSync, Unknown: \w+: ./m)
  expect(await cli('wait placements --service web --for=healthy --timeout 0')).toMatchObject({ code: 1 })
})

test('all conditions must hold; -o prints the documents', async () => {
  expect((await cli('wait svc/web --for=jsonpath=.metadata.name --for=healthy --timeout 0')).code).toBe(1)
  const { out } = await cli('wait services --all --for=jsonpath=.metadata.name -o jsonpath={.items[*].metadata.name}')
  expect(out).toBe('api web')
  expect((await cli('wait svc/web --for=condition=Healthy=false -o name')).out).toBe('service/web\n')
})

describe('what was typed wrong is exit code 2, and nothing is asked', () => {
  test.each([
    ['wait svc/web', '--for is missing'],
    ['wait svc/web --for=helthy', 'did you mean "healthy"?'],
    ['wait repo/apps --for=healthy', 'cannot wait for "healthy" of repositories'],
    ['wait services --for=healthy', 'use --all'],
    ['wait svc/web --for=healthy --timeout soon', 'expected a duration'],
    ['wait svc/web --for=jsonpath={.a', 'invalid JSONPath'],
    ['wait svc/web --for=condition=Healthy=maybe', 'expects true or false'],
    ['wait objects/x --for=healthy', 'have no names'],
    ['wait tokens --for=deleted', 'does not accept tokens'],
  ])('%s', async (argv, message) => {
    const { code, err } = await cli(argv, { fetch: () => Promise.reject(new Error('asked')) })
    expect(err).toContain(message)
    expect(code).toBe(2)
  })
})

test('a resource that does not exist is an error at once, unless its deletion is awaited', async () => {
  expect(await cli('wait svc/none --for=healthy')).toMatchObject({ code: 1 })
  expect(await cli('wait svc/none --for=deleted')).toMatchObject({ code: 0, out: 'service/none is deleted\n' })
})

test('conditions look at the status of resources, and at placements themselves', () => {
  const degraded = { cluster: 'a', service: 'web', sync: 'Synced', health: 'Degraded', reason: 'CrashLoop', message: '0 of 2 ready' }
  const healthy = parseCondition('healthy', 'placements')
  expect([healthy.holds(degraded), healthy.why(degraded)]).toEqual([false, 'Synced, Degraded: CrashLoop: 0 of 2 ready'])
  expect(parseCondition('synced', 'placements').holds(degraded)).toBe(true)
  expect(parseCondition('ready', 'repositories').holds({ metadata: { name: 'a' }, status: { ready: true } })).toBe(true)
  expect(parseCondition('online', 'clusters').holds({ metadata: { name: 'a' }, status: { liveness: { word: 'Offline' } } })).toBe(false)
})
