// scripts/bench health --corpus FILE: how often the health of real objects is the verdict that people gave them. Each
// line of FILE is JSON: `verdict` (Healthy, Progressing, Degraded, Suspended, Missing, Unknown), `object`, and `case`
// (a name).
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { healthOf } from '../../shared/kube/health.ts'
import { fields, isEmptyStatus } from '../../shared/kube/health-object.ts'
import { groupOf, type K8sObject } from '../../shared/kube/object.ts'
import { isBuiltInGroup } from '../../shared/kube/order.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { rounded } from './figures.ts'
import { runParts, type Say } from './parts.ts'

// Corpora are written by hand in part: an object may have a null where an API server would leave the member out.
const objectSchema = z.looseObject({ apiVersion: z.string(), kind: z.string(), metadata: z.looseObject({}) })
const entrySchema = z.looseObject({ verdict: z.string(), case: z.string().optional(), object: objectSchema })
interface Entry extends Omit<z.infer<typeof entrySchema>, 'object'> {
  object: K8sObject
}

export const benchHealth = (say: Say, only: string | null, corpus: string): Promise<Record<string, number>> =>
  runParts('health', { verdicts: async (tell) => verdictsOf(readCorpus(corpus), tell) }, say, only)

function readCorpus(path: string): Entry[] {
  const lines = readFileSync(path, 'utf8').split('\n')
  return lines.flatMap((line, index) => {
    if (line.trim() === '') return []
    const read = entrySchema.safeParse(JSON.parse(line))
    if (!read.success) throw new Error(`${path}:${index + 1}: expected {"verdict": …, "object": …}: ${read.error.issues[0]?.message}`)
    return [read.data as Entry]
  })
}

/** As an agent would judge them: it knows from discovery that the kinds have a status, and all objects are old. */
function verdictsOf(entries: readonly Entry[], say: Say): Record<string, number> {
  const known = tally(entries, (object) => object, say)
  const custom = entries.filter(({ object }) => !isBuiltInGroup(groupOf(object.apiVersion)))
  // A kind of another group has no rule of its own.
  const unknown = tally(
    custom,
    (object) => ({ ...object, apiVersion: 'kinds-without-a-rule.example/v1' }),
    () => {},
  )
  return {
    health_same_pct: percentOf(known.same, entries.length),
    health_false_healthy_pct: percentOf(known.falseHealthy, entries.length),
    health_without_rules_same_pct: percentOf(unknown.same, custom.length),
    health_without_rules_false_healthy_pct: percentOf(unknown.falseHealthy, custom.length),
  }
}

const percentOf = (part: number, all: number): number => rounded((100 * part) / all)
const kindOf = ({ apiVersion, kind }: K8sObject): string => `${groupOf(apiVersion)}/${kind}`

function tally(entries: readonly Entry[], shown: (object: K8sObject) => K8sObject, say: Say): { same: number; falseHealthy: number } {
  const reporting = new Set(entries.flatMap(({ object }) => (isEmptyStatus(fields(object['status'])) ? [] : [kindOf(object)])))
  const count = { same: 0, falseHealthy: 0 }
  for (const { verdict, object, case: name = '' } of entries) {
    const { word, reason } = healthOf(shown(object), systemClock.nowMs(), {
      hasStatus: true,
      siblingsReport: reporting.has(kindOf(object)),
    })
    if (word === verdict) count.same += 1
    else say(`${kindOf(object)} ${name}: ${verdict}, and here ${word} (${reason})`)
    if (word === 'Healthy' && (verdict === 'Degraded' || verdict === 'Progressing')) count.falseHealthy += 1
  }
  return count
}
