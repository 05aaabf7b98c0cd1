// The sequencing machine and the life of one run, by tables.
import { describe, expect, test } from 'bun:test'
import { orderText } from '../../agent/messages/service-messages.ts'
import { isOfHook, judgeRun, type RunFacts } from '../../agent/reconcile/plan/order/hook-run.ts'
import { type HookState, orderGate, phaseWords, positionOf, type WaveState, waitText } from '../../agent/reconcile/plan/order/phases.ts'
import type { HookRun, HookSpec, Wait } from '../../agent/reconcile/snapshot/hook-spec.ts'
import type { LiveRun } from '../../agent/reconcile/snapshot/live-run.ts'
import type { Wanted } from '../../agent/reconcile/snapshot/wanted.ts'
import type { LiveObject, LiveView, Owner } from '../../agent/reconcile/snapshot/watch/live-object.ts'
import type { HookPolicy, Phase } from '../../shared/kube/waves.ts'

const ref = (kind: string, name: string) => ({ group: kind === 'Job' ? 'batch' : '', kind, namespace: 'default', name })
const spec = (name: string, phase: Phase, wave = 0, policies: HookPolicy[] = ['before-hook-creation'], kind = 'Job'): HookSpec => ({
  key: name,
  ref: ref(kind, name),
  apiVersion: 'batch/v1',
  wave,
  phases: [phase],
  policies,
  doc: '{}',
  hash: 'h',
  generateName: null,
})
const wait = (name: string, lacks: Wait['lacks'], failed: string | null = null): Wait => ({
  ref: ref('ConfigMap', name),
  lacks,
  sinceMs: 0,
  failed,
  detail: '',
})
const OK: WaveState = { unapplied: null, unhealthy: null, failed: null }
const NEW: WaveState = { ...OK, unapplied: wait('n', 'applied') }
const SLOW: WaveState = { ...OK, unhealthy: wait('s', 'healthy') }
const ILL: WaveState = { ...OK, unhealthy: wait('i', 'healthy', 'broken'), failed: wait('i', 'healthy', 'broken') }

type Outcomes = Record<string, HookState['outcome']>
const position = (specs: HookSpec[], outcomes: Outcomes, waves: Record<string, WaveState>, waitForHealth = true) =>
  positionOf({
    digest: 'd',
    specs,
    stateOf: (_, { key }) => ({ outcome: outcomes[key] ?? 'none', message: 'said', sinceMs: 0 }),
    waves: new Map(Object.entries(waves).map(([wave, state]) => [Number(wave), state])),
    waitForHealth,
  })
const said = ({ phase, wave, hooks, failHooks, applied, hookFailed }: ReturnType<typeof position>) =>
  [
    phase,
    wave,
    hooks.map(({ key }) => key).join('+'),
    failHooks.map(({ key }) => key).join('+'),
    applied ? 'applied' : '',
    hookFailed ? 'failed' : '',
  ]
    .join(' ')
    .trimEnd()

const PRE = spec('pre', 'pre-sync')
const POST = spec('post', 'post-sync')
const SYNC = spec('mid', 'sync', 1)
const RESCUE = spec('rescue', 'sync-fail')
const ALL = [PRE, SYNC, POST, RESCUE]

