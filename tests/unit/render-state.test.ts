import { expect, test } from 'bun:test'
import type { FailedRevision, RenderState } from '../../server/fleet/records.ts'
import type { ClusterRender, GoodRender, Rendering } from '../../server/ingest/render/rendering.ts'
import { nextRenderState } from '../../server/ingest/render-state.ts'
import { type ClusterId, clusterIdSchema } from '../../shared/runtime/ids.ts'
import { naming } from '../support/naming.ts'

const clusterId = (n: number): ClusterId => clusterIdSchema.parse(`c-${n.toString(16).padStart(16, '0')}`)
const render = (digest: string, count = 2, hooks = 0): GoodRender => ({ kind: 'rendered', digest, count, hooks, objects: new Map() })
const rendering = (commit: string, renders: ClusterRender[], change: Partial<Extract<Rendering, { kind: 'good' }>> = {}): Rendering => ({
  kind: 'good',
  release: { commit, revisions: {}, tools: {} },
  clusters: new Map(renders.map((one, n) => [clusterId(n + 1), one])),
  forNobody: null,
  warnings: [],
  ...change,
})
const good = (commit: string, digest: string): Rendering => rendering(commit, [render(digest)])
const failed = (path: string, code = 'render_failed'): Extract<Rendering, { kind: 'failed' }> => ({
  kind: 'failed',
  commit: 'c9',
  error: { code, message: '1 error in the manifests', problems: [{ path, message: 'x' }] },
})
const ok: RenderState = {
  commit: 'c1',
  generation: 1,
  digest: 'd1',
  objectCount: 2,
  renderedMs: 10,
  error: null,
}
const broken = nextRenderState(ok, 1, failed('a:1'), 20)

test('RN1 an error keeps commit, digest and count of the last good render', () => {
  expect(broken).toEqual({
    ...ok,
    error: {
      ...{ code: 'render_failed', message: '1 error in the manifests', problems: [{ path: 'a:1', message: 'x' }], sinceMs: 20 },
      at: { commit: 'c9', author: null },
    },
  })
})
test('RN8 the count is of objects, without hooks', () => {
  expect(nextRenderState(ok, 1, rendering('c2', [render('d2', 5, 2)]), 30).objectCount).toBe(3)
})

test.each([
  ['RN1 the same error again is the same state', broken, 1, failed('a:1'), broken],
  ['RN1 the same good render at a later commit is the same state', ok, 1, good('c2', 'd1'), ok],
  ['RN1 nothing to read is the same state', broken, 1, { kind: 'no_content' } as const, broken],
] as const)('%s', (_, before, generation, rendering, expected) => expect(nextRenderState(before, generation, rendering, 30)).toBe(expected))

test.each([
  ['RN1 another place of the same kind of error keeps since when', broken, failed('b:2'), 20],
  ['RN1 another kind of error begins anew', broken, failed('a:1', 'no_manifests'), 30],
  ['RN1 a good render ends it', broken, good('c2', 'd1'), undefined],
] as const)('%s', (_, before, rendering, since) => expect(nextRenderState(before, 1, rendering, 30).error?.sinceMs).toBe(since))

test.each<[string, Rendering, FailedRevision]>([
  [
    'the first render that fails so',
    { ...failed('a:1'), commit: 'c10', written: { author: 'Ana', subject: 'x' } },
    { commit: 'c9', author: null },
  ],
  [
    'the first of another fault',
    { ...failed('b:2'), commit: 'c10', written: { author: 'Ana', subject: 'fix the port' } },
    { commit: 'c10', author: 'Ana', subject: 'fix the port' },
  ],
])('RL8 a failed render keeps the revision of %s', (_, rendering, at) =>
  expect(nextRenderState(broken, 2, rendering, 30).error?.at).toEqual(at),
)

const refused = (message: string, path = 'a.yaml:1:1'): ClusterRender => ({
  kind: 'failed',
  error: { code: 'render_failed', message, problems: [{ path, message }] },
})
const nameOf = (id: ClusterId) => `site-${id.slice(-1)}`

