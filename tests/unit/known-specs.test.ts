// What is remembered of parsed specs between commits.
import { expect, test } from 'bun:test'
import { KnownSpecs } from '../../server/ingest/known-specs.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'

const service = (name: string, path = name) => ({
  name,
  spec: canonicalJson({ source: { repository: 'apps', path }, targets: { selector: {} } }),
})

test('IN7 a spec is parsed again when its text is another one, and forgotten with its service', () => {
  const specs = new KnownSpecs()
  const [first, second] = specs.of('web', [service('a'), service('b')])
  expect(first).toMatchObject({ id: { project: 'web', service: 'a' }, spec: { source: { repository: 'apps', path: 'a' } } })
  const [same, changed] = specs.of('web', [service('a'), service('b', 'elsewhere')])
  expect(same?.spec).toBe(first?.spec as never)
  expect(changed?.spec).not.toBe(second?.spec as never)
  expect(changed?.spec.source?.path).toBe('elsewhere')
  expect(specs.of('other', [service('a')])[0]).toMatchObject({ id: { project: 'other', service: 'a' } })
  expect(specs.of('web', [])).toEqual([])
  expect(specs.of('web', [service('a')])[0]).not.toBe(first as never)
})
