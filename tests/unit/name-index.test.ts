import { expect, test } from 'bun:test'
import { NameIndex } from '../../server/ingest/render/name-index.ts'

test('services are found by what they name, looked at when they changed and only then', () => {
  const names = new Map<string, { names: Set<string>; isComplete: boolean }>()
  const looks: string[] = []
  const index = new NameIndex((service) => {
    looks.push(service)
    return names.get(service) ?? { names: new Set(), isComplete: true }
  })
  const set = (service: string, of: string[], isComplete = true) => {
    names.set(service, { names: new Set(of), isComplete })
    index.changed(service)
  }
  const having = (...of: string[]) => [...index.having(of)].sort()

  set('a', ['x', 'y'])
  set('b', ['y'])
  expect(looks).toEqual([])
  expect([having('x'), having('y'), having('x', 'y'), having('z')]).toEqual([['a'], ['a', 'b'], ['a', 'b'], []])
  expect(looks).toEqual(['a', 'b'])

  set('a', ['z'])
  expect([having('x'), having('y'), having('z')]).toEqual([[], ['b'], ['a']])
  names.delete('b')
  index.changed('b')
  expect(having('y')).toEqual([])

  set('c', ['x'], false)
  expect(having('x', 'w')).toEqual(['c'])
  names.set('c', { names: new Set(['x', 'w']), isComplete: true })
  expect(having('w')).toEqual(['c'])
  looks.length = 0
  having('w')
  expect(looks).toEqual([])
})
