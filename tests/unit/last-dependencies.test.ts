import { describe, expect, test } from 'bun:test'
import { LastDependencies, lastDependenciesOf } from '../../server/ingest/render/last-dependencies.ts'
import type { ClusterOutcomes } from '../../server/ingest/render/render-clusters.ts'
import type { Source } from '../../server/sources/source.ts'
import { serviceSpecSchema } from '../../shared/model/resources.ts'
import { AppError, type ErrorCode } from '../../shared/runtime/error.ts'

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
const changedOf = async (looks: LastDependencies, looked: typeof LOOKED, id: string) =>
  (await looks.changedBy([looked], 'apps', source(id), 'c2'))[0]
const changed = (looks: LastDependencies, id: string) => changedOf(looks, LOOKED, id)

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
    expect(await changed(new LastDependencies(() => null), 'one')).toBe(true)
    expect(await changedOf(looks, { ...LOOKED, specText: 't' }, 'one')).toBe(true)
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
    const looked = ids.map((id) => ({ ...LOOKED, id }))
    const answers = await looks.changedBy(looked, 'apps', source('one'), 'c2')
    return ids.filter((_, index) => answers[index] === false).map(({ service }) => service)
  }
  for (const id of ids) looks.end(id, look)
  expect(await unchanged()).toEqual(['b', 'c'])
  looks.end({ project: 'default', service: 'b' }, look)
  looks.end({ project: 'default', service: 'a' }, look)
  expect(await unchanged()).toEqual(['a', 'b'])
})

test.each([['.'], ['shop']])('IC13 a commit changes a service at %s that read its folder and files inside', async (path) => {
  const looks = new LastDependencies(() => null)
  const folder = path === '.' ? '' : path
  const files = [folder, `${folder}/a.yaml`.replace(/^\//, '')].map((file) => ({ source: 0, path: file }))
  const clusters = new Map([[null, { key: null, shape: { files, inputs: [] }, result: { kind: 'failed' } }]])
  looks.end(ID, await lastDependenciesOf('s', [], { clusters, renders: 1 } as unknown as ClusterOutcomes, async () => 'one'))
  const looked = { ...LOOKED, spec: serviceSpecSchema.parse({ source: { repository: 'apps', path }, targets: { selector: {} } }) }
  expect([await changedOf(looks, looked, 'one'), await changedOf(looks, looked, 'two')]).toEqual([false, true])
})

test('IC13 a commit asks once for the folders of all services, and for nothing inside them', async () => {
  const looks = new LastDependencies(() => null)
  const services = Array.from({ length: 1_000 }, (_, n) => {
    const id = { project: 'default', service: `s${n}` }
    const spec = serviceSpecSchema.parse({ source: { repository: 'apps', path: `s${n}` }, targets: { selector: {} } })
    return { id, spec, specText: 's' }
  })
  for (const { id } of services) {
    const files = ['', '/a.yaml', '/b/c.yaml'].map((path) => ({ source: 0, path: id.service + path }))
    const shape = { files: [...files, { source: 0, path: 'shared.yaml' }], inputs: [] }
    const clusters = new Map([[null, { key: null, shape, result: { kind: 'failed' } }]])
    looks.end(id, await lastDependenciesOf('s', [], { clusters, renders: 1 } as unknown as ClusterOutcomes, async () => 'one'))
  }
  const [opened, asked]: [string[], string[][]] = [[], []]
  const tree = {
    id: async (path: string) => (path === 's7' ? 'two' : 'one'),
    ahead: async (paths: readonly string[]) => void asked.push([...new Set(paths)]),
  }
  const open = async (revision: string) => {
    opened.push(revision)
    return { version: 'v', root: '', tree }
  }
  const changed = await looks.changedBy(services, 'apps', { open } as unknown as Source, 'c2')
  expect(services.flatMap(({ id }, index) => (changed[index] === true ? [id.service] : []))).toEqual(['s7'])
  expect(opened).toEqual(['c2'])
  expect(asked.map((paths) => paths.length)).toEqual([1_001])
  expect(asked[0]?.filter((path) => path.includes('/'))).toEqual([])
})
