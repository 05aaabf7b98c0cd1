import { describe, expect, test } from 'bun:test'
import { guardRemovals } from '../../server/fleet/guard.ts'
import { type PlanInput, type PlannedConfirmation, planService, type ServicePlan } from '../../server/fleet/plan-service.ts'
import type { Confirmation, DesiredService } from '../../server/fleet/records.ts'
import { isTarget, leftByNewTargets, placedByText, type TargetCluster } from '../../server/fleet/targeting.ts'
import { confirmationToken, type ServiceRow } from '../../shared/model/desired.ts'
import type { Labels } from '../../shared/model/labels.ts'
import { type ServiceSpec, serviceSpecSchema } from '../../shared/model/resources.ts'
import { type ClusterId, clusterIdSchema } from '../../shared/runtime/ids.ts'
import { naming } from '../support/naming.ts'

const PROD = { selector: { matchLabels: { env: 'prod' } }, exclude: [{ matchLabels: { frozen: 'true' } }] }
const id = { project: 'default', service: 'shop' }
const clusterId = (n: number): ClusterId => clusterIdSchema.parse(`c-${n.toString(16).padStart(16, '0')}`)
const cluster = (n: number, labels: Labels = { env: 'prod' }): TargetCluster => ({
  clusterId: clusterId(n),
  name: `site-${String(n).padStart(2, '0')}`,
  labels,
})
const clusters = (count: number, labels?: Labels) => Array.from({ length: count }, (_, n) => cluster(n + 1, labels))
const spec = (change: Record<string, unknown> = {}): ServiceSpec =>
  serviceSpecSchema.parse({ source: { repository: 'apps', path: 'shop' }, targets: PROD, namespace: 'shop', ...change })
const everywhere = (commit: string, digest: string, count: number) => ({ commit, in: () => ({ digest, count }) })
const D1 = everywhere('commit-1', 'd1', 3)
const D2 = everywhere('commit-2', 'd2', 2)

const input = (change: Partial<PlanInput> = {}): PlanInput => ({
  id,
  spec: spec(),
  deleting: false,
  deletedBy: null,
  render: D1,
  clusters: clusters(3),
  current: [],
  loses: () => true,
  removed: new Map(),
  confirmations: new Map(),
  nowMs: 1000,
  ...change,
})
const confirmation = (planned: PlannedConfirmation, confirmedBy: string | null = null): Confirmation => ({
  ...planned,
  id: 'abc123',
  createdMs: 1,
  confirmedMs: confirmedBy === null ? null : 2,
  confirmedBy,
})
const bySubject = (...all: Confirmation[]) => new Map(all.map((one) => [one.subject, one]))

/** What the store holds after a plan was carried out. */
function carriedOut(before: readonly DesiredService[], plan: ServicePlan): DesiredService[] {
  const rows = new Map(before.map((row) => [row.clusterId, row]))
  for (const { clusterId, doc, placedBy, factsKey } of plan.publishes)
    rows.set(clusterId, { ...id, clusterId, doc, placedBy, ordinal: 1, setSha: null, ...(factsKey === undefined ? {} : { factsKey }) })
  return [...rows.values()]
}
const placedIn = (change: Partial<PlanInput> = {}) => carriedOut([], planService(input(change)))
const summary = (plan: ServicePlan) => plan.publishes.map(({ cluster: name, what }) => `${name} ${what}`)

test.each([
  [{ env: 'prod' }, true],
  [{ env: 'test' }, false],
  [{}, false],
  [{ env: 'prod', frozen: 'true' }, false],
  [{ env: 'prod', frozen: 'no' }, true],
] as Array<[Labels, boolean]>)('TG1 %j is a target: %p', (labels, expected) => expect(isTarget(labels, PROD)).toBe(expected))

