import { describe, expect, test } from 'bun:test'
import { LastDependencies, lastDependenciesOf } from '../../server/ingest/render/last-dependencies.ts'
import type { ClusterOutcomes } from '../../server/ingest/render/render-clusters.ts'
import type { Source } from '../../server/sources/source.ts'
import { serviceSpecSchema } from '../../shared/model/resources.ts'
import { AppError, type ErrorCode } from '../../shared/protocol/error.ts'

const ID = { project: 'default', service: 'shop' }
const LOOKED = {
  id: ID,
  spec: serviceSpecSchema.parse({ source: { repository: 'apps', path: 'shop' }, targets: { selector: {} } }),
  specText: 's',
}
/** A repository whose every path is `id`. */
const source = (id: string) => ({ open: async () => ({ version: 'v', root: 'shop', tree: { id: async () => id } }) }) as unknown as Source

const outcomes = (error: ErrorCode | null) => {
  const result =
    error === null ? { kind: 'failed', code: 'render_failed', message: '', problems: [] } : new AppError(error, { doing: 'render' })
  const shape = { files: [{ source: 0, path: 'shop' }], inputs: [] }
  return { clusters: new Map([[null, { key: null, shape, result }]]), renders: 1 } as unknown as ClusterOutcomes
}
async function lookedAt(error: ErrorCode | null) {
  const looks = new LastDependencies(() => null)
  looks.begin(ID)
  looks.end(ID, await lastDependenciesOf('s', [], outcomes(error), async () => 'one'))
  return looks
}
const changed = (looks: LastDependencies, id: string) => looks.changedBy(LOOKED, 'apps', source(id), 'c2')

describe('IC13 what a commit changes of a service', () => {
  test('what it looked at', async () => {
    const looks = await lookedAt(null)
    expect([await changed(looks, 'one'), await changed(looks, 'two'), looks.isLacking(ID)]).toEqual([false, true, false])
  })

  test.each<[ErrorCode]>([['git_failed'], ['source_refused'], ['credential_missing'], ['sandbox_unavailable']])(
    'all, where the last render could not have all that it asked for: %s',
    async (code) => {
      const looks = await lookedAt(code)
      expect([await changed(looks, 'one'), looks.isLacking(ID)]).toEqual([true, true])
    },
  )

  test('all, while nobody knows: no render yet, one that did not end, another spec', async () => {
    const looks = await lookedAt(null)
    expect(await new LastDependencies(() => null).changedBy(LOOKED, 'apps', source('one'), 'c2')).toBe(true)
    expect(await looks.changedBy({ ...LOOKED, specText: 't' }, 'apps', source('one'), 'c2')).toBe(true)
    looks.begin(ID)
    expect(await changed(looks, 'one')).toBe(true)
    looks.end(ID, null)
    expect(await changed(looks, 'one')).toBe(false)
    looks.forget(ID)
    expect(await changed(looks, 'one')).toBe(true)
  })
})

test('IC13 what is remembered is bounded: services that were rendered the longest time ago are forgotten, and count as changed', async () => {
  const looks = new LastDependencies(() => null, 2)
  const look = await lastDependenciesOf('s', [], outcomes(null), async () => 'one')
  const ids = ['a', 'b', 'c'].map((service) => ({ project: 'default', service }))
  const unchanged = async () => {
    const answers = await Promise.all(ids.map((id) => looks.changedBy({ ...LOOKED, id }, 'apps', source('one'), 'c2')))
    return ids.filter((_, index) => answers[index] === false).map(({ service }) => service)
  }
  for (const id of ids) looks.end(id, look)
  expect(await unchanged()).toEqual(['b', 'c'])
  looks.end({ project: 'default', service: 'b' }, look)
  looks.end({ project: 'default', service: 'a' }, look)
  expect(await unchanged()).toEqual(['a', 'b'])
})
