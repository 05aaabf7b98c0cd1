// What is handed over from one service to another: what the server writes, and what the agent makes of it.
import { describe, expect, test } from 'bun:test'
import { judgeHandover } from '../../agent/reconcile/handover.ts'
import { type Gainer, handoversTo } from '../../server/fleet/handover.ts'

const [X, Y] = ['/ConfigMap/web/x', '/ConfigMap/web/y']
const gainer = (service: string, names: string[], rows: Array<[string, string, string[]]>, targets = ['c-1', 'c-2']): Gainer => ({
  id: { project: 'web', service },
  names: (object) => names.includes(object),
  targets: new Set(targets),
  rows: new Map(rows.map(([cluster, digest, held]) => [cluster, { digest, names: (object) => held.includes(object) }])),
})

describe('PR8 what the server writes', () => {
  test.each<[string, Gainer[], unknown[]]>([
    ['nobody gains it', [gainer('z', [], [['c-1', 'd', []]])], []],
    ['the taker’s row names it already', [gainer('z', [X], [['c-1', 'd', [X]]])], [{ object: X, project: 'web', service: 'z' }]],
    ['the taker’s row does not yet', [gainer('z', [X], [['c-1', 'd', []]])], [{ object: X, project: 'web', service: 'z', after: 'd' }]],
    ['the taker has no row there yet', [gainer('z', [X], [['c-2', 'd', [X]]])], [{ object: X, project: 'web', service: 'z' }]],
    ['the taker is for other clusters', [gainer('z', [X], [], ['c-2'])], []],
    [
      'several, in one order',
      [gainer('z', [Y, X], [['c-1', 'd', [X]]]), gainer('b', [X], [])],
      [
        { object: X, project: 'web', service: 'b' },
        { object: X, project: 'web', service: 'z' },
        { object: Y, project: 'web', service: 'z', after: 'd' },
      ],
    ],
  ])('PR8 %s', (_, gainers, expected) => {
    expect(handoversTo([Y, X], gainers, 'c-1')).toEqual(expected as never)
    expect(handoversTo([X, Y], [...gainers].reverse(), 'c-1')).toEqual(expected as never)
  })
})

test.each([
  ['waits for a row', undefined, { kind: 'unread' }, true],
  ['waits while the taker is where it was', 'd', { kind: 'read', digest: 'd' }, true],
  ['a later revision of the taker does not want it', 'd', { kind: 'read', digest: 'e' }, false],
  ['the taker’s revision counted already when it was written', undefined, { kind: 'read', digest: 'd' }, false],
] as const)('PR8 the agent: %s', (_, after, taker, waits) => {
  const handover = { object: X, project: 'web', service: 'z', ...(after === undefined ? {} : { after }) }
  expect(judgeHandover(handover, taker) !== null).toBe(waits)
})
