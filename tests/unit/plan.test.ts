// What a plan does about one object in each situation, and what it leaves alone. Views are written by hand: nothing is
// fetched, nothing waits.
import { describe, expect, test } from 'bun:test'
import type { ApiFailure, ApiResource } from '../../agent/cluster/cluster.ts'
import { OPEN } from '../../agent/reconcile/plan/gates/gates.ts'
import { planApply } from '../../agent/reconcile/plan/plan.ts'
import type { PlanView } from '../../agent/reconcile/plan/plan-view.ts'
import type { Decision, Permit } from '../../agent/reconcile/plan/prune/deletion.ts'
import { nextSteps, planPrune } from '../../agent/reconcile/plan/prune/prune-plan.ts'
import type { Step } from '../../agent/reconcile/plan/step.ts'
import { CORRECTIONS_MAX } from '../../agent/reconcile/snapshot/fields/contest.ts'
import { namespaceKey, type Problem } from '../../agent/reconcile/snapshot/situation.ts'
import type { Wanted } from '../../agent/reconcile/snapshot/wanted.ts'
import type { KindEnd } from '../../agent/reconcile/snapshot/watch/definitions.ts'
import type { LiveObject, LiveView } from '../../agent/reconcile/snapshot/watch/live-object.ts'
import type { InventoryEntry } from '../../agent/state/agent-state.ts'
import { HEALTHY } from '../../shared/kube/health.ts'
import { type ObjectRef, parseRefKey } from '../../shared/kube/object.ts'
import { applyStage } from '../../shared/kube/order.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'

const NOW = 1_000_000
const ID = { project: 'web', service: 'shop' }
const OURS: LiveObject['owner'] = { kind: 'service', clusterId: 'c-1', ...ID }
const NAMESPACE = namespaceKey('shop')
const MAP = '/ConfigMap/shop/a'
const CRD = 'apiextensions.k8s.io/CustomResourceDefinition//things.example.com'
const THING = 'example.com/Thing/shop/t'

/** One object, as far as a case needs it. Absent members: not wanted, not in the inventory, not in the cluster. */
interface Facts {
  wanted?: string
  onlyIfAbsent?: boolean
  applied?: string | null
  /** Null means absent. 'unknown': its watch has no picture. */
  live?: Partial<LiveObject> | null | 'unknown'
  problem?: Problem
  contact?: { kind: 'absent' } | { kind: 'present'; owner: LiveObject['owner']; deleting: string | null }
  corrected?: number
  takenBy?: string
  unserved?: 'unserved' | 'stale'
}

const refOf = (key: string): ObjectRef => {
  const ref = parseRefKey(key)
  if (ref === null) throw new Error(`${key} is no key`)
  return ref
}
const apiVersionOf = ({ group }: ObjectRef) => (group === '' ? 'v1' : `${group}/v1`)
const live = (change: Partial<LiveObject> = {}): LiveObject => ({
  uid: 'u',
  resourceVersion: '1',
  ownedHash: 'h',
  health: HEALTHY,
  deleting: null,
  keep: null,
  owner: OURS,
  images: null,
  ...change,
})
const wantedOf = (key: string, { wanted = '', onlyIfAbsent = false }: Facts): Wanted => {
  const ref = refOf(key)
  return { key, ref, apiVersion: apiVersionOf(ref), stage: applyStage(ref), sent: wanted, onlyIfAbsent }
}
const entryOf = (key: string, { applied = null }: Facts): InventoryEntry => {
  const ref = refOf(key)
  const isApplied = applied !== null
  return {
    ref,
    apiVersion: apiVersionOf(ref),
    uid: isApplied ? 'u' : null,
    appliedDoc: applied,
    ownedHash: isApplied ? 'h' : null,
    digest: null,
    commit: isApplied ? 'before' : null,
    revision: null,
  }
}