test.each([
  ['TG2 its old targets would still take it: the service changed', placedByText(PROD), { env: 'prod' }, true],
  ['TG2 its old targets would not: the cluster was relabelled', placedByText(PROD), { env: 'test' }, false],
  ['TG2 an unreadable note counts as the service', 'x', { env: 'test' }, true],
])('%s', (_, placedBy, labels, expected) => expect(leftByNewTargets(placedBy, labels as Labels)).toBe(expected))

describe('guard', () => {
  const removals = {
    cause: 'left_targets',
    protect: false,
    holders: 100,
    leaving: 1,
    ordered: 0,
    leftByNewTargets: 0,
    targets: 50,
  } as const
  test.each([
    ['TG3 nobody leaves', { leaving: 0, protect: true }, 'pass'],
    ['TG3 five of five: never too many', { holders: 5, leaving: 5 }, 'pass'],
    ['TG3 six of six', { holders: 6, leaving: 6 }, 'wait'],
    ['TG3 six of sixty: exactly the allowed part', { holders: 60, leaving: 6 }, 'pass'],
    ['TG3 six of fifty-nine', { holders: 59, leaving: 6 }, 'wait'],
    ['TG3 one more, while five are leaving', { holders: 11, leaving: 1, ordered: 5 }, 'wait'],
    ['TG3 one more while four are leaving', { holders: 11, leaving: 1, ordered: 4 }, 'pass'],
    ['TG3 a sixth of sixty: exactly the allowed part', { holders: 55, leaving: 1, ordered: 5 }, 'pass'],
    ['TG3 a sixth of fifty-nine', { holders: 54, leaving: 1, ordered: 5 }, 'wait'],
    ['TG3 a deleted service of five clusters', { cause: 'service_deleted', holders: 5, leaving: 5, targets: 0 }, 'pass'],
    ['TG3 a deleted service of six clusters', { cause: 'service_deleted', holders: 6, leaving: 6, targets: 0 }, 'wait'],
    ['TG4 a protected service, one cluster', { protect: true, leaving: 1 }, 'wait'],
    ['TG5 changed targets match nobody', { holders: 1, leaving: 1, leftByNewTargets: 1, targets: 0 }, 'wait'],
    ['TG5 changed targets match somebody', { holders: 2, leaving: 1, leftByNewTargets: 1, targets: 1 }, 'pass'],
    ['TG5 the only cluster was relabelled', { holders: 1, leaving: 1, leftByNewTargets: 0, targets: 0 }, 'pass'],
  ] as const)('%s', (_, change, expected) => expect(guardRemovals({ ...removals, ...change }).kind).toBe(expected))
})

describe('placing', () => {
  test('TG1 every target gets the revision, by name; carried out, the plan is empty', () => {
    const start = input({ clusters: [...clusters(3).reverse(), cluster(9, { env: 'test' })] })
    const plan = planService(start)
    expect(summary(plan)).toEqual(['site-01 placed', 'site-02 placed', 'site-03 placed'])
    expect(plan.publishes[0]?.doc).toEqual({
      commit: 'commit-1',
      digest: 'd1',
      count: 3,
      namespace: 'shop',
      sync: start.spec.sync,
      protect: false,
    })
    expect(planService({ ...start, current: carriedOut([], plan) })).toEqual({ publishes: [], open: [], close: [], finished: false })
  })
  test('RV2 a commit that changes nothing publishes nothing, and a cluster that joins later names the same commit', () => {
    const current = placedIn()
    const plan = planService(input({ current, render: { ...D1, commit: 'commit-9' }, clusters: clusters(4) }))
    expect(summary(plan)).toEqual(['site-04 placed'])
    expect(plan.publishes[0]?.doc?.commit).toBe('commit-1')
  })
  test('RV2 changed sync options are published under the old commit', () => {
    const plan = planService(input({ current: placedIn(), spec: spec({ sync: { prune: false } }), render: { ...D1, commit: 'commit-9' } }))
    expect(plan.publishes.map(({ doc }) => [doc?.commit, doc?.sync.prune])).toEqual(Array(3).fill(['commit-1', false]))
  })
  test('TG6 without a good render nothing joins, changes or leaves', () => {
    const current = placedIn()
    for (const change of [{ clusters: clusters(5) }, { clusters: clusters(3, {}) }, { spec: spec({ protect: true }) }])
      expect(planService(input({ current, render: null, ...change })).publishes).toEqual([])
  })
})

