// What people read of a fleet: one line a state. Whatever is not Synced and Healthy has a reason, a message and a next
// step.

import { describe, expect, test } from 'bun:test'
import { livenessOf, onlineWithinMs } from '../../server/fleet/liveness.ts'
import { summarise } from '../../server/fleet/placements-summary.ts'
import type { ClusterRecord, Confirmation, RenderState } from '../../server/fleet/records.ts'
import {
  clusterStatusView,
  type PlacementInput,
  placementView,
  repositoryStatusView,
  type ServiceInput,
  serviceStatusView,
} from '../../server/fleet/status-view.ts'
import { FOR_NO_CLUSTER } from '../../server/render/for-nobody.ts'
import { confirmationToken, type ServiceRow, serviceRowSchema } from '../../shared/model/desired.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import type { ServiceStatus } from '../../shared/model/status.ts'
import type { Liveness, PlacementView } from '../../shared/model/views.ts'
import { serviceKey } from '../../shared/runtime/ids.ts'
import { naming } from '../support/naming.ts'
import { agentId, clusterId } from '../support/store-fixtures.ts'

const ONLINE_WITHIN_MS = onlineWithinMs(0)
const ONLINE: Liveness = { word: 'Online', lastSeenMs: 10 }
const OFFLINE: Liveness = { word: 'Offline', lastSeenMs: 10 }
const row = (extra: Partial<ServiceRow> = {}): ServiceRow =>
  serviceRowSchema.parse({
    commit: 'c0ffee0099',
    digest: 'new',
    count: 3,
    sync: syncOptionsSchema.parse({}),
    ...extra,
  })
const at = (digest: string, commit = 'c0ffee0099') => ({ digest, commit, atMs: 5 })
const reported = (extra: Partial<ServiceStatus> = {}): ServiceStatus => ({
  sync: 'Synced',
  health: 'Healthy',
  reason: 'Applied',
  message: '',
  sinceMs: 7,
  received: at('new'),
  applied: at('new'),
  objectCount: 3,
  healthyCount: 3,
  ...extra,
})
const question = (extra: Partial<Confirmation> = {}): Confirmation => ({
  id: 'k7f2qx',
  kind: 'prune',
  subject: 's',
  project: 'p',
  service: 'web',
  cluster: 'ship-7',
  token: 't',
  names: ['ConfigMap web/a'],
  why: 'the desired set is empty',
  createdMs: 3,
  confirmedMs: null,
  confirmedBy: null,
  ...extra,
})
const input = (extra: Partial<Omit<PlacementInput, 'desired'>> & { doc?: ServiceRow | null } = {}): PlacementInput => {
  const { doc = row(), ...rest } = extra
  const desired = { clusterId: clusterId('a'), project: 'p', service: 'web', ordinal: 1, doc, setSha: null, placedBy: '' }
  return { cluster: { name: 'ship-7' }, liveness: ONLINE, desired, status: reported(), confirmation: null, ...rest }
}
const removal = { policy: 'prune', by: 'ada', atMs: 9, why: 'deleted' } as const
const refusal = { digest: 'new', names: ['ConfigMap web/a', 'Secret web/b'], count: 2, ownedCount: 2, why: 'the desired set is empty' }
const waiting = { ...refusal, digest: confirmationToken({ digest: 'new', removal }), only: true }

describe('liveness', () => {
  test.each([
    ['AP11 never asked for anything', { revoked: false, lastSeenMs: null, waitSeconds: 0 }, 'NeverSeen'],
    ['AP11 exactly as long ago as two polls and their slack', { revoked: false, lastSeenMs: 1, waitSeconds: 55 }, 'Online'],
    ['AP11 a millisecond longer', { revoked: false, lastSeenMs: 0, waitSeconds: 0 }, 'Offline'],
    ['AP11 as long ago, and its polls wait for a minute', { revoked: false, lastSeenMs: 0, waitSeconds: 60 }, 'Online'],
    ['AP11 revoked, though it asks', { revoked: true, lastSeenMs: ONLINE_WITHIN_MS, waitSeconds: 0 }, 'Revoked'],
  ] as const)('%s', (_, cluster, word) => expect(livenessOf(cluster, ONLINE_WITHIN_MS + 1).word).toBe(word))
})

