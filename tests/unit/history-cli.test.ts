// `skerry history` and the routes behind it: what is typed, what columns are printed, what is refused.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { joinCluster, publishOne } from '../support/store-fixtures.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
  await admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc('apps'), serviceDoc('web')] })
  admin.clock.nowMs = 10_000_000
})
afterEach(() => admin.store.close())
const cli = (argv: string) => runTestCli(admin, argv.split(' ').filter(Boolean))

const web = { project: 'default', service: 'web' }
const render = (n: number, revisions: Record<string, string> = {}) =>
  admin.store.setRenderState(web, {
    commit: `c0ffee00${n}`,
    generation: 1,
    digest: `d${n}`,
    objectCount: n,
    renderedMs: 9_000_000 + n * 60_000,
    error: null,
    release: { variants: 1, revisions, tools: {}, warnings: [] },
  })

async function report(health: string, nowMs: number, rev: number, reason = ''): Promise<void> {
  const point = { commit: 'c0ffee001', digest: 'd1', atMs: 1 }
  const doc = {
    sync: 'Synced',
    health,
    reason: health === 'Healthy' ? reason : 'CrashLoop',
    message: '',
    sinceMs: nowMs,
    applied: point,
    objectCount: 1,
    healthyCount: 1,
  }
  const cluster = await admin.store.clusterByName('cluster-a')
  const id = cluster?.clusterId ?? (await joinCluster(admin.store, 'a'))
  const shall = { commit: 'c', digest: 'd1', count: 1, sync: syncOptionsSchema.parse({}), protect: false }
  await publishOne(admin.store, { clusterId: id, project: 'default', service: 'web', doc: shall, setSha: null, placedBy: '' })
  await admin.store.upsertStatus(id, [{ kind: 'service', key: 'default/web', rev, doc }], { complete: false, nowMs })
}

test('HI3 the revisions of a service, newest first', async () => {
  for (const n of [1, 2, 3]) await render(n)
  const note = { author: 'Ana', subject: 'fix the port', authoredMs: 5 }
  await admin.store.noteCommit({ project: 'default', repository: 'apps', commit: 'c0ffee003', ...note, seenMs: 6 })
  expect((await cli('history service web')).out).toBe(
    'NUMBER   COMMIT     AGE   OBJECTS   CLUSTERS   AUTHOR   SUBJECT\n3        c0ffee00   13m   3         0          Ana      fix the port\n2        c0ffee00   14m   2         0          -        -\n1        c0ffee00   15m   1         0          -        -\n',
  )
  expect((await cli('history svc/web --limit 1 --no-headers -o wide')).out).toBe(
    '3   c0ffee00   13m   3   0   -   1   d3   Ana   fix the port\n',
  )
  expect((await cli('history service web -o name')).out).toBe('revision/3\nrevision/2\nrevision/1\n')
  expect(JSON.parse((await cli('history service web --limit 1 -o json')).out)).toEqual({
    items: [
      {
        number: 3,
        commit: 'c0ffee003',
        author: 'Ana',
        subject: 'fix the port',
        digest: 'd3',
        generation: 1,
        objectCount: 3,
        renderedMs: 9_180_000,
        clusters: 0,
        variants: 1,
        revisions: {},
      },
    ],
  })
})

test('HI3 --since narrows the revisions of a service, and its changes in a cluster', async () => {
  for (const n of [1, 2, 3]) await render(n)
  expect((await cli('history service web --since 15m -o name')).out).toBe('revision/3\nrevision/2\n')
  await report('Degraded', 9_000_000, 1)
  await report('Healthy', 9_500_000, 2)
  await report('Degraded', 9_900_000, 3)
  const shown = async (argv: string) => (await cli(`history service web --cluster cluster-a ${argv} -o name`)).out
  expect(await shown('--since 10m')).toBe('change/9900000\nchange/9500000\n')
  expect(await shown('--since 1h')).toBe('change/9900000\nchange/9500000\nchange/9000000\n')
  expect((await cli('history service web --cluster cluster-a --since 1h --limit 1')).err).toContain('--limit shows more')
})

test('HI3 a revision of several sources names what was read of each', async () => {
  await render(1, { values: 'c0ffee0011', charts: '0123456789' })
  expect((await cli('history service web --no-headers')).out).toBe('1   charts@01234567,values@c0ffee00   15m   1   0   -   -\n')
})

