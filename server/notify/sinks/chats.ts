// Slack, Microsoft Teams and Discord. Slack with a bot token and Discord change the message that is there; the others
// get a new one.
import { cut, jsonOf, redacted, refusal, request } from './http.ts'
import { type Message, type Sending, type Sent, type Sink, SinkError, secretOf } from './sink.ts'

const COLOURS = { info: 0x2e7d32, warning: 0xed6c02, critical: 0xd32f2f } as const
const GREEN = 0x2e7d32
const colourOf = ({ resolved, severity }: Message): number => (resolved ? GREEN : COLOURS[severity])
/** Slack takes 150 characters in a header, Discord 256 in a title and more than 2,000 in a text. */
const TITLE_MAX = 150
/** Slack counts the characters of a section as they are sent, with its markup escaped. */
const SECTION_CHARS_MAX = 3_000
const SECTIONS_MAX = 5

/** Slack reads &, < and > as markup, and `<!channel>` calls everybody. */
const slackText = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** Sections of the text, each within the limit of Slack; the end of a longer text is left out. */
function slackSections(text: string): string[] {
  const sections: string[] = []
  let section = ''
  for (const char of text) {
    const escaped = slackText(char)
    if (section.length + escaped.length >= SECTION_CHARS_MAX) {
      if (sections.length === SECTIONS_MAX - 1) return [...sections, `${section}…`]
      sections.push(section)
      section = ''
    }
    section += escaped
  }
  return section.trim() === '' ? sections : [...sections, section]
}

function slackMessage(message: Message) {
  const title = cut(message.title, TITLE_MAX)
  return {
    text: slackText(message.title),
    attachments: [
      {
        color: `#${colourOf(message).toString(16).padStart(6, '0')}`,
        blocks: [
          { type: 'header', text: { type: 'plain_text', text: title, emoji: false } },
          ...slackSections(message.text).map((text) => ({ type: 'section', text: { type: 'mrkdwn', text } })),
          { type: 'context', elements: [{ type: 'mrkdwn', text: `<${message.url}|Skerry> · ${message.severity}` }] },
        ],
      },
    ],
    unfurl_links: false,
  }
}

/** chat.postMessage and chat.update with a bot token; an incoming webhook takes the same message and cannot change it.
 */
export const slack: Sink = async (message, sending) => {
  const body = slackMessage(message)
  if (sending.secrets['token'] === undefined) {
    await request(sending, { url: secretOf(sending, 'url'), body })
    return { ref: null, detail: 'sent by incoming webhook' }
  }
  const { channel, url = 'https://slack.com/api' } = sending.spec.slack ?? {}
  if (channel === undefined) throw new SinkError('spec.slack.channel is required with a bot token', { retryable: false })
  const [heldChannel, ts] = sending.ref?.split(' ') ?? []
  if (heldChannel !== undefined && ts !== undefined) {
    const updated = await slackCall(sending, `${url}/chat.update`, { channel: heldChannel, ts, ...body }, NO_LONGER_THERE)
    if (updated !== null) return updated
  }
  const posted = await slackCall(sending, `${url}/chat.postMessage`, { channel, ...body })
  if (posted === null) throw new SinkError('slack posted nothing', { retryable: true })
  return posted
}

/** Somebody deleted the message, or it can no longer be changed: it is posted anew. */
const NO_LONGER_THERE: readonly unknown[] = ['message_not_found', 'cant_update_message', 'edit_window_closed']

/** Slack says what is wrong in a body with status 200. Null means one of the `allowed` errors. */
async function slackCall(sending: Sending, url: string, body: object, allowed: readonly unknown[] = []): Promise<Sent | null> {
  const headers = { authorization: `Bearer ${secretOf(sending, 'token')}`, 'content-type': 'application/json; charset=utf-8' }
  const answer = await request(sending, { url, headers, body })
  const { ok, error, channel, ts } = jsonOf(answer)
  if (ok === true && typeof channel === 'string' && typeof ts === 'string') return { ref: `${channel} ${ts}`, detail: `sent to ${channel}` }
  if (allowed.includes(error)) return null
  if (error === 'ratelimited') throw refusal('slack', { ...answer, status: 429 }, sending)
  const retryable = error === 'internal_error' || error === 'service_unavailable' || error === 'request_timeout'
  throw new SinkError(`slack answered ${redacted(String(error ?? 'without ok'), sending.secrets)}`, { retryable })
}

/** A workflow that posts to a channel takes an Adaptive Card; connectors of Office 365 are gone. */
export const teams: Sink = async (message, sending) => {
  const card = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.4',
    msteams: { width: 'Full' },
    body: [
      {
        type: 'TextBlock',
        text: message.title,
        size: 'Medium',
        weight: 'Bolder',
        wrap: true,
        color: message.resolved
          ? 'Good'
          : message.severity === 'critical'
            ? 'Attention'
            : message.severity === 'warning'
              ? 'Warning'
              : 'Default',
      },
      ...(message.text === '' ? [] : [{ type: 'TextBlock', text: message.text.replaceAll('\n', '\n\n'), wrap: true }]),
      {
        type: 'FactSet',
        facts: [
          { title: 'Severity', value: message.severity },
          { title: 'Reason', value: message.reason },
        ],
      },
    ],
    actions: [{ type: 'Action.OpenUrl', title: 'Open in Skerry', url: message.url }],
  }
  const attachments = [{ contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null, content: card }]
  await request(sending, { url: secretOf(sending, 'url'), body: { type: 'message', attachments } })
  return { ref: null, detail: 'accepted by the workflow' }
}

export const discord: Sink = async (message, sending) => {
  const url = new URL(secretOf(sending, 'url'))
  const body = {
    // Nobody is called by a name in a message.
    allowed_mentions: { parse: [] },
    embeds: [
      {
        title: cut(message.title, 256),
        description: cut(message.text, 2_000),
        url: message.url,
        color: colourOf(message),
        timestamp: new Date(message.lastMs).toISOString(),
        footer: { text: `Skerry · ${message.severity}` },
      },
    ],
  }
  const held = sending.ref
  if (held !== null) {
    const edited = new URL(url)
    edited.pathname = `${url.pathname.replace(/\/$/, '')}/messages/${encodeURIComponent(held)}`
    const answer = await request(sending, { url: edited.href, method: 'PATCH', body }, [404])
    if (answer.status !== 404) return { ref: held, detail: 'message updated' }
  }
  url.searchParams.set('wait', 'true')
  const { id } = jsonOf(await request(sending, { url: url.href, body }))
  return { ref: typeof id === 'string' ? id : null, detail: 'message sent' }
}
