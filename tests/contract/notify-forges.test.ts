// Commit statuses and comments of GitHub, GitLab and Gitea against servers that check the documented requests, and the
// state of a commit over a fleet.
import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { commitState } from '../../server/notify/forges/commit-state.ts'
import { type CommitMessage, forgeStatus, forgeTest } from '../../server/notify/forges/forge.ts'
import type { Sending } from '../../server/notify/sinks/sink.ts'
import type { Store } from '../../server/store/store.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import type { ForgeType } from '../../shared/model/notifications.ts'
import { notificationSinkSpecSchema, sinkTypeOf } from '../../shared/model/notifications.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { naming } from '../support/naming.ts'
import { configsWith, notifierOn, putSink, type Received, type Receiver, runUntil, startReceiver } from '../support/notify-kit.ts'
import { loopbackGuard } from '../support/source-guard.ts'
import { joinCluster } from '../support/store-fixtures.ts'
import { openIn, STORES } from '../support/stores.ts'

setDefaultTimeout(60_000)
const SHA = '4be19d0000000000000000000000000000000000'
const COMMIT: CommitMessage = {
  ...{ project: 'shop', service: 'web', sha: SHA, state: 'pending', description: 'applied in 38 of 40 clusters' },
  url: 'https://skerry.example/services/shop/web',
}

const closing: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

interface Case {
  type: ForgeType
  /** Header that carries the token. */
  auth: [string, string]
  statusPath: string
  status: z.ZodType
  states: Record<CommitMessage['state'], string>
  pulls: string
  pull: unknown
  comments: string
  edit: [method: string, path: string]
}
const statusFields = { target_url: z.url(), description: z.string().max(140), context: z.literal('skerry/shop/web') }
const CASES: readonly Case[] = [
  {
    // https://docs.github.com/en/rest/commits/statuses
    ...{ type: 'github', auth: ['authorization', 'Bearer forge-token'], statusPath: `/repos/acme/apps/statuses/${SHA}` },
    status: z.strictObject({ state: z.enum(['error', 'failure', 'pending', 'success']), ...statusFields }),
    states: { pending: 'pending', success: 'success', failure: 'failure' },
    ...{ pulls: `/repos/acme/apps/commits/${SHA}/pulls`, pull: [{ number: 12 }] },
    ...{ comments: '/repos/acme/apps/issues/12/comments?per_page=100&page=1', edit: ['PATCH', '/repos/acme/apps/issues/comments/5'] },
  },
  {
    // https://docs.gitlab.com/api/commits/#set-commit-pipeline-status
    ...{ type: 'gitlab', auth: ['private-token', 'forge-token'], statusPath: `/projects/acme%2Fapps/statuses/${SHA}` },
    status: z.strictObject({ state: z.enum(['pending', 'running', 'success', 'failed', 'canceled', 'skipped']), ...statusFields }),
    states: { pending: 'pending', success: 'success', failure: 'failed' },
    ...{ pulls: `/projects/acme%2Fapps/repository/commits/${SHA}/merge_requests`, pull: [{ iid: 12 }] },
    ...{
      comments: '/projects/acme%2Fapps/merge_requests/12/notes?order_by=created_at&sort=asc&per_page=100&page=1',
      edit: ['PUT', '/projects/acme%2Fapps/merge_requests/12/notes/5'],
    },
  },
  {
    // https://docs.gitea.com/api/ repoCreateStatus, repoGetCommitPullRequest, issueCreateComment
    ...{ type: 'gitea', auth: ['authorization', 'token forge-token'], statusPath: `/repos/acme/apps/statuses/${SHA}` },
    status: z.strictObject({ state: z.enum(['pending', 'success', 'error', 'failure', 'warning']), ...statusFields }),
    states: { pending: 'pending', success: 'success', failure: 'failure' },
    ...{ pulls: `/repos/acme/apps/commits/${SHA}/pull`, pull: { number: 12 } },
    ...{ comments: '/repos/acme/apps/issues/12/comments', edit: ['PATCH', '/repos/acme/apps/issues/comments/5'] },
  },
]

