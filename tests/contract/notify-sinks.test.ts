// Each sink against a local server that checks the request that the receiver documents; secrets are in no error, and no
// address is reached that is not allowed.
import { afterEach, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { z } from 'zod'
import { signature } from '../../server/notify/sinks/alerts.ts'
import { SINKS } from '../../server/notify/sinks/registry.ts'
import { type Message, type Sending, SinkError } from '../../server/notify/sinks/sink.ts'
import { notificationSinkSpecSchema } from '../../shared/model/notifications.ts'
import { naming } from '../support/naming.ts'
import { type Received, type Receiver, startReceiver } from '../support/notify-kit.ts'
import { loopbackGuard } from '../support/source-guard.ts'

const MESSAGE: Message = {
  ...{
    dedupeKey: 'skerry-abcd1234-7.1',
    groupId: 'skerry-abcd1234-7',
    version: 1,
    severity: 'critical',
    reason: 'Degraded',
    resolved: false,
  },
  ...{ title: 'shop/web: 14 clusters Degraded after apps@4be19d0', text: 'web has 0 of 3 replicas <!channel> & more' },
  ...{ project: 'shop', service: 'web', after: 'apps@4be19d0', members: ['bergen', 'oslo'], active: 14, total: 14 },
  ...{ firstMs: 1_700_000_000_000, lastMs: 1_700_000_060_000, url: 'https://skerry.example/services/shop/web' },
}
const RESOLVED: Message = { ...MESSAGE, version: 2, dedupeKey: 'skerry-abcd1234-7.2', resolved: true, active: 0 }

let receiver: Receiver | null = null
afterEach(() => {
  receiver?.stop()
  receiver = null
})
function serve(answer?: (request: Received, count: number) => Response | undefined): Receiver {
  receiver = startReceiver(answer)
  return receiver
}
type Plain = keyof typeof SINKS
const send = (type: Plain, spec: object, change: Partial<Sending> & { message?: Message } = {}) => {
  const { message = MESSAGE, ...sending } = change
  return SINKS[type](message, {
    spec: notificationSinkSpecSchema.parse({ [type]: spec, auth: { secretRef: 'keys' } }),
    ...{ secrets: {}, ref: null, addresses: loopbackGuard(), signal: AbortSignal.timeout(5_000), nowMs: 1_700_000_100_000 },
    ...sending,
  })
}
const only = (): Received => {
  const [request] = receiver?.requests ?? []
  if (request === undefined) throw new Error('nothing was received')
  return request
}
const failure = async (work: Promise<unknown>): Promise<SinkError> => {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (error instanceof SinkError) return error
  throw new Error(`expected a SinkError, got ${String(error)}`)
}

/** https://docs.slack.dev/reference/methods/chat.postMessage, and Block Kit: a header of plain text up to 150
 *  characters, sections up to 3,000. */
const block = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('header'),
    text: z.strictObject({ type: z.literal('plain_text'), text: z.string().min(1).max(150), emoji: z.boolean() }),
  }),
  z.strictObject({ type: z.literal('section'), text: z.strictObject({ type: z.literal('mrkdwn'), text: z.string().min(1).max(3_000) }) }),
  z.strictObject({
    type: z.literal('context'),
    elements: z
      .array(z.strictObject({ type: z.literal('mrkdwn'), text: z.string() }))
      .min(1)
      .max(10),
  }),
])
const slackBody = z.strictObject({
  channel: z.string().optional(),
  ts: z.string().optional(),
  text: z.string().min(1).max(40_000),
  unfurl_links: z.boolean(),
  attachments: z.array(z.strictObject({ color: z.string().regex(/^#[0-9a-f]{6}$/), blocks: z.array(block).max(50) })),
})

describe('Slack', () => {
  const slackServer = () =>
    serve(({ path, body }) =>
      path.startsWith('/hook/')
        ? new Response('ok')
        : Response.json({ ok: true, channel: 'C024BE91L', ts: body['ts'] ?? '1503435956.000247' }),
    )
  const bot = () => ({ spec: { channel: '#ops', url: `${receiver?.url}/api` }, secrets: { token: 'xoxb-1' } })

  test('NX1 a bot token posts a message, and later versions change it', async () => {
    slackServer()
    const { spec, secrets } = bot()
    const sent = await send('slack', spec, { secrets })
    expect(sent.ref).toBe('C024BE91L 1503435956.000247')
    expect(only()).toMatchObject({ path: '/api/chat.postMessage', headers: { authorization: 'Bearer xoxb-1' } })
    expect(slackBody.parse(only().body)).toMatchObject({ channel: '#ops' })
    await send('slack', spec, { secrets, ref: sent.ref, message: RESOLVED })
    expect(receiver?.requests[1]).toMatchObject({ path: '/api/chat.update', body: { channel: 'C024BE91L', ts: '1503435956.000247' } })
  })

  test('NX1 markup in a text calls nobody', async () => {
    slackServer()
    const { spec, secrets } = bot()
    await send('slack', spec, { secrets })
    expect(only().text).toContain('&lt;!channel&gt; &amp; more')
  })

  test('NX1 a text of any length and markup fits into sections, whole if Slack takes it', async () => {
    slackServer()
    const { spec, secrets } = bot()
    const sections = (body: unknown) =>
      slackBody.parse(body).attachments[0]?.blocks.flatMap((one) => (one.type === 'section' ? [one.text.text] : [])) ?? []
    const text = '<&>'.repeat(900)
    await send('slack', spec, { secrets, message: { ...MESSAGE, title: 't'.repeat(300), text } })
    expect(sections(only().body).join('')).toBe('&lt;&amp;&gt;'.repeat(900))
    await send('slack', spec, { secrets, message: { ...MESSAGE, text: '😀<'.repeat(4_000) } })
    const cut = sections(receiver?.requests[1]?.body)
    expect([cut.length, cut.at(-1)?.endsWith('…'), cut.join('').isWellFormed()]).toEqual([5, true, true])
  })

  test('NX1 a message that somebody deleted is posted again', async () => {
    serve(({ path, body }) =>
      Response.json(
        path.endsWith('chat.update')
          ? { ok: false, error: 'message_not_found' }
          : { ok: true, channel: 'C024BE91L', ts: `new ${String(body['channel'])}` },
      ),
    )
    const { spec, secrets } = bot()
    const sent = await send('slack', spec, { secrets, ref: 'C024BE91L 1503435956.000247', message: RESOLVED })
    expect([sent.ref, receiver?.requests.length]).toEqual(['C024BE91L new #ops', 2])
  })

  test('NX1 an incoming webhook gets the same message', async () => {
    const { url } = slackServer()
    await send('slack', {}, { secrets: { url: `${url}/hook/T1/B1` } })
    expect(slackBody.parse(only().body)).not.toHaveProperty('channel')
  })

  test.each([
    ['invalid_auth', false],
    ['channel_not_found', false],
    ['internal_error', true],
    ['ratelimited', true],
  ])('NX1 the answer %s is %p to try again', async (error, retryable) => {
    serve(() => Response.json({ ok: false, error }, { headers: { 'retry-after': '30' } }))
    const { spec, secrets } = bot()
    expect(await failure(send('slack', spec, { secrets }))).toMatchObject({ retryable })
  })
})

/** https://learn.microsoft.com: a workflow takes a message with one Adaptive Card. */
const card = z.strictObject({
  type: z.literal('message'),
  attachments: z
    .array(
      z.strictObject({
        contentType: z.literal('application/vnd.microsoft.card.adaptive'),
        contentUrl: z.null(),
        content: z.strictObject({
          $schema: z.literal('http://adaptivecards.io/schemas/adaptive-card.json'),
          type: z.literal('AdaptiveCard'),
          version: z.enum(['1.2', '1.3', '1.4', '1.5']),
          msteams: z.strictObject({ width: z.literal('Full') }),
          body: z.array(
            z.discriminatedUnion('type', [
              z.strictObject({
                type: z.literal('TextBlock'),
                text: z.string().min(1),
                wrap: z.literal(true),
                size: z.enum(['Default', 'Medium', 'Large']).optional(),
                weight: z.enum(['Default', 'Bolder']).optional(),
                color: z.enum(['Default', 'Good', 'Warning', 'Attention']).optional(),
              }),
              z.strictObject({ type: z.literal('FactSet'), facts: z.array(z.strictObject({ title: z.string(), value: z.string() })) }),
            ]),
          ),
          actions: z.array(z.strictObject({ type: z.literal('Action.OpenUrl'), title: z.string(), url: z.url() })),
        }),
      }),
    )
    .length(1),
})
test('NX2 Microsoft Teams: a workflow gets an Adaptive Card', async () => {
  const { url } = serve(() => new Response(null, { status: 202 }))
  await send('teams', {}, { secrets: { url: `${url}/workflows/abc/triggers/manual/paths/invoke?sig=s3cr3t` } })
  expect(card.parse(only().body).attachments[0]?.content.body[0]).toMatchObject({ text: MESSAGE.title, color: 'Attention' })
})

/** https://discord.com/developers/docs/resources/webhook */
const discordBody = z.strictObject({
  allowed_mentions: z.strictObject({ parse: z.array(z.never()) }),
  embeds: z
    .array(
      z.strictObject({
        title: z.string().max(256),
        description: z.string().max(4_096),
        url: z.url(),
        color: z.int().min(0).max(0xffffff),
        timestamp: z.iso.datetime(),
        footer: z.strictObject({ text: z.string().max(2_048) }),
      }),
    )
    .max(10),
})
describe('Discord', () => {
  test('NX3 the first version posts and waits for the id, later ones edit, and a deleted message is posted anew', async () => {
    const { url, requests } = serve(({ method, path }) =>
      path.endsWith('/messages/gone')
        ? new Response('{"message":"Unknown Message"}', { status: 404 })
        : Response.json({ id: method === 'POST' ? '1199' : '1199' }),
    )
    const secrets = { url: `${url}/api/webhooks/1/tok` }
    const sent = await send('discord', {}, { secrets })
    expect(sent.ref).toBe('1199')
    expect(only()).toMatchObject({ method: 'POST', path: '/api/webhooks/1/tok?wait=true' })
    discordBody.parse(only().body)
    await send('discord', {}, { secrets, ref: '1199', message: RESOLVED })
    expect(requests[1]).toMatchObject({ method: 'PATCH', path: '/api/webhooks/1/tok/messages/1199' })
    expect((await send('discord', {}, { secrets, ref: 'gone' })).ref).toBe('1199')
    expect(requests.slice(2).map(({ method }) => method)).toEqual(['PATCH', 'POST'])
  })
})

/** https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md and its JSON format. */
const cloudEvent = z.strictObject({
  specversion: z.literal('1.0'),
  id: z.string().min(1),
  source: z.string().min(1),
  type: z.string().regex(/^dev\.skerry\.notification\.(firing|resolved)$/),
  subject: z.string().min(1),
  time: z.iso.datetime(),
  datacontenttype: z.literal('application/json'),
  data: z.looseObject({ title: z.string(), members: z.array(z.string()), resolved: z.boolean() }),
})
describe('webhook', () => {
  test('NX4 a CloudEvent with a signature over the time and the body', async () => {
    const { url } = serve()
    await send('webhook', { url }, { secrets: { hmac: 'key-1', token: 'bearer-1' } })
    const { headers, text, body } = only()
    expect(headers).toMatchObject({
      'content-type': 'application/cloudevents+json; charset=utf-8',
      'idempotency-key': MESSAGE.dedupeKey,
      authorization: 'Bearer bearer-1',
    })
    expect(cloudEvent.parse(body)).toMatchObject({ id: MESSAGE.dedupeKey, subject: MESSAGE.groupId })
    const [, seconds, hex] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(headers['x-skerry-signature'] ?? '') ?? []
    expect(seconds).toBe('1700000100')
    expect(hex).toBe(createHmac('sha256', 'key-1').update(`${seconds}.${text}`).digest('hex'))
    expect(signature('key-1', 1_700_000_100, text)).not.toBe(signature('key-1', 1_700_000_101, text))
  })
})

/** https://developer.pagerduty.com/docs/events-api-v2 */
const pagerEvent = z.discriminatedUnion('event_action', [
  z.strictObject({
    routing_key: z.string().length(32),
    event_action: z.literal('trigger'),
    dedup_key: z.string().max(255),
    client: z.string(),
    client_url: z.url(),
    links: z.array(z.strictObject({ href: z.url(), text: z.string() })),
    payload: z.strictObject({
      summary: z.string().min(1).max(1_024),
      source: z.string().min(1),
      severity: z.enum(['critical', 'error', 'warning', 'info']),
      timestamp: z.iso.datetime(),
      component: z.string().optional(),
      class: z.string(),
      custom_details: z.record(z.string(), z.unknown()),
    }),
  }),
  z.strictObject({ routing_key: z.string().length(32), event_action: z.literal('resolve'), dedup_key: z.string() }),
])
test('NX5 PagerDuty: trigger and resolve with the key of the group', async () => {
  const { url, requests } = serve(() => Response.json({ status: 'success', message: 'Event processed', dedup_key: 'k' }, { status: 202 }))
  const secrets = { routingKey: 'r'.repeat(32) }
  await send('pagerduty', { url }, { secrets })
  await send('pagerduty', { url }, { secrets, message: RESOLVED })
  const events = requests.map(({ body }) => pagerEvent.parse(body))
  expect(requests.map(({ path }) => path)).toEqual(['/v2/enqueue', '/v2/enqueue'])
  expect(events.map(({ event_action, dedup_key }) => [event_action, dedup_key])).toEqual([
    ['trigger', MESSAGE.groupId],
    ['resolve', MESSAGE.groupId],
  ])
})

/** https://docs.opsgenie.com/docs/alert-api */
const opsgenieAlert = z.strictObject({
  message: z.string().min(1).max(130),
  alias: z.string().max(512),
  description: z.string().max(15_000),
  priority: z.enum(['P1', 'P2', 'P3', 'P4', 'P5']),
  source: z.string().max(100),
  tags: z.array(z.string().max(50)).max(20),
  details: z.record(z.string(), z.string()),
})
test('NX6 Opsgenie: an alert by its alias, closed when all is well', async () => {
  const { url, requests } = serve(() => Response.json({ result: 'Request will be processed', requestId: '1' }, { status: 202 }))
  const secrets = { apiKey: 'genie-1' }
  await send('opsgenie', { url }, { secrets })
  await send('opsgenie', { url }, { secrets, message: RESOLVED })
  expect(opsgenieAlert.parse(requests[0]?.body)).toMatchObject({ alias: MESSAGE.groupId, priority: 'P1' })
  expect(requests[0]?.headers['authorization']).toBe('GenieKey genie-1')
  expect(requests[1]?.path).toBe(`/v2/alerts/${MESSAGE.groupId}/close?identifierType=alias`)
})

describe('every sink', () => {
  const HTTP: ReadonlyArray<[Exclude<Plain, 'email'>, (url: string) => { spec: object; secrets: Record<string, string> }]> = [
    ['slack', (url) => ({ spec: { channel: '#x', url }, secrets: { token: 'xoxb-secret-1' } })],
    ['teams', (url) => ({ spec: {}, secrets: { url: `${url}/secret-path-1?sig=secret-sig-1` } })],
    ['discord', (url) => ({ spec: {}, secrets: { url: `${url}/api/webhooks/secret-path-1` } })],
    ['webhook', (url) => ({ spec: { url }, secrets: { token: 'secret-token-1', hmac: 'secret-hmac-1' } })],
    ['pagerduty', (url) => ({ spec: { url }, secrets: { routingKey: 'secret-routing-key-1' } })],
    ['opsgenie', (url) => ({ spec: { url }, secrets: { apiKey: 'secret-api-key-1' } })],
  ]
  test.each(HTTP)('NX8 %s: an answer that repeats the secrets does not bring them into the error', async (type, of) => {
    const { url } = serve(({ headers, path, text }) => new Response(JSON.stringify(headers) + path + text, { status: 400 }))
    const { spec, secrets } = of(url)
    const { message, retryable } = await failure(send(type, spec, { secrets }))
    expect(message).toContain('answered 400')
    expect(message).not.toMatch(/secret-/)
    expect(retryable).toBe(false)
  })

  test.each(HTTP)('NX9 %s: an address that is not allowed gets no request', async (type, of) => {
    const { url, requests } = serve()
    const { spec, secrets } = of(url)
    const error = await failure(send(type, spec, { secrets, addresses: loopbackGuard({ allowed: [] }) }))
    expect(error).toMatchObject({ retryable: false })
    expect(requests).toEqual([])
  })

  test.each(HTTP)('NX9 %s: a redirect is not followed', async (type, of) => {
    const { url, requests } = serve(({ path }) =>
      path.includes('/next') ? undefined : new Response(null, { status: 307, headers: { location: '/next' } }),
    )
    const { spec, secrets } = of(url)
    expect((await failure(send(type, spec, { secrets }))).message).toEqual(naming('redirects'))
    expect(requests).toHaveLength(1)
  })

  test.each([
    [429, '17', true, 17_000],
    [503, 'Tue, 14 Nov 2023 22:16:00 GMT', true, 60_000],
    [500, '', true, undefined],
    [401, '', false, undefined],
  ])('NO3 %p with Retry-After %p', async (status, header, retryable, retryAfterMs) => {
    const { url } = serve(() => new Response('x', { status, headers: header === '' ? {} : { 'retry-after': header } }))
    expect(await failure(send('webhook', { url }))).toMatchObject({ retryable, retryAfterMs })
  })

  test('NX8 a missing secret is named, with the Config', async () => {
    expect((await failure(send('pagerduty', {}))).message).toEqual(naming('Config keys', 'routingKey'))
  })
})