describe('leaving', () => {
  test('TG7 a relabelled cluster gets a removal order with policy, who, when and why; the others nothing', () => {
    const plan = planService(input({ current: placedIn(), clusters: [cluster(1), cluster(2, { env: 'test' }), cluster(3)] }))
    expect(summary(plan)).toEqual(['site-02 removal_ordered'])
    expect(plan.publishes[0]?.objects).toBe('none')
    expect(plan.publishes[0]?.doc?.removal).toEqual({
      policy: 'delete',
      by: 'skerry',
      atMs: 1000,
      why: expect.stringMatching(/targets(?!.*confirmed)/),
    })
  })
  test('TG8 the order stays until the agent reports that it is done, then a tombstone ends it', () => {
    const away = { clusters: [cluster(1), cluster(2, {}), cluster(3)] }
    const current = carriedOut(placedIn(), planService(input({ current: placedIn(), ...away })))
    expect(planService(input({ current, ...away, nowMs: 9999 })).publishes).toEqual([])
    const plan = planService(input({ current, ...away, removed: new Map([[clusterId(2), 1000]]) }))
    expect(summary(plan)).toEqual(['site-02 removed'])
    expect(plan.publishes[0]?.doc).toBeNull()
    expect(planService(input({ current: carriedOut(current, plan), ...away, removed: new Map() })).publishes).toEqual([])
  })
  test('TG8 an answer to an order of before is no answer to this one', () => {
    const away = { clusters: [cluster(1), cluster(2, {}), cluster(3)] }
    const first = carriedOut(placedIn(), planService(input({ current: placedIn(), ...away })))
    const back = carriedOut(first, planService(input({ current: first })))
    const current = carriedOut(back, planService(input({ current: back, ...away, nowMs: 2000 })))
    const answered = (atMs: number) => summary(planService(input({ current, ...away, removed: new Map([[clusterId(2), atMs]]) })))
    expect(answered(1000)).toEqual([])
    expect(answered(2000)).toEqual(['site-02 removed'])
  })
  test('TG9 a cluster that comes back gets the revision in place of its removal order', () => {
    const current = carriedOut(placedIn(), planService(input({ current: placedIn(), clusters: [cluster(1), cluster(2, {}), cluster(3)] })))
    const plan = planService(input({ current, removed: new Map([[clusterId(2), 1000]]) }))
    expect(summary(plan)).toEqual(['site-02 updated'])
    expect(plan.publishes[0]?.doc?.removal).toBeUndefined()
  })
  test('TG5 a selector that suddenly matches nobody waits with the exact names, and the clusters are served on', () => {
    const changed = { spec: spec({ targets: { selector: { matchLabels: { env: 'prodd' } } } }), current: placedIn() }
    const plan = planService(input({ ...changed, render: D2 }))
    expect(plan.open).toEqual([
      {
        kind: 'leave_targets',
        subject: 'leave_targets/default/shop',
        project: 'default',
        service: 'shop',
        cluster: null,
        token: expect.any(String),
        names: ['site-01', 'site-02', 'site-03'],
        why: naming('targets', '3 of 3 clusters'),
      },
    ])
    expect(summary(plan)).toEqual(['site-01 updated', 'site-02 updated', 'site-03 updated'])
    const current = carriedOut(changed.current, plan)
    const [open] = plan.open
    if (open === undefined) throw new Error('nothing was opened')

    const again = planService(input({ ...changed, render: D2, current, confirmations: bySubject(confirmation(open)) }))
    expect(again).toEqual({ publishes: [], open: [], close: [], finished: false })
    const confirmed = planService(input({ ...changed, render: D2, current, confirmations: bySubject(confirmation(open, 'ada')) }))
    expect(summary(confirmed)).toEqual(['site-01 removal_ordered', 'site-02 removal_ordered', 'site-03 removal_ordered'])
    expect(confirmed.publishes[0]?.doc?.removal).toMatchObject({ by: 'ada', why: naming('cluster', 'targets', 'confirmed') })
    expect(confirmed.close).toEqual(['leave_targets/default/shop'])
    const mended = planService(input({ render: D2, current, confirmations: bySubject(confirmation(open)) }))
    expect(mended.close).toEqual(['leave_targets/default/shop'])
  })
  test('TG3 clusters relabelled one by one: the sixth waits, and so do those after it, also when the orders before were carried out', () => {
    let current = placedIn({ clusters: clusters(10) })
    let questions = new Map<string, Confirmation>()
    const relabelled = (gone: number) => clusters(10).map((one, n) => (n < gone ? { ...one, labels: {} } : one))
    const pass = (gone: number, change: Partial<PlanInput> = {}) => {
      const plan = planService(input({ current, clusters: relabelled(gone), confirmations: questions, ...change }))
      current = carriedOut(current, plan)
      const left = [...questions.values()].filter(({ subject }) => !plan.close.includes(subject))
      questions = bySubject(...left, ...plan.open.map((open) => confirmation(open)))
      return summary(plan)
    }
    const names = () => [...questions.values()].map((question) => question.names)
    for (const n of [1, 2, 3, 4, 5]) expect(pass(n)).toEqual([`site-0${n} removal_ordered`])
    expect([pass(6), names()]).toEqual([[], [['site-06']]])
    const removed = new Map(clusters(5).map((one) => [one.clusterId, 1000]))
    expect(pass(6, { removed })).toEqual([1, 2, 3, 4, 5].map((n) => `site-0${n} removed`))
    expect([pass(6), names()]).toEqual([[], [['site-06']]])
    expect([pass(7), names()]).toEqual([[], [['site-06', 'site-07']]])
    const [question] = questions.values()
    if (question === undefined) throw new Error('nothing was asked')
    questions = bySubject({ ...question, confirmedMs: 2, confirmedBy: 'ada' })
    expect([pass(7), names()]).toEqual([['site-06 removal_ordered', 'site-07 removal_ordered'], []])
    // What a person said yes to is not held against the next one.
    expect(pass(8)).toEqual(['site-08 removal_ordered'])
  })
  test('TG3 a question goes when its clusters are targets again', () => {
    const start = { current: placedIn({ clusters: clusters(7) }) }
    const [open] = planService(input({ ...start, clusters: clusters(7, {}) })).open
    if (open === undefined) throw new Error('nothing was opened')
    const plan = planService(
      input({ ...start, clusters: [...clusters(6), { ...cluster(7), labels: {} }], confirmations: bySubject(confirmation(open)) }),
    )
    expect([summary(plan), plan.close]).toEqual([['site-07 removal_ordered'], ['leave_targets/default/shop']])
  })
  test('TG10 a yes to other names is no yes', () => {
    const current = placedIn({ clusters: clusters(7) })
    const [open] = planService(input({ deleting: true, current, clusters: clusters(7) })).open
    if (open === undefined) throw new Error('nothing was opened')
    const more = placedIn({ clusters: clusters(8) })
    const plan = planService(
      input({ deleting: true, current: more, clusters: clusters(8), confirmations: bySubject(confirmation(open, 'ada')) }),
    )
    expect(plan.publishes).toEqual([])
    expect(plan.open[0]?.names).toHaveLength(8)
  })
})