describe.each(CASES.map((one) => [one.type, one] as const))('%s', (type, one) => {
  const comments: Array<{ id: number; body: string }> = []
  const serve = (answer?: (request: Received) => Response | undefined): Receiver => {
    comments.length = 0
    const receiver = startReceiver((request) => {
      const special = answer?.(request)
      if (special !== undefined) return special
      if (request.headers[one.auth[0]] !== one.auth[1]) return new Response('no token', { status: 401 })
      if (request.path === one.pulls) return Response.json(one.pull)
      if (request.path === one.comments && request.method === 'GET') return Response.json(comments)
      if (request.path === one.comments.split('?')[0] && request.method === 'POST')
        comments.push({ id: 5, body: String(request.body['body']) })
      return Response.json({ id: 1 }, { status: request.method === 'GET' ? 200 : 201 })
    })
    closing.push(() => receiver.stop())
    return receiver
  }
  const sendingTo = (url: string, change: object = {}) => {
    const spec = notificationSinkSpecSchema.parse({
      [type]: { source: 'apps', repository: 'acme/apps', url, ...change },
      auth: { secretRef: 'forge' },
    })
    const sending: Sending = {
      ...{ spec, secrets: { token: 'forge-token' }, ref: null, addresses: loopbackGuard(), nowMs: 1 },
      signal: AbortSignal.timeout(5_000),
    }
    return { spec, sending }
  }

  test('NC1 each state is the status that the forge documents', async () => {
    const { url, requests } = serve()
    const { spec, sending } = sendingTo(url)
    for (const state of ['pending', 'success', 'failure'] as const) await forgeStatus(spec, { ...COMMIT, state }, sending)
    expect(requests.map(({ method, path }) => `${method} ${path}`)).toEqual(Array(3).fill(`POST ${one.statusPath}`))
    expect(requests.map(({ body }) => (one.status.parse(body) as { state: string }).state)).toEqual(Object.values(one.states))
  })

  test('NC2 a comment is written once to the pull request, and changed after that', async () => {
    const { url, requests } = serve()
    const { spec, sending } = sendingTo(url, { comments: true })
    await forgeStatus(spec, COMMIT, sending)
    expect(comments).toHaveLength(1)
    expect(comments[0]?.body).toEqual(naming('38 of 40 clusters'))
    await forgeStatus(spec, { ...COMMIT, state: 'success', description: 'applied in 40 of 40 clusters' }, sending)
    expect(comments).toHaveLength(1)
    expect(requests.at(-1)).toMatchObject({ method: one.edit[0], path: one.edit[1] })
  })

  test('NC2 the comment is found among hundreds of long ones', async () => {
    const others = Array.from({ length: 250 }, (_, index) => ({ id: 1_000 + index, body: `looks good ${'x'.repeat(2_000)}` }))
    const all = [...others.slice(0, 230), { id: 5, body: '<!-- skerry shop/web -->\nearlier' }, ...others.slice(230)]
    const { url, requests } = serve(({ method, path }) => {
      const [to, search] = path.split('?')
      if (method !== 'GET' || to !== one.comments.split('?')[0]) return undefined
      const page = new URLSearchParams(search).get('page')
      return Response.json(page === null ? all : all.slice((Number(page) - 1) * 100, Number(page) * 100))
    })
    const { spec, sending } = sendingTo(url, { comments: true })
    await forgeStatus(spec, COMMIT, sending)
    expect(requests.at(-1)).toMatchObject({ method: one.edit[0], path: one.edit[1] })
  })

  test('NC2 a commit without a pull request gets the status only', async () => {
    const { url, requests } = serve(({ path }) => (path === one.pulls ? new Response('{}', { status: 404 }) : undefined))
    const { spec, sending } = sendingTo(url, { comments: true })
    expect((await forgeStatus(spec, COMMIT, sending)).detail).toBe('status pending, 0 comments')
    expect(requests).toHaveLength(2)
  })

  test('NC1 a test reads the repository and writes nothing', async () => {
    const { url, requests } = serve()
    const { spec, sending } = sendingTo(url)
    expect((await forgeTest(spec, sending)).detail).toBe('the token reads acme/apps')
    expect(requests.map(({ method }) => method)).toEqual(['GET'])
    expect(sinkTypeOf(spec)).toBe(type)
  })

  test('NX8 a token that the forge refuses is not in the error', async () => {
    const { url } = serve(({ headers }) => new Response(JSON.stringify(headers), { status: 403 }))
    const { spec, sending } = sendingTo(url)
    const error = await forgeStatus(spec, COMMIT, sending).catch((thrown: unknown) => thrown)
    expect(String(error)).toContain('403')
    expect(String(error)).not.toContain('forge-token')
  })
})

