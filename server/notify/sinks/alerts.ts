// PagerDuty and Opsgenie: the group is one alert, which ends when all is well again. And the generic webhook:
// CloudEvents 1.0, signed.
import { createHmac } from 'node:crypto'
import { cut, jsonOf, request } from './http.ts'
import { type Message, type Sink, secretOf } from './sink.ts'

const PAGERDUTY_SEVERITY = { info: 'info', warning: 'warning', critical: 'critical' } as const
const SUMMARY_MAX = 1_024

const details = ({ reason, project, service, after, active, total, members }: Message) => ({
  reason,
  project,
  service,
  after,
  active,
  total,
  members: members.slice(0, 50),
})

/** Events API v2; the dedup_key is the group, so that a repeated or a later request changes the alert that is there. */
export const pagerduty: Sink = async (message, sending) => {
  const { url = 'https://events.pagerduty.com' } = sending.spec.pagerduty ?? {}
  const head = { routing_key: secretOf(sending, 'routingKey'), dedup_key: message.groupId }
  const body = message.resolved
    ? { ...head, event_action: 'resolve' }
    : {
        ...head,
        event_action: 'trigger',
        client: 'Skerry',
        client_url: message.url,
        links: [{ href: message.url, text: 'Open in Skerry' }],
        payload: {
          summary: cut(message.title, SUMMARY_MAX),
          source: message.service ?? message.members[0] ?? 'skerry',
          severity: PAGERDUTY_SEVERITY[message.severity],
          timestamp: new Date(message.firstMs).toISOString(),
          ...(message.service === null ? {} : { component: `${message.project}/${message.service}` }),
          class: message.reason,
          custom_details: { ...details(message), text: message.text },
        },
      }
  const answer = await request(sending, { url: `${url}/v2/enqueue`, body })
  return { ref: message.groupId, detail: String(jsonOf(answer)['message'] ?? 'taken') }
}

const OPSGENIE_PRIORITY = { info: 'P5', warning: 'P3', critical: 'P1' } as const

/** Alert API: the alias is the group; Opsgenie itself drops what it has. */
export const opsgenie: Sink = async (message, sending) => {
  const { url = 'https://api.opsgenie.com' } = sending.spec.opsgenie ?? {}
  const headers = { authorization: `GenieKey ${secretOf(sending, 'apiKey')}` }
  if (message.resolved) {
    const address = `${url}/v2/alerts/${encodeURIComponent(message.groupId)}/close?identifierType=alias`
    await request(sending, { url: address, headers, body: { source: 'Skerry', note: message.title } }, [404])
    return { ref: message.groupId, detail: 'alert closed' }
  }
  const body = {
    message: cut(message.title, 130),
    alias: message.groupId,
    description: cut(`${message.text}\n${message.url}`, 15_000),
    priority: OPSGENIE_PRIORITY[message.severity],
    source: 'Skerry',
    tags: ['skerry', message.reason, ...(message.service === null ? [] : [`${message.project}/${message.service}`])],
    details: Object.fromEntries(
      Object.entries(details(message)).flatMap(([name, value]) =>
        value === null ? [] : [[name, Array.isArray(value) ? value.join(', ') : String(value)]],
      ),
    ),
  }
  const answer = await request(sending, { url: `${url}/v2/alerts`, headers, body })
  return { ref: message.groupId, detail: String(jsonOf(answer)['result'] ?? 'taken') }
}

export const SIGNATURE_HEADER = 'x-skerry-signature'

/** CloudEvents 1.0, structured mode. The signature covers the time and the body, so that a request that was recorded is
 *  worthless later. */
export const webhook: Sink = async (message, sending) => {
  const url = sending.spec.webhook?.url ?? secretOf(sending, 'url')
  const body = JSON.stringify({
    specversion: '1.0',
    id: message.dedupeKey,
    source: '/skerry',
    type: `dev.skerry.notification.${message.resolved ? 'resolved' : 'firing'}`,
    subject: message.groupId,
    time: new Date(message.lastMs).toISOString(),
    datacontenttype: 'application/json',
    data: {
      ...{ title: message.title, text: message.text, severity: message.severity, resolved: message.resolved, version: message.version },
      ...{ ...details(message), members: message.members, url: message.url },
      ...{ firstAt: new Date(message.firstMs).toISOString(), lastAt: new Date(message.lastMs).toISOString() },
    },
  })
  const { hmac, token } = sending.secrets
  const headers: Record<string, string> = {
    'content-type': 'application/cloudevents+json; charset=utf-8',
    'idempotency-key': message.dedupeKey,
  }
  if (token !== undefined) headers['authorization'] = `Bearer ${token.trim()}`
  if (hmac !== undefined) headers[SIGNATURE_HEADER] = signature(hmac.trim(), Math.floor(sending.nowMs / 1_000), body)
  const answer = await request(sending, { url, headers, body })
  return { ref: message.groupId, detail: `answered ${answer.status}` }
}

/** `t=SECONDS,v1=HEX`: HMAC-SHA256 over `SECONDS.BODY`. */
export const signature = (key: string, seconds: number, body: string): string =>
  `t=${seconds},v1=${createHmac('sha256', key).update(`${seconds}.${body}`).digest('hex')}`
