// The command line against the real admin API over a real store: what is typed, what is printed, what the exit code
// says.
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { StatusWrite } from '../../server/fleet/records.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { type CliSetup, runTestCli } from '../support/cli-run.ts'
import { naming } from '../support/naming.ts'
import { joinCluster, publishOne } from '../support/store-fixtures.ts'

const folder = mkdtempSync(join(tmpdir(), 'skerry-cli-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
})
afterEach(() => admin.store.close())

const cli = (argv: string, setup?: CliSetup) => runTestCli(admin, argv.split(' ').filter(Boolean), setup)
const file = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const FLEET = `apiVersion: skerry.dev/v1
kind: Repository
metadata: {name: apps}
spec:
  git: {url: https://git.example/apps.git}
---
apiVersion: skerry.dev/v1
kind: Service
metadata:
  name: web
spec:
  source: {repository: apps, path: web}
  targets: {selector: {matchLabels: {env: prod}}}
`

/** Something happens after the first list was read, and it is told to stop when it has read again. */
function followOnce(happens: () => Promise<unknown>): CliSetup {
  const stop = new AbortController()
  let reads = 0
  return {
    signal: stop.signal,
    fetch: async (url, init) => {
      const answer = await admin.app.fetch(new Request(url, init))
      if (url.includes('/changes')) return answer
      reads += 1
      if (reads === 1) setImmediate(() => void happens())
      else stop.abort()
      return answer
    },
  }
}

const sync = syncOptionsSchema.parse({})
const point = { commit: 'c0ffee0011', digest: 'd1', atMs: 5 }

/** Two clusters with the service web: a is online and well, b is degraded and has been away for an hour. */
async function smallFleet(): Promise<void> {
  await admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc('apps'), serviceDoc('web')] })
  await admin.store.setRepositoryState('default', 'apps', { commit: 'c0ffee0011', fetchedMs: 990_000, tag: null, error: null })
  await admin.store.setRenderState(
    { project: 'default', service: 'web' },
    { commit: 'c0ffee0011', generation: 1, digest: 'd1', objectCount: 2, renderedMs: 990_000, error: null },
  )
  admin.clock.nowMs = 5_000_000
  for (const [digit, seenMs, health] of [
    ['a', 4_990_000, 'Healthy'],
    ['b', 1_400_000, 'Degraded'],
  ] as const) {
    const id = await joinCluster(admin.store, digit, { env: 'prod' })
    await admin.store.markSeen(new Map([[id, seenMs]]))
    const doc = { commit: 'c0ffee0011', digest: 'd1', count: 2, sync, protect: false }
    await publishOne(admin.store, { clusterId: id, project: 'default', service: 'web', doc, setSha: 'x', placedBy: '' })
    const state = {
      sync: 'Synced',
      health,
      reason: health === 'Healthy' ? 'Applied' : 'CrashLoop',
      message: health === 'Healthy' ? '' : 'Deployment web/web: 0 of 2 ready',
      sinceMs: 1_300_000,
    }
    const rows: StatusWrite[] = [
      {
        kind: 'service',
        key: 'default/web',
        rev: 1,
        doc: { ...state, received: point, applied: point, objectCount: 2, healthyCount: health === 'Healthy' ? 2 : 1 },
      },
      { kind: 'object', key: 'default/web/apps/Deployment/web/web', rev: 2, doc: state },
      {
        kind: 'event',
        key: '1',
        rev: 3,
        doc: { atMs: 1_300_000, type: 'Normal', reason: 'Applied', message: `2 objects on ${digit}`, service: 'default/web' },
      },
    ]
    await admin.store.upsertStatus(id, rows, { complete: false, nowMs: seenMs })
  }
}

