import { describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { createWebhook, WEBHOOK_BODY_BYTES_MAX, webhookSecret } from '../../server/http/webhook.ts'
import type { StoredResource } from '../../server/store/records.ts'

const keys = {
  mac: (purpose: string, bytes: Uint8Array) => createHmac('sha256', 'server key').update(purpose).update(bytes).digest().subarray(0, 16),
}
const repository: StoredResource = {
  kind: 'Repository',
  project: 'default',
  name: 'apps',
  uid: 'uid-1',
  generation: 1,
  version: 1,
  labels: {},
  spec: '{}',
  createdMs: 0,
  updatedMs: 0,
  deletingMs: null,
}
const told: string[] = []
const webhook = createWebhook({
  store: { getResource: async ({ project, name }) => (project === 'default' && name === 'apps' ? repository : null) },
  keys,
  repositoryChanged: (project, name) => told.push(`${project}/${name}`),
})
const secret = webhookSecret(keys, 'uid-1')
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
    ['generic with prefix, upper case', { 'x-skerry-signature': `sha256=${sign(body).toUpperCase()}` }],
  ] as Array<[string, Record<string, string>]>)('IN11 signed as %s does: 202 and one look', async (_, headers) => {
    expect(await post(headers)).toEqual([202, 'default/apps'])
  })
  test.each([
    ['nothing', {}],
    ['another secret', { 'x-hub-signature-256': `sha256=${sign(body, 'x')}` }],
    ['another body', { 'x-hub-signature-256': `sha256=${sign('{}')}` }],
    ['another repository’s secret', { 'x-gitlab-token': webhookSecret(keys, 'uid-2') }],
    ['a wrong token beside a right signature', { 'x-gitlab-token': 'x', 'x-hub-signature-256': `sha256=${sign(body)}` }],
    ['an empty signature', { 'x-skerry-signature': '' }],
  ] as Array<[string, Record<string, string>]>)('IN11 signed with %s: 401 and nothing', async (_, headers) => {
    expect(await post(headers)).toEqual([401])
  })
  test('IN11 an unknown repository answers as a wrong signature does', async () => {
    expect(await post({ 'x-gitlab-token': secret }, { path: 'default/other' })).toEqual([401])
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