test('NC1 GitLab: a status that does not change the state is no failure', async () => {
  const answer = { message: 'Cannot transition status via :enqueue from :pending (Reason(s): Status cannot transition via "enqueue")' }
  const receiver = startReceiver(() => Response.json(answer, { status: 400 }))
  closing.push(() => receiver.stop())
  const spec = notificationSinkSpecSchema.parse({
    gitlab: { source: 'apps', repository: 'acme/apps', url: receiver.url },
    auth: { secretRef: 'forge' },
  })
  const sending = { spec, secrets: { token: 't' }, ref: null, addresses: loopbackGuard(), nowMs: 1, signal: AbortSignal.timeout(5_000) }
  expect((await forgeStatus(spec, COMMIT, sending)).ref).toBe(SHA)
})

describe('NC3 the state of a commit', () => {
  const error = { code: 'render_failed', message: 'web.yaml:3: bad\nmore' }
  const facts = { error: null, published: true, hookFailedIn: null }
  test.each([
    ['in no cluster', {}, {}, 'pending', ['not in any cluster']],
    ['under way', { 'Synced/Healthy': 38, 'OutOfSync/Healthy': 2 }, {}, 'pending', ['38 of 40 clusters']],
    ['applied, not healthy yet', { 'Synced/Healthy': 38, 'Synced/Progressing': 2 }, {}, 'pending', ['40 of 40 clusters', 'healthy in 38']],
    ['done', { 'Synced/Healthy': 39, 'Synced/Suspended': 1 }, {}, 'success', ['40 of 40 clusters']],
    ['degraded', { 'Synced/Healthy': 38, 'Synced/Degraded': 2 }, {}, 'failure', ['40 of 40 clusters', 'degraded in 2']],
    ['not rendered', {}, { error }, 'failure', ['rendered: web.yaml:3: bad']],
    ['rendered, and every cluster is at the commit before', { 'Synced/Healthy': 40 }, { published: false }, 'pending', ['not published']],
    ['not published, and degraded by the commit before', { 'Synced/Degraded': 40 }, { published: false }, 'pending', ['not published']],
    [
      'not applied where the commit before is degraded',
      { 'Synced/Healthy': 38, 'OutOfSync/Degraded': 2 },
      {},
      'pending',
      ['38 of 40 clusters'],
    ],
    ['a hook of it failed', { 'OutOfSync/Degraded': 1 }, { hookFailedIn: 'oslo' }, 'failure', ['0 of 1 cluster', 'hook failed in oslo']],
  ] as const)('%s', (_, counts, change, state, values) => {
    expect(commitState({ counts, ...facts, ...change })).toEqual({ state, description: naming(...values) })
  })
})

