// What comes back by itself, and when: the real loop on a virtual clock.
import { describe, expect, test } from 'bun:test'
import { serviceSpecSchema } from '../../shared/model/resources.ts'
import { AppError, type ErrorCode } from '../../shared/runtime/error.ts'
import { ERRORS } from '../../shared/runtime/error-table.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { loopWorld } from '../support/loop-world.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
/** Each once: a commit's services are rendered to put them in order, and what failed for a reason of the moment is
 *  rendered anew to be published. */
const timesOf = (all: ReadonlyArray<{ atMs: number }>) => [...new Set(all.map(({ atMs }) => atMs))]

const failing =
  (error: () => AppError): ReturnType<typeof loopWorld>['world']['raw'] =>
  async ({ source }) => {
    await source.tree.files('shop', () => true)
    throw error()
  }

/** That a render can end in. */
const PASSING: ErrorCode[] = [
  ...(['git_failed', 'git_unreachable', 'git_program_missing', 'source_unreachable', 'credential_missing', 'credential_refused'] as const),
  ...(['disk_full', 'sandbox_unavailable', 'renderer_missing', 'internal', 'store_unreachable'] as const),
]

describe('SO21 a service that fails for a reason that may pass', () => {
  test.each(PASSING)('%s is tried again, after 1 s at first and 60 s at most, until it renders', async (code) => {
    const { clock, world, renders, renderStates, end } = loopWorld()
    const { raw } = world
    world.raw = failing(() => new AppError(code))
    await clock.advance(SECOND)
    expect(timesOf(renders).length).toBeGreaterThanOrEqual(2)
    await clock.advance(20 * MINUTE)
    const gaps = timesOf(renders).map((atMs, index, all) => atMs - (all[index - 1] ?? 0))
    expect(Math.max(...gaps)).toBeLessThanOrEqual(60 * SECOND)
    expect(timesOf(renders).length).toBeLessThan(80)
    world.raw = raw
    await clock.advance(MINUTE)
    expect(renderStates.get('apps')?.error).toBeNull()
    const { length } = timesOf(renders)
    await clock.advance(20 * MINUTE)
    expect(timesOf(renders).length).toBe(length)
    await end()
  })

  test.each(['source_refused', 'source_address_refused', 'render_failed'] as const)('not so %s', async (code) => {
    expect(ERRORS[code].retryable).toBe(false)
    const { clock, world, renders, end } = loopWorld()
    world.raw = failing(() => new AppError(code))
    await clock.advance(20 * MINUTE)
    expect(timesOf(renders).length).toBe(1)
    await end()
  })
})

test('IC14 what ran out of time is rendered again after one minute, two, four', async () => {
  const late = { kind: 'stopped', why: 'time', message: 'took longer than 30 s', stderr: '' } as const
  const { clock, world, renders, passes, end } = loopWorld({ sandbox: { run: async () => late, version: async () => 'helm 4.1.0' } })
  world.raw = async ({ sandbox, source }) => {
    await source.tree.files('shop', () => true)
    await sandbox.run({ program: 'helm', args: [], files: new Map() })
    return { kind: 'failed', problems: [{ path: 'a.yaml', message: 'took longer than 30 s' }] }
  }
  await clock.advance(10 * MINUTE)
  expect(timesOf(renders)).toEqual([0, MINUTE, 3 * MINUTE, 7 * MINUTE])
  // With nothing to render when it is due, it waits for what brings that back.
  world.isHere = false
  world.ask = async () => Promise.reject(new AppError('git_unreachable'))
  const { length } = passes
  await clock.advance(20 * MINUTE)
  expect(passes.length - length).toBe(1)
  await end()
})

test('WK6 a render that stopped its worker is tried again after one minute, two, four, and at once for another commit', async () => {
  const { clock, world, passes, renderStates, ingest, end } = loopWorld()
  world.stopsWorker = true
  await clock.advance(5 * MINUTE)
  expect(renderStates.get('apps')?.error?.code).toBe('render_failed')
  expect(timesOf(passes).length).toBeLessThan(8)
  world.stopsWorker = false
  await clock.advance(MINUTE)
  expect(renderStates.get('apps')?.error?.code).toBe('render_failed')
  world.commit = 'c2'
  await Promise.all([ingest.repositoryChanged('default', 'apps'), clock.advance(0)])
  expect(renderStates.get('apps')?.error).toBeNull()
  world.stopsWorker = true
  world.commit = 'c3'
  await Promise.all([ingest.repositoryChanged('default', 'apps'), clock.advance(0)])
  expect(renderStates.get('apps')?.error?.code).toBe('render_failed')
  world.stopsWorker = false
  await clock.advance(2 * MINUTE)
  expect(renderStates.get('apps')?.error).toBeNull()
  await end()
})

