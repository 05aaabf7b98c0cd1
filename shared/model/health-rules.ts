// How people write the health of a kind, in CEL over the members of an object: the `health` of a service, in the words of Flux's healthCheckExprs, and the spec of a HealthRule.
import { z } from 'zod'
import { isMapping } from './sources.ts'

const celSchema = z.string().min(1).max(1_024)
const kindSchema = z.string().min(1).max(63)

/** The first that is true counts, in the order failed, inProgress, current; none is Progressing. */
export const serviceHealthSchema = z.strictObject({
  apiVersion: z.string().min(1).max(317).describe('API version of the kind: example.com/v1.'),
  kind: kindSchema.describe('The kind whose health it tells.'),
  current: celSchema.describe("CEL that is true of a healthy object: status.phase == 'Ready'."),
  inProgress: celSchema.optional().describe('CEL that is true while it is Progressing; asked before current.'),
  failed: celSchema.optional().describe('CEL that is true when it is Degraded; asked before the two others.'),
})
export type ServiceHealth = z.infer<typeof serviceHealthSchema>

const verdictShape = {
  when: celSchema.describe("CEL over the members of the object that is true or false: status.phase == 'Failed'."),
  message: z.string().min(1).max(500).optional().describe('What the status of the object says then.'),
  messageExpression: celSchema.optional().describe("CEL that makes the message, as text: 'phase is ' + status.phase. Instead of message."),
}
const verdictSchema = z
  .strictObject(verdictShape)
  .refine(({ message, messageExpression }) => message === undefined || messageExpression === undefined, {
    message: 'expected message or messageExpression, not both',
    path: ['messageExpression'],
    when: isMapping,
  })
export type HealthVerdict = z.infer<typeof verdictSchema>

/** In the order in which they are asked. A suspended object often looks unready, too, so that `suspended` comes before `progressing`. */
export const VERDICTS = ['degraded', 'suspended', 'progressing', 'healthy'] as const
export type Verdict = (typeof VERDICTS)[number]

const specShape = {
  group: z.string().max(253).describe('API group of the kind, such as example.com; "" is the core group.'),
  kind: kindSchema.describe('Kind of the objects that are judged.'),
  versions: z
    .array(z.string().min(1).max(63))
    .min(1)
    .max(20)
    .optional()
    .describe('Only objects in these API versions, such as v1beta1. Default: all versions.'),
  degraded: verdictSchema.optional().describe('When an object is Degraded; asked first.'),
  suspended: verdictSchema.optional().describe('When an object is Suspended; asked second.'),
  progressing: verdictSchema.optional().describe('When an object is Progressing; asked third.'),
  healthy: verdictSchema
    .optional()
    .describe(
      'When an object is Healthy; asked last. An object for which none is true is Progressing; without healthy the next rule decides.',
    ),
}

export const healthRuleSpecSchema = z
  .strictObject(specShape)
  .refine((spec) => VERDICTS.some((verdict) => spec[verdict] !== undefined), {
    message: `expected at least one of ${VERDICTS.join(', ')}`,
    when: isMapping,
  })
  .refine(({ group, kind }) => group !== '' || kind !== 'Secret', {
    message: 'Secrets have no health, and a rule could show their data',
    path: ['kind'],
    when: isMapping,
  })
export type HealthRuleSpec = z.infer<typeof healthRuleSpecSchema>

/** The document of a `healthrule/…` row. A newer server may say more; what this version does not know is left out. */
export const healthRuleRowSchema = z.object({
  ...specShape,
  ...Object.fromEntries(VERDICTS.map((verdict) => [verdict, z.object(verdictShape).optional()])),
} as Omit<typeof specShape, Verdict> & Record<Verdict, z.ZodOptional<z.ZodObject<typeof verdictShape>>>)
