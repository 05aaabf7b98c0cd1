// The drift corpus on a real API server: each case says what the user committed, what somebody did outside, and whether
// that is drift. Every case also shows that the first pass writes each object once, that a revision that changes
// nothing writes nothing, and that what is healed is what the API server itself calls unchanged.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { CHANGE_CASES } from '../support/drift-cases-changes.ts'
import { MORE_CASES } from '../support/drift-cases-more.ts'
import { OTHERS_CASES } from '../support/drift-cases-others.ts'
import { TOOL_CASES } from '../support/drift-cases-tools.ts'
import { VALUE_CASES } from '../support/drift-cases-values.ts'
import { type DriftAgent, type Outcome, startDriftAgent } from '../support/drift-runner.ts'
import type { DriftCase } from '../support/drift-site.ts'
import { CLUSTER_START_TIMEOUT_MS, type KubeCluster, startKubeCluster } from '../support/kube-cluster.ts'

const ONLY = process.env['SKERRY_DRIFT_CASE']
const CASES: ReadonlyArray<readonly [ns: string, one: DriftCase]> = [
  ...VALUE_CASES,
  ...OTHERS_CASES,
  ...CHANGE_CASES,
  ...TOOL_CASES,
  ...MORE_CASES,
]
  .map((one, index) => [`case-${String(index + 1).padStart(3, '0')}`, one] as const)
  .filter(([ns, { name }]) => ONLY === undefined || ns === ONLY || name.includes(ONLY))
/** Cases that run beside each other. */
const BESIDE = 8
const RUN_TIMEOUT_MS = 300_000

let server: KubeCluster
let agent: DriftAgent
/** Null means that its kind is not served here. */
const outcomes = new Map<string, Outcome | null>()

beforeAll(async () => {
  server = await startKubeCluster({ name: 'drift', kwok: false })
  const namespaces = CASES.map(([name]) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }))
  await server.kubectl(['create', '-f', '-'], { stdin: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: namespaces }) })
  agent = await startDriftAgent(server)
  const waiting = [...CASES]
  const worker = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) outcomes.set(next[0], await agent.run(next[1], next[0]))
  }
  await Promise.all(Array.from({ length: BESIDE }, worker))
}, CLUSTER_START_TIMEOUT_MS + RUN_TIMEOUT_MS)

afterAll(async () => {
  await agent?.stop()
  await server?.stop()
}, CLUSTER_START_TIMEOUT_MS)

const wasSeen = ({ drifts }: Outcome) => drifts.length > 0
describe('DR1 drift corpus', () => {
  for (const [ns, one] of CASES)
    test(`${ns} ${one.drift === null ? 'no drift' : 'drift'}: ${one.name}`, () => {
      const outcome = outcomes.get(ns)
      if (outcome !== null) expect(outcome?.wrong).toEqual([])
    })

  test('DR1 precision and recall are 100 %', () => {
    const counts = { right: 0, missed: 0, invented: 0, quiet: 0 }
    const run = CASES.filter(([ns]) => outcomes.get(ns) !== null)
    for (const [ns, { drift, writes }] of run) {
      const outcome = outcomes.get(ns)
      const seen = outcome != null && (wasSeen(outcome) || (drift === null && outcome.after.length > writes))
      counts[drift === null ? (seen ? 'invented' : 'quiet') : seen ? 'right' : 'missed'] += 1
    }
    const { right, missed, invented } = counts
    const percent = (part: number, of: number) => (of === 0 ? 100 : (100 * part) / of)
    const [precision, recall] = [percent(right, right + invented), percent(right, right + missed)]
    process.stdout.write(`drift corpus: ${run.length} cases, ${JSON.stringify(counts)}, precision ${precision} %, recall ${recall} %\n`)
    expect([precision, recall]).toEqual([100, 100])
  })

  test(
    'RC7 nothing was written that was not counted, and a restarted agent writes nothing',
    async () => {
      const counted = agent.countedWrites()
      expect(agent.loggedWrites()).toBe(counted)
      // What the API server refused for good is asked once more in each life.
      const services = CASES.flatMap(([ns]) => (outcomes.get(ns) ? [ns] : []))
      const refused = services.filter((ns) => agent.isStuck(ns))
      const written = await agent.restart(services)
      expect(written.filter((write) => !refused.some((ns) => write.includes(ns)))).toEqual([])
      expect(written.length).toBeLessThanOrEqual(refused.length)
      expect(agent.loggedWrites()).toBe(counted + written.length)
    },
    RUN_TIMEOUT_MS,
  )
})
