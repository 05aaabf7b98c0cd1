// Questions to a cluster. The server puts signed `ask` frames into the answer of an open poll; the agent answers to
// POST answers/:id, part by part. Nothing of it is stored. A poll with `asks=NONCE` says that the agent takes
// questions: older agents do not send it, and older servers leave it unread.
import { z } from 'zod'
import { canonicalJson, sha256Hex } from '../kube/canonical.ts'
import { signatureSchema } from '../runtime/signatures.ts'
import { AGENT_API } from './routes.ts'

export const ASK_PARAM = 'asks'
/** 64 random bits, base64url without padding: a frame answers this poll and no other, so none can be replayed. */
export const ASK_NONCE = /^[A-Za-z0-9_-]{11}$/
export const ANSWERS = `${AGENT_API}/answers`
/** First bytes of an answer to a poll that has questions in place of a page. */
export const ASK_FRAME_BEGINS = '{"t":"ask"'

/** Largest frame: a dry run carries objects. */
export const ASK_FRAME_BYTES_MAX = 1_280 * 1_024
export const ASK_FRAMES_MAX = 64
/** Largest part of an answer, inflated: it has at least one line, and an object is one line. */
export const ANSWER_PART_BYTES_MAX = 4 * 1_024 * 1_024
/** Size that agents aim at for a part of an answer. */
export const ANSWER_PART_BYTES = 256 * 1_024
/** A part without lines tells the server that the answer goes on, and the agent that somebody still waits. */
export const ANSWER_SILENCE_MS = 5_000
/** How long the server holds a part that its reader has no room for, below the patience of agents. */
export const ANSWER_HOLD_MS = 15_000

const name = z
  .string()
  .min(1)
  .max(253)
  .regex(/^[A-Za-z0-9]([-A-Za-z0-9_.:]*[A-Za-z0-9])?$/)
const namespace = z.union([z.literal(''), z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/)])
const group = z
  .string()
  .max(253)
  .regex(/^[a-z0-9.-]*$/)
const kindName = z
  .string()
  .max(63)
  .regex(/^[A-Za-z][A-Za-z0-9]*$/)

export const askedRefSchema = z.strictObject({
  group: group.describe('API group; empty for the core group.'),
  kind: kindName,
  namespace: namespace.describe('Empty for objects outside namespaces.'),
  name,
})
export type AskedRef = z.infer<typeof askedRefSchema>

const serviceSchema = z.strictObject({ project: name, service: name })

export const LOG_TAIL_MAX = 1_000_000
export const questionSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('object'),
    ref: askedRefSchema,
    managedFields: z.boolean().optional().describe('Include metadata.managedFields.'),
  }),
  z.strictObject({ kind: z.literal('tree'), ref: askedRefSchema }),
  z.strictObject({ kind: z.literal('events'), ref: askedRefSchema }),
  z.strictObject({
    kind: z.literal('logs'),
    ref: askedRefSchema.describe('A Pod, or a workload, whose Pods are read.'),
    container: name.optional().describe('Default: every container.'),
    follow: z.boolean().optional(),
    previous: z.boolean().optional().describe('Read the run before the present one.'),
    sinceSeconds: z.int().min(1).max(31_536_000).optional(),
    tailLines: z.int().min(0).max(LOG_TAIL_MAX).optional(),
    timestamps: z.boolean().optional(),
  }),
  z.strictObject({ kind: z.literal('restart'), ref: askedRefSchema.describe('A Deployment, StatefulSet or DaemonSet.') }),
  z.strictObject({ kind: z.literal('diff'), service: serviceSchema, ref: askedRefSchema.optional() }),
  z.strictObject({
    kind: z.literal('dryRun'),
    service: serviceSchema,
    objects: z
      .array(z.looseObject({ apiVersion: z.string(), kind: z.string() }))
      .max(2_000)
      .optional()
      .describe('Manifests to try; default: the objects of the revision that the agent holds.'),
  }),
  z.strictObject({ kind: z.literal('nodes') }),
])
export type Question = z.infer<typeof questionSchema>
export type QuestionKind = Question['kind']
export const QUESTION_KINDS = ['object', 'tree', 'events', 'logs', 'restart', 'diff', 'dryRun', 'nodes'] as const satisfies QuestionKind[]

/** Body of POST /clusters/:name/ask. */
export const askRequestSchema = z.strictObject({
  question: questionSchema,
  within: serviceSchema
    .optional()
    .describe('Confine the question to objects of this service and their children; needed without a right on the cluster.'),
})
export type AskRequest = z.infer<typeof askRequestSchema>