describe.each(STORES)('$name', (kind) => {
  const setRender = (store: Store, commit: string) =>
    store.setRenderState(
      { project: 'shop', service: 'web' },
      { commit, generation: 1, digest: 'd'.repeat(32), objectCount: 1, renderedMs: 1, error: null },
    )

  test('NC4 a commit of a watched repository gets its status, once, and the next commit gets another', async () => {
    const store = await openIn(kind)
    const receiver = startReceiver()
    closing.push(
      () => store.close(),
      () => receiver.stop(),
    )
    const spec = { source: { repository: 'apps', path: 'web' }, targets: { selector: {} } }
    await store.applyResource({ kind: 'Service', project: 'shop', name: 'web' }, { labels: {}, spec: JSON.stringify(spec), nowMs: 1 })
    await setRender(store, SHA)
    const github = { source: 'apps', repository: 'acme/apps', url: receiver.url }
    await putSink(store, 'forge', { github, auth: { secretRef: 'forge' } }, 'shop')
    const notifier = () => notifierOn(store, { configs: configsWith({ forge: { token: 't' } }) })
    await runUntil(notifier(), () => receiver.requests.length === 1)
    // A start tells nothing that was told.
    const next = 'a'.repeat(40)
    let isSet = false
    await runUntil(notifier(), async () => {
      if (!isSet) await setRender(store, next)
      isSet = true
      return receiver.requests.some(({ path }) => path.endsWith(next))
    })
    // A stop between the delivery and its record sends the first one again (NO1).
    const paths = [...new Set(receiver.requests.map(({ path }) => path))]
    expect(paths).toEqual([SHA, next].map((sha) => `/repos/acme/apps/statuses/${sha}`))
    expect(receiver.requests[0]?.body).toMatchObject({ state: 'pending', description: 'not in any cluster yet' })
  })

  test('NC3 a commit that is rendered is no success before every cluster has it', async () => {
    const store = await openIn(kind)
    const receiver = startReceiver()
    closing.push(
      () => store.close(),
      () => receiver.stop(),
    )
    const id = { project: 'shop', service: 'web' }
    const spec = { source: { repository: 'apps', path: 'web' }, targets: { selector: {} } }
    await store.applyResource({ kind: 'Service', project: 'shop', name: 'web' }, { labels: {}, spec: JSON.stringify(spec), nowMs: 1 })
    const clusters = [await joinCluster(store, 'a'), await joinCluster(store, 'b')]
    let rev = 0
    const publish = async (clusterId: ClusterId, digest: string) => {
      const doc = serviceRowSchema.parse({ commit: 'c', digest, count: 1, sync: syncOptionsSchema.parse({}) })
      await store.publish([{ clusterId, ...id, doc, setSha: null, placedBy: '{}' }])
    }
    const report = async (clusterId: ClusterId, digest: string, change: object = {}) => {
      const point = { commit: 'c', digest, atMs: 1 }
      const words = { sync: 'Synced', health: 'Healthy', reason: '', message: '', sinceMs: 1, objectCount: 1, healthyCount: 1 }
      const doc = { ...words, received: point, applied: point, ...change }
      await store.upsertStatus(clusterId, [{ kind: 'service', key: 'shop/web', rev: ++rev, doc }], { complete: false, nowMs: rev })
    }
    const render = (commit: string, digest: string, variants: string[] = []) =>
      store.setRenderState(
        id,
        { commit, generation: 1, digest, objectCount: 1, renderedMs: 1, error: null },
        variants.map((one) => ({ digest: one, objectCount: 1, setSha: null })),
      )
    const states = (sha: string) =>
      receiver.requests
        .filter(({ path }) => path.endsWith(sha))
        .map(({ body }) => `${String(body['state'])} ${String(body['description'])}`)
    await render(SHA, 'one')
    for (const cluster of clusters) {
      await publish(cluster, 'one')
      await report(cluster, 'one')
    }
    await putSink(
      store,
      'forge',
      { github: { source: 'apps', repository: 'acme/apps', url: receiver.url }, auth: { secretRef: 'forge' } },
      'shop',
    )
    const notifier = () => notifierOn(store, { configs: configsWith({ forge: { token: 't' } }) })
    const seen = async (sha: string, state: string) => {
      await runUntil(notifier(), () => states(sha).at(-1)?.startsWith(`${state} `) === true)
    }
    await seen(SHA, 'success')

    // Both clusters are Synced and Healthy, and degraded is no word of theirs: but of the commit before.
    const next = 'a'.repeat(40)
    await render(next, 'two', ['two', 'three'])
    await seen(next, 'pending')
    const [first, second] = clusters as [ClusterId, ClusterId]
    await publish(first, 'two')
    await report(first, 'two')
    await publish(second, 'three')
    await report(second, 'one', { health: 'Degraded' })
    await report(second, 'three', {
      sync: 'OutOfSync',
      health: 'Degraded',
      reason: 'HookFailed',
      applied: { commit: 'c', digest: 'one', atMs: 1 },
    })
    await seen(next, 'failure')
    await report(second, 'three')
    await seen(next, 'success')
    // The first status may be sent twice, by a stop between the delivery and its record (NO1).
    expect([...new Set(states(next))]).toEqual([
      naming('pending ', 'published'),
      naming('failure ', '1 of 2 clusters', 'hook failed', 'cluster-b'),
      naming('success ', '2 of 2 clusters'),
    ])
    expect(await store.isPublished(id, 'one')).toBe(false)
  })
})
