// The sinks by type, and what each can do with a message that is there.
import { FORGE_TYPES, type ForgeType, type NotificationSinkSpec, type SinkType } from '../../../shared/model/notifications.ts'
import { opsgenie, pagerduty, webhook } from './alerts.ts'
import { discord, slack, teams } from './chats.ts'
import { email } from './email.ts'
import type { Sink } from './sink.ts'

export const SINKS: Readonly<Record<Exclude<SinkType, ForgeType>, Sink>> = { slack, teams, discord, webhook, email, pagerduty, opsgenie }

export const isForge = (type: SinkType): type is ForgeType => FORGE_TYPES.some((one) => one === type)

/** Whether a later version changes the message that people have; the others send a new one, and that less often. */
export const updatesMessages = (spec: NotificationSinkSpec): boolean =>
  spec.discord !== undefined || spec.pagerduty !== undefined || spec.opsgenie !== undefined || spec.slack?.channel !== undefined

/** Where the secrets of a sink go. Null means that only to the address that is itself among them. */
export function credentialUrl(spec: NotificationSinkSpec): string | null {
  const { slack: toSlack, webhook: toWebhook, email: toEmail, pagerduty: toPager, opsgenie: toOpsgenie } = spec
  if (toSlack !== undefined) return toSlack.channel === undefined ? null : (toSlack.url ?? 'https://slack.com/api')
  if (toWebhook !== undefined) return toWebhook.url ?? null
  if (toEmail !== undefined) return `smtp://${toEmail.host}:${toEmail.port}`
  if (toPager !== undefined) return toPager.url ?? 'https://events.pagerduty.com'
  if (toOpsgenie !== undefined) return toOpsgenie.url ?? 'https://api.opsgenie.com'
  return FORGE_TYPES.map((type) => spec[type]?.url).find((url) => url !== undefined) ?? null
}
