// Commit statuses and comments at a real Gitea: a commit that a pull request brought, and what people see of it there.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ChildProcess, createDataFolder, freePort, startChild, waitUntil } from '../../scripts/local-cluster/child-process.ts'
import type { Store } from '../../server/store/store.ts'
import { configsWith, notifierOn, putSink, runUntil } from '../support/notify-kit.ts'
import { ROOT } from '../support/source-files.ts'
import { openIn, SQLITE } from '../support/stores.ts'

setDefaultTimeout(60_000)

const BUILT = join(ROOT, 'build/gitea')
const folder = createDataFolder('skerry-gitea')
const settings = join(folder.path, 'app.ini')
const url = `http://127.0.0.1:${freePort()}`
let gitea: ChildProcess
let store: Store
/** Of the person who works in Gitea, and of Skerry, with the scopes that docs/how-to/notify.md names. */
let person = ''
let robot = ''

const run = (...args: string[]): string => {
  const done = Bun.spawnSync([join(BUILT, 'gitea'), '--work-path', folder.path, '--config', settings, ...args])
  if (done.exitCode !== 0) throw new Error(`gitea ${args[0]}: ${done.stderr} ${done.stdout}`)
  return String(done.stdout)
}
const tokenIn = (printed: string): string => /\b[0-9a-f]{40}\b/.exec(printed)?.[0] ?? ''

async function call<T>(method: string, path: string, body?: object): Promise<T> {
  const headers = { authorization: `token ${person}`, 'content-type': 'application/json' }
  const answer = await fetch(`${url}/api/v1${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  return text === '' ? (undefined as T) : JSON.parse(text)
}

beforeAll(async () => {
  if (!existsSync(join(BUILT, 'gitea'))) throw new Error(`${BUILT} is missing; run scripts/setup --gitea`)
  mkdirSync(join(folder.path, 'data'))
  const { port } = new URL(url)
  writeFileSync(
    settings,
    `I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = ${port}
ROOT_URL = ${url}/
STATIC_ROOT_PATH = ${BUILT}/static
OFFLINE_MODE = true
DISABLE_SSH = true
[database]
DB_TYPE = sqlite3
PATH = ${folder.path}/gitea.db
[security]
INSTALL_LOCK = true
SECRET_KEY = only-for-this-test
[repository]
ROOT = ${folder.path}/repositories
[indexer]
ISSUE_INDEXER_TYPE = db
[cron]
ENABLED = false
[log]
LEVEL = error
`,
  )
  run('migrate')
  const account = ['--username', 'acme', '--password', 'only-for-this-test', '--email', 'acme@example.com']
  run('admin', 'user', 'create', '--admin', ...account, '--must-change-password=false')
  const token = (name: string, scopes: string) =>
    tokenIn(run('admin', 'user', 'generate-access-token', '--username', 'acme', '--token-name', name, '--scopes', scopes))
  person = token('person', 'all')
  robot = token('skerry', 'write:repository,write:issue')
  const command = [join(BUILT, 'gitea'), '--work-path', folder.path, '--config', settings, 'web']
  gitea = startChild(command, join(folder.path, 'log'))
  await waitUntil('Gitea answers', async () => (await fetch(`${url}/api/v1/version`)).ok, { child: gitea })
  store = await openIn(SQLITE)
})
afterAll(async () => {
  await store?.close()
  await gitea?.kill()
  await folder.remove()
})

interface Status {
  status: string
  context: string
  description: string
  target_url: string
}

test('NC1 NC2 NC4 a merged commit gets its status and one comment, and both change with the fleet', async () => {
  await call('POST', '/user/repos', { name: 'apps', auto_init: true, default_branch: 'main' })
  const content = Buffer.from('kind: ConfigMap').toString('base64')
  const change = { branch: 'main', new_branch: 'change', content, message: 'web: add a map' }
  await call('POST', '/repos/acme/apps/contents/web.yaml', change)
  const { number } = await call<{ number: number }>('POST', '/repos/acme/apps/pulls', { base: 'main', head: 'change', title: 'A map' })
  // Gitea looks whether it can be merged, in the background.
  await waitUntil('the pull request is merged', async () => {
    await call('POST', `/repos/acme/apps/pulls/${number}/merge`, { Do: 'merge' })
    return true
  })
  const { commit } = await call<{ commit: { id: string } }>('GET', '/repos/acme/apps/branches/main')
  const statuses = () => call<Status[]>('GET', `/repos/acme/apps/commits/${commit.id}/statuses`)
  const comments = () => call<Array<{ body: string }>>('GET', `/repos/acme/apps/issues/${number}/comments`)

  const spec = { source: { repository: 'apps', path: '.' }, targets: { selector: {} } }
  await store.applyResource({ kind: 'Service', project: 'shop', name: 'web' }, { labels: {}, spec: JSON.stringify(spec), nowMs: 1 })
  const render = { commit: commit.id, generation: 1, digest: 'd'.repeat(32), objectCount: 1, renderedMs: 1, error: null }
  await store.setRenderState({ project: 'shop', service: 'web' }, render)
  const sink = { gitea: { source: 'apps', repository: 'acme/apps', url: `${url}/api/v1`, comments: true }, auth: { secretRef: 'forge' } }
  await putSink(store, 'forge', sink, 'shop')
  const notifier = () => notifierOn(store, { configs: configsWith({ forge: { token: robot } }) })
  const told = async (version: number) => (await store.notifications.get(1))?.sentVersion === version

  await runUntil(notifier(), () => told(1))
  const page = 'https://skerry.example/services/shop/web'
  const first = { status: 'pending', context: 'skerry/shop/web', description: 'not in any cluster yet', target_url: page }
  expect(await statuses()).toMatchObject([first])
  const error = { code: 'render_failed', message: 'web.yaml:1: no apiVersion', problems: [], sinceMs: 2 }
  await store.setRenderState({ project: 'shop', service: 'web' }, { ...render, error })
  await runUntil(notifier(), () => told(2))
  expect((await statuses()).map(({ status }) => status).sort()).toEqual(['failure', 'pending'])
  const [comment, ...others] = await comments()
  expect(comment?.body).toContain('Failed: cannot be rendered: web.yaml:1: no apiVersion')
  expect(others).toEqual([])
  const { state } = await call<{ state: string }>('GET', `/repos/acme/apps/commits/${commit.id}/status`)
  expect(state).toBe('failure')

  const resource = await store.getResource({ kind: 'NotificationSink', project: 'shop', name: 'forge' })
  if (resource === null) throw new Error('the sink is gone')
  expect(await notifier().test(resource)).toMatchObject({ delivered: true, detail: 'the token reads acme/apps' })
  await call('PATCH', '/repos/acme/apps', { private: true })
  const stranger = notifierOn(store, { configs: configsWith({ forge: { token: 'f'.repeat(40) } }) })
  expect(await stranger.test(resource)).toMatchObject({ delivered: false })
})