function planView(objects: Record<string, Facts>, sync: Record<string, unknown> = {}): PlanView {
  const entries = Object.entries(objects)
  const only = <T>(pick: (facts: Facts, key: string) => T | undefined) =>
    new Map(
      entries.flatMap(([key, facts]): Array<[string, T]> => {
        const value = pick(facts, key)
        return value === undefined ? [] : [[key, value]]
      }),
    )
  const lookup = (group: string, version: string, kind: string) => {
    const facts = entries.find(([key]) => refOf(key).group === group && refOf(key).kind === kind)?.[1]
    if (facts?.unserved === 'stale') return { kind: 'stale' } as const
    if (facts?.unserved === 'unserved') return { kind: 'unserved', versions: [] } as const
    const resource: ApiResource = { group, version, kind, plural: '', namespaced: true, verbs: [] }
    return { kind: 'served', resource } as const
  }
  const view = (_: ApiResource, key: string): LiveView => {
    const there = objects[key]?.live
    if (there === 'unknown') return { kind: 'unknown' }
    return there === null || there === undefined ? { kind: 'absent' } : { kind: 'present', live: live(there) }
  }
  return {
    id: ID,
    clusterId: 'c-1',
    former: new Set(),
    sync: syncOptionsSchema.parse(sync),
    commit: 'now',
    revision: 'd-now',
    wanted: only((facts, key) => (facts.wanted === undefined ? undefined : wantedOf(key, facts))),
    inventory: only((facts, key) => (facts.applied === undefined ? undefined : entryOf(key, facts))),
    problems: only(({ problem }) => problem),
    contacts: only(({ contact }) => contact),
    contests: only(({ corrected }) =>
      corrected === undefined ? undefined : { correctedMs: Array<number>(corrected).fill(NOW), rounds: 0, untilMs: 0 },
    ),
    notes: new Map(),
    view,
    find: lookup,
    findAny: lookup,
    deletionHold: null,
    confirmed: new Set(),
    takenBy: (key) => (objects[key]?.takenBy === undefined ? null : { project: 'web', service: objects[key].takenBy }),
    gate: OPEN,
    leave: () => null,
    nowMs: NOW,
  }
}

const stepText = (step: Step): string => {
  switch (step.kind) {
    case 'inspect':
      return `inspect ${step.refs.map(({ name }) => name).join(' ')}`
    case 'apply':
      return `apply ${step.ref.name} ${step.doc} ${step.why}${step.force ? '' : ' unforced'}`
    case 'delete':
      return `delete ${step.ref.name} ${step.uid}`
    default:
      return `${step.kind} ${step.ref.name}`
  }
}
const failed = (sent: string | null, retryAtMs: number | null): Problem => {
  const failure: ApiFailure = { kind: 'forbidden', status: 403, reason: '', message: 'quota' }
  return { kind: 'failed', failure, attempt: 0, retryAtMs, sent }
}