describe('a service in a cluster', () => {
  test.each([
    ['AP11 well', input(), 'Synced', 'Healthy', 'Applied', ''],
    [
      'AP11 well when last heard of: the words stay, the reason says so',
      input({ liveness: OFFLINE }),
      'Synced',
      'Healthy',
      'ClusterOffline',
      'No action needed',
    ],
    ['AP11 not reported yet', input({ status: null }), 'Unknown', 'Unknown', 'NotReported', 'No action needed'],
    [
      'AP11 never seen',
      input({ status: null, liveness: { word: 'NeverSeen', lastSeenMs: null } }),
      'Unknown',
      'Unknown',
      'ClusterNeverSeen',
      'No action needed',
    ],
    [
      'AP11 a revision that has not arrived',
      input({ status: reported({ received: at('old'), applied: at('old') }) }),
      'OutOfSync',
      'Healthy',
      'NotReceived',
      'No action needed',
    ],
    [
      'AP11 a revision that waits for a cluster that is away',
      input({ liveness: OFFLINE, status: reported({ received: at('old') }) }),
      'OutOfSync',
      'Healthy',
      'ClusterOffline',
      'No action needed',
    ],
    [
      'AP11 arrived and not applied is not Synced, whatever it says of the old one',
      input({ status: reported({ applied: at('old') }) }),
      'OutOfSync',
      'Healthy',
      'NotApplied',
      'No action needed',
    ],
    [
      'AP11 degraded',
      input({ status: reported({ health: 'Degraded', reason: 'CrashLoop' }) }),
      'Synced',
      'Degraded',
      'CrashLoop',
      '`skerry get objects -p p --service web --cluster ship-7`',
    ],
    [
      'AP11 a refused prune, asked',
      input({ status: reported({ refusal }), confirmation: question() }),
      'Synced',
      'Healthy',
      'PruneBlocked',
      '`skerry confirm k7f2qx`',
    ],
    [
      'AP11 a refused prune, answered',
      input({ status: reported({ refusal }), confirmation: null }),
      'Synced',
      'Healthy',
      'PruneBlocked',
      'The confirmation is being sent',
    ],
    [
      'RM1 a removal that waits for a person, asked',
      input({ doc: row({ removal }), status: reported({ refusal: waiting }), confirmation: question() }),
      'OutOfSync',
      'Healthy',
      'ConfirmationPending',
      '`skerry confirm k7f2qx`',
    ],
    [
      'RM1 a removal that waits for a person, in a cluster that is away',
      input({ liveness: OFFLINE, doc: row({ removal }), status: reported({ refusal: waiting }), confirmation: question() }),
      'OutOfSync',
      'Healthy',
      'ConfirmationPending',
      '`skerry confirm k7f2qx`',
    ],
    [
      'RM1 a removal that waits for a person, answered',
      input({ doc: row({ removal }), status: reported({ refusal: waiting }) }),
      'OutOfSync',
      'Healthy',
      'ConfirmationPending',
      'The confirmation is being sent',
    ],
    [
      'RM1 a removal that reports what an order before it waited for',
      input({ doc: row({ removal }), status: reported({ refusal }), confirmation: question() }),
      'OutOfSync',
      'Healthy',
      'Removing',
      'No action needed',
    ],
    [
      'PR4 single names of a revision that wait for a person',
      input({ status: reported({ refusal: { ...refusal, only: true } }), confirmation: question() }),
      'Synced',
      'Healthy',
      'ConfirmationPending',
      '`skerry confirm k7f2qx`',
    ],
    ['AP11 going away', input({ doc: row({ removal }) }), 'OutOfSync', 'Healthy', 'Removing', 'No action needed'],
    ['AP11 revoked', input({ liveness: { word: 'Revoked', lastSeenMs: 10 } }), 'Synced', 'Healthy', 'ClusterRevoked', 'Set spec.revoked'],
  ] as const)('%s', (_, given, sync, health, reason, next) => {
    const view = placementView(given)
    expect([view.sync, view.health, view.reason]).toEqual([sync, health, reason])
    expect(view.next).toStartWith(next)
    if (reason !== 'Applied') expect(view.message).not.toBe('')
  })

  test('AP11 the names of a refused prune are in the message', () => {
    expect(placementView(input({ status: reported({ refusal }) })).message).toEqual(naming('ConfigMap web/a, Secret web/b'))
  })
})

