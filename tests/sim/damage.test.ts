// A small part of the damages of `scripts/damage`, and what its judge calls wrong. Damaged files are opened in child
// processes only.
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { z } from 'zod'
import { seededRandom } from '../../shared/runtime/random.ts'
import { judge, type Outcome, type Plan, TARGETS } from './damage-history.ts'
import { damage } from './damage-kinds.ts'

const HISTORIES = 24
const count = z.object({ histories: z.number(), serves: z.number(), refuses: z.number(), dies: z.number(), wrong: z.number() })
const summarySchema = z.object({ failed: z.number(), failures: z.array(z.string()), counts: z.record(z.string(), count) })

test('CU9 CU10 RP1 SY11 ST22 no damage ends a server or an agent, and none is repaired at each start', async () => {
  const script = join(import.meta.dir, '../../scripts/damage.ts')
  const child = Bun.spawn([process.execPath, script, '--histories', String(HISTORIES), '--json'], { stdout: 'pipe', stderr: 'inherit' })
  const { counts, failures } = summarySchema.parse(JSON.parse(await new Response(child.stdout).text()))
  expect(failures).toEqual([])
  const sums = TARGETS.map((target) => counts[target])
  expect(sums.map((sum) => sum?.histories)).toEqual([6, 6, 6, 6])
  expect([counts['shard']?.serves, counts['replica']?.serves]).toEqual([6, 6])
  expect((counts['agent state']?.refuses ?? 0) + (counts['fleet store']?.refuses ?? 0)).toBeGreaterThan(0) // it really damages
}, 120_000)

const serves = (told: string[] = [], wrong: string[] = []): Outcome => ({ kind: 'serves', told, wrong })
const refuses = (code: string): Outcome => ({ kind: 'refuses', code, detail: '' })

test.each<[string, Plan['target'], Outcome, Outcome, number]>([
  ['serves twice', 'shard', serves(), serves(), 0],
  ['repairs once', 'shard', serves(['shard file rebuilt']), serves(), 0],
  ['repairs at each start', 'replica', serves(['replica fetched']), serves(['replica fetched']), 1],
  ['serves what it should not', 'replica', serves([], ['object a is b']), serves(), 1],
  ['refuses a shard file, which could be rebuilt', 'shard', refuses('data_unusable'), serves(), 1],
  ['refuses a fleet store', 'fleet store', refuses('store_damaged'), refuses('store_damaged'), 0],
  ['refuses a fleet store for another reason', 'fleet store', refuses('data_unusable'), refuses('store_damaged'), 1],
  ['refuses the state of an agent', 'agent state', refuses('data_unusable'), refuses('data_unusable'), 0],
  ['fails without saying what to do', 'agent state', { kind: 'fails', error: 'malformed' }, refuses('data_unusable'), 1],
])('a program that %s is judged', (_, target, first, second, wrong) => {
  expect(judge({ seed: 1, target, moment: 'first', what: '' }, first, second)).toHaveLength(wrong)
})

test('a damage follows from its seed alone', () => {
  const image = { main: Buffer.alloc(40_960, 1), wal: Buffer.alloc(32 + 5 * 4_120, 2) }
  const before = { main: Buffer.alloc(20_480, 3), wal: Buffer.alloc(0) }
  const kinds = new Set<string>()
  for (let seed = 0; seed < 200; seed++) {
    const [one, two] = [0, 1].map(() => damage(image, before, seededRandom(seed)))
    expect(one).toEqual(two)
    kinds.add(one?.kind ?? '')
  }
  expect(kinds.size).toBe(9)
  expect(image.main.every((byte) => byte === 1)).toBe(true)
})
