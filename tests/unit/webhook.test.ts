import { describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { createWebhook, isSigned, WEBHOOK_BODY_BYTES_MAX, webhookMark, webhookSecret } from '../../server/http/webhook.ts'
import { storedRepository as repository } from '../support/stored-repository.ts'

const macBy = (key: string) => (purpose: string, bytes: Uint8Array) =>
  createHmac('sha256', key).update(purpose).update(bytes).digest().subarray(0, 16)
const keys = { mac: macBy('server key'), earlierMac: macBy('earlier key') }
const told: string[] = []
let number = 0
const webhook = createWebhook({
  store: {
    getResource: async ({ project, name }) => (project === 'default' && name === 'apps' ? repository : null),
    webhookNumber: async () => number,
  },
  keys,
  repositoryChanged: (project, name) => told.push(`${project}/${name}`),
})
const secret = webhookSecret(keys, 'uid-1', 0)
const sign = (body: string, key = secret) => createHmac('sha256', key).update(body).digest('hex')
const post = async (headers: Record<string, string>, { body = '{"ref":"x"}', path = 'default/apps', method = 'POST' } = {}) => {
  told.length = 0
  const request = new Request(`http://localhost/webhooks/v1/${path}`, { method, headers, ...(method === 'POST' ? { body } : {}) })
  const response = await webhook(request)
  return [response?.status, ...told]
}

describe('webhook', () => {
  const body = '{"ref":"x"}'
  test.each([
    ['GitHub', { 'x-hub-signature-256': `sha256=${sign(body)}` }],
    ['Gitea and Forgejo', { 'x-gitea-signature': sign(body) }],
    ['GitLab', { 'x-gitlab-token': secret }],
    ['generic', { 'x-skerry-signature': sign(body) }],
    [
      'a forge that has the secret of before the last rotation',
      { 'x-skerry-signature': sign(body, webhookSecret({ mac: macBy('earlier key') }, 'uid-1', 0)) },
    ],
    ['GitLab, with that one', { 'x-gitlab-token': webhookSecret({ mac: macBy('earlier key') }, 'uid-1', 0) }],
    ['generic with prefix, upper case', { 'x-skerry-signature': `sha256=${sign(body).toUpperCase()}` }],
  ] as Array<[string, Record<string, string>]>)('IN11 signed as %s does: 202 and one look', async (_, headers) => {
    expect(await post(headers)).toEqual([202, 'default/apps'])
  })
  test.each([
    ['nothing', {}],
    ['another secret', { 'x-hub-signature-256': `sha256=${sign(body, 'x')}` }],
    ['another body', { 'x-hub-signature-256': `sha256=${sign('{}')}` }],
    ['another repository’s secret', { 'x-gitlab-token': webhookSecret(keys, 'uid-2', 0) }],
    ['a wrong token beside a right signature', { 'x-gitlab-token': 'x', 'x-hub-signature-256': `sha256=${sign(body)}` }],
    ['an empty signature', { 'x-skerry-signature': '' }],
  ] as Array<[string, Record<string, string>]>)('IN11 signed with %s: 401 and nothing', async (_, headers) => {
    expect(await post(headers)).toEqual([401])
  })
  test('IN11 an unknown repository answers as a wrong signature does', async () => {
    expect(await post({ 'x-gitlab-token': secret }, { path: 'default/other' })).toEqual([401])
  })
  test('IN11 as much is computed for an unknown repository as for a wrong signature', async () => {
    const asked: string[] = []
    const earlierMac = (purpose: string, uid: Uint8Array) => {
      asked.push(`${purpose} ${uid}`)
      return null
    }
    const counted = { mac: macBy('server key'), earlierMac }
    const store = {
      getResource: async ({ name }: { name: string }) => (name === 'apps' ? repository : null),
      webhookNumber: async () => 0,
    }
    const webhook = createWebhook({ store, keys: counted, repositoryChanged: () => {} })
    for (const name of ['apps', 'other'])
      await webhook(
        new Request(`http://localhost/webhooks/v1/default/${name}`, { method: 'POST', body, headers: { 'x-gitlab-token': 'x' } }),
      )
    expect(asked).toHaveLength(4)
  })
  test('IN12 a body of 1 MiB is taken, a byte more is not', async () => {
    const largest = 'x'.repeat(WEBHOOK_BODY_BYTES_MAX)
    expect(await post({ 'x-skerry-signature': sign(largest) }, { body: largest })).toEqual([202, 'default/apps'])
    expect(await post({ 'x-skerry-signature': sign(`${largest}x`) }, { body: `${largest}x` })).toEqual([413])
  })
  test('IN12 other methods and paths', async () => {
    expect(await post({}, { method: 'GET' })).toEqual([404])
    expect(await post({ 'x-gitlab-token': secret }, { path: 'default/apps/more' })).toEqual([404])
    expect(await webhook(new Request('http://localhost/elsewhere', { method: 'POST' }))).toBeNull()
  })
})

// As the forges send them; what differs from one delivery to the next is made up.
const GITHUB = { 'content-type': 'application/json', 'user-agent': 'GitHub-Hookshot/044aadd', 'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958', 'x-github-hook-id': '292430182' } // biome-ignore format: headers
const GITEA = { 'content-type': 'application/json', 'x-gitea-delivery': 'f6266f16-1bf3-46a5-9ea4-602e06ead473' }
const PUSH =
  '{"ref":"refs/heads/main","before":"28e1879d029cb852e4844d9c718537df08844e03","after":"bffeb74224043ba2feb48d137756c8a9331c449a"}'
const both = (body: string) => ({ 'x-hub-signature-256': `sha256=${sign(body)}`, 'x-hub-signature': `sha1=${createHmac('sha1', secret).update(body).digest('hex')}` }) // biome-ignore format: headers
test.each<[string, (body: string) => Record<string, string>, (string | number | undefined)[], string]>([
  ['GitHub: a push', (body) => ({ ...GITHUB, 'x-github-event': 'push', ...both(body) }), [202, 'default/apps'], PUSH],
  ['GitHub: a push as a form', (body) => ({ ...GITHUB, 'content-type': 'application/x-www-form-urlencoded', 'x-github-event': 'push', ...both(body) }), [202, 'default/apps'], `payload=${encodeURIComponent(PUSH)}`], // biome-ignore format: headers
  ['GitHub: a ping', (body) => ({ ...GITHUB, 'x-github-event': 'ping', ...both(body) }), [200], '{"zen":"Keep it logically awesome.","hook_id":1,"hook":{"type":"Repository","id":1,"events":["push"]}}'], // biome-ignore format: headers
  ['GitHub: a ping that is not signed', () => ({ ...GITHUB, 'x-github-event': 'ping' }), [401], '{"zen":"x"}'],
  ['GitHub: only the old SHA-1', (body) => ({ ...GITHUB, 'x-github-event': 'push', 'x-hub-signature': both(body)['x-hub-signature'] }), [401], PUSH], // biome-ignore format: headers
  ['GitLab: a push', () => ({ 'x-gitlab-event': 'Push Hook', 'x-gitlab-instance': 'https://gitlab.example', 'x-gitlab-token': secret }), [202, 'default/apps'], '{"object_kind":"push","event_name":"push","ref":"refs/heads/main"}'], // biome-ignore format: headers
  ['GitLab: a tag', () => ({ 'x-gitlab-event': 'Tag Push Hook', 'x-gitlab-token': secret }), [202, 'default/apps'], '{"object_kind":"tag_push","ref":"refs/tags/v1"}'], // biome-ignore format: headers
  ['Gitea: a push', (body) => ({ ...GITEA, 'x-gitea-event': 'push', 'x-gitea-signature': sign(body), 'x-gogs-signature': sign(body), ...both(body) }), [202, 'default/apps'], PUSH], // biome-ignore format: headers
  ['Forgejo: a push', (body) => ({ ...GITEA, 'x-forgejo-event': 'push', 'x-forgejo-signature': sign(body), 'x-gitea-signature': sign(body), ...both(body) }), [202, 'default/apps'], PUSH], // biome-ignore format: headers
  ['Forgejo: with an authorization header for somebody else', (body) => ({ ...GITEA, 'x-forgejo-signature': sign(body), authorization: 'Basic cHJveHk6eA==' }), [202, 'default/apps'], PUSH], // biome-ignore format: headers
  ['Bitbucket Cloud: a push', (body) => ({ 'x-event-key': 'repo:push', 'x-hook-uuid': 'u', 'x-request-uuid': 'r', 'x-attempt-number': '1', 'x-hub-signature': `sha256=${sign(body)}` }), [202, 'default/apps'], '{"push":{"changes":[{"new":{"type":"branch","name":"main"}}]}}'], // biome-ignore format: headers
  ['Bitbucket Server: a push', (body) => ({ 'x-event-key': 'repo:refs_changed', 'x-request-id': 'r', 'x-hub-signature': `sha256=${sign(body)}` }), [202, 'default/apps'], '{"eventKey":"repo:refs_changed","changes":[{"refId":"refs/heads/main"}]}'], // biome-ignore format: headers
  ['Bitbucket Server: its test', (body) => ({ 'x-event-key': 'diagnostics:ping', 'x-hub-signature': `sha256=${sign(body)}` }), [200], '{"test":true}'], // biome-ignore format: headers
  ['a registry, which can send a fixed header only', () => ({ 'content-type': 'application/vnd.docker.distribution.events.v1+json', authorization: `Bearer ${secret}` }), [202, 'default/apps'], '{"events":[{"action":"push","target":{"repository":"charts/web","tag":"1.2.0"}}]}'], // biome-ignore format: headers
  ['a registry with the bare secret', () => ({ authorization: secret }), [202, 'default/apps'], '{"type":"PUSH_ARTIFACT"}'],
  ['a registry with another secret', () => ({ authorization: 'Bearer x' }), [401], '{}'],
  ['two signatures, one of them wrong', (body) => ({ 'x-gitea-signature': sign(body), 'x-hub-signature-256': 'sha256=00' }), [401], PUSH],
])('IN11 WH1 %s', async (_, headers, expected, body) => expect(await post(headers(body), { body })).toEqual(expected))

test.each([
  ['GitHub', 'x-hub-signature-256', 'Hello, World!', '757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'],
  ['Bitbucket', 'x-hub-signature', 'Hello World!', 'a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9'],
])('IN11 the example in the documentation of %s', (_, header, body, digest) => {
  const headers = new Headers({ [header]: `sha256=${digest}` })
  const bytes = new TextEncoder().encode(body)
  expect([isSigned(headers, bytes, "It's a Secret to Everybody"), isSigned(headers, bytes, 'another')]).toEqual([true, false])
})

test.each([
  [0, [202, 401, 401]],
  [1, [202, 202, 401]],
  [2, [401, 202, 202]],
])('WH3 after secret %p was made, it and the one before it are accepted', async (made, statuses) => {
  number = made
  const answers = [0, 1, 2].map(async (one) => (await post({ 'x-gitlab-token': webhookSecret(keys, 'uid-1', one) }))[0])
  expect(await Promise.all(answers)).toEqual(statuses)
  number = 0
})

test('WH3 the mark of a secret is equal for equal secrets and is no secret', async () => {
  expect(webhookMark(keys, 'uid-1', 1)).toMatch(/^hmac:[0-9a-f]{16}$/)
  expect(new Set([webhookMark(keys, 'uid-1', 0), webhookMark(keys, 'uid-1', 1), webhookMark(keys, 'uid-2', 0)]).size).toBe(3)
  expect(await post({ 'x-gitlab-token': webhookMark(keys, 'uid-1', 0) })).toEqual([401])
})