test('HI3 how it was in a cluster, newest first', async () => {
  await report('Healthy', 1_000_000, 1)
  await report('Degraded', 9_000_000, 2)
  expect((await cli('history service web --cluster cluster-a')).out).toBe(
    'AGE   SYNC     HEALTH     COMMIT     AUTHOR   REASON      CAUSE\n16m   Synced   Degraded   c0ffee00   -        CrashLoop   workload: CrashLoop\n2h    Synced   Healthy    c0ffee00   -        -           commit c0ffee00\n',
  )
  const { items } = JSON.parse((await cli('history service web --cluster cluster-a -o json')).out)
  expect(items[1]).toEqual({
    ...{ atMs: 1_000_000, sync: 'Synced', health: 'Healthy', reason: '', commit: 'c0ffee001' },
    cause: { kind: 'commit', text: 'commit c0ffee00', by: null, atMs: null, object: null },
  })
})

test('HI3 a reason that only repeats the state is none, as everywhere', async () => {
  await report('Healthy', 1_000_000, 1, 'Synced')
  expect((await cli('history service web --cluster cluster-a --no-headers')).out).toEndWith(
    'Healthy   c0ffee00   -   -   commit c0ffee00\n',
  )
})

test('HI7 what happened in a cluster is one page: changes with causes, corrected drift, events of the cluster', async () => {
  const event = (atMs: number, reason: string, message: string, about: object = {}) => ({
    ...{ atMs, type: 'Normal' as const, reason, message, cluster: 'cluster-a', project: null, service: null, object: null, ...about },
  })
  await report('Healthy', 1_000_000, 1)
  await report('Degraded', 9_000_000, 2)
  const ofWeb = { project: 'default', service: 'web' }
  await admin.store.appendEvents([
    event(8_000_000, 'DriftHealed', 'Deployment shop/web: spec.replicas changed by kubectl-edit; restored', ofWeb),
    event(8_990_000, 'HookFailed', 'Job shop/migrate failed', ofWeb),
    event(9_500_000, 'ClusterOffline', 'no contact for 2m'),
    event(9_600_000, 'Applied', 'not a cause', ofWeb),
  ])
  const lines = (await cli('history cluster cluster-a --since 1h --no-headers')).out.trimEnd().split('\n')
  expect(lines.map((line) => line.split(/ {2,}/).filter((cell) => cell !== '-').slice(2))).toEqual([
    ['cluster: ClusterOffline: no contact for 2m'],
    ['default', 'web', 'Synced', 'Degraded', 'c0ffee00', 'hook: HookFailed: Job shop/migrate failed'],
    ['default', 'web', 'Synced', 'Healthy', 'c0ffee00', expect.stringContaining('changed by kubectl-edit')],
  ]) // biome-ignore format: a table
  const { items } = JSON.parse((await cli('history service web --cluster cluster-a -o json')).out)
  expect(items.map(({ cause }: { cause: { kind: string; by: string | null } }) => [cause.kind, cause.by])).toEqual([
    ['cluster', null],
    ['hook', null],
    ['drift', 'kubectl-edit'],
    ['commit', null],
  ])
})

test('HI8 events of a time are those that are not older', async () => {
  const event = { type: 'Normal', reason: 'Applied', message: '', cluster: null, project: null, service: null, object: null } as const
  await admin.store.appendEvents([8_000_000, 9_500_000, 9_900_000].map((atMs) => ({ ...event, atMs })))
  expect((await cli('events --since 30m --no-headers -o name')).out.trimEnd().split('\n')).toHaveLength(2)
  expect((await cli('events --since 30m --limit 1 --no-headers')).err).toContain('--limit')
})

test('HI3 pages go on strictly before where the last one ended', async () => {
  for (const n of [1, 2, 3, 4, 5]) await render(n)
  const numbers: number[][] = []
  for (let next: string | null = ''; next !== null; ) {
    const { body } = await admin.call('GET', `/api/v1/projects/default/services/web/revisions?limit=2&continue=${next}`)
    const page = body as { items: Array<{ number: number }>; continue: string | null }
    numbers.push(page.items.map(({ number }) => number))
    next = page.continue
  }
  expect(numbers).toEqual([[5, 4], [3, 2], [1]])
})

test('HI3 what is not there, and what was typed wrong', async () => {
  expect(await cli('history service web')).toMatchObject({ code: 0, out: '', err: 'no revisions of service web\n' })
  expect((await cli('history service none')).code).toBe(1)
  expect((await cli('history service web --cluster none')).err).toContain('none')
  expect((await cli('history service')).code).toBe(2)
  expect((await cli('history cluster web')).code).toBe(1)
  expect((await cli('history cluster web --since soon')).code).toBe(2)
  expect((await cli('history service web --limit 0')).code).toBe(2)
  for (const path of ['history', 'history?cluster=NO', 'revisions?continue=x', 'revisions?limit=0'])
    expect([path, (await admin.call('GET', `/api/v1/projects/default/services/web/${path}`)).status]).toEqual([path, 400])
})
