// Kubernetes label selectors: schema and matching. One meaning everywhere: targets, -l on the command line, list
// filters.
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
  matchLabels: labelsSchema.optional().describe('Labels that must all have exactly these values: {region: eu}.'),
  matchExpressions: z
    .array(requirement)
    .optional()
    .describe(
      'Conditions that must all hold: {key: tier, operator: In, values: [gold, silver]}; operators are In, NotIn, Exists and DoesNotExist.',
    ),
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

/** A selector as kubectl's `-l` takes it; '' matches everything. */
export const selectorText = ({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string =>
  [
    ...Object.keys(matchLabels)
      .sort()
      .map((key) => `${key}=${matchLabels[key]}`),
    ...matchExpressions.map((rule) => {
      switch (rule.operator) {
        case 'Exists':
          return rule.key
        case 'DoesNotExist':
          return `!${rule.key}`
        default:
          return `${rule.key} ${rule.operator.toLowerCase()} (${rule.values.join(',')})`
      }
    }),
  ].join(',')

/** kubectl's `-l` form: `a=b,c!=d,e,!f,g in (x,y),h notin (z)`. Returns null and never a partial selector when it
 *  cannot be read. */
export function parseSelectorText(text: string): LabelSelector | null {
  const matchExpressions: NonNullable<LabelSelector['matchExpressions']> = []
  // Commas in parentheses part values, others part requirements.
  for (const part of text.split(/,(?![^(]*\))/).map((piece) => piece.trim())) {
    const rule = parseRequirement(part)
    if (rule === null) return null
    matchExpressions.push(rule)
  }
  return { matchExpressions }
}

const SET_BASED = /^([^\s=!()]+)\s+(in|notin)\s*\(([^()]*)\)$/
const EQUALITY_BASED = /^(?:(!)\s*([^\s=!()]+)|([^\s=!()]+)(?:\s*(==|=|!=)\s*(\S*))?)$/

function parseRequirement(part: string): NonNullable<LabelSelector['matchExpressions']>[number] | null {
  const set = SET_BASED.exec(part)
  if (set !== null) {
    const [, key = '', operator, list = ''] = set
    const values = list.split(',').map((value) => value.trim())
    if (!LABEL_KEY.test(key) || !values.every((value) => LABEL_VALUE.test(value))) return null
    return { key, operator: operator === 'in' ? 'In' : 'NotIn', values }
  }
  const match = EQUALITY_BASED.exec(part)
  if (!match) return null
  const [, not, absentKey, key, operator, value = ''] = match
  const name = not ? absentKey : key
  if (name === undefined || !LABEL_KEY.test(name) || !LABEL_VALUE.test(value)) return null
  if (not) return { key: name, operator: 'DoesNotExist' }
  return operator === undefined
    ? { key: name, operator: 'Exists' }
    : { key: name, operator: operator === '!=' ? 'NotIn' : 'In', values: [value] }
}
