// `skerry sync`: the plan first, then the question, then a yes for exactly the digests that were shown.
import { expect, test } from 'bun:test'
import type { SyncPlanView } from '../../shared/model/sync.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { createTestAdmin } from '../support/admin-app.ts'
import { type CliSetup, runTestCli } from '../support/cli-run.ts'
import { naming } from '../support/naming.ts'

const none = { count: 0, names: [] }
const online = { word: 'Online', lastSeenMs: 990_000 } as const
const PLAN: SyncPlanView = {
  project: 'default',
  service: 'web',
  mode: 'manual',
  prunes: true,
  clusters: [
    { cluster: 'ship-1', liveness: online, waits: true, digest: 'new', commit: 'bbbbbbbbbbbb', change: 0 },
    { cluster: 'ship-2', liveness: { word: 'Offline', lastSeenMs: 1 }, waits: true, digest: 'new', commit: 'bbbbbbbbbbbb', change: 1 },
    { cluster: 'ship-3', liveness: online, waits: false, digest: 'new', commit: 'bbbbbbbbbbbb', change: null },
    { cluster: 'ship-4', liveness: online, waits: true, digest: 'other', commit: 'cccccccccccc', change: 2 },
  ],
  changes: [
    {
      digest: 'new',
      commit: 'bbbbbbbbbbbb',
      fromDigest: 'old',
      fromCommit: 'aaaaaaaaaaaa',
      known: true,
      create: { count: 1, names: ['ConfigMap web/new'] },
      change: { count: 300, names: ['Deployment web/\u001b[31mweb'] },
      prune: { count: 1, names: ['ConfigMap web/old'] },
      same: 12,
    },
    { digest: 'new', commit: 'bbbbbbbbbbbb', fromDigest: null, fromCommit: null, known: true, create: { count: 1, names: ['ConfigMap web/new'] }, change: none, prune: none, same: 0 }, // biome-ignore format: short
    { digest: 'other', commit: 'cccccccccccc', fromDigest: 'gone', fromCommit: null, known: false, create: none, change: none, prune: none, same: 0 }, // biome-ignore format: short
  ],
}

async function fleet(plan: SyncPlanView = PLAN) {
  const said: unknown[] = []
  const asked: string[] = []
  const admin = await createTestAdmin({
    actions: {
      deleteService: async () => ({ kind: 'not_found' }),
      takeBackDeletion: async () => false,
      deleteCluster: async () => false,
      confirm: async () => null,
      refuse: async () => null,
      suspensionsChanged: async () => {},
      onChanged: () => {},
      objectOrder: async () => null,
      planSync: async (id, wanted) => {
        if (id.service !== 'web') return null
        const cluster = (name: string) => ({ name, labels: { ship: name.slice(-1) } }) as unknown as Parameters<typeof wanted>[0]
        asked.push(id.project)
        return { ...plan, clusters: plan.clusters.filter((item) => wanted(cluster(item.cluster))) }
      },
      allowSync: async (_, request, by) => {
        if (request.digest === 'stale') throw new AppError('conflict', { detail: 'ship-1 shall have revision new now' })
        said.push({ ...request, by })
        return { digest: request.digest, commit: 'bbbbbbbbbbbb', clusters: request.clusters ?? [], already: 0 }
      },
    },
  })
  const run = (line: string, setup: CliSetup = {}) => runTestCli(admin, ['sync', ...line.split(' ').filter(Boolean)], setup)
  return { run, said, asked }
}

test('CL13 TG16 --dry-run shows for each cluster what would change, by name and number, and does nothing', async () => {
  const { run, said } = await fleet()
  const { code, out, err } = await run('web --dry-run')
  expect([code, err]).toEqual([0, ''])
  expect(out).toStartWith('Service web of project default: 3 of 4 clusters wait for a sync.\n')
  expect(out).toMatch(/ship-1 +Online +aaaaaaaa +bbbbbbbb +1 +300 +1 +12\n/)
  expect(out).toMatch(/ship-2 +Offline +- +bbbbbbbb +1 +0 +0 +0\n/)
  expect(out).toMatch(/ship-4 +Online +- +cccccccc +\? +\? +\? +\?\n/)
  expect(out).not.toContain('ship-3')
  expect(out).toContain(
    'In ship-1, aaaaaaaa to bbbbbbbb:\n  create ConfigMap web/new\n  change Deployment web/\\x1b[31mweb\n  change 299 more\n  prune ConfigMap web/old\n',
  )
  expect(out).toContain('In ship-2, nothing to bbbbbbbb:\n  create ConfigMap web/new\n')
  expect(out).toMatch(/^In ship-4, nothing to cccccccc: \S/m)
  expect(JSON.parse((await run('web --dry-run -o json')).out)).toEqual(PLAN)
  expect(said).toEqual([])
})