test('IC14 a cluster that joins and is late as well takes no time from one that waits for its own', async () => {
  const late = { kind: 'stopped', why: 'time', message: 'took longer than 30 s', stderr: '' } as const
  const { clock, startMs, world, ingest, cluster, end } = loopWorld({
    sandbox: { run: async () => late, version: async () => 'helm 4.1.0' },
  })
  const tried: Array<[name: string, atMs: number]> = []
  world.raw = async ({ sandbox, source, inputs }) => {
    await source.tree.files('shop', () => true)
    tried.push([inputs.cluster?.name ?? '', clock.nowMs() - startMs])
    await sandbox.run({ program: 'helm', args: [], files: new Map() })
    return { kind: 'failed', problems: [{ path: 'a.yaml', message: 'took longer than 30 s' }] }
  }
  const one = cluster(startMs)
  world.clusters = [one]
  await clock.advance(10 * SECOND)
  world.clusters = [one, { ...one, clusterId: 'c-0000000000000002' as ClusterId, name: 'two' }]
  await Promise.all([ingest.clustersChanged(), clock.advance(0)])
  await clock.advance(8 * MINUTE - 10 * SECOND)
  const timesFor = (name: string) => tried.flatMap(([of, atMs]) => (of === name ? [atMs] : []))
  expect([timesFor('one'), timesFor('two')]).toEqual([
    [0, MINUTE, 3 * MINUTE, 7 * MINUTE],
    [10 * SECOND, MINUTE + 10 * SECOND, 3 * MINUTE + 10 * SECOND, 7 * MINUTE + 10 * SECOND],
  ])
  await end()
})

test('IC14 a render on demand leaves the times alone, and one of another revision leaves no failure to a later pass', async () => {
  const late = { kind: 'stopped', why: 'time', message: 'took longer than 30 s', stderr: '' } as const
  const { clock, world, renders, ingest, end } = loopWorld({ sandbox: { run: async () => late, version: async () => 'helm 4.1.0' } })
  const { raw } = world
  const slow: typeof raw = async ({ sandbox, source }) => {
    await source.tree.files('shop', () => true)
    await sandbox.run({ program: 'helm', args: [], files: new Map() })
    return { kind: 'failed', problems: [{ path: 'a.yaml', message: 'took longer than 30 s' }] }
  }
  const spec = serviceSpecSchema.parse({ source: { repository: 'apps', path: 'shop' }, targets: { selector: {} }, namespace: 'shop' })
  const onDemand = (at: Record<string, string>) => ingest.render({ project: 'default', service: 'apps' }, spec, [], at)
  world.raw = slow
  await clock.advance(30 * SECOND)
  await onDemand({ apps: 'c2' })
  await clock.advance(9.5 * MINUTE)
  expect(timesOf(renders)).toEqual([0, 30 * SECOND, MINUTE, 3 * MINUTE, 7 * MINUTE])
  world.raw = raw
  expect((await onDemand({ apps: 'c2' })).kind).toBe('good')
  await end()
})

test('FA6 a cluster that just joined waits for nothing where its labels are all that is looked at, also after a render for nobody', async () => {
  const { clock, startMs, world, renders, passes, ingest, cluster, end } = loopWorld({ file: 'a.yaml.liquid' })
  world.text = () => 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\ndata: { v: "{{ cluster.labels.site }}" }\n'
  await clock.advance(SECOND)
  const one = { ...cluster(startMs), labels: { site: 'oslo' } }
  world.clusters = [one, { ...one, clusterId: 'c-0000000000000002' as typeof one.clusterId, name: 'two' }]
  const { length } = renders
  await ingest.clustersChanged()
  expect(renders.length - length).toBe(1)
  world.clusters = []
  const looked = passes.length
  await clock.advance(2 * MINUTE)
  expect(passes.slice(looked).filter(({ atMs }) => atMs >= 30 * SECOND)).toEqual([])
  await end()
})

test('IN8a what cannot be removed keeps no repository from being read: it is told, and that is all', async () => {
  const { clock, world, polls, renders, warnings, end } = loopWorld()
  world.cleanUp = async () => Promise.reject(Object.assign(new Error('permission denied'), { code: 'EACCES' }))
  await clock.advance(SECOND)
  expect([polls.length, renders.length]).toEqual([1, 1])
  expect(warnings.filter((text) => text.includes('cannot remove'))).toHaveLength(2)
  await end()
})

test('FA6 a cluster that just joined is looked at again when its minute is over', async () => {
  const { clock, startMs, world, passes, cluster, end } = loopWorld({ file: 'a.yaml.liquid' })
  world.clusters = [cluster(startMs - 20 * SECOND)]
  world.text = () => 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\ndata: { v: "{{ cluster.facts.kubernetesVersion }}" }\n'
  await clock.advance(39 * SECOND)
  const { length } = passes
  world.clusters = []
  await clock.advance(10 * MINUTE)
  expect(timesOf(passes.slice(length))).toEqual([40 * SECOND])
  await end()
})

