// How often the first cause of `skerry why` is the true one: the corpus of broken deployments with known causes, through the code of the agent that
// reads Pods and Events and the code of the server that ranks causes.
import { WHY_CASES } from '../../tests/support/why-corpus.ts'
import { causesOf } from '../../tests/support/why-runner.ts'
import { rounded } from './figures.ts'
import type { Say } from './parts.ts'

const ROUNDS = 20

export async function measureWhy(say: Say): Promise<Record<string, number>> {
  const wrong = WHY_CASES.filter((one) => causesOf(one)[0]?.cause !== one.cause)
  for (const one of wrong) say(`${one.name}: ${causesOf(one)[0]?.cause ?? 'none'} instead of ${one.cause}`)
  const startMs = performance.now()
  for (let round = 0; round < ROUNDS; round++) for (const one of WHY_CASES) causesOf(one)
  const us = ((performance.now() - startMs) / ROUNDS / WHY_CASES.length) * 1_000
  say(`${WHY_CASES.length} cases, ${rounded(us)} µs each`)
  return { why_correct_pct: rounded((100 * (WHY_CASES.length - wrong.length)) / WHY_CASES.length), why_us: rounded(us) }
}
