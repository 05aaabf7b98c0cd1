// The resources of notifications: a NotificationSink is a place that receives messages, a NotificationRoute decides
// which events become messages there.
import { z } from 'zod'
import { durationMs, durationSchema } from '../runtime/durations.ts'
import { nameSchema } from '../runtime/ids.ts'
import { API_VERSION } from './constants.ts'
import { labelSelectorSchema, labelsSchema } from './labels.ts'
import { isMapping } from './sources.ts'

export const SEVERITIES = ['info', 'warning', 'critical'] as const
export type Severity = (typeof SEVERITIES)[number]
export const SINK_TYPES = [
  ...['slack', 'teams', 'discord', 'webhook', 'email', 'pagerduty', 'opsgenie'],
  ...['github', 'gitlab', 'gitea'],
] as unknown as readonly SinkType[]
export type SinkType = keyof typeof sinkShape
/** Types that write the state of a commit; no route names them. */
export const FORGE_TYPES = ['github', 'gitlab', 'gitea'] as const
export type ForgeType = (typeof FORGE_TYPES)[number]

const webUrl = z
  .string()
  .max(2_048)
  .regex(/^https?:\/\/[^\s/@]+(\/\S*)?$/, 'expected an http:// or https:// URL without a user name')
const address = z
  .string()
  .max(320)
  .regex(/^[^\s@<>,;"]+@[^\s@<>,;"]+$/, 'expected an e-mail address')
const at = (url: string) => webUrl.optional().describe(`Address of the API. Default ${url}.`)

const forge = (url: string | null) =>
  z.strictObject({
    source: nameSchema.describe('Repository resource of the same project whose commits get the status.'),
    repository: z
      .string()
      .max(255)
      .regex(/^[\w.-]+(\/[\w.-]+)+$/, 'expected owner/name')
      .describe('Name of the repository on the forge: owner/name.'),
    url:
      url === null
        ? webUrl.describe('Address of the API, such as https://git.example.com/api/v1.')
        : webUrl.default(url).describe('Address of the API.'),
    comments: z.boolean().optional().describe('Write a comment to the pull request of the commit, and update it. Default false.'),
  })

const sinkShape = {
  slack: z
    .strictObject({
      channel: z.string().min(1).max(80).optional().describe('Channel, required with a bot token: #ops, or the ID of the channel.'),
      url: at('https://slack.com/api'),
    })
    .optional()
    .describe('Slack. Secret url (incoming webhook), or token (bot token, whose messages are updated in place).'),
  teams: z.strictObject({}).optional().describe('Microsoft Teams through a workflow. Secret url: the address of the workflow.'),
  discord: z.strictObject({}).optional().describe('Discord. Secret url: the address of the webhook.'),
  webhook: z
    .strictObject({ url: webUrl.optional().describe('Address that receives the requests. Default: the secret url.') })
    .optional()
    .describe('CloudEvents 1.0 by HTTP. Secrets, each optional: url, hmac (key of the signature), token (bearer token).'),
  email: z
    .strictObject({
      host: z.string().min(1).max(253).describe('Name of the SMTP server.'),
      port: z.number().int().min(1).max(65_535).default(587).describe('Port of the SMTP server.'),
      tls: z
        .enum(['starttls', 'implicit', 'none'])
        .default('starttls')
        .describe('starttls: required before the login. implicit: TLS from the first byte. none: no encryption and no login.'),
      from: address.describe('Sender.'),
      to: z.array(address).min(1).max(50).describe('Recipients.'),
    })
    .optional()
    .describe('E-mail by SMTP. Secrets username and password, both optional.'),
  pagerduty: z
    .strictObject({ url: at('https://events.pagerduty.com') })
    .optional()
    .describe('PagerDuty Events API v2. Secret routingKey.'),
  opsgenie: z
    .strictObject({ url: at('https://api.opsgenie.com') })
    .optional()
    .describe('Opsgenie Alert API. Secret apiKey.'),
  github: forge('https://api.github.com').optional().describe('Commit status on GitHub. Secret token.'),
  gitlab: forge('https://gitlab.com/api/v4').optional().describe('Commit status on GitLab. Secret token.'),
  gitea: forge(null).optional().describe('Commit status on Gitea or Forgejo. Secret token.'),
}

export const sinkTypeOf = (spec: NotificationSinkSpec): SinkType => SINK_TYPES.find((type) => spec[type] !== undefined) as SinkType

export const notificationSinkSpecSchema = z
  .strictObject({
    ...sinkShape,
    auth: z
      .strictObject({
        secretRef: nameSchema.describe('Name of a Config in the same project; for a sink of the fleet, in project default.'),
      })
      .optional()
      .describe('Credential of the sink.'),
    paused: z.boolean().optional().describe('Hold messages back; they are delivered when this is false again. Default false.'),
  })
  .refine((spec) => SINK_TYPES.filter((type) => spec[type] !== undefined).length === 1, {
    message: 'expected exactly one of slack, teams, discord, webhook, email, pagerduty, opsgenie, github, gitlab and gitea',
    when: isMapping,
  })
  .refine((spec) => spec.auth !== undefined || spec.email !== undefined || spec.webhook?.url !== undefined, {
    message: 'this sink needs auth.secretRef: a Config with its secret',
    path: ['auth'],
    when: isMapping,
  })
export type NotificationSinkSpec = z.infer<typeof notificationSinkSpecSchema>

