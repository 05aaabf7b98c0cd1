// How often the first cause of `skerry why` is the true one: the corpus of broken deployments with known causes, on a
// real API server with its controllers and scheduler, by a real agent. Nodes and kubelets are played. And the time of
// one explanation, by the code of the agent that reads Pods and Events and the code of the server that ranks causes.
import { WHY_CASES } from '../../tests/support/why-corpus.ts'
import { REAL_WHY_CASES } from '../../tests/support/why-real-cases.ts'
import { causesOf } from '../../tests/support/why-runner.ts'
import { startWhySite } from '../../tests/support/why-site.ts'
import { rounded } from './figures.ts'
import type { Say } from './parts.ts'

const ROUNDS = 20
const RUN_MS = 180_000

export async function measureWhy(say: Say): Promise<Record<string, number>> {
  const us = explanationUs()
  const site = await startWhySite()
  try {
    const results = await site.run(REAL_WHY_CASES, RUN_MS)
    const wrong = results.filter(({ expected, found }) => found !== expected)
    for (const one of wrong) say(`${one.name}: ${one.found || 'none'} instead of ${one.expected}\n  ${one.reported}`)
    const correct = results.length - wrong.length
    say(`${correct} of ${results.length} first causes are true`)
    return { why_correct_pct: rounded((100 * correct) / results.length), why_us: us }
  } finally {
    await site.stop()
  }
}

function explanationUs(): number {
  for (const one of WHY_CASES) causesOf(one)
  const startMs = performance.now()
  for (let round = 0; round < ROUNDS; round++) for (const one of WHY_CASES) causesOf(one)
  return rounded(((performance.now() - startMs) / ROUNDS / WHY_CASES.length) * 1_000)
}