describe('position', () => {
  test.each<[string, HookSpec[], Outcomes, Record<string, WaveState>, string, boolean?]>([
    ['OR3 nothing at all', [], {}, {}, 'done 0   applied'],
    ['OR3 one wave, new', [], {}, { 0: NEW }, 'sync 0'],
    ['OR3 one wave, applied and not healthy', [], {}, { 0: SLOW }, 'sync 0   applied'],
    ['OR3 the least wave first', [], {}, { 5: NEW, '-3': NEW, 0: OK }, 'sync -3'],
    ['OR4 unhealthy waves are waited for', [], {}, { 0: SLOW, 1: NEW }, 'sync 0'],
    ['OR4 without waitForHealth applied is enough', [], {}, { 0: SLOW, 1: NEW }, 'sync 1', false],
    ['OR4 without waitForHealth post-sync still waits for health', [POST], {}, { 0: SLOW, 1: OK }, 'sync 1   applied', false],
    ['OR4 a Degraded wave stops the later ones', [], {}, { 0: ILL, 1: NEW }, 'sync 0'],
    ['HK3 pre-sync before all', ALL, {}, { 0: NEW }, 'pre-sync 0 pre'],
    ['HK3 a running hook is looked at', ALL, { pre: 'running' }, { 0: NEW }, 'pre-sync 0 pre'],
    ['HK3 then the sync phase', ALL, { pre: 'succeeded' }, { 0: NEW }, 'sync 0'],
    ['HK3 a wave of hooks alone', ALL, { pre: 'succeeded' }, { 0: OK }, 'sync 1 mid'],
    ['HK3 hooks beside objects', ALL, { pre: 'succeeded' }, { 0: OK, 1: NEW, 2: NEW }, 'sync 1 mid'],
    ['HK3 then post-sync', ALL, { pre: 'succeeded', mid: 'succeeded' }, { 0: OK }, 'post-sync 0 post  applied'],
    ['HK3 the end', ALL, { pre: 'succeeded', mid: 'succeeded', post: 'succeeded' }, { 0: OK }, 'done 1   applied'],
    ['HK4 pre-sync failed', ALL, { pre: 'failed' }, { 0: NEW }, 'pre-sync 0  rescue  failed'],
    ['HK4 pre-sync failed, rescue done', ALL, { pre: 'failed', rescue: 'succeeded' }, { 0: NEW }, 'pre-sync 0    failed'],
    ['HK4 an old failure in a wave before its turn is none', ALL, {}, { 0: ILL }, 'pre-sync 0 pre'],
    ['HK4 nor in a later wave', ALL, { pre: 'succeeded' }, { 0: NEW, 7: ILL }, 'sync 0'],
    ['HK4 Degraded in its wave', ALL, { pre: 'succeeded' }, { 0: ILL }, 'sync 0  rescue'],
    ['HK4 a failed sync hook ends it', ALL, { pre: 'succeeded', mid: 'failed' }, { 0: OK, 1: NEW }, 'sync 1  rescue  failed'],
    ['HK4 post-sync failed', ALL, { pre: 'succeeded', mid: 'succeeded', post: 'failed' }, { 0: OK }, 'post-sync 0  rescue applied failed'],
    [
      'HK4 after a failure others only run to their end',
      [PRE, spec('x', 'pre-sync'), spec('y', 'pre-sync')],
      { pre: 'failed', x: 'running' },
      {},
      'pre-sync 0 x   failed',
    ],
    ['HK2 hooks by waves', [spec('b', 'pre-sync', 2), spec('a', 'pre-sync', -2), spec('c', 'pre-sync', -2)], {}, {}, 'pre-sync -2 a+c'],
  ])('%s', (_, specs, outcomes, waves, expected, waitForHealth = true) => {
    expect(said(position(specs, outcomes, waves, waitForHealth))).toBe(expected)
  })

  const wanted = (kind: string, wave: number, onlyIfAbsent = false) =>
    ({ key: 'k', ref: ref(kind, 'k'), wave, onlyIfAbsent }) as unknown as Wanted
  test.each<[string, ReturnType<typeof position>, Wanted, Parameters<ReturnType<typeof orderGate>>[1], string | null]>([
    ['HK3 pre-sync shuts out every change', position([PRE], {}, { 0: NEW }), wanted('ConfigMap', -9), 'change', 'WaitingForHook'],
    ['DR6 but no healing', position([PRE], {}, { 0: NEW }), wanted('ConfigMap', 0), 'restore', null],
    ['OR3 nor a new Namespace', position([PRE], {}, { 0: NEW }), wanted('Namespace', 3), 'change', null],
    ['RC11 nor the namespace of the service', position([PRE], {}, { 0: NEW }), wanted('Namespace', 0, true), 'change', null],
    ['OR4 its own wave', position([], {}, { 0: NEW, 1: NEW }), wanted('ConfigMap', 0), 'change', null],
    ['OR4 a later wave', position([], {}, { 0: NEW, 1: NEW }), wanted('ConfigMap', 1), 'change', 'WaitingForWave'],
    [
      'OR4 a later wave, for a hook',
      position([spec('m', 'sync')], {}, { 0: OK, 1: NEW }),
      wanted('ConfigMap', 1),
      'change',
      'WaitingForHook',
    ],
    ['HK3 post-sync shuts nothing out', position([POST], {}, { 0: OK }), wanted('ConfigMap', 1), 'change', null],
  ])('%s', (_, at, object, deed, reason) => expect(orderGate(at, new Map())(object, deed)?.reason ?? null).toBe(reason))

  test('OR4, HK4 words name the object, since when, and what to do', () => {
    expect(waitText(position([], {}, { 0: SLOW, 1: NEW }))).toBe(
      orderText('not_healthy', { what: orderText('wave', { wave: 0, object: 'ConfigMap default/s' }), since: '1970-01-01T00:00:00Z' }),
    )
    expect(waitText(position([], {}, { 0: ILL, 1: NEW }))).toBe(
      orderText('degraded', {
        what: orderText('wave', { wave: 0, object: 'ConfigMap default/i' }),
        since: '1970-01-01T00:00:00Z',
        why: 'broken',
      }),
    )
    const refused: WaveState = { ...OK, unapplied: wait('r', 'applied', 'bad; correct the manifest') }
    expect(waitText(position([], {}, { 0: refused, 1: NEW }))).toBe(
      orderText('refused', {
        what: orderText('wave', { wave: 0, object: 'ConfigMap default/r' }),
        since: '1970-01-01T00:00:00Z',
        why: 'bad; correct the manifest',
      }),
    )
    expect(phaseWords(position([PRE], { pre: 'failed' }, { 0: NEW }))).toEqual({
      reason: 'HookFailed',
      message: orderText('hook_failed', {
        what: orderText('hook', { phase: 'pre-sync', object: 'Job default/pre' }),
        since: '1970-01-01T00:00:00Z',
        why: 'said',
      }),
      holdsBack: true,
      failed: true,
    })
    expect(phaseWords(position([], {}, { 0: SLOW }))).toBeNull()
    expect(phaseWords(position([], {}, {}))).toBeNull()
  })
})

