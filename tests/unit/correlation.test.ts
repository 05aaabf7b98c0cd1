// CO1 to CO3: one correlation id from a commit to the objects it changed.
import { afterEach, expect, test } from 'bun:test'
import { type PlanInput, planService } from '../../server/fleet/plan-service.ts'
import type { DesiredService, RenderState } from '../../server/fleet/records.ts'
import { traceOfCommit, traceOfRender } from '../../server/ingest/correlation.ts'
import type { Rendering } from '../../server/ingest/render/rendering.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { serviceSpecSchema } from '../../shared/model/resources.ts'
import { clusterIdSchema } from '../../shared/runtime/ids.ts'
import { rootSpanId, traceIdOf, traceparentOf } from '../../shared/runtime/trace-id.ts'
import { setup, stopAll } from '../support/reconcile-fixtures.ts'
import { configMap } from '../support/reconcile-kit.ts'

afterEach(stopAll)

const id = { project: 'default', service: 'shop' }
const [A, B] = ['a', 'b'].map((digit) => digit.repeat(32)) as [string, string]
const clusters = [1, 2].map((n) => ({ clusterId: clusterIdSchema.parse(`c-000000000000000${n}`), name: `site-${n}`, labels: {} }))
const spec = (change: Record<string, unknown> = {}) =>
  serviceSpecSchema.parse({ source: { repository: 'apps', path: 'shop' }, targets: { selector: {} }, namespace: 'shop', ...change })
const input = (digest: string, trace: string | undefined, change: Partial<PlanInput> = {}): PlanInput => ({
  ...{ id, spec: spec(), deleting: false, deletedBy: null, clusters, current: [], loses: () => false },
  ...{ removed: new Map(), confirmations: new Map(), nowMs: 1_000 },
  render: { commit: `commit-${digest}`, trace, in: () => ({ digest, count: 1 }) },
  ...change,
})
const held = ({ publishes }: ReturnType<typeof planService>): DesiredService[] =>
  publishes.map(({ clusterId, doc, placedBy }) => ({ ...id, clusterId, doc, placedBy, ordinal: 1, setSha: null }))
const traces = (plan: ReturnType<typeof planService>) => plan.publishes.map(({ doc, what }) => [what, doc?.trace])

test('CO1 the row of a revision has the id of the change that made its digest', () => {
  const first = planService(input('d1', A))
  expect(traces(first)).toEqual([
    ['placed', A],
    ['placed', A],
  ])
  expect(traces(planService(input('d2', B, { current: held(first) })))).toEqual([
    ['updated', B],
    ['updated', B],
  ])
})

test('CO2 an id changes no row: the same digest keeps its id, or none, and a cluster that joins gets the id of the others', () => {
  const first = planService(input('d1', A))
  expect(planService(input('d1', B, { current: held(first) })).publishes).toEqual([])
  const older = planService(input('d1', undefined))
  expect(older.publishes[0]?.doc).not.toHaveProperty('trace')
  expect(planService(input('d1', B, { current: held(older) })).publishes).toEqual([])
  expect(traces(planService(input('d1', B, { current: held(first).slice(0, 1) })))).toEqual([['placed', A]])
  const protect = planService(input('d1', B, { current: held(first), spec: spec({ protect: true }) }))
  expect(traces(protect)).toEqual([
    ['settled', A],
    ['settled', A],
  ])
})

test('CO1 an id of another form is no id, and the row is read', () => {
  const row = { commit: 'c', digest: 'd', count: 0, sync: {} }
  for (const trace of ['x', 7, `${A}0`, A.toUpperCase()]) expect(serviceRowSchema.parse({ ...row, trace }).trace).toBeUndefined()
  expect(serviceRowSchema.parse({ ...row, trace: A }).trace).toBe(A)
})

const before = { generation: 1, digest: 'd0', objectCount: 1, renderedMs: 1, error: null } satisfies Partial<RenderState>
const good = (commit: string, revisions: Record<string, string> = { apps: commit }): Rendering => ({
  ...{ kind: 'good', clusters: new Map(), forNobody: null, warnings: [] },
  release: { commit, revisions, tools: {} },
})

test('CO1 all that a commit changes has one id, on each server another; a changed spec or further source has its own', () => {
  const of = (rendering: Rendering, service = 'shop', generation = 1, commit = 'c1', traceSalt = 'here') =>
    traceOfRender({ traceSalt }, { id: { ...id, service }, generation, before: { ...before, commit } }, rendering)
  const ofCommit = traceOfCommit({ traceSalt: 'here' }, 'default', 'c2')
  expect(of(good('c2'))).toBe(ofCommit)
  expect(of(good('c2'), 'till')).toBe(ofCommit)
  expect(of({ kind: 'failed', commit: 'c2', error: { code: 'render_failed' } as never })).toBe(ofCommit)
  expect(of({ kind: 'no_content' })).toBeUndefined()
  const others = [
    of(good('c2'), 'shop', 2, 'c2'),
    of(good('c2'), 'till', 2, 'c2'),
    of(good('c2', { apps: 'c2', charts: 'x' })),
    of(good('c2'), 'shop', 1, 'c1', 'there'),
  ]
  expect(new Set([ofCommit, ...others]).size).toBe(5)
})

test('CO1 the id is a trace id of W3C, and the root span follows from it', () => {
  const trace = traceIdOf('salt', ['a'])
  expect(traceparentOf(trace, true)).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
  expect(traceparentOf(trace, false)).toEndWith(`-${rootSpanId(trace)}-00`)
  expect(rootSpanId('a'.repeat(16) + '0'.repeat(16))).toBe('0000000000000001')
})

test('CO3 the agent reports the id with the revision and with the events of its service', async () => {
  const { kit, run } = setup()
  kit.desire([configMap('a')], { commit: 'first', trace: A })
  await run()
  expect(kit.service()).toMatchObject({ received: { commit: 'first', trace: A }, applied: { trace: A }, healthy: { trace: A } })
  expect(kit.events().map(({ reason, trace }) => [reason, trace])).toEqual([['Applied', A]])
})
