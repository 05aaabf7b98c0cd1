// The table behind `scripts/bench --help`, and the arguments that it decides about.
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { helpText, readOrder } from '../../scripts/benchmarks/order.ts'
import { type PartEntry, TABLE } from '../../scripts/benchmarks/table.ts'

const parts: PartEntry[] = Object.values(TABLE).flatMap((benchmark) => Object.values<PartEntry>(benchmark))
const figures = parts.flatMap((part) => Object.keys(part.figures))

test.each([
  [['sync'], { kind: 'run', name: 'sync', only: null, json: false }],
  [['--json', 'sync', '--only', 'fanout'], { kind: 'run', name: 'sync', only: 'fanout', json: true }],
  [['chain', '--only', 'chain'], { kind: 'run', name: 'chain', only: 'chain', json: false }],
  [['health', '--corpus', 'a.jsonl'], { kind: 'run', name: 'health', only: null, json: false, corpus: 'a.jsonl' }],
  [['nothing', '--help'], { kind: 'help' }],
] as const)('arguments %p are an order', (words, order) => {
  expect(readOrder(words)).toEqual(order)
})

test.each([
  [[], ['api', 'chain', 'reconcile', 'render', 'store', 'sync']],
  [['fanout'], ['fanout', 'chain', 'sync']],
  [
    ['sync', 'store'],
    ['2', 'chain'],
  ],
  [
    ['sync', '--only', 'storm'],
    ['storm', 'sync', 'fanout', 'merge'],
  ],
  [
    ['sync', '--only'],
    ['sync', 'fanout'],
  ],
  [
    ['sync', '--corpus', 'a'],
    ['--corpus', 'health'],
  ],
  [['health'], ['--corpus FILE']],
  [
    ['chain', '--only', 'toString'],
    ['toString', 'chain'],
  ],
  [
    ['sync', '--quick'],
    ['--quick', '--only', '--json'],
  ],
] as const)('arguments %p are refused with a list of the valid ones', (words, named) => {
  const order = readOrder(words)
  if (order.kind !== 'wrong') throw new Error(order.kind)
  for (const name of named) expect(order.why).toContain(name)
})

test('help names each benchmark, part and figure', () => {
  const words = new Set(helpText().split(/\s+/))
  const names = [...Object.keys(TABLE), ...Object.values(TABLE).flatMap((benchmark) => Object.keys(benchmark)), ...figures]
  expect(names.filter((name) => !words.has(name))).toEqual([])
})

test('the documented figures are figures of the benchmarks', () => {
  const page = readFileSync(join(import.meta.dir, '../../docs/reference/figures.md'), 'utf8')
  const rows = page.matchAll(/^\| (`[a-z0-9_`, ]+`) \|/gm)
  const named = [...rows].flatMap(([, cell = '']) => [...cell.matchAll(/`([a-z0-9_]+)`/g)].map(([, name = '']) => name))
  expect(named.length).toBeGreaterThan(50)
  expect(named.filter((name) => !figures.includes(name))).toEqual([])
})
