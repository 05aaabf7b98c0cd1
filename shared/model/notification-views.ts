// Notifications as the admin API shows them: the two resources, and the messages that were sent, wait, or failed.
import { z } from 'zod'
import { notificationRouteSpecSchema, notificationSinkSpecSchema, SEVERITIES, SINK_TYPES } from './notifications.ts'
import { resourceHead } from './resource-head.ts'

const ms = z.number().int()

/** `waiting`: the first message is collected or held. `failed`: it will be tried again. `dead`: it is not tried again
 *  by itself. */
export const NOTIFICATION_STATES = ['waiting', 'delivered', 'failed', 'dead'] as const

export const notificationViewSchema = z.object({
  id: z.string(),
  /** Project of the route; null means the fleet. */
  project: z.string().nullable(),
  /** Null for a commit status and for a test. */
  route: z.string().nullable(),
  sink: z.string(),
  type: z.enum(SINK_TYPES),
  state: z.enum(NOTIFICATION_STATES),
  severity: z.enum(SEVERITIES),
  reason: z.string(),
  title: z.string(),
  /** Clusters, services or objects that it is about now, and that it was about. */
  active: ms,
  total: ms,
  /** The first of those that it is about. */
  members: z.array(z.string()),
  resolved: z.boolean(),
  attempts: ms,
  error: z.string().nullable(),
  createdMs: ms,
  updatedMs: ms,
  sentMs: ms.nullable(),
  /** When it is sent or tried again. Null means that nothing is left to send. */
  nextMs: ms.nullable(),
})
export type NotificationView = z.infer<typeof notificationViewSchema>

export const notificationSinkViewSchema = z.object({
  ...resourceHead,
  kind: z.literal('NotificationSink'),
  spec: notificationSinkSpecSchema,
  status: z.object({
    type: z.enum(SINK_TYPES),
    waiting: ms,
    dead: ms,
    lastSentMs: ms.nullable(),
    /** Error of the newest message that failed; null when a later one was delivered. */
    error: z.string().nullable(),
  }),
})
export type NotificationSinkView = z.infer<typeof notificationSinkViewSchema>

export const notificationRouteViewSchema = z.object({
  ...resourceHead,
  kind: z.literal('NotificationRoute'),
  spec: notificationRouteSpecSchema,
  status: z.object({
    /** Sinks of the route that do not exist. */
    missingSinks: z.array(z.string()),
    open: ms,
  }),
})
export type NotificationRouteView = z.infer<typeof notificationRouteViewSchema>

export const notificationTestAnswerSchema = z.object({
  delivered: z.boolean(),
  durationMs: ms,
  /** Answer of the receiver, or why nothing was delivered. */
  detail: z.string(),
})
export type NotificationTestAnswer = z.infer<typeof notificationTestAnswerSchema>