const rendered: RenderState = { commit: 'c0ffee0099', generation: 2, digest: 'new', objectCount: 3, renderedMs: 1, error: null }
const fetched = { commit: 'c0ffee0099', fetchedMs: 1, tag: null, error: null }
const broken = { code: 'git_unreachable', message: 'connection refused', problems: [], sinceMs: 6 }
const placement = (cluster: string, extra: Parameters<typeof input>[0] = {}): PlacementView => ({ ...placementView(input(extra)), cluster })
const inClusters = (...placements: PlacementView[]) => summarise(placements, ({ cluster }) => cluster)
const service = (extra: Partial<ServiceInput> = {}): ServiceInput => ({
  id: { project: 'p', service: 'web' },
  generation: 2,
  deletingMs: null,
  repository: { name: 'apps', state: fetched },
  render: rendered,
  placements: inClusters(placement('a'), placement('b')),
  remaining: ['a', 'b'],
  confirmations: [],
  ...extra,
})
const syntax = {
  code: 'render_failed',
  message: 'the manifests have 2 problems',
  problems: [
    { path: 'web/a.yaml:3:1', message: 'bad indentation' },
    { path: 'web/b.yaml', message: 'x' },
  ],
  sinceMs: 6,
}

describe('a service', () => {
  test.each([
    ['AP11 well everywhere', service(), 'Synced', 'Healthy', '', ''],
    [
      'AP11 well, and one away',
      service({ placements: inClusters(placement('a'), placement('b', { liveness: OFFLINE })) }),
      'Synced',
      'Healthy',
      'LastKnown',
      '',
    ],
    [
      'AP11 its repository is none',
      service({ repository: { name: 'apps', state: null } }),
      'OutOfSync',
      'Healthy',
      'RepositoryNotFound',
      'Create it',
    ],
    [
      'AP11 its manifests are broken',
      service({ render: { ...rendered, error: syntax } }),
      'OutOfSync',
      'Healthy',
      'RenderFailed',
      'Fix the manifests',
    ],
    [
      'AP11 nothing read yet because Git does not answer',
      service({
        render: { ...rendered, commit: null },
        repository: { name: 'apps', state: { commit: null, fetchedMs: null, tag: null, error: broken } },
      }),
      'Synced',
      'Healthy',
      'RepositoryUnreadable',
      'Check spec.git.url',
    ],
    [
      'AP11 Git does not answer any more',
      service({ repository: { name: 'apps', state: { ...fetched, error: broken } } }),
      'Synced',
      'Healthy',
      'RepositoryUnreadable',
      'Check spec.git.url',
    ],
    [
      'AP11 a service whose repository was never read',
      service({
        render: { ...rendered, commit: null, generation: 0 },
        placements: inClusters(),
        repository: { name: 'apps', state: { commit: null, fetchedMs: null, tag: null, error: null } },
      }),
      ...(['OutOfSync', 'Unknown', 'RepositoryNotRead', '`skerry describe repository apps -p'] as const),
    ],
    ['AP11 a newer spec than what was rendered', service({ generation: 3 }), 'OutOfSync', 'Healthy', 'Rendering', 'No action needed'],
    ['AP11 no cluster matches', service({ placements: inClusters() }), 'Synced', 'Healthy', 'NoTargets', 'Compare spec.targets'],
    [
      'AP11 FA6 its only cluster has not said what it serves',
      service({ placements: inClusters(), waiting: { young: ['oslo'], others: ['bergen', 'oslo'] } }),
      ...(['OutOfSync', 'Unknown', 'WaitingForFacts', 'No action needed'] as const),
    ],
    [
      'AP11 its clusters are about to get it',
      service({ placements: inClusters(), waiting: { young: [], others: ['oslo'] } }),
      ...(['OutOfSync', 'Unknown', 'Rendering', 'No action needed'] as const),
    ],
    [
      'RM1 being deleted, where objects wait for a person',
      service({ deletingMs: 8, confirmations: [question()] }),
      'OutOfSync',
      'Healthy',
      'Deleting',
      '`skerry confirm k7f2qx`',
    ],
    ['AP11 being deleted', service({ deletingMs: 8 }), 'OutOfSync', 'Healthy', 'Deleting', 'No action needed'],
    [
      'AP11 its deletion waits for a person',
      service({ deletingMs: 8, confirmations: [question({ kind: 'remove_service', cluster: null })] }),
      'OutOfSync',
      'Healthy',
      'WaitingForConfirmation',
      '`skerry confirm k7f2qx`',
    ],
    [
      'AP11 leaving clusters waits for a person',
      service({ confirmations: [question({ kind: 'leave_targets', cluster: null })] }),
      'OutOfSync',
      'Healthy',
      'WaitingForConfirmation',
      '`skerry confirm k7f2qx`',
    ],
  ] as const)('%s', (_, given, sync, health, reason, next) => {
    const view = serviceStatusView(given)
    expect([view.sync, view.health, view.reason]).toEqual([sync, health, reason])
    expect(view.next).toStartWith(next)
    if (reason !== '') expect(view.message).not.toBe('')
  })

  test('AP11 a render error names file and line, counts the rest, and says what stays', () => {
    const view = serviceStatusView(service({ render: { ...rendered, error: syntax } }))
    expect(view.message).toEqual(naming(syntax.message, 'web/a.yaml:3:1: bad indentation', '1 more problem', 'last good revision'))
    expect(view.problems).toHaveLength(2)
  })

  test('AP11 the worst cluster speaks, with how many are as it is; the order of clusters changes nothing', () => {
    const bad = placement('b', { status: reported({ health: 'Degraded', reason: 'CrashLoop', message: 'Deployment web/web: exit 1' }) })
    const slow = placement('c', { status: reported({ health: 'Progressing', reason: 'RollingOut', message: '1 of 2' }) })
    const view = serviceStatusView(service({ placements: inClusters(placement('a'), slow, bad) }))
    expect(view).toMatchObject({
      sync: 'Synced',
      health: 'Degraded',
      reason: 'CrashLoop',
      message: '1 of 3: b: Deployment web/web: exit 1',
    })
    expect(view.clusters).toEqual({ total: 3, synced: 3, healthy: 1, offline: 0 })
    expect(serviceStatusView(service({ placements: inClusters(bad, placement('a'), slow) }))).toEqual(view)
  })
})

