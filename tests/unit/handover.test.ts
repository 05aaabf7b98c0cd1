// What is handed over from one service to another: what the server writes, and what the agent makes of it.
import { describe, expect, test } from 'bun:test'
import { judgeHandover, waitsForTakers } from '../../agent/reconcile/plan/prune/handover.ts'
import type { Taker } from '../../agent/reconcile/snapshot/watch/service-registry.ts'
import { type Gainer, handoversTo } from '../../server/fleet/handover.ts'
import { objectNames } from '../../server/fleet/named-objects.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'

const [X, Y] = ['/ConfigMap/web/x', '/ConfigMap/web/y']
const id = (text: string) => text as ClusterId
const gainer = (service: string, names: string[], rows: Array<[string, string, string[]]>, targets = ['c-1', 'c-2']): Gainer => ({
  id: { project: 'web', service },
  namesIn: () => objectNames(new Set(names)),
  targets: new Set(targets.map(id)),
  rows: new Map(rows.map(([cluster, digest, held]) => [id(cluster), { digest, names: objectNames(new Set(held)) }])),
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
    expect(handoversTo([Y, X], gainers, id('c-1'))).toEqual(expected as never)
    expect(handoversTo([X, Y], [...gainers].reverse(), id('c-1'))).toEqual(expected as never)
  })
})

describe('PR8 kinds of which the server does not know whether they have a namespace', () => {
  const [GIVEN, TAKEN, OUTSIDE] = ['x.io/Issuer/certs/le', 'x.io/Issuer/platform/le', 'x.io/Issuer//le']
  const named = (...services: string[]) => services.map((service) => gainer(service, [TAKEN], []))
  const to = (object: string, service: string, after?: string) => ({
    object,
    project: 'web',
    service,
    ...(after === undefined ? {} : { after }),
  })
  test.each<[string, string[], Gainer[], unknown[]]>([
    ['the taker gives it another namespace', [GIVEN], [gainer('z', [TAKEN], [['c-1', 'd', [X]]])], [to(OUTSIDE, 'z', 'd')]],
    ['the taker’s row names it already', [GIVEN], [gainer('z', [TAKEN], [['c-1', 'd', [TAKEN]]])], [to(OUTSIDE, 'z')]],
    ['the taker declares that it has none', [GIVEN], [gainer('z', [OUTSIDE], [])], [to(OUTSIDE, 'z')]],
    ['it was handed over before', [GIVEN, OUTSIDE], named('z'), [to(OUTSIDE, 'z')]],
    ['the same namespace', [GIVEN], [gainer('z', [GIVEN], [])], [to(GIVEN, 'z')]],
    ['many have that name, each in its namespace', [GIVEN], named('a', 'b', 'c', 'd'), []],
    ['a built-in kind with a namespace', [X], [gainer('z', ['/ConfigMap/web2/x'], [])], []],
  ])('PR8 %s', (_, lost, gainers, expected) => expect(handoversTo(lost, gainers, id('c-1'))).toEqual(expected as never))
})

test.each([
  ['waits for a row', undefined, { kind: 'unread' }, true],
  ['waits while the taker is where it was', 'd', { kind: 'read', digest: 'd', handover: [] }, true],
  ['a later revision of the taker does not want it', 'd', { kind: 'read', digest: 'e', handover: [] }, false],
  ['the taker’s revision counted already when it was written', undefined, { kind: 'read', digest: 'd', handover: [] }, false],
] as const)('PR8 the agent: %s', (_, after, taker, waits) => {
  const handover = { object: X, project: 'web', service: 'z', ...(after === undefined ? {} : { after }) }
  expect(judgeHandover(handover, taker) !== null).toBe(waits)
})

describe('PR8 a taker that has handed it on before it had it', () => {
  const to = (service: string, after?: string) => ({ object: X, project: 'web', service, ...(after === undefined ? {} : { after }) })
  const takers = (known: Record<string, Taker>) => (id: { service: string }) => known[id.service] ?? ({ kind: 'unread' } as const)
  const read = (digest: string, ...handover: Array<ReturnType<typeof to>>): Taker => ({ kind: 'read', digest, handover })
  test.each<[string, Record<string, Taker>, boolean]>([
    ['the last one is where it was', { b: read('b2', to('c', 'c1')), c: read('c1') }, true],
    ['the last one has no row', { b: read('b2', to('c')) }, true],
    ['the last one does not want it', { b: read('b2', to('c', 'c1')), c: read('c2') }, false],
    ['it comes back to where it was', { b: read('b2', to('a', 'a1')), a: read('a1', to('b')) }, true],
    ['a circle ends', { b: read('b2', to('c')), c: read('c2', to('b')) }, false],
    ['one of another object does not count', { b: read('b2', { ...to('c'), object: Y }) }, false],
  ])('PR8 %s', (_, known, waits) => expect(waitsForTakers(X, [to('b')], takers(known)) !== null).toBe(waits))
})