describe('what is printed', () => {
  test('CL1 columns that awk can cut: services, clusters, repositories, placements, objects', async () => {
    await smallFleet()
    expect((await cli('get services')).out).toBe(
      'NAME   SYNC     HEALTH     CLUSTERS   OBJECTS   COMMIT     AGE   REASON\nweb    Synced   Degraded   1/2        2         c0ffee00   66m   CrashLoop\n',
    )
    expect((await cli('get cl')).out).toBe(
      'NAME        LIVENESS   SEEN   SYNC     HEALTH     SERVICES   AGE   REASON\n' +
        'cluster-a   Online     10s    Synced   Healthy    1/1        83m   -\n' +
        'cluster-b   Offline    60m    Synced   Degraded   0/1        83m   ClusterOffline\n',
    )
    expect((await cli('get repo/apps --no-headers')).out).toBe('apps   git   True   c0ffee00   66m   66m   Fetched\n')
    expect((await cli('get pl --service web --no-headers')).out).toBe(
      'cluster-a   web   Online    Synced   Healthy    2/2   c0ffee00   61m   Applied\ncluster-b   web   Offline   Synced   Degraded   1/2   c0ffee00   61m   CrashLoop\n',
    )
    expect((await cli('get obj --cluster cluster-b')).out).toBe(
      'CLUSTER     SERVICE   KIND              NAMESPACE   NAME   SYNC     HEALTH     SINCE   REASON\ncluster-b   web       Deployment.apps   web         web    Synced   Degraded   61m     CrashLoop\n',
    )
  })

  test('CL36 jsonpath, custom columns, order by a path and labels of every list; describe has the documents of get', async () => {
    await smallFleet()
    expect((await cli('get cl -o jsonpath={.items[*].metadata.name}')).out).toBe('cluster-a cluster-b')
    expect((await cli('get svc/web -o jsonpath={.status.health}')).out).toBe('Degraded')
    expect((await cli('get cl --sort-by .status.liveness.lastSeenMs --no-headers -o custom-columns=A:.metadata.name,B:.x')).out).toBe(
      'cluster-b   <none>\ncluster-a   <none>\n',
    )
    expect((await cli('get cl --sort-by .status.liveness.lastSeenMs --limit 1 -o name')).out).toBe('cluster/cluster-b\n')
    expect((await cli('get cl --show-labels')).out.split('\n')[1]).toEndWith('   env=prod')
    expect(await cli('get placements --show-labels')).toMatchObject({ code: 2 })
    expect((await cli('describe svc web -o json')).out).toBe((await cli('get svc/web -o json')).out)
    expect((await cli('events -o jsonpath={.items[0].reason}')).out).toBe('Applied')
    expect((await cli('count --by health -o jsonpath={.items[0].count}')).out).toBe('1')
  })

  test('AW3 warnings of the API server about an object are in lists and in the description of its service', async () => {
    await smallFleet()
    const warnings = ['v1 Endpoints is deprecated in v1.33+', 'would violate PodSecurity']
    const doc = { sync: 'Synced', health: 'Healthy', reason: 'Healthy', message: '', sinceMs: 1_300_000, warnings }
    const rows: StatusWrite[] = [{ kind: 'object', key: 'default/web//Endpoints/web/old', rev: 9, doc }]
    const id = (await admin.store.listClusters()).find(({ name }) => name === 'cluster-a')?.clusterId
    if (id === undefined) throw new Error('no cluster-a')
    await admin.store.upsertStatus(id, rows, { complete: false, nowMs: 5_000_000 })
    expect((await cli('get objects --kind Endpoints -o wide --no-headers')).out).toContain(
      warnings.map((warning) => `warning: ${warning}`).join('; '),
    )
    expect(JSON.parse((await cli('get objects --kind Endpoints -o json')).out)).toMatchObject({ items: [{ name: 'old', warnings }] })
    const { out } = await cli('describe service web')
    expect(out).toContain(warnings.join('; '))
  })

  test.each([
    ['objects -l env=prod --status-selector health=degraded -o name', 'object/cluster-b/default/web/Deployment/web/web\n'],
    ['objects --status-selector health!=Degraded --sort-by newest -o name', 'object/cluster-a/default/web/Deployment/web/web\n'],
    ['objects --search "of 2 ready" -o name', 'object/cluster-b/default/web/Deployment/web/web\n'],
    ['objects --kind deployment -n web --limit 1 --chunk-size 1 -o name', 'object/cluster-a/default/web/Deployment/web/web\n'],
    [
      'objects --chunk-size 1 --sort-by health --no-headers -o name',
      'object/cluster-b/default/web/Deployment/web/web\nobject/cluster-a/default/web/Deployment/web/web\n',
    ],
    ['objects --image nginx -o name', ''],
    ['placements -A -o name', 'placement/cluster-a/web\nplacement/cluster-b/web\n'],
    ['placements -l env=prod --status-selector "health in (Degraded,Missing)" -o name', 'placement/cluster-b/web\n'],
    ['placements --service web --search cluster-a -o name', 'placement/cluster-a/web\n'],
    ['clusters --status-selector liveness=offline -o name', 'cluster/cluster-b\n'],
    ['clusters --sort-by seen -l env -o name', 'cluster/cluster-a\ncluster/cluster-b\n'],
    ['clusters -l "env in (dev,staging)" -o name', ''],
    ['clusters --search r-b -o name', 'cluster/cluster-b\n'],
  ])('QY1 CL2 get %s', async (argv, out) => {
    await smallFleet()
    const words = (argv.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', ''))
    expect(await runTestCli(admin, ['get', ...words])).toMatchObject({ code: 0, out })
  })

  test('CL1 describe tells state, why, what next, since when, and of an offline cluster the last known', async () => {
    await smallFleet()
    const { out } = await cli('describe service web')
    expect(out).toContain('State:       Synced, Degraded\n')
    expect(out).toMatch(/^Message: +1 of 2: cluster-b: Deployment web\/web: 0 of 2 ready; .*cluster-b.*offline/m)
    expect(out).toMatch(/^Next: +No action needed/m)
    expect(out).not.toContain('skerry describe service web')
    expect(out).toContain('Clusters:\nCLUSTER ')
    expect(out).toMatch(/^Objects .*:$/m)
    expect(out).toContain('Events:\n')
    const cluster = await cli('describe cl/cluster-b')
    expect(cluster.out).toContain('Liveness: Offline since 1970-01-01T00:23:20Z (60m ago)\n')
  })

  test('CL2 a selector of several parts narrows by all of them', async () => {
    await smallFleet()
    expect((await cli('get clusters -l env=prod,!site --no-headers -o name')).out).toBe('cluster/cluster-a\ncluster/cluster-b\n')
    expect((await cli('get clusters -l env=prod,site')).out).toBe('')
  })

  test('CL2 -o json is the API’s own, one thing or a list; yaml and name', async () => {
    await smallFleet()
    expect(JSON.parse((await cli('get services -o json')).out)).toEqual({
      items: [((await admin.call('GET', '/api/v1/services')).body as { items: unknown[] }).items[0]],
    })
    expect(JSON.parse((await cli('get svc web -o json')).out)).toMatchObject({ kind: 'Service', metadata: { name: 'web' } })
    expect((await cli('get services -o yaml')).out).toContain('items:\n  - apiVersion: skerry.dev/v1\n')
    expect((await cli('get clusters -o name')).out).toBe('cluster/cluster-a\ncluster/cluster-b\n')
    expect((await cli('get clusters -o wide')).out).toContain('env=prod')
  })

  test('CL1 nothing found is said on stderr, and stdout stays empty', async () => {
    expect(await cli('get services')).toEqual({ code: 0, out: '', err: 'no services in project default; -A lists those of all projects\n' })
    expect(JSON.parse((await cli('get services -o json')).out)).toEqual({ items: [] })
  })

  test('CL1 colour only for a person, and not under NO_COLOR', async () => {
    await smallFleet()
    const red = '\u001b[31mDegraded\u001b[0m'
    expect((await cli('get services', { isTty: true })).out).toContain(red)
    expect((await cli('get services', { isTty: true, env: { NO_COLOR: '1' } })).out).not.toContain('\u001b')
    expect((await cli('get services')).out).not.toContain('\u001b')
  })

  test('CL1 what a cluster reports cannot steer the terminal', async () => {
    const id = await joinCluster(admin.store, 'a')
    const doc = { atMs: 1, type: 'Normal', reason: 'X', message: 'a\u001b[2Jb\nc\u202ed' }
    await admin.store.upsertStatus(id, [{ kind: 'event', key: '1', rev: 1, doc }], { complete: false, nowMs: 1 })
    expect((await cli('events --no-headers')).out).toEndWith('a\\x1b[2Jb c\\x202ed\n')
  })
})

describe('apply', () => {
  test('CL3 a file, stdin and a folder; a second time nothing changes', async () => {
    expect(await cli(`apply -f ${file('fleet.yaml', FLEET)}`)).toEqual({
      code: 0,
      out: 'repository/apps created\nservice/web created\n',
      err: '',
    })
    expect((await cli('apply -f -', { stdin: FLEET })).out).toBe('repository/apps unchanged\nservice/web unchanged\n')
    mkdirSync(join(folder, 'dir', 'deep'), { recursive: true })
    file('dir/a.yaml', FLEET)
    file('dir/notes.txt', 'not a resource')
    file('dir/deep/b.json', JSON.stringify(repositoryDoc('more')))
    expect((await cli(`apply -f ${join(folder, 'dir')}`)).out).toBe('repository/apps unchanged\nservice/web unchanged\n')
    expect((await cli(`apply -R -f ${join(folder, 'dir')} --dry-run`)).out).toContain('repository/more created (dry run)\n')
  })

  test('CL3 what get printed can be applied again, alone and as a list', async () => {
    await cli(`apply -f ${file('fleet.yaml', FLEET)}`)
    const shown = (await cli('get svc/web -o yaml')).out
    expect((await cli('apply -f -', { stdin: shown })).out).toBe('service/web unchanged\n')
    const list = (await cli('get services -o yaml')).out
    expect((await cli('apply -f -', { stdin: list.replace('name: web', 'name: copy') })).out).toBe('service/copy created\n')
  })

  test('CL4 every problem has file, line and path, what was expected and the nearest right name; nothing is written', async () => {
    const bad = FLEET.replace('  name: web', '  name: Web!').replace(
      '  targets:',
      '  sync:\n    maxPrunePercnt: 7\n    drift: always\n  targets:',
    )
    const path = file('bad.yaml', `${bad}---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n`)
    const { code, out, err } = await cli(`apply -f ${path}`)
    expect([code, out]).toEqual([1, ''])
    expect(err.trimEnd().split('\n')).toEqual([
      naming('error: 4 problems', 'nothing was changed'),
      naming(`  ${path}:10: metadata.name: `),
      naming(`  ${path}:14: spec.sync.maxPrunePercnt: `, '"maxPrunePercent"'),
      naming(`  ${path}:15: spec.sync.drift: `, '"correct"', '"report"', '"pause"'),
      naming(`  ${path}:18: apiVersion: `, 'apps/v1', 'skerry explain'),
      naming('hint: '),
    ])
    expect(admin.asked).toEqual([])
  })

  test('CL4 broken YAML names its place, and what only the server knows is told with the line too', async () => {
    const broken = file('broken.yaml', 'kind: Service\n  metadata: x\n')
    expect((await cli(`apply -f ${broken}`)).err).toContain(`${broken}:2:`)
    const path = file('twice.yaml', `${FLEET}---\n${FLEET}`)
    const twice = await cli(`apply -f ${path}`)
    expect(twice.code).toBe(1)
    expect(twice.err).toEqual(naming(`  ${path}:17: metadata.name: `, 'repository apps', 'project default', 'resources[0]'))
  })

  test('CL4 no file, no resource', async () => {
    expect(await cli('apply')).toMatchObject({ code: 2, err: naming('error: ', '-f FILE', '-f DIR') })
    expect(await cli(`apply -f ${join(folder, 'none.yaml')}`)).toMatchObject({ code: 1 })
    expect(await cli('apply -f -', { stdin: '# nothing\n' })).toMatchObject({ code: 2 })
  })
})

describe('delete and confirm', () => {
  test('CL5 delete shows the exact blast radius and asks; no is no', async () => {
    await smallFleet()
    admin.outcome.deleteService = { kind: 'removing', clusters: ['cluster-a', 'cluster-b'] }
    const no = await cli('delete service web', { isTty: true, stdin: 'n\n' })
    expect(no.err).toStartWith(
      `Service web of project default will be removed from 2 clusters; 2 objects will be deleted.
default/web in cluster-a, cluster-b:
  1 object will be deleted in each:
    Deployment web/web
Not online (done there when they reconnect): cluster-b (Offline)
Delete service web? [y/N] `,
    )
    expect(no.code).toBe(1)
    expect(admin.asked.filter((text) => text.startsWith('delete'))).toEqual([])
    const yes = await cli('delete svc/web', { isTty: true, stdin: 'yes\n' })
    expect(yes).toMatchObject({
      code: 0,
      out: 'service/web is being removed from cluster-a, cluster-b; skerry describe service/web shows the progress\n',
    })
    expect(admin.asked.at(-1)).toBe('delete default/web by admin')
  })

  test('CL5 where nobody can be asked, --yes is needed', async () => {
    await smallFleet()
    expect(await cli('delete cluster cluster-a')).toMatchObject({ code: 2 })
    expect((await admin.store.listClusters()).length).toBe(2)
    expect(await cli('delete cluster cluster-a --yes')).toMatchObject({ code: 0, out: 'cluster/cluster-a deleted\n' })
    expect(await cli('delete cluster cluster-a --yes')).toMatchObject({ code: 1 })
  })

  test('CL5 confirm lists exact names, shows them again before the yes, and says who', async () => {
    expect(await cli('confirm')).toEqual({ code: 0, out: '', err: 'no pending confirmations\n' })
    const { id } = await admin.store.openConfirmation({
      kind: 'prune',
      subject: 's',
      project: 'default',
      service: 'web',
      cluster: 'ship-7',
      token: 't',
      names: ['ConfigMap web/a', 'Secret web/b'],
      why: 'the desired set is empty',
      createdMs: 900_000,
    })
    const list = (await cli('confirm')).out
    expect(list).not.toContain('Clusters:')
    expect(list).toContain('These objects are deleted (2):\n  ConfigMap web/a\n  Secret web/b\n')
    expect(list).toContain(`Confirm with: skerry confirm ${id}\n`)
    expect(await cli(`confirm ${id}`)).toMatchObject({ code: 2 })
    expect((await cli(`confirm ${id}`, { isTty: true, stdin: '\n' })).code).toBe(1)
    expect(await cli(`confirm ${id}`, { isTty: true, stdin: 'y\n' })).toMatchObject({
      code: 0,
      out: `confirmation/${id} confirmed by admin\n`,
    })
    expect(await cli(`confirm ${id} --yes`)).toMatchObject({ code: 0 })
    expect(admin.asked).toEqual([`confirm ${id} by admin`])
  })
})

test('CL5 what many clusters ask alike is shown once, and answered for those that were shown', async () => {
  const ask = (cluster: string) =>
    admin.store.openConfirmation({
      ...{ kind: 'prune', subject: `prune/c-${cluster}/default/web`, project: 'default', service: 'web', cluster, token: 't' },
      ...{ names: ['ConfigMap web/a', 'Secret web/b'], why: 'w', createdMs: 900_000 },
    })
  for (let i = 0; i < 1_200; i++) await ask(`ship-${i}`)
  const { out } = await cli('confirm')
  expect(out).toContain('in 1,200 clusters, the same 2 objects:\n  ConfigMap web/a\n  Secret web/b\n')
  expect(out).toContain('ship-0, ship-1, ship-2, ship-3, ship-4 and 1,195 more')
  expect((await cli('get confirmations')).out).toContain(' 1200-clusters ')
  const { id } = await ask('ship-0')
  await cli(`confirm ${id} --yes`)
  expect(admin.asked).toEqual([`confirm ${id} up to 1200 by admin`])
})

describe('join tokens, events, version', () => {
  test('CL6 the token alone is on stdout', async () => {
    const { out, err } = await cli('join-token create --label env=prod --label site=7 --uses 3 --expires 2h')
    expect(out).toMatch(/^skj\.[\w-]{43}\.[0-9a-f]{32}\n$/)
    expect(err).toEqual(naming('3 clusters', '2h'))
    expect((await admin.store.listJoinTokens())[0]?.labels).toEqual({ env: 'prod', site: '7' } as Record<string, string>)
    const list = await cli('join-token list')
    expect(list.out).toContain('usable')
    const id = (await admin.store.listJoinTokens())[0]?.id ?? ''
    expect((await cli(`join-token delete ${id} --yes`)).out).toBe(`join-token/${id} deleted\n`)
  })

  test('CL24 an API token is alone on stdout, listed with its role, and revoked by its id', async () => {
    const { out, err } = await cli('token create ci --role operator --expires 30d')
    expect(out).toMatch(/^sk_[\w-]{51}\n$/)
    const id = (await admin.store.listApiTokens()).find(({ name }) => name === 'ci')?.id ?? ''
    expect(err).toContain(`skerry token revoke ${id}`)
    const list = await cli('token list')
    expect(list.out).toMatch(new RegExp(`${id} +ci +operator +valid +30d`))
    expect((await cli(`token revoke ${id} --yes`)).out).toBe(`token/${id} revoked\n`)
    expect(await cli(`token revoke ${id} --yes`)).toMatchObject({ code: 1, err: expect.stringContaining('skerry token list') })
    const first = (await admin.store.listApiTokens())[0]?.id ?? ''
    expect((await cli(`token revoke ${first} --yes`)).err).toContain('last valid admin')
    await admin.call('POST', '/api/v1/tokens', { name: 'limited', role: 'admin', projects: ['shop'] })
    expect((await cli(`token revoke ${first} --yes`)).err).toContain('last valid admin')
    await admin.call('POST', '/api/v1/tokens', { name: 'root', role: 'fleet-admin' })
    expect((await cli(`token revoke ${first} --yes`)).err).not.toContain('last valid admin')
  })

  test('CL6 events follow goes on after the last one, until it is told to stop', async () => {
    await smallFleet()
    const following = followOnce(() =>
      admin.store.appendEvents([
        { atMs: 4_999_000, type: 'Warning', reason: 'Late', message: 'new', cluster: null, project: null, service: null, object: null },
      ]),
    )
    const { out, code } = await cli('events -f -o json', following)
    expect(code).toBe(0)
    expect(
      out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).reason),
    ).toEqual(['Applied', 'Applied', 'Late'])
  })

  test('CL6 columns of followed events stay in their place, with the time and not an age', async () => {
    await smallFleet()
    const late = {
      atMs: 4_999_000,
      type: 'Normal',
      reason: 'X',
      message: 'new',
      cluster: null,
      project: null,
      service: null,
      object: null,
    } as const
    const lines = (
      await cli(
        'events -f',
        followOnce(() => admin.store.appendEvents([late])),
      )
    ).out
      .trimEnd()
      .split('\n')
    expect(lines).toHaveLength(4)
    expect(lines[0]).toStartWith('TIME ')
    expect(lines[3]).toStartWith('1970-01-01T01:23:19Z   Normal')
    expect(new Set([lines[0]?.indexOf('MESSAGE'), lines[2]?.indexOf('2 objects'), lines[3]?.indexOf('new')]).size).toBe(1)
  })

  test('CL7 version needs no server; with one it tells both', async () => {
    expect(await cli('version', { env: { SKERRY_TOKEN: '' } })).toEqual({ code: 0, out: 'skerry 1.2.3\n', err: '' })
    expect(JSON.parse((await cli('--version -o json', { env: { SKERRY_TOKEN: '' } })).out)).toEqual({ version: '1.2.3', bun: 'b' })
    expect((await cli('version')).out).toBe('skerry 1.2.3\nserver 1.2.3 at http://localhost\n')
  })

  test('CL7 server gets its flags and decides the exit code', async () => {
    expect(await cli('server --data /tmp/x')).toEqual({ code: 7, out: 'server {"data":"/tmp/x"}\n', err: '' })
  })
})

test('CL10 the whole way: a socket, a store, the command line', async () => {
  const listener = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: (request) => admin.app.fetch(request) })
  try {
    const env = { SKERRY_SERVER: `http://127.0.0.1:${listener.port}/` }
    const setup: CliSetup = { env, fetch: (url, init) => fetch(url, init) }
    expect((await cli('apply -f -', { ...setup, stdin: FLEET })).out).toBe('repository/apps created\nservice/web created\n')
    expect((await cli('get services --no-headers', setup)).out).toContain('web')
    expect((await cli('get cluster none', setup)).code).toBe(1)
    expect((await cli('version', setup)).out).toContain('server 1.2.3 at http://127.0.0.1:')
    await listener.stop(true)
    expect((await cli('get services', setup)).err).toMatch(/^error: connection refused .*http:\/\/127\.0\.0\.1:\d+/)
  } finally {
    await listener.stop(true)
  }
})