test('AP11 FA6 who waits for the facts of a cluster reads for which, and how long at most', () => {
  const waiting = (...young: string[]) =>
    serviceStatusView(service({ placements: inClusters(), waiting: { young, others: young } })).message
  expect(waiting('oslo')).toEqual(naming('oslo', '60 s'))
  expect(waiting('oslo', 'bergen')).toEqual(naming('bergen, oslo', '60 s'))
})

test('AP11 what was rendered for nobody and has no cluster has no commit, and says why', () => {
  const view = serviceStatusView(
    service({ placements: inClusters(), render: { ...rendered, commit: null, digest: null, renderedMs: null } }),
  )
  expect([view.reason, view.message, view.commit]).toEqual(['NoTargets', naming('spec.targets', 'no cluster'), null])
})

test('RD10 what does not render for nobody, and may for a cluster, says both', () => {
  const warnings = ['a', 'b'].map((name) => ({
    path: `${name}:1:2`,
    message: `<.x>: set host; ${FOR_NO_CLUSTER}: one may`,
    needsCluster: 'may' as const,
  }))
  const release = { variants: 1, revisions: {}, tools: {}, warnings: [...warnings, { path: 'c', message: 'something else' }] }
  const state = { ...rendered, commit: null, digest: null, renderedMs: null, release }
  const view = serviceStatusView(service({ placements: inClusters(), render: state }))
  expect([view.reason, view.message, view.warnings.length]).toEqual([
    'NoTargets',
    naming('spec.targets', `a:1:2: <.x>: set host; ${FOR_NO_CLUSTER}: one may`, '1 more problem'),
    3,
  ])
})

test('AP11 the count before a message is of those that are so, for that reason', () => {
  const failing = (name: string) => ({ ...placement(name), ...BAD })
  const BAD = { sync: 'OutOfSync', health: 'Missing', reason: 'RenderFailed', message: 'no region' } as const
  const waiting = { ...placement('d'), sync: 'OutOfSync', health: 'Missing', reason: 'NotApplied', message: 'x' } as const
  const messageOf = (...some: PlacementView[]) => serviceStatusView(service({ placements: inClusters(...some) })).message
  expect(messageOf(failing('a'), failing('b'), waiting)).toEqual(naming('2 of 3', 'a: no region'))
  expect(messageOf(failing('a'), waiting, placement('b'))).toBe('1 of 3: a: no region')
  const counted = {
    ...inClusters(failing('a')),
    counts: [{ ...BAD, count: 13 }, { sync: 'Unknown', health: 'Unknown', count: 13 } as const],
  }
  const { alike: _, ...worst } = counted.worst ?? { place: '', state: failing('a') }
  expect(serviceStatusView(service({ placements: { ...counted, worst } })).message).toEqual(naming('13 of 26', 'a: no region'))
})