describe('deleting', () => {
  test('TG11 a deleted service is ordered away, and finished once no cluster has anything of it', () => {
    const orphan = spec({ deletionPolicy: 'orphan' })
    const start = input({ deleting: true, deletedBy: 'ada', render: null, current: placedIn(), spec: orphan })
    const plan = planService(start)
    expect(plan.publishes.map(({ doc }) => doc?.removal)).toEqual(
      Array(3).fill({ policy: 'orphan', by: 'ada', atMs: 1000, why: naming('service', 'deleted') }),
    )
    expect(plan.finished).toBe(false)
    const current = carriedOut(start.current, plan)
    const done = planService({ ...start, current, removed: new Map(start.clusters.map((one) => [one.clusterId, 1000])) })
    expect(summary(done)).toEqual(['site-01 removed', 'site-02 removed', 'site-03 removed'])
    expect(done.finished).toBe(true)
    expect(planService({ ...start, current: carriedOut(current, done) }).finished).toBe(true)
  })
  test('TG11 a service that no cluster has is finished at once', () => {
    expect(planService(input({ deleting: true, render: null })).finished).toBe(true)
  })
  test('TG11 a cluster that was deleted holds nothing up', () => {
    expect(planService(input({ deleting: true, current: placedIn(), clusters: [] })).finished).toBe(true)
  })
  test('TG4 a protected service waits, and stays as it is meanwhile', () => {
    const plan = planService(input({ deleting: true, current: placedIn(), spec: spec({ protect: true }), render: D2 }))
    expect(plan.publishes).toEqual([])
    expect(plan.open[0]).toMatchObject({ kind: 'remove_service', names: ['site-01', 'site-02', 'site-03'] })
  })
})

