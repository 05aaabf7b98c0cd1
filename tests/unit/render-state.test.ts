import { expect, test } from 'bun:test'
import { nextRenderState, type Rendering } from '../../server/ingest/service-render.ts'
import type { RenderState } from '../../server/store/records.ts'

const good = (commit: string, digest: string): Rendering => ({
  kind: 'good',
  commit,
  digest,
  count: 2,
  hooks: 0,
  objects: new Map(),
  warnings: [],
})
const failed = (path: string, code = 'render_failed'): Rendering => ({
  kind: 'failed',
  commit: 'c9',
  error: { code, message: '1 error in the manifests', problems: [{ path, message: 'x' }] },
})
const ok: RenderState = { commit: 'c1', generation: 1, digest: 'd1', objectCount: 2, renderedMs: 10, error: null }
const broken = nextRenderState(ok, 1, failed('a:1'), 20)

test('RN1 an error keeps commit, digest and count of the last good render', () => {
  expect(broken).toEqual({
    ...ok,
    error: { code: 'render_failed', message: '1 error in the manifests', problems: [{ path: 'a:1', message: 'x' }], sinceMs: 20 },
  })
})
test('RN8 the count is of objects, without hooks', () => {
  const rendering: Rendering = { kind: 'good', commit: 'c2', digest: 'd2', count: 5, hooks: 2, objects: new Map(), warnings: [] }
  expect(nextRenderState(ok, 1, rendering, 30).objectCount).toBe(3)
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