test('AP11 a repository that is none is told with the name that was probably meant', () => {
  const message = 'repository aps does not exist in project p; did you mean apps?'
  const error = { code: 'repository_missing', message, problems: [], sinceMs: 1 }
  const repository = { name: 'aps', state: null }
  const first = { ...rendered, commit: null, digest: null, error }
  expect(serviceStatusView(service({ repository, render: first })).message).toEqual(naming(message, 'no revision'))
  const config = { ...error, code: 'not_found', message: 'Config x does not exist in project p' }
  expect(serviceStatusView(service({ repository, render: { ...first, error: config } })).message).toStartWith('repository aps ')
})

describe('a cluster and a repository', () => {
  const cluster: ClusterRecord = {
    clusterId: clusterId('a'),
    name: 'ship-7',
    labels: {},
    revoked: false,
    joinedMs: 2,
    lastSeenMs: 10,
    waitSeconds: 0,
    agentId: agentId('a'),
  }
  const report = { agentVersion: '1', kubernetesVersion: 'v1.36.3', clusterUid: 'u', problems: [] }
  const held = { ...report, problems: [{ code: 'held', message: 'held by ops until 2026-01-01T00:00Z: why', sinceMs: 4 }] }
  const diskFull = { ...report, problems: [{ code: 'disk_full', message: 'no space left', sinceMs: 4 }] }

  test.each([
    ['AP11 nothing placed', { liveness: ONLINE, report, placements: [] }, 'Synced', 'Healthy', 'NoServices', ''],
    ['AP11 held as a whole', { liveness: ONLINE, report: held, placements: [] }, 'Synced', 'Healthy', 'Held', 'No action needed'],
    ['AP11 held and away', { liveness: OFFLINE, report: held, placements: [] }, 'Synced', 'Healthy', 'ClusterOffline', 'No action needed'],
    [
      'AP11 away',
      { liveness: OFFLINE, report, placements: [placement('ship-7', { liveness: OFFLINE })] },
      'Synced',
      'Healthy',
      'ClusterOffline',
      'No action needed',
    ],
    [
      'AP11 never seen',
      { liveness: { word: 'NeverSeen', lastSeenMs: null }, report: null, placements: [] },
      'Synced',
      'Healthy',
      'ClusterNeverSeen',
      'No action needed',
    ],
    [
      'AP11 its disk is full',
      { liveness: ONLINE, report: diskFull, placements: [placement('ship-7')] },
      'Synced',
      'Healthy',
      'DiskFull',
      'Free some space',
    ],
    [
      'AP11 RP2 a restore waits for a person',
      { liveness: ONLINE, report: null, placements: [placement('ship-7')], restoreSinceMs: 5 },
      'Unknown',
      'Healthy',
      'RestorePending',
      'Review the plan with `skerry restore`',
    ],
  ] as const)('%s', (_, given, sync, health, reason, next) => {
    const view = clusterStatusView({ cluster, restoreSinceMs: null, ...given, placements: summarise([...given.placements], serviceKey) })
    expect([view.sync, view.health, view.reason]).toEqual([sync, health, reason])
    expect(view.next).toStartWith(next)
  })

  test('AP11 a repository: read, not read yet, not readable', () => {
    expect(repositoryStatusView(fetched)).toMatchObject({ ready: true, next: '' })
    expect(repositoryStatusView({ commit: null, fetchedMs: null, tag: null, error: null })).toMatchObject({
      ready: false,
      reason: 'NotFetched',
    })
    expect(repositoryStatusView({ ...fetched, error: broken })).toMatchObject({
      ready: false,
      reason: 'GitUnreachable',
      message: 'connection refused',
      sinceMs: 6,
      commit: 'c0ffee0099',
    })
  })
})

test('AP11 what to do is that of the particular case, where the error brought one', () => {
  const remedy = 'Correct spec.source.version.'
  expect(serviceStatusView(service({ render: { ...rendered, error: { ...syntax, remedy } } })).next).toBe(remedy)
  expect(repositoryStatusView({ ...fetched, error: { ...broken, remedy } }).next).toBe(remedy)
})