describe('a run', () => {
  const record = (run: string, uid: string | null, outcome: HookRun['outcome'] = 'running'): HookRun => ({
    run,
    ref: ref('Job', 'j'),
    uid,
    outcome,
    message: '',
    atMs: 0,
  })
  const live = (id: string | null, ended: LiveRun['ended'] = 'no', more: Partial<LiveObject> = {}): LiveView => ({
    kind: 'present',
    live: {
      uid: 'u',
      resourceVersion: '1',
      ownedHash: '',
      health: { word: 'Degraded', reason: 'r', message: 'm' },
      deleting: null,
      keep: null,
      owner: { kind: 'none' },
      images: null,
      ...(id === null ? {} : { run: { id, ended } }),
      ...more,
    },
  })
  const ABSENT: LiveView = { kind: 'absent' }
  const facts = (more: Partial<RunFacts>): RunFacts => ({
    spec: spec('j', 'pre-sync'),
    runId: 'now',
    record: null,
    live: ABSENT,
    former: null,
    seen: null,
    wasAsked: true,
    isOverdue: false,
    isOfHook: (found) => isOfHook(found, true, []),
    ...more,
  })
  const lenient = spec('j', 'pre-sync', 0, ['hook-succeeded'])
  const claim = spec('j', 'pre-sync', 0, ['before-hook-creation'], 'PersistentVolumeClaim')
  const settings = spec('j', 'pre-sync', 0, ['hook-failed'], 'ConfigMap')
  const ENDED = { outcome: 'succeeded', message: '' } as const
  test.each<[string, Partial<RunFacts>, string]>([
    ['HK2 never run, nothing there', {}, 'begin'],
    ['HK2 its kind is not known', { live: { kind: 'unknown' } }, 'wait'],
    ['HK2 it has run', { record: record('now', 'u', 'succeeded') }, 'over'],
    ['HK7 it has run and its object is gone, or another one is there', { record: record('now', 'u', 'failed'), live: live('x') }, 'over'],
    ['HK2 on paper only', { record: record('now', null) }, 'begin'],
    ['HK2 the answer was lost', { record: record('now', null), live: live('now') }, 'meet'],
    ['HK2 the record was lost', { live: live('now') }, 'meet'],
    ['HK2 it runs', { record: record('now', 'u'), live: live('now') }, 'wait'],
    ['HK3 it ended well', { record: record('now', 'u'), live: live('now', 'well') }, 'end succeeded'],
    ['HK4 it ended ill', { record: record('now', 'u'), live: live('now', 'ill') }, 'end failed'],
    ['HK4 its time is over', { record: record('now', 'u'), live: live('now'), isOverdue: true }, 'end failed'],
    ['HK4 it is gone, and no Event was looked for', { record: record('now', 'u'), wasAsked: false }, 'ask'],
    ['HK4 it is gone', { record: record('now', 'u') }, 'end failed'],
    ['HK4 it was replaced', { record: record('now', 'u'), live: live(null) }, 'end failed'],
    ['HK7 it is gone, and its end was seen', { record: record('now', 'u'), seen: ENDED }, 'end succeeded'],
    ['HK5 the run before goes, running', { record: record('old', 'u'), live: live('old') }, 'clear'],
    ['HK6 the run before goes, ended', { record: record('old', 'u', 'failed'), live: live('old', 'ill') }, 'clear'],
    ['HK5 without before-hook-creation it ends first', { spec: lenient, record: record('old', 'u'), live: live('old') }, 'wait'],
    ['HK6 and a Job is made anew then', { spec: lenient, record: record('old', 'u'), live: live('old', 'well') }, 'clear'],
    ['HK6 it is going already', { live: live('old', 'no', { deleting: 'it is being deleted' }) }, 'wait'],
    ['HK6 data is applied over', { spec: claim, live: live('old', 'well') }, 'begin'],
    ['HK6 another kind without before-hook-creation is, too', { spec: settings, live: live('old', 'well') }, 'begin'],
    ['HK6 a kept Job is in the way', { live: live('old', 'well', { keep: 'helm.sh/resource-policy' }) }, 'end failed'],
    ['HK11 what no run made is not cleared', { live: live('old'), isOfHook: () => false }, 'begin'],
    ['HK11 a run of the same id of another service is not met', { live: live('now'), isOfHook: () => false }, 'begin'],
    [
      'HK9 under another name the one before goes',
      { spec: { ...PRE, generateName: 'j-' }, record: record('old', 'u'), former: live('old') },
      'clear',
    ],
    [
      'HK9 what is kept there stays',
      { spec: { ...PRE, generateName: 'j-' }, record: record('old', 'u'), former: live('old', 'well', { keep: 'x' }) },
      'begin',
    ],
  ])('%s', (_, more, expected) => {
    const step = judgeRun(facts(more))
    expect(step.kind === 'end' ? `end ${step.end.outcome}` : step.kind).toBe(expected)
  })

  const SHOP: Owner = { kind: 'service', clusterId: 'c', project: 'web', service: 'shop' }
  test.each<[string, LiveView, boolean, string | null, boolean]>([
    ['our mark and a run', live('old', 'no', { owner: SHOP }), true, null, true],
    ['our mark and no run', live(null, 'no', { owner: SHOP }), true, null, false],
    ['our mark, a Job with a TTL', live('', 'no', { owner: SHOP }), true, null, false],
    ['our mark, no run, recorded', live(null, 'no', { owner: SHOP }), true, 'u', true],
    ['the mark of another service, recorded', live('old', 'no', { owner: SHOP }), false, 'u', false],
    ['no mark and a run', live('old'), false, null, false],
    ['no mark, recorded', live('old'), false, 'u', true],
    ['no mark, another one was recorded', live('old'), false, 'v', false],
  ])('HK11 the object of a run: %s', (_, found, isOurs, recorded, expected) => {
    expect(found.kind === 'present' && isOfHook(found.live, isOurs, [recorded])).toBe(expected)
  })
})
