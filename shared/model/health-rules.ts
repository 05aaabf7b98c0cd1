// Schemas of health in CEL over the fields of an object: `health` of a service, as in Flux's healthCheckExprs, and the
// spec of a HealthRule.
import { z } from 'zod'
import { VERDICTS, type Verdict } from '../kube/fleet-rule.ts'
import { isMapping } from './sources.ts'

const celSchema = z.string().min(1).max(1_024)
const kindSchema = z.string().min(1).max(63)

/** The first that is true counts, in the order failed, inProgress, current; none is Progressing. */
export const serviceHealthSchema = z.strictObject({
  apiVersion: z.string().min(1).max(317).describe('API version of the kind: example.com/v1.'),
  kind: kindSchema.describe('Kind of the objects.'),
  current: celSchema.describe("CEL expression that is true for a healthy object: status.phase == 'Ready'."),
  inProgress: celSchema.optional().describe('CEL expression that is true while the object is Progressing; evaluated before current.'),
  failed: celSchema.optional().describe('CEL expression that is true for a Degraded object; evaluated first.'),
})
export type ServiceHealth = z.infer<typeof serviceHealthSchema>

const verdictShape = {
  when: celSchema.describe("CEL expression over the fields of the object, true or false: status.phase == 'Failed'."),
  message: z.string().min(1).max(500).optional().describe('Message for the status of the object.'),
  messageExpression: celSchema.optional().describe("CEL expression for the message, instead of message: 'phase is ' + status.phase."),
}
const verdictSchema = z
  .strictObject(verdictShape)
  .refine(({ message, messageExpression }) => message === undefined || messageExpression === undefined, {
    message: 'expected message or messageExpression, not both',
    path: ['messageExpression'],
    when: isMapping,
  })
export type HealthVerdict = z.infer<typeof verdictSchema>

const specShape = {
  group: z.string().max(253).describe('API group of the kind, such as example.com; "" is the core group.'),
  kind: kindSchema.describe('Kind of the objects.'),
  versions: z
    .array(z.string().min(1).max(63))
    .min(1)
    .max(20)
    .optional()
    .describe('Only objects in these API versions, such as v1beta1. Default: all versions.'),
  degraded: verdictSchema.optional().describe('Condition for Degraded; evaluated first.'),
  suspended: verdictSchema.optional().describe('Condition for Suspended; evaluated second.'),
  progressing: verdictSchema.optional().describe('Condition for Progressing; evaluated third.'),
  healthy: verdictSchema
    .optional()
    .describe(
      'Condition for Healthy; evaluated last. If no condition is true, the object is Progressing; without healthy, the next rule decides.',
    ),
}

export const healthRuleSpecSchema = z
  .strictObject(specShape)
  .refine((spec) => VERDICTS.some((verdict) => spec[verdict] !== undefined), {
    message: `expected at least one of ${VERDICTS.join(', ')}`,
    when: isMapping,
  })
  .refine(({ group, kind }) => group !== '' || kind !== 'Secret', {
    message: 'Secrets have no health, and a rule could reveal their data',
    path: ['kind'],
    when: isMapping,
  })
export type HealthRuleSpec = z.infer<typeof healthRuleSpecSchema>

/** The document of a `healthrule/…` row. A newer server may say more; what this version does not know is left out. */
export const healthRuleRowSchema = z.object({
  ...specShape,
  ...Object.fromEntries(VERDICTS.map((verdict) => [verdict, z.object(verdictShape).optional()])),
} as Omit<typeof specShape, Verdict> & Record<Verdict, z.ZodOptional<z.ZodObject<typeof verdictShape>>>)