test('RL1 clusters whose render fails are counted, and the first three of them named; the digest is of those that render', () => {
  const renders = [refused('b'), render('d2'), refused('b'), refused('b'), refused('b')]
  const after = nextRenderState(ok, 1, rendering('c2', renders), 30, nameOf)
  expect(after).toMatchObject({ digest: 'd2', commit: 'c2' })
  expect(after.error).toEqual({
    code: 'render_failed',
    message: naming('4 of 5', 'site-1, site-3, site-4 and 1 more', ': b'),
    problems: [{ path: 'a.yaml:1:1', message: 'b' }],
    sinceMs: 30,
    at: { commit: 'c2', author: null },
  })
  expect(nextRenderState(after, 1, rendering('c3', renders), 40, nameOf)).toBe(after)
  expect(nextRenderState(after, 1, rendering('c3', [render('d2'), render('d2')]), 40, nameOf).error).toBeNull()
})

test('RL1 what fails differently from cluster to cluster is told with every problem, each once', () => {
  const error = nextRenderState(
    ok,
    1,
    rendering('c2', [refused('b'), refused('c', 'c.yaml:2:1'), refused('c', 'c.yaml:2:1'), render('d')]),
    30,
    nameOf,
  ).error
  expect(error?.message).toEqual(naming('3 of 4', 'site-1, site-2, site-3', ': b', 'others'))
  expect(error?.problems).toEqual([
    { path: 'a.yaml:1:1', message: 'b' },
    { path: 'c.yaml:2:1', message: 'c' },
  ])
})

test('RL1 of many different problems 50 are kept, the last of which says how many more there are', () => {
  const failing = (count: number) => Array.from({ length: count }, (_, n) => refused('b', `a.yaml:${n + 1}:1`))
  const told = (count: number) => nextRenderState(ok, 1, rendering('c2', [...failing(count), render('d')]), 30, nameOf).error?.problems
  expect(told(50)?.map(({ message }) => message)).toEqual(Array.from({ length: 50 }, () => 'b'))
  expect([told(51)?.length, told(51)?.at(-1)]).toEqual([50, { path: '', message: 'and 2 more' }])
})

test("RL2 a release of several variants has a digest of its own, whatever their order; one of a single variant has that one's", () => {
  const digestOf = (digests: string[]) =>
    nextRenderState(
      ok,
      1,
      rendering(
        'c2',
        digests.map((digest) => render(digest)),
      ),
      30,
    ).digest
  expect(digestOf(['a', 'b', 'a'])).toBe(digestOf(['b', 'a']))
  expect(digestOf(['a', 'b'])).not.toBe(digestOf(['a', 'c']))
  expect(digestOf(['a', 'a'])).toBe('a')
  expect(nextRenderState(ok, 1, rendering('c2', [render('a', 9), render('b', 4)]), 30)).toMatchObject({
    release: { variants: 2 },
    objectCount: 9,
  })
  expect(nextRenderState(ok, 1, rendering('c2', []), 30).digest).toBe('d1')
})

test('RL3 RL4 another tool and another warning are other states, at the same digest', () => {
  const changed = rendering('c2', [render('d1')], { release: { commit: 'c2', revisions: {}, tools: { helm: '4.2.0' } } })
  expect(nextRenderState(ok, 1, changed, 30).release?.tools).toEqual({ helm: '4.2.0' })
  const warned = rendering('c1', [render('d1')], {
    warnings: Array.from({ length: 30 }, (_, n) => ({ path: `a:${n}`, message: 'lookup' })),
  })
  const warnings = nextRenderState(ok, 1, warned, 30).release?.warnings
  expect(warnings).toHaveLength(20)
  expect(warnings?.at(-1)).toEqual({ path: '', message: 'and 11 more' })
})

test('RD10 what does not render for nobody leaves what is in force, and tells what may be wrong', () => {
  const doubts = [{ path: 'a:1', message: 'perhaps' }]
  const nobody = (warnings: typeof doubts) => rendering('c2', [], { warnings })
  expect(nextRenderState(ok, 1, nobody([]), 30)).toBe(ok)
  const doubtful = nextRenderState(broken, 1, nobody(doubts), 30)
  expect(doubtful).toEqual({ ...ok, error: null, release: { variants: 1, revisions: {}, tools: {}, warnings: doubts } })
  expect(nextRenderState(doubtful, 1, nobody(doubts), 40)).toBe(doubtful)
  expect(nextRenderState(doubtful, 1, nobody([]), 40).release?.warnings).toEqual([])
  const made = { ...ok, release: { variants: 2, revisions: { apps: 'c1' }, tools: { helm: '4' }, warnings: [] } }
  expect(nextRenderState(made, 1, nobody(doubts), 40).release).toEqual({ ...made.release, warnings: doubts })
})