describe('one object that is wanted', () => {
  const apply = (facts: Facts, sync: Record<string, unknown> = {}): string => {
    const plan = planApply(planView({ [MAP]: facts }, sync), [MAP])
    return plan.steps.map(stepText)[0] ?? plan.problems.get(MAP)?.kind ?? 'nothing'
  }
  const APPLIED = { wanted: 'new', applied: 'new' }
  const other = { kind: 'other', name: 'Helm' } as const

  const CASES: ReadonlyArray<[string, Facts, string, Record<string, unknown>?]> = [
    ['RC7 as it should be', { ...APPLIED, live: {} }, 'nothing'],
    ['RC3 never met', { wanted: 'new', applied: null, live: null }, 'inspect a'],
    ['RC3 met, and nobody is there', { wanted: 'new', applied: null, live: null, contact: { kind: 'absent' } }, 'apply a new new'],
    ['RC3 there with our mark', { wanted: 'new', applied: null, live: {} }, 'apply a new new'],
    [
      'RC3 there with a mark of another cluster',
      { wanted: 'new', applied: null, live: { owner: { ...OURS, clusterId: 'c-2' } } },
      'inspect a',
    ],
    [
      'RC3 there, of another tool',
      { wanted: 'new', applied: null, live: null, contact: { kind: 'present', owner: other, deleting: null } },
      'owned',
    ],
    [
      'RC3 there, of another tool, and to be taken over',
      { wanted: 'new', applied: null, live: null, contact: { kind: 'present', owner: other, deleting: null } },
      'apply a new new',
      { takeover: true },
    ],
    [
      'RC3 there, on its way out',
      { wanted: 'new', applied: null, live: null, contact: { kind: 'present', owner: other, deleting: 'x' } },
      'owned',
    ],
    ['RC3 another service has it', { wanted: 'new', applied: null, live: {}, takenBy: 'first' }, 'owned'],
    ['RC11 the service’s namespace is another service’s', { wanted: 'new', onlyIfAbsent: true, live: {}, takenBy: 'first' }, 'nothing'],
    [
      'RC11 the service’s namespace is somebody’s',
      { wanted: 'new', onlyIfAbsent: true, applied: null, live: null, contact: { kind: 'present', owner: other, deleting: null } },
      'nothing',
    ],
    ['RC7 another document', { wanted: 'new', applied: 'old', live: {} }, 'apply a new changed'],
    ['RC7 another document without force', { wanted: 'new', applied: 'old', live: {} }, 'apply a new changed unforced', { force: false }],
    ['DR1 a changed value', { ...APPLIED, live: { ownedHash: 'other' } }, 'apply a new drift'],
    ['DR7 gone', { ...APPLIED, live: null }, 'apply a new drift'],
    ['DR4 corrected too often', { ...APPLIED, live: { ownedHash: 'other' }, corrected: CORRECTIONS_MAX }, 'contested'],
    ['DR5 reported only', { ...APPLIED, live: { ownedHash: 'other' } }, 'drifted', { drift: 'report' }],
    [
      'DR5 reported only, with a new document',
      { wanted: 'new', applied: 'old', live: { ownedHash: 'other' } },
      'apply a new changed',
      { drift: 'report' },
    ],
    ['DR5 paused, with a new document', { wanted: 'new', applied: 'old', live: { ownedHash: 'other' } }, 'drifted', { drift: 'pause' }],
    ['RC8 refused for good', { wanted: 'new', applied: 'old', live: {}, problem: failed('new', null) }, 'failed'],
    ['RC8 refused, its time has not come', { wanted: 'new', applied: 'old', live: {}, problem: failed('new', NOW + 1) }, 'failed'],
    ['RC8 refused, its time has come', { wanted: 'new', applied: 'old', live: {}, problem: failed('new', NOW) }, 'apply a new changed'],
    [
      'RC8 refused was another document',
      { wanted: 'new', applied: 'old', live: {}, problem: failed('older', null) },
      'apply a new changed',
    ],
    [
      'DR6 refused for good, and the applied one drifted',
      { wanted: 'new', applied: 'old', live: null, problem: failed('new', null) },
      'apply a old drift',
    ],
    ['RC16 of a kind that nothing serves', { wanted: 'new', applied: null, live: null, unserved: 'unserved' }, 'unserved'],
    ['RC16 of a group that does not answer', { wanted: 'new', applied: null, live: null, unserved: 'stale' }, 'unserved'],
    ['RC5 of a kind without a picture', { ...APPLIED, live: 'unknown' }, 'unknown'],
    ['IV1 not in the inventory', { wanted: 'new', live: {} }, 'unknown'],
    ['DR7 being deleted', { ...APPLIED, live: { deleting: 'held' } }, 'waiting'],
    ['RC7 not wanted', { applied: 'old', live: {} }, 'nothing'],
  ]
  // Filled up: a missing last argument would be bun's own `done`.
  test.each(CASES.map(([name, facts, expected, sync = {}]) => [name, facts, expected, sync] as const))('%s', (_, facts, expected, sync) =>
    expect(apply(facts, sync)).toBe(expected),
  )
})

test.each<[string, Facts, string | null]>([
  ['met for the first time', { wanted: 'new', applied: null, live: null, contact: { kind: 'absent' } }, 'now'],
  ['with another document', { wanted: 'new', applied: 'old', live: {} }, 'now'],
  ['with another document, and gone', { wanted: 'new', applied: 'old', live: null }, 'now'],
  ['as Git says, and changed by somebody', { wanted: 'new', applied: 'new', live: { ownedHash: 'other' } }, 'before'],
  ['as Git says, and gone', { wanted: 'new', applied: 'new', live: null }, 'before'],
  ['healed to the document in force', { wanted: 'new', applied: 'old', live: null, problem: failed('new', null) }, 'before'],
])('RC24 an object %s names the commit of the document that is sent', (_, facts, commit) => {
  const [step] = planApply(planView({ [MAP]: facts }), [MAP]).steps
  expect(step).toMatchObject({ kind: 'apply', commit })
})

