// Which version of a chart, tag or artifact a range takes; what helm itself says is in
// tests/contract/helm-source.test.ts.
import { expect, test } from 'bun:test'
import { greatestVersion, noVersion } from '../../server/sources/range.ts'
import { naming } from '../support/naming.ts'

const ALL = [
  '1.2.3',
  '1.10.0',
  '1.9.9',
  '2.0.0-rc.1',
  '2.0.0-rc.10',
  '2.0.0-rc.2',
  '0.9.0',
  'v3.0.0',
  '3.0.1-alpha',
  'latest',
  'sha-abc',
  '1.10',
]

test.each([
  [undefined, 'v3.0.0'],
  ['*', 'v3.0.0'],
  ['^1.2', '1.10'],
  ['~1.9.0', '1.9.9'],
  ['1.x', '1.10'],
  ['1.2.x', '1.2.3'],
  ['>=1.2.0 <1.10.0', '1.9.9'],
  ['>=1.2.0, <1.10.0', '1.9.9'],
  ['>=1.2.0,<1.10.0', '1.9.9'],
  ['=>1.2.0 =<1.9.9', '1.9.9'],
  ['1.2.0 - 1.9.9', '1.9.9'],
  ['~0.9 || ~1.2.0', '1.2.3'],
  ['>=2.0.0-0 <2.0.0', '2.0.0-rc.10'],
  ['>=2.0.0 <2.0.1', null],
  ['^2.0.0-rc.1', '2.0.0-rc.10'],
  ['>=1.0.0-0', '3.0.1-alpha'],
  ['>3.0.0', null],
  ['^3 || ^2.0.0-0', 'v3.0.0'],
  ['!=3.0.0', '1.10'],
  ['>=1.2 != 3.0.0 != 1.10.0', '1.9.9'],
  ['2.0.0-rc.1', '2.0.0-rc.1'],
  ['1.10', '1.10'],
  ['latest', 'latest'],
  ['no range', null],
  ['>=', null],
  ['^9', null],
] as const)('SO6 %p takes %p', (range, expected) => expect(greatestVersion(ALL, range)).toBe(expected))

test('SO6 the order in which versions come changes nothing, nor do what no version is and equal ones', () => {
  const texts = ['1.0.0+b', 'v1.0.0+b', '1.0.0+a', '1.0.0', 'x', '']
  const found = new Set([texts, [...texts].reverse()].map((all) => greatestVersion(all, '^1')))
  expect([...found]).toEqual(['1.0.0+b'])
  expect(noVersion('x', ALL, '^9')).toEqual(naming('x:', '^9', ': 3.0.1-alpha, v3.0.0, 2.0.0-rc.10, 2.0.0-rc.2, 2.0.0-rc.1'))
  expect(noVersion('x', [], undefined)).toEqual(naming('x', 'no versions'))
})

test.each([
  ['^1.2', true],
  ['1.2.3 ,  <2', true],
  ['latest', false],
  ['^^1', false],
  ['a'.repeat(10_000), false],
  [`${'('.repeat(10_000)}`, false],
] as const)('SO6 %p is a range: %p', (text, expected) =>
  expect(noVersion('x', [], text).includes('no version in the range')).toBe(expected),
)
