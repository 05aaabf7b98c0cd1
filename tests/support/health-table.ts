// Documents of custom kinds in few words, and the health that each of them has.
import { expect, test } from 'bun:test'
import { healthOf } from '../../shared/kube/health.ts'
import type { Rule } from '../../shared/kube/health-object.ts'
import { groupOf, type K8sObject } from '../../shared/kube/object.ts'

export type Part = Record<string, unknown>
/** `Ready:True`, `Ready:False:Reason`, `Ready:Unknown:Reason:message`. */
export const conditions = (...entries: string[]): Part => ({
  conditions: entries.map((entry) => {
    const [type, status, reason = '', message = ''] = entry.split(':')
    return { type, status, reason, message }
  }),
})
export const phase = (word: string): Part => ({ status: { phase: word } })
export const state = (word: string): Part => ({ status: { state: word } })
export const says = (...entries: string[]): Part => ({ status: conditions(...entries) })
export const nothing: Part = {}
export const suspended: Part = { spec: { suspend: true } }
export const paused: Part = { spec: { paused: true } }

export interface Row {
  kinds: string[]
  Healthy: Part[]
  Progressing?: Part[]
  Degraded?: Part[]
  Suspended?: Part[]
}

export const ready = { Healthy: [says('Ready:True')], Progressing: [nothing, says('Ready:Unknown:Working')] }

const WORDS = ['Healthy', 'Progressing', 'Degraded', 'Suspended'] as const
export const objectOf = (kind: string, part: Part): K8sObject => {
  const at = kind.lastIndexOf('/')
  return { apiVersion: kind.slice(0, at), kind: kind.slice(at + 1), metadata: { name: 'x' }, ...part } as K8sObject
}

/** HE4: a test for each document, and one that no rule lacks documents. `fewWords` are configuration, and kinds whose
 *  controller reports neither movement nor failure. */
export function testHealthTable(
  rows: readonly Row[],
  rules: Readonly<Record<string, Rule>>,
  fewWords: readonly string[],
  least: number,
): void {
  const cases = rows.flatMap((row) =>
    row.kinds.flatMap((kind) =>
      WORDS.flatMap((word) =>
        (row[word] ?? []).map((part) => [`${kind} ${JSON.stringify(part).slice(0, 120)} is ${word}`, kind, word, part] as const),
      ),
    ),
  )

  test.each(cases)('HE4 %s', (_, kind, word, part) => {
    const health = healthOf(objectOf(kind, part), 0)
    expect(health.word).toBe(word)
    expect(health.reason).toMatch(/^[A-Z][A-Za-z0-9.]*$/)
    if (word !== 'Healthy') expect(health.message).not.toBe('')
  })

  test(`HE4 every rule has documents for healthy, progressing, and degraded or suspended; at least ${least} kinds have`, () => {
    const words = new Map<string, Set<string>>()
    for (const [, kind, word] of cases) {
      const object = objectOf(kind, {})
      const key = `${groupOf(object.apiVersion)}/${object.kind}`
      words.set(key, (words.get(key) ?? new Set()).add(word))
    }
    const lacking = Object.keys(rules).filter((key) => {
      const seen = words.get(key) ?? new Set()
      const whole = seen.has('Healthy') && seen.has('Progressing') && (seen.has('Degraded') || seen.has('Suspended'))
      return fewWords.includes(key) ? !seen.has('Healthy') : !whole
    })
    expect(lacking).toEqual([])
    expect(Object.keys(rules).length - fewWords.length).toBeGreaterThanOrEqual(least)
  })
}