describe('confirmed prunes', () => {
  const prune = (digest: string, by: string | null, names = ['ConfigMap shop/a']): Confirmation =>
    confirmation(
      {
        kind: 'prune',
        subject: `prune/${clusterId(1)}/default/shop`,
        project: 'default',
        service: 'shop',
        cluster: 'site-01',
        token: digest,
        names,
        why: 'x',
      },
      by,
    )
  test('TG12 a yes for the current revision goes into that cluster’s row and stays with that digest', () => {
    const start = input({ current: placedIn(), confirmations: bySubject(prune('d1', 'ada')) })
    const plan = planService(start)
    expect(plan.publishes.map(({ cluster: name, doc }) => [name, doc?.pruneConfirmed])).toEqual([['site-01', 'd1']])
    expect(plan.close).toEqual([`prune/${clusterId(1)}/default/shop`])
    const current = carriedOut(start.current, plan)
    expect(planService(input({ current })).publishes).toEqual([])
    expect(planService(input({ current, render: D2 })).publishes[0]?.doc?.pruneConfirmed).toBeUndefined()
  })
  test('TG12 RM1 a yes to names of a removal order goes into that order, and later names are added to it', () => {
    const away = { clusters: [cluster(1, {}), cluster(2), cluster(3)] }
    const order = carriedOut(placedIn(), planService(input({ current: placedIn(), ...away })))
    const token = confirmationToken(order.find((row) => row.clusterId === clusterId(1))?.doc as ServiceRow)
    const yes = (names: string[], of = token) => bySubject(prune(of, 'ada', names))
    const plan = planService(input({ current: order, ...away, confirmations: yes(['PersistentVolumeClaim shop/b']) }))
    expect(plan.publishes.map(({ what, doc }) => [what, doc?.confirmed])).toEqual([['settled', ['PersistentVolumeClaim shop/b']]])
    expect(plan.close).toEqual([`prune/${clusterId(1)}/default/shop`])
    const later = carriedOut(order, plan)
    const more = planService(input({ current: later, ...away, confirmations: yes(['PersistentVolumeClaim shop/a']) }))
    expect(more.publishes[0]?.doc?.confirmed).toEqual(['PersistentVolumeClaim shop/a', 'PersistentVolumeClaim shop/b'])
    expect(planService(input({ current: order, ...away, confirmations: yes([], 'another order') })).publishes).toEqual([])
  })
  test('TG12 a yes for an older revision changes nothing and is put away; an open question stays', () => {
    const late = planService(input({ current: placedIn(), confirmations: bySubject(prune('d0', 'ada')) }))
    expect([late.publishes, late.close]).toEqual([[], [`prune/${clusterId(1)}/default/shop`]])
    const open = planService(input({ current: placedIn(), confirmations: bySubject(prune('d1', null)) }))
    expect([open.publishes, open.close]).toEqual([[], []])
  })
})

