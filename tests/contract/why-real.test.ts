// The causes of `skerry why` for broken services that a real agent applies to a real API server with its controllers
// and scheduler. Nodes and kubelets are played.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { CLUSTER_START_TIMEOUT_MS } from '../support/kube-cluster.ts'
import { REAL_WHY_CASES } from '../support/why-real-cases.ts'
import { startWhySite, type WhySite } from '../support/why-site.ts'

/** 20 s on two free cores. */
const RUN_MS = 120_000
let site: WhySite
beforeAll(async () => {
  site = await startWhySite()
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => site?.stop(), CLUSTER_START_TIMEOUT_MS)

test('WY1 the real corpus has at least 40 broken deployments, each with a name of its own', () => {
  expect(new Set(REAL_WHY_CASES.map(({ name }) => name)).size).toBe(REAL_WHY_CASES.length)
  expect(REAL_WHY_CASES.length).toBeGreaterThanOrEqual(40)
})

test(
  'WY1 on a real API server the true cause of a broken service is first',
  async () => {
    const wrong = (await site.run(REAL_WHY_CASES, RUN_MS)).filter(({ expected, found }) => found !== expected)
    expect(wrong.map(({ name, expected, found, reported }) => `${name}: ${found} instead of ${expected}\n  ${reported}`)).toEqual([])
  },
  RUN_MS + 60_000,
)
