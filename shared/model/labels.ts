// Kubernetes label selectors: schema and matching. One meaning everywhere: targets, -l on the command line, list filters.
import { z } from 'zod'

const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/
const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/

export const labelKeySchema = z.string().max(253).regex(LABEL_KEY, 'expected a Kubernetes label key')
export const labelValueSchema = z.string().max(63).regex(LABEL_VALUE, 'expected a Kubernetes label value')
export const labelsSchema = z.record(labelKeySchema, labelValueSchema)
export type Labels = z.infer<typeof labelsSchema>

const requirement = z.discriminatedUnion('operator', [
  z.strictObject({ key: labelKeySchema, operator: z.enum(['In', 'NotIn']), values: z.array(labelValueSchema).min(1) }),
  z.strictObject({ key: labelKeySchema, operator: z.enum(['Exists', 'DoesNotExist']) }),
])

export const labelSelectorSchema = z.strictObject({
  matchLabels: labelsSchema.optional(),
  matchExpressions: z.array(requirement).optional(),
})
export type LabelSelector = z.infer<typeof labelSelectorSchema>

/** `toString` is a label key like any other, and no label of a cluster that does not have it. */
const labelOf = (labels: Labels, key: string): string | undefined => (Object.hasOwn(labels, key) ? labels[key] : undefined)

/** An empty selector matches everything, as in Kubernetes. */
export function matchesSelector(labels: Labels, selector: LabelSelector): boolean {
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) if (labelOf(labels, key) !== value) return false
  for (const rule of selector.matchExpressions ?? []) {
    const value = labelOf(labels, rule.key)
    switch (rule.operator) {
      case 'In':
        if (value === undefined || !rule.values.includes(value)) return false
        break
      case 'NotIn':
        if (value !== undefined && rule.values.includes(value)) return false
        break
      case 'Exists':
        if (value === undefined) return false
        break
      case 'DoesNotExist':
        if (value !== undefined) return false
        break
    }
  }
  return true
}

/** kubectl's `-l` form: `a=b,c!=d,e,!f`. Returns null and never a partial selector when it cannot be read. */
export function parseSelectorText(text: string): LabelSelector | null {
  const matchExpressions: NonNullable<LabelSelector['matchExpressions']> = []
  for (const part of text.split(',').map((piece) => piece.trim())) {
    if (part === '') return null
    const match = /^(?:(!)\s*([^\s=!]+)|([^\s=!]+)(?:\s*(==|=|!=)\s*(\S*))?)$/.exec(part)
    if (!match) return null
    const [, not, absentKey, key, operator, value = ''] = match
    const name = not ? absentKey : key
    if (name === undefined || !LABEL_KEY.test(name) || !LABEL_VALUE.test(value)) return null
    if (not) matchExpressions.push({ key: name, operator: 'DoesNotExist' })
    else if (operator === undefined) matchExpressions.push({ key: name, operator: 'Exists' })
    else matchExpressions.push({ key: name, operator: operator === '!=' ? 'NotIn' : 'In', values: [value] })
  }
  return { matchExpressions }
}