describe('what goes first', () => {
  const plan = (objects: Record<string, Facts>) => {
    const made = planApply(planView(objects), Object.keys(objects))
    return {
      steps: made.steps.map(stepText),
      later: made.later,
      problems: [...made.problems].flatMap(([key, found]) => (found ? [`${key} ${found.kind}`] : [])),
    }
  }
  const fresh: Facts = { wanted: 'd', applied: null, live: null, contact: { kind: 'absent' } }

  test('OR1 one stage at a time; the others are planned again', () => {
    const crd = { ...fresh }
    expect(plan({ [THING]: fresh, [MAP]: fresh, [CRD]: crd })).toEqual({
      steps: ['apply things.example.com d new'],
      later: [THING, MAP],
      problems: [],
    })
  })
  test('RC3 first contacts come before any apply, one for a resource and namespace', () => {
    const unmet: Facts = { wanted: 'd', applied: null, live: null }
    const objects = { [MAP]: unmet, '/ConfigMap/shop/b': unmet, '/ConfigMap/shop/c': fresh, '/Secret/shop/s': unmet }
    expect(plan(objects).steps).toEqual(['inspect a b', 'inspect s'])
    expect(plan(objects).later).toEqual(Object.keys(objects))
  })
  test.each<[string, Facts, string[]]>([
    ['RC11 an Active namespace of ours lets in', { wanted: 'n', applied: 'n', live: {} }, ['apply a d new']],
    ['RC11 one that is missing does not', { wanted: 'n', applied: 'n', live: null }, ['apply shop n drift']],
    ['RC11 one that is going does not', { wanted: 'n', applied: 'n', live: { deleting: 'x' } }, []],
    [
      'RC11 one that is not Active does not',
      { wanted: 'n', applied: 'n', live: { health: { word: 'Progressing', reason: '', message: '' } } },
      [],
    ],
  ])('%s', (_, namespace, expected) => {
    const made = plan({ [NAMESPACE]: namespace, [MAP]: fresh })
    expect(made.steps).toEqual(expected)
    expect(made.problems.includes(`${MAP} waiting`)).toBe(!expected.includes('apply a d new'))
  })
  test('RV1 an empty revision, and an inventory without one, plan no apply', () => {
    expect(plan({})).toEqual({ steps: [], later: [], problems: [] })
    expect(plan({ [MAP]: { applied: 'd', live: {} } })).toEqual({ steps: [], later: [], problems: [] })
  })
})