/** A frame as an agent reads it. A question of a kind that it does not know is answered as such. */
export const askFrameSchema = z.looseObject({
  t: z.literal('ask'),
  id: z.string().regex(/^[A-Za-z0-9_-]{22}$/),
  /** As in the checkpoint (CU2a). */
  epoch: z.int().positive(),
  question: z.looseObject({ kind: z.string().max(64) }),
  within: serviceSchema.nullable(),
  who: z.object({ kind: z.string().max(32), id: z.string().max(320), name: z.string().max(320) }),
  /** The answer ends at these limits. */
  bytesMax: z.int().positive(),
  msMax: z.int().positive(),
  signature: signatureSchema,
})
export type AskFrame = z.infer<typeof askFrameSchema>

/** Members that this version does not know are signed, too. */
export const askBytes = (clusterId: string, nonce: string, { signature: _, ...frame }: Record<string, unknown>): Uint8Array =>
  new TextEncoder().encode(['skerry-ask-v1', clusterId, nonce, sha256Hex(canonicalJson(frame))].join('\n'))

const answeredRefSchema = z.object({ group: z.string(), kind: z.string(), namespace: z.string(), name: z.string() })
const fieldSchema = z.object({
  path: z.string(),
  desired: z.unknown().optional(),
  live: z.unknown().optional(),
  managers: z.array(z.string()).optional(),
  /** When the first of them wrote last; the API server keeps no time for a single field. */
  writtenMs: z.number().int().optional(),
})

/** Lines of an answer. `end` or `failed` is the last one. */
export const answerLineSchema = z.discriminatedUnion('t', [
  z.looseObject({ t: z.literal('object'), object: z.unknown(), masked: z.array(z.string()).describe('Paths of hidden values.') }),
  z.looseObject({
    t: z.literal('child'),
    ref: answeredRefSchema,
    uid: z.string(),
    parent: z.string().nullable(),
    health: z.string(),
    reason: z.string(),
    message: z.string(),
  }),
  z.looseObject({
    t: z.literal('event'),
    type: z.string(),
    reason: z.string(),
    message: z.string(),
    count: z.number(),
    at: z.string(),
    source: z.string(),
  }),
  z.looseObject({ t: z.literal('log'), pod: z.string(), container: z.string(), text: z.string().describe('Whole lines.') }),
  z.looseObject({ t: z.literal('restarted'), ref: answeredRefSchema, at: z.string() }),
  z.looseObject({
    t: z.literal('diff'),
    ref: answeredRefSchema,
    state: z.enum(['same', 'changed', 'missing', 'unreadable']),
    fields: z.array(fieldSchema),
    message: z.string().optional(),
  }),
  z.looseObject({
    t: z.literal('dryRun'),
    ref: answeredRefSchema,
    result: z.enum(['created', 'changed', 'unchanged', 'refused']),
    message: z.string().optional(),
    fields: z.array(fieldSchema).optional(),
  }),
  z.looseObject({
    t: z.literal('node'),
    name: z.string(),
    ready: z.boolean(),
    version: z.string(),
    capacity: z.record(z.string(), z.string()),
    allocatable: z.record(z.string(), z.string()),
    requested: z.record(z.string(), z.number()),
    pods: z.number(),
    problems: z.array(z.string()),
  }),
  z.looseObject({ t: z.literal('note'), message: z.string() }),
  z.looseObject({ t: z.literal('failed'), code: z.string(), message: z.string(), remedy: z.string().optional() }),
  z.looseObject({ t: z.literal('end'), truncated: z.enum(['bytes', 'time']).optional() }),
])
export type AnswerLine = z.infer<typeof answerLineSchema>
export type AnswerLineOf<T extends AnswerLine['t']> = Extract<AnswerLine, { t: T }>
export const isLast = ({ t }: AnswerLine): boolean => t === 'end' || t === 'failed'

/** Codes of a site in `failed`, in addition to codes of this server. */
export const ASK_REFUSALS = {
  policy: 'local_policy',
  unknown: 'question_unknown',
  notFound: 'object_not_found',
  outside: 'outside_service',
  forbidden: 'agent_forbidden',
  failed: 'question_failed',
  busy: 'agent_busy',
} as const

/** The reply to a part: whether it was taken, or is to be sent again because the reader has no room yet. */
export const partAnswerSchema = z.object({ taken: z.boolean() })