test('CL13 sync.prune false: what would be pruned is named as kept', async () => {
  const { run } = await fleet({ ...PLAN, prunes: false })
  expect((await run('web --dry-run')).out).toContain('  keep (sync.prune is false) ConfigMap web/old\n')
})

test('CL13 TG17 the plan comes first, then the question; the yes names digest and clusters as they were shown', async () => {
  const { run, said } = await fleet()
  expect(await run('web')).toMatchObject({ code: 2, err: expect.stringContaining('use --yes') })
  expect(await run('web', { isTty: true, stdin: 'n\n' })).toMatchObject({ code: 1, err: expect.stringContaining('nothing was changed') })
  expect(said).toEqual([])
  const { code, out, err } = await run('svc/web', { isTty: true, stdin: 'y\n' })
  expect(code).toBe(0)
  expect(err).toMatch(/wait for a sync.[\s\S]*ship-1[\s\S]*Sync web in 3 clusters\? \[y\/N\] $/)
  expect(out).toBe(
    'service/web approved for commit bbbbbbbbbbbb in 2 clusters; skerry describe service/web shows the progress\n' +
      'service/web approved for commit bbbbbbbbbbbb in 1 cluster; skerry describe service/web shows the progress\n',
  )
  expect(said).toEqual([
    { digest: 'new', clusters: ['ship-1', 'ship-2'], by: 'admin' },
    { digest: 'other', clusters: ['ship-4'], by: 'admin' },
  ])
})

test.each([
  ['web --yes --cluster ship-1', [['ship-1']]],
  ['web --yes --cluster ship-4 --cluster ship-1', [['ship-1'], ['ship-4']]],
  ['web --yes -l ship=2', [['ship-2']]],
  ['web --yes -p default -l ship!=4', [['ship-1', 'ship-2']]],
])('CL13 %s', async (line, expected) => {
  const { run, said } = await fleet()
  expect((await run(line)).code).toBe(0)
  expect(said.map((request) => (request as { clusters: string[] }).clusters)).toEqual(expected)
})

test.each([
  ['web --yes --cluster ship-3', 0, 'nothing to sync: the newest revision of web is already approved in 1 cluster\n'],
  [
    'web --yes -l ship=9',
    0,
    'nothing to sync: web of project default is in none of these clusters; `skerry describe service web -p default` shows its clusters\n',
  ],
  ['web --cluster ship-1 --cluster ship-9', 1, 'web is not in ship-9'],
  ['web --cluster ship-9', 1, 'web is not in ship-9'],
  ['none', 1, 'there is no service none in project default'],
  ['cluster/web', 2, 'does not accept clusters'],
  ['web -l =', 1, 'invalid labelSelector'],
  ['', 2, "missing required argument 'service'"],
])('CL13 CL8 %p: exit code %p, %p', async (line, code, text) => {
  const { run, said } = await fleet()
  expect(await run(line)).toMatchObject({ code, err: expect.stringContaining(text) })
  expect(said).toEqual([])
})

test('CL13 a service of auto has nothing that waits', async () => {
  const { run } = await fleet({ ...PLAN, mode: 'auto', clusters: [], changes: [] })
  expect(await run('web --yes')).toMatchObject({ code: 0, err: naming('sync.mode of web', 'auto') })
})

test('CL13 TG17 a revision that is no longer current is refused with the one that is', async () => {
  const { run } = await fleet({ ...PLAN, clusters: PLAN.clusters.map((cluster) => ({ ...cluster, digest: 'stale' })) })
  expect(await run('web --yes')).toMatchObject({ code: 1, err: naming('revision new') })
})

test('CL13 the help tells what is compared, what a yes is for, and the exit codes', async () => {
  const { run } = await fleet()
  const { code, out } = await run('--help')
  expect(code).toBe(0)
  expect(out).toStartWith('Examples:\n  skerry sync web --dry-run\n')
  expect(out).toContain('The approval covers only the revision shown')
  expect(out).toContain('Exit codes:')
})