describe('objects that leave', () => {
  interface Leaving {
    elsewhere?: boolean
    orphan?: boolean
    inForce?: string[]
    handover?: string
    removal?: boolean
    end?: KindEnd
    givenUp?: boolean
    kept?: readonly string[]
    unseen?: readonly string[]
  }
  const DEFINED: KindEnd = { kind: 'defined', crd: 'as.example.com', why: null }
  const DOC = '{"metadata":{}}'
  const docWith = (annotations: Record<string, string>) => JSON.stringify({ metadata: { annotations } })
  /** Everything may go but what `kept` and `unseen` name. */
  const decisionOn = (candidates: readonly { key: string; ref: ObjectRef }[], { kept = [], unseen = [] }: Leaving): Decision => ({
    refusal: null,
    isShut: false,
    kept: new Map(
      candidates.flatMap(({ key, ref }) =>
        kept.includes(ref.name) ? [[key, { kind: 'kept', what: '', asks: true, attempt: 0, retryAtMs: null }]] : [],
      ),
    ),
    unseen: candidates.flatMap(({ ref }) => (unseen.includes(ref.name) ? [ref] : [])),
    permits: new Map(
      candidates.flatMap(({ key, ref }) =>
        kept.includes(ref.name) || unseen.includes(ref.name) ? [] : [[key, { cause: 'prune' } as Permit]],
      ),
    ),
  })
  const LEAVING: Facts = { applied: DOC, live: {} }
  const prune = (objects: Record<string, Facts>, options: Leaving = {}) => {
    const view = planView(objects)
    const made = planPrune(view, Object.keys(objects), {
      wantedElsewhere: () => options.elsewhere ?? false,
      isUidInForce: (uid) => (options.inForce ?? []).includes(uid),
      handover: () => options.handover ?? null,
      endOf: () => options.end ?? { kind: 'unknown' },
      isGivenUp: () => options.givenUp ?? false,
      removal: options.removal ?? false,
      orphan: options.orphan ?? false,
    })
    const decision = decisionOn(made.candidates, options)
    const { steps, looks } = nextSteps(view, made, decision)
    return {
      steps: steps.map(stepText),
      ...(looks.length === 0 ? {} : { looks: looks.map(({ ref }) => ref.name) }),
      doomed: made.doomed.map(({ name }) => name),
      problems: [...made.problems.values()].flatMap((found) => found?.kind ?? []),
    }
  }

  test.each<[string, Facts, Leaving, string[], string[]]>([
    ['PR6 goes, by its uid', LEAVING, {}, ['delete a u'], ['a']],
    ['PR6 gone already', { ...LEAVING, live: null }, {}, ['forget a'], []],
    ['PR6 no picture of its kind', { ...LEAVING, live: 'unknown' }, {}, [], ['a']],
    ['PR6 its group does not answer', { ...LEAVING, unserved: 'stale' }, {}, [], ['a']],
    [
      'IV9 no API serves its kind, whose CRD is deleted',
      { ...LEAVING, unserved: 'unserved' },
      { end: { kind: 'deleted' } },
      ['forget a'],
      [],
    ],
    ['IV9 no API serves its kind, whose CRD is there', { ...LEAVING, unserved: 'unserved' }, { end: DEFINED }, [], ['a']],
    ['IV9 no API serves its kind, and no CRD is known', { ...LEAVING, unserved: 'unserved' }, {}, [], ['a']],
    ['IV9 the same, and a person gave it up', { ...LEAVING, unserved: 'unserved' }, { givenUp: true }, ['forget a'], []],
    ['IV9 its API gives no answer, and a person gave it up', { ...LEAVING, unserved: 'stale' }, { givenUp: true }, [], ['a']],
    ['PR6 on its way out', { ...LEAVING, live: { deleting: 'x' } }, {}, [], ['a']],
    ['RC3 wanted by another service', LEAVING, { elsewhere: true }, ['forget a'], []],
    ['IV4 kept by a mark', { ...LEAVING, live: { keep: 'helm.sh/resource-policy' } }, {}, ['orphan a'], []],
    [
      'IV4 kept by the manifest that was applied last',
      { ...LEAVING, applied: docWith({ 'helm.sh/resource-policy': 'keep' }) },
      {},
      ['orphan a'],
      [],
    ],
    [
      'IV4 kept only when the whole service goes',
      { ...LEAVING, applied: docWith({ 'argocd.argoproj.io/sync-options': 'Delete=false' }) },
      {},
      ['delete a u'],
      ['a'],
    ],
    [
      'IV4 kept when the whole service goes',
      { ...LEAVING, applied: docWith({ 'argocd.argoproj.io/sync-options': 'Delete=false' }) },
      { removal: true },
      ['orphan a'],
      [],
    ],
    [
      'IV4 another tool has put its mark on it',
      { ...LEAVING, live: { otherMark: 'Argo CD (argocd.argoproj.io/instance: x)' } },
      {},
      ['orphan a'],
      [],
    ],
    [
      'IV4 the mark of another tool that our own manifest carries',
      { applied: docWith({ 'meta.helm.sh/release-name': 'x' }), live: { otherMark: 'Helm (meta.helm.sh/release-name: x)' } },
      {},
      ['delete a u'],
      ['a'],
    ],
    [
      'IV4 another tool took our mark away',
      { ...LEAVING, live: { owner: { kind: 'other', name: 'Flux (x: y)' }, otherMark: 'Flux (x: y)' } },
      {},
      ['orphan a'],
      [],
    ],
    ['PR10 applied in another group of its kind', LEAVING, { inForce: ['u'] }, ['forget a'], []],
    ['PR8 handed over to a service that has no row yet', LEAVING, { handover: 'waits' }, [], []],
    ['PR8 handed over, and wanted there', LEAVING, { handover: 'waits', elsewhere: true }, ['forget a'], []],
    ['PR8 handed over, and not there any more', { ...LEAVING, live: null }, { handover: 'waits' }, ['forget a'], []],
    ['RC12 to be let go', LEAVING, { orphan: true }, ['orphan a'], []],
    ['IV3 never applied, and without a mark of ours', { applied: null, live: { owner: { kind: 'none' } } }, {}, ['forget a'], []],
    [
      'IV3 never applied, and marked as another cluster’s',
      { applied: null, live: { owner: { ...OURS, clusterId: 'c-2' } } },
      {},
      ['forget a'],
      [],
    ],
    ['IV3 never applied by this agent, and marked as ours', { applied: null, live: {} }, {}, ['delete a u'], ['a']],
    ['PR6 applied by us, its mark taken away', { ...LEAVING, live: { owner: { kind: 'none' } } }, {}, ['delete a u'], ['a']],
    ['IV4 let go already', { ...LEAVING, live: { owner: { kind: 'none' }, ownedHash: '' } }, {}, ['forget a'], []],
    [
      'PR6 another object under the name, without a mark',
      { ...LEAVING, live: { uid: 'v', owner: { kind: 'none' } } },
      {},
      ['forget a'],
      [],
    ],
    ['RC8 refused, its time has not come', { ...LEAVING, problem: failed(null, NOW + 1) }, {}, [], ['a']],
    ['RC8 refused, its time has come', { ...LEAVING, problem: failed(null, NOW) }, {}, ['delete a u'], ['a']],
  ])('%s', (_, facts, options, steps, doomed) => expect(prune({ [MAP]: facts }, options)).toMatchObject({ steps, doomed }))

  test('OR2 custom resources first; the rest of the stages when they are gone', () => {
    const objects = { [NAMESPACE]: LEAVING, [CRD]: LEAVING, [MAP]: LEAVING, [THING]: LEAVING }
    expect(prune(objects).steps).toEqual(['delete t u'])
    expect(prune({ ...objects, [THING]: { ...LEAVING, live: { deleting: 'x' } } }).steps).toEqual([])
    expect(prune({ ...objects, [THING]: { ...LEAVING, live: null } }).steps).toEqual(['forget t', 'delete a u'])
    expect(prune({ [NAMESPACE]: LEAVING, [CRD]: LEAVING, [MAP]: { ...LEAVING, live: { deleting: 'x' } } }).steps).toEqual([])
    expect(prune({ [NAMESPACE]: LEAVING, [CRD]: LEAVING }).steps).toEqual(['delete things.example.com u'])
    expect(prune(objects).doomed).toEqual(['t', 'a', 'things.example.com', 'shop'])
  })
  test('RM2 what is kept holds up nothing but its own namespace', () => {
    const claim = '/PersistentVolumeClaim/shop/data'
    const objects = { [NAMESPACE]: LEAVING, [CRD]: LEAVING, [claim]: LEAVING, [MAP]: LEAVING, '/Namespace//other': LEAVING }
    expect(prune(objects, { kept: ['data'] }).steps).toEqual(['delete a u'])
    const rest = { [NAMESPACE]: LEAVING, [CRD]: LEAVING, [claim]: LEAVING, '/Namespace//other': LEAVING }
    expect(prune(rest, { kept: ['data'] }).steps).toEqual(['delete things.example.com u'])
    const namespaces = { [NAMESPACE]: LEAVING, [claim]: LEAVING, '/Namespace//other': LEAVING }
    expect(prune(namespaces, { kept: ['data'] }).steps).toEqual(['delete other u'])
  })
  test('RM3 what has to be looked into is looked into when its turn comes, and what comes after it waits', () => {
    const objects = { [NAMESPACE]: LEAVING, [CRD]: LEAVING, [MAP]: LEAVING }
    const unseen = ['shop', 'things.example.com']
    expect(prune(objects, { unseen })).toMatchObject({ steps: ['delete a u'] })
    expect(prune({ [NAMESPACE]: LEAVING, [CRD]: LEAVING }, { unseen })).toMatchObject({ steps: [], looks: ['things.example.com'] })
    expect(prune({ [NAMESPACE]: LEAVING }, { unseen })).toMatchObject({ steps: [], looks: ['shop'] })
  })
  test('PR2 nothing leaves: no step', () => expect(prune({})).toEqual({ steps: [], doomed: [], problems: [] }))
})
