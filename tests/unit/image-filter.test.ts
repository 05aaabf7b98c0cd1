// QY1: which images a filter finds, by text and by version.
import { expect, test } from 'bun:test'
import { imageTest } from '../../server/fleet/image-filter.ts'

test.each([
  ['web:1.4', 'shop/web:1.4.2', true],
  ['web:1.4', 'shop/api:1.4', false],
  ['web<1.4', 'registry.example.com:5000/shop/web:1.3.9', true],
  ['web<1.4', 'web:1.4', false],
  ['web<1.4', 'web:1.4.0', false],
  ['web<=1.4', 'web:1.4.0', true],
  ['web>1.4', 'web:v1.10', true],
  ['web>=1.4', 'web:1.3', false],
  ['web < 1.4', 'web:1.3', true],
  ['shop/web<2', 'registry.example.com/shop/web:1', true],
  ['web<2', 'registry.example.com/shop/oldweb:1', false],
  ['<2', 'registry.example.com/shop/oldweb:1', true],
  ['web<1.4', 'web:1.4-rc.1', true],
  ['web<1.4-rc.2', 'web:1.4-rc.1', true],
  ['web<1.4-rc.10', 'web:1.4-rc.9', true],
  ['web<1.4', 'web:1.4-alpine', false],
  ['web<1.4', 'web:1.3-alpine', true],
  ['web<20260201', 'web:20260101', true],
  ['web<1.4', 'web:latest', false],
  ['web<1.4', 'web', false],
  ['web<1.4', 'registry.example.com:5000/web', false],
  ['web<1.4', `web@sha256:${'1'.repeat(64)}`, false],
  ['web<1.4', `web:1.3@sha256:${'1'.repeat(64)}`, true],
])('QY1 the filter %p on %p: %p', (filter, image, expected) => {
  expect(imageTest(filter)?.(JSON.stringify(['other:none', image]))).toBe(expected)
})

test.each(['web<', 'web<latest', 'web<1<2', 'web=<1', '<>1'])('QY1 the filter %p compares with no version', (filter) => {
  expect(imageTest(filter)).toBeNull()
})

test('QY1 of a list that was cut the whole references are read', () => {
  expect(imageTest('web<2')?.('["web:1","api:')).toBe(true)
  expect(imageTest('web<2')?.('["api:1","web:1')).toBe(false)
})