describe('IN7b a commit that was stored when the store failed', () => {
  test.each(['listClusters', 'listResources', 'appendEvents'])('in %s is looked at again, soon, and it is told', async (method) => {
    const { clock, world, renders, warnings, ingest, end } = loopWorld()
    world.raw = failing(() => new AppError('render_failed'))
    await clock.advance(10 * SECOND)
    expect(timesOf(renders).length).toBe(1)
    const isAway = method === 'appendEvents'
    if (isAway) {
      world.ask = async () => Promise.reject(new AppError('git_unreachable'))
      await clock.advance(2 * MINUTE)
      world.ask = async () => {}
    }
    world.commit = 'c2'
    world.failOnce.add(method)
    await Promise.all([ingest.repositoryChanged('default', 'apps').catch(() => {}), clock.advance(0)])
    expect([timesOf(renders).length, warnings.filter((text) => text === 'ingest run failed').length]).toEqual([1, 1])
    await clock.advance(isAway ? MINUTE : SECOND) // the failures before count
    expect(timesOf(renders).length).toBe(2)
    await clock.advance(10 * MINUTE)
    expect(timesOf(renders).length).toBe(2)
    await end()
  })

  test('is looked at also when the repository went away at once', async () => {
    const { clock, world, renders, ingest, end } = loopWorld()
    world.raw = failing(() => new AppError('render_failed'))
    await clock.advance(10 * SECOND)
    world.commit = 'c2'
    world.failOnce.add('listClusters')
    await Promise.all([ingest.repositoryChanged('default', 'apps').catch(() => {}), clock.advance(0)])
    world.ask = async () => Promise.reject(new AppError('git_unreachable'))
    await clock.advance(SECOND)
    expect(timesOf(renders).length).toBe(2)
    await end()
  })
})

test('IN8a IN7b a repository that was deleted before its first look is forgotten, and its services are told, also if the store fails meanwhile', async () => {
  const { clock, world, polls, passes, forgotten, warnings, ingest, end } = loopWorld()
  world.gone.add('apps')
  world.failOnce.add('repositoryState') // the start is delayed, so that nothing was asked yet
  await clock.advance(0)
  await clock.advance(2 * SECOND)
  const { length } = passes
  world.failOnce.add('listResources')
  await Promise.all([ingest.repositoryChanged('default', 'apps').catch(() => {}), clock.advance(0)])
  expect(warnings).toContain('ingest run failed')
  await clock.advance(SECOND)
  expect([new Set(forgotten), polls, passes.length > length]).toEqual([new Set(['apps']), [], true])
  await end()
})

describe('IN9c Retry-After', () => {
  const busy = (retryAfterMs: number) => new AppError('source_unreachable', { detail: 'too many requests', retryAfterMs })

  test('of a repository is waited for, an hour at most; somebody who says that there is news is heard at once', async () => {
    const { clock, world, polls, ingest, end } = loopWorld()
    world.ask = async () => Promise.reject(busy(10 * MINUTE))
    await clock.advance(10 * MINUTE - 1)
    expect(polls.length).toBe(1)
    await Promise.all([ingest.repositoryChanged('default', 'apps'), clock.advance(0)])
    expect(polls.length).toBe(2)
    world.ask = async () => Promise.reject(busy(100 * 60 * MINUTE))
    await Promise.all([ingest.repositoryChanged('default', 'apps'), clock.advance(0)])
    const { length } = polls
    await clock.advance(60 * MINUTE - 1)
    expect(polls.length).toBe(length)
    await clock.advance(2 * MINUTE)
    expect(polls.length).toBe(length + 1)
    await end()
  })

  test('of what a service lacks is waited for', async () => {
    const { clock, world, renders, end } = loopWorld()
    world.raw = failing(() => busy(10 * MINUTE))
    await clock.advance(10 * MINUTE - 1)
    expect(timesOf(renders).length).toBe(1)
    await clock.advance(10 * MINUTE + 1)
    expect(timesOf(renders).length).toBe(2)
    await end()
  })
})

test('IN9a services that are rendered hold no hand: other repositories of the host are asked meanwhile', async () => {
  const names = Array.from({ length: 12 }, (_, n) => `r-${n}`)
  const { clock, world, polls, ingest, end } = loopWorld({ names, bare: ['other'] })
  await clock.advance(30 * SECOND)
  const rendered = Promise.withResolvers<void>()
  const { raw } = world
  world.raw = async (job) => {
    await rendered.promise
    return raw(job)
  }
  world.commit = 'c2'
  const looked: string[] = []
  const changes = names.map((name) => ingest.repositoryChanged('default', name).then(() => looked.push(name)))
  await clock.advance(5 * MINUTE)
  expect(polls.filter(({ name, atMs }) => name === 'other' && atMs > 35 * SECOND).length).toBeGreaterThanOrEqual(4)
  expect(looked).toEqual([]) // each resolves when its services were looked at
  rendered.resolve()
  await Promise.all([...changes, clock.advance(0)])
  expect(looked.length).toBe(12)
  await end()
})