const timeSchema = z.string().regex(/^([01][0-9]|2[0-3]):[0-5][0-9]$/, 'expected a time of day such as 22:30')
export const DAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'] as const
export const isTimeZone = (name: string): boolean => {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

export const quietHoursSchema = z.strictObject({
  days: z.array(z.enum(DAYS)).min(1).max(7).optional().describe('Days on which the hours begin. Default: every day.'),
  from: timeSchema.describe('Begin, such as 22:00.'),
  to: timeSchema.describe('End, such as 07:00. Not later than from: on the next day.'),
  timeZone: z
    .string()
    .max(64)
    .refine(isTimeZone, 'expected a time zone of the IANA database, such as Europe/Oslo')
    .default('UTC')
    .describe('Time zone of from and to, such as Europe/Oslo.'),
  except: z.enum(SEVERITIES).default('critical').describe('Minimum severity of messages that are also sent in quiet hours.'),
})
export type QuietHours = z.infer<typeof quietHoursSchema>

export const GROUP_FIELDS = ['reason', 'project', 'service', 'cluster', 'commit'] as const
export type GroupField = (typeof GROUP_FIELDS)[number]
const groupSchema = z.strictObject({
  by: z
    .array(z.enum(GROUP_FIELDS))
    .max(GROUP_FIELDS.length)
    .default(['reason', 'project', 'service', 'commit'])
    .describe('Events with equal values in these fields are grouped into one message.'),
  wait: durationSchema
    .default('30s')
    .refine((text) => durationMs(text) <= 3_600_000, 'at most 1h')
    .describe('Time to collect events before the first message, and between two updates of it.'),
  interval: durationSchema
    .default('15m')
    .refine((text) => durationMs(text) >= 10_000, 'at least 10s')
    .describe('Time between two messages of one group where a sink cannot update the first one.'),
  max: z.number().int().min(1).max(100).default(8).describe('New messages in one interval. All further events go into one digest.'),
})

const reasonPattern = z
  .string()
  .max(64)
  .regex(/^[A-Z][A-Za-z]*\*?$|^\*$/, 'expected the reason of an event such as Degraded, a prefix such as Prune*, or *')
const namePattern = z
  .string()
  .max(63)
  .regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$|^([a-z0-9][-a-z0-9]{0,61})?\*$/, 'expected a name, or a prefix with *, such as shop-*')

export const notificationRouteSpecSchema = z.strictObject({
  sinks: z.array(nameSchema).min(1).max(10).describe('NotificationSinks of the same project, or of the fleet for a route of the fleet.'),
  events: z
    .array(reasonPattern)
    .min(1)
    .max(50)
    .optional()
    .describe('Reasons of events, such as Degraded or Prune*. Default: all of the severity.'),
  severity: z.enum(SEVERITIES).default('warning').describe('Minimum severity: info, warning or critical.'),
  projects: z
    .array(namePattern)
    .min(1)
    .max(100)
    .optional()
    .describe('Projects: names, or shop-*. Only in a route of the fleet. Default: all.'),
  services: z.array(namePattern).min(1).max(100).optional().describe('Services: names, or shop-*. Default: all, and events of no service.'),
  clusters: labelSelectorSchema.optional().describe('Labels of the clusters. Default: all, and events of no cluster.'),
  group: groupSchema.default(() => groupSchema.parse({})).describe('Grouping of events into messages.'),
  resolved: z.boolean().default(true).describe('Send a message when the events are resolved.'),
  quietHours: z
    .array(quietHoursSchema)
    .max(20)
    .optional()
    .describe('Times in which messages are held back until the end of the quiet hours.'),
  template: z
    .strictObject({
      title: z.string().min(1).max(2_000).optional().describe('Liquid template of the title.'),
      text: z.string().min(1).max(8_000).optional().describe('Liquid template of the text.'),
    })
    .optional()
    .describe('Liquid templates of the message. Default: a title and a text for people.'),
})
export type NotificationRouteSpec = z.infer<typeof notificationRouteSpecSchema>

const metadata = z.strictObject({
  name: nameSchema.describe('Name, unique within the project, or among those of the fleet.'),
  project: nameSchema.optional().describe('Project whose events it is for. Default: the whole fleet.'),
  labels: labelsSchema.default({}).describe('Labels of the resource, for -l.'),
})
/** A rule about two members needs both: they are looked at also where others are wrong. */
const isDocument = ({ value }: { value: unknown }): boolean =>
  isMapping({ value }) && ['metadata', 'spec'].every((member) => isMapping({ value: Object(value)[member] }))

const head = { apiVersion: z.literal(API_VERSION).describe('Version of the resource schema.') }

export const notificationSinkSchema = z
  .strictObject({
    ...head,
    kind: z.literal('NotificationSink').describe('Kind of the resource.'),
    metadata: metadata.describe('Name, project and labels.'),
    spec: notificationSinkSpecSchema.describe('Receiver of messages.'),
  })
  .refine(({ metadata: { project }, spec }) => project !== undefined || FORGE_TYPES.every((type) => spec[type] === undefined), {
    message: 'a sink for commit status needs metadata.project: the project of its Repository',
    path: ['metadata', 'project'],
    when: isDocument,
  })
export const notificationRouteSchema = z
  .strictObject({
    ...head,
    kind: z.literal('NotificationRoute').describe('Kind of the resource.'),
    metadata: metadata.describe('Name, project and labels.'),
    spec: notificationRouteSpecSchema.describe('Events, and the sinks that receive them.'),
  })
  .refine(({ metadata: { project }, spec }) => project === undefined || spec.projects === undefined, {
    message: 'a route of a project has the events of that project only; leave projects out',
    path: ['spec', 'projects'],
    when: isDocument,
  })
export type NotificationSinkResource = z.infer<typeof notificationSinkSchema>
export type NotificationRouteResource = z.infer<typeof notificationRouteSchema>
