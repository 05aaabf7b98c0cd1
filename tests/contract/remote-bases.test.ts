// Remote bases through the ingest loop: a real Git server and a web server, the real kustomize, and the same objects as
// kustomize builds from the addresses itself.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createGitServer, type GitServer } from '../../scripts/local-cluster/git-http-server.ts'
import { type ServiceSpec, serviceSpecSchema } from '../../shared/model/resources.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { configMap, createIngestKit, type IngestKit, SHOP } from '../support/ingest-kit.ts'
import { KUSTOMIZE, objectsOf } from '../support/kustomize-kit.ts'
import { realSandbox } from '../support/real-sandbox.ts'
import { memoryRendering } from '../support/render-kit.ts'

const sandbox = realSandbox()
let kit: IngestKit
let base: GitServer
let file: { url: string; text: string; asked: string[]; stop(): Promise<void> }
/** Milliseconds by which the clock of the server is ahead. */
let aheadMs = 0

beforeEach(async () => {
  aheadMs = 0
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs }
  kit = await createIngestKit({ rendering: () => memoryRendering(sandbox), clock })
  base = await createGitServer({ dir: join(kit.dir, 'base') })
  file = serveFile(configMap('file', 'one'))
  await kit.join('1')
})
afterEach(async () => {
  await kit.close()
  await base.stop()
  await file.stop()
})

/** One file, with an ETag. `asked` has the status of each answer. */
function serveFile(text: string) {
  const asked: string[] = []
  const held = { url: '', text, asked, stop: async () => {} }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request) => {
      const etag = `"${Bun.hash(held.text)}"`
      const isSame = request.headers.get('if-none-match') === etag
      asked.push(isSame ? '304' : '200')
      return isSame ? new Response(null, { status: 304 }) : new Response(held.text, { headers: { etag } })
    },
  })
  held.url = `http://127.0.0.1:${server.port}/x/install.yaml`
  held.stop = () => server.stop(true)
  return held
}

const REMOTE = { render: { kustomize: { remoteBases: true } } }
const BASE = {
  'deploy/kustomization.yaml': 'resources: [../common]\nnamePrefix: deploy-\n',
  'common/kustomization.yaml': 'resources: [cm.yaml]\n',
  'common/cm.yaml': configMap('common', 'one'),
  'part/kustomization.yaml': 'apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {part: "yes"}\n',
}
const overlay = (): string =>
  `resources:\n- ${base.url}//deploy?ref=main\n- ${file.url}\ncomponents:\n- ${base.url}//part?ref=main\nnameSuffix: -shop\nnamespace: shop\n`

const state = () => kit.store.renderState(SHOP)
/** Resolves when the newest revision of the service satisfies it: bases are fetched beside the reconciliation that
 *  wants them. */
async function until<T>(look: () => Promise<T>, isSo: (found: T) => boolean): Promise<T> {
  for (;;) {
    const found = await look()
    if (isSo(found)) return found
    await Bun.sleep(5)
  }
}
async function published(): Promise<void> {
  await kit.git.commit({ 'shop/kustomization.yaml': overlay() }, 'overlay')
  await kit.repository()
  await kit.service(REMOTE)
  await until(state, ({ digest, error }) => digest !== null || error !== null)
}
/** kustomize alone, beside this process, which answers its requests. */
async function build(folder: string): Promise<string> {
  const env = { HOME: '/tmp', PATH: '/usr/bin:/bin', GIT_CONFIG_NOSYSTEM: '1' }
  const run = Bun.spawn([KUSTOMIZE, 'build', folder], { env, stdout: 'pipe', stderr: 'pipe' })
  const [output, errors, code] = await Promise.all([new Response(run.stdout).text(), new Response(run.stderr).text(), run.exited])
  if (code !== 0) throw new Error(errors)
  return output
}

async function spec(): Promise<ServiceSpec> {
  const held = await kit.store.getResource({ kind: 'Service', project: 'default', name: 'shop' })
  return serviceSpecSchema.parse(JSON.parse(held?.spec ?? '{}'))
}

test('KU12 KU13 KU15 a base and a component of a Git server and a file give what kustomize makes of their addresses', async () => {
  const commit = await base.commit(BASE, 'base')
  await published()
  const { error, release } = await state()
  expect(error).toBeNull()
  expect(release?.revisions).toEqual({
    apps: expect.any(String),
    [`${base.url}?ref=main`]: commit,
    [file.url]: expect.stringMatching(/^[0-9a-f]{64}$/),
  })
  const folder = join(kit.dir, 'oracle')
  mkdirSync(folder)
  writeFileSync(join(folder, 'kustomization.yaml'), overlay())
  const expected = objectsOf(await build(folder))
  const rendering = await kit.ingest.render(SHOP, await spec(), [], {})
  if (rendering.kind !== 'good' || rendering.forNobody === null) throw new Error(JSON.stringify(rendering))
  expect([...rendering.forNobody.objects.values()].sort()).toEqual(expected)
})

test('SO57 a ref that moved and a file that changed are followed with the repository; without news nothing is rendered', async () => {
  await base.commit(BASE, 'base')
  await published()
  const first = await state()
  file.asked.length = 0
  aheadMs += 120_000
  await kit.ingest.repositoryChanged('default', 'apps')
  await until(
    async () => file.asked,
    (asked) => asked.length > 0,
  )
  expect([file.asked, (await state()).digest]).toEqual([['304'], first.digest])
  const commit = await base.commit({ 'common/cm.yaml': configMap('common', 'two') }, 'two')
  file.text = configMap('file', 'two')
  aheadMs += 120_000
  await kit.ingest.repositoryChanged('default', 'apps')
  const { digest } = await until(state, ({ release }) => {
    const revisions = release?.revisions ?? {}
    return revisions[`${base.url}?ref=main`] === commit && revisions[file.url] !== first.release?.revisions[file.url]
  })
  expect(digest).not.toBe(first.digest)
})

test('SO10 while the other side is away what was fetched stays, after a restart as well', async () => {
  await base.commit(BASE, 'base')
  await published()
  const before = await state()
  base.setDown(true)
  await file.stop()
  const later = kit.restarted()
  await kit.git.commit({ 'shop/kustomization.yaml': `${overlay()}namePrefix: new-\n` }, 'new')
  await later.repositoryChanged('default', 'apps')
  await later.serviceChanged(SHOP)
  const after = await state()
  expect([after.error, after.digest === before.digest]).toEqual([null, false])
  expect(after.release?.revisions[`${base.url}?ref=main`]).toBe(before.release?.revisions[`${base.url}?ref=main`] ?? '')
})

test('SO57 a commit that cannot be rendered drops no base: the next one needs no request', async () => {
  await base.commit(BASE, 'base')
  await published()
  base.setDown(true)
  await file.stop()
  await kit.push({ 'shop/kustomization.yaml': 'resources: [' })
  expect((await state()).error).not.toBeNull()
  await kit.push({ 'shop/kustomization.yaml': `${overlay()}namePrefix: new-\n` })
  expect((await state()).error).toBeNull()
})

test('KU12 a base that cannot be fetched is an error with file, line and address, and is tried again', async () => {
  base.setDown(true)
  await kit.git.commit({ 'shop/kustomization.yaml': overlay() }, 'overlay')
  await kit.repository()
  await kit.service(REMOTE)
  const { error } = await until(state, (found) => found.error !== null)
  expect(error?.code).toBe('git_unreachable')
  expect(error?.problems.map(({ path }) => path)).toEqual(['shop/kustomization.yaml:2', 'shop/kustomization.yaml:5'])
  expect(error?.problems[0]?.message).toContain(base.url)
})