test('TG8 PR8 clusters that hold the same get one order, what is handed over in it', () => {
  const handover = [{ object: '/ConfigMap/web/x', project: 'web', service: 'taker' }]
  const plan = planService(input({ current: placedIn(), deleting: true, spec: spec({ protect: false }), handover: () => handover }))
  const docs = new Set(plan.publishes.map(({ doc }) => doc))
  expect([plan.publishes.length, docs.size, [...docs][0]?.handover]).toEqual([3, 1, handover])
})

describe('renders by cluster', () => {
  const by = (renders: Record<string, { digest: string; count: number; factsKey?: string }>): PlanInput['render'] => ({
    commit: 'commit-3',
    in: (clusterId) => renders[clusterId] ?? null,
  })
  const [one, two, three] = [clusterId(1), clusterId(2), clusterId(3)]
  const docOf = (rows: readonly DesiredService[], of: ClusterId) => rows.find((row) => row.clusterId === of)?.doc

  test('RL1 a cluster without a render keeps its row and does not join; the others go on', () => {
    const current = carriedOut([], planService(input({ clusters: clusters(2) })))
    const plan = planService(input({ current, render: by({ [two]: { digest: 'd9', count: 1 } }) }))
    expect(summary(plan)).toEqual(['site-02 updated'])
    const relabelled = [cluster(1, { env: 'test' }), cluster(2), cluster(3)]
    expect(summary(planService(input({ current, clusters: relabelled, render: by({}) })))).toEqual(['site-01 removal_ordered'])
  })

  test('RL2 each cluster gets the digest of its own render, and the commit that brought it', () => {
    const rows = carriedOut(
      [],
      planService(
        input({ render: by({ [one]: { digest: 'a', count: 1 }, [two]: { digest: 'b', count: 2 }, [three]: { digest: 'a', count: 1 } }) }),
      ),
    )
    expect([one, two, three].map((of) => [docOf(rows, of)?.digest, docOf(rows, of)?.count])).toEqual([['a', 1], ['b', 2], ['a', 1]]) // biome-ignore format: a table
    expect(docOf(rows, one)).toBe(docOf(rows, three) ?? null)
  })

  test('TG17 a yes to one variant is for the clusters that shall have that one', () => {
    const manual = {
      spec: spec({ sync: { mode: 'manual' } }),
      render: by({ [one]: { digest: 'a', count: 1 }, [two]: { digest: 'b', count: 1 } }),
    }
    const current = carriedOut([], planService(input(manual)))
    const asked = {
      kind: 'sync',
      subject: 'sync/default/shop/x',
      ...id,
      cluster: null,
      token: 'a',
      names: ['site-01', 'site-02'],
      why: '',
    } as const
    const plan = planService(
      input({ ...manual, current, confirmations: bySubject(confirmation({ ...asked, names: [...asked.names] }, 'ada')) }),
    )
    expect(plan.publishes.map(({ cluster: name, doc }) => [name, doc?.synced])).toEqual([['site-01', 'a']])
    expect(plan.close).toEqual(['sync/default/shop/x'])
  })

  describe('RL5 a render that only facts of the cluster changed', () => {
    /** As `digest facts names`; without facts: it looked at none. */
    const at = (text: string) => {
      const [digest = '', facts, names = ''] = text.split(' ')
      return { names, render: by({ [one]: { digest, count: 1, ...(facts === undefined || facts === '-' ? {} : { factsKey: facts }) } }) }
    }
    const carry = (texts: readonly string[], change: Partial<PlanInput> = {}) => {
      let current: DesiredService[] = []
      let held = ''
      for (const text of texts) {
        const { names, render } = at(text)
        const loses = () => [...held].some((name) => !names.includes(name))
        current = carriedOut(current, planService(input({ ...change, clusters: clusters(1), current, render, loses })))
        held = names
      }
      return current
    }
    test.each<[string, string[], true | undefined]>([
      ['the first', ['1 F ab'], undefined],
      ['the same again', ['1 F ab', '1 F ab'], undefined],
      ['a commit that drops something under the same facts', ['1 F ab', '2 F a'], undefined],
      ['facts that drop something', ['1 F ab', '2 G a'], true],
      ['facts that only change or add something', ['1 F ab', '2 G abc'], undefined],
      ['facts and a commit in one: nobody can tell whose it is', ['1 F ab', '2 G ac'], true],
      ['and again', ['1 F ab', '2 G a', '2 G a'], true],
      ['a commit after it does not let it go', ['1 F ab', '2 G a', '3 G a'], true],
      ['nor do other facts', ['1 F ab', '2 G a', '3 H ac'], true],
      ['other facts without a consequence, then a commit', ['1 F ab', '1 G ab', '2 G a'], undefined],
      ['facts that added something, then a commit', ['1 F ab', '2 G abc', '3 G a'], undefined],
      ['the facts are back with all that there was', ['1 F ab', '2 G a', '1 F ab', '3 F a'], undefined],
      ['the facts are back and take away what the others brought', ['1 F ab', '2 G ac', '1 F ab'], true],
      ['and then nothing but a yes lets it go', ['1 F ab', '2 G ac', '1 F ab', '3 F abd'], true],
      ['what a commit takes away under the other facts waits, too', ['1 F ab', '2 G ac', '3 G a', '1 F ab'], true],
      ['somebody made it independent of facts', ['1 F ab', '2 G a', '3 - a'], undefined],
      ['it never looked at any', ['1 - ab', '2 - a'], undefined],
      ['it looks at them for the first time, as somebody wrote it', ['1 - ab', '2 F a'], undefined],
      ['it fell back to none by what somebody wrote', ['1 F ab', '2 - a'], undefined],
    ])('%s', (_, texts, expected) => expect(docOf(carry(texts), one)?.factsOnly).toBe(expected as true))

    test('planned again nothing is left to do, also where it waits', () => {
      for (const texts of [
        ['1 F ab', '2 G a'],
        ['1 F ab', '2 G ac', '1 F ab'],
      ]) {
        const current = carry(texts)
        const { render } = at(texts.at(-1) ?? '')
        expect(planService(input({ clusters: clusters(1), current, render })).publishes).toEqual([])
      }
    })

    test('a yes ends it, and what follows is asked about by itself', () => {
      const current = carry(['a F ab', 'b G a'])
      const same = { clusters: clusters(1), current, render: at('b G a').render }
      const asked = {
        kind: 'prune',
        subject: `prune/${one}/default/shop`,
        ...id,
        cluster: 'site-01',
        token: 'b',
        names: [],
        why: '',
      } as const
      const plan = planService(input({ ...same, confirmations: bySubject(confirmation({ ...asked, names: [] }, 'ada')) }))
      expect(plan.publishes.map(({ doc }) => [doc?.pruneConfirmed, doc?.factsOnly])).toEqual([['b', undefined]])
      const confirmed = carriedOut(current, plan)
      const next = (text: string) => planService(input({ clusters: clusters(1), current: confirmed, render: at(text).render }))
      expect(['c G', 'c H'].map((text) => next(text).publishes[0]?.doc?.factsOnly)).toEqual([undefined, true])
    })
  })
})
