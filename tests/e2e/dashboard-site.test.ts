// The dashboard over a real agent and a real API server: a person signs in with a provider, joins the cluster by the
// printed command, sees objects break and heal, reads differences and logs, confirms deletions, and nothing is lost
// while the agent or the server is away.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BrowserContext, Page } from 'playwright-core'
import { createGitServer, type GitServer } from '../../scripts/local-cluster/git-http-server.ts'
import { createLocalFleet, type LocalAgent, type LocalFleet } from '../../scripts/local-cluster/local-fleet.ts'
import { CLIENT, type Dex, startDex } from '../../scripts/local-oidc/dex.ts'
import { startWatchedBrowser, type WatchedBrowser } from '../support/dashboard-browser.ts'
import { CLUSTER_START_TIMEOUT_MS, type Etcd, eventually, type KubeCluster, startEtcd, startKubeCluster } from '../support/kube-cluster.ts'
import { type KubeletStub, startKubeletStub } from '../support/kubelet-stub.ts'
import { configMapYaml, deploymentYaml, repositoryYaml, serviceYaml } from '../support/scenario.ts'
import { programsInShell } from '../support/shell-stubs.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(60_000)

let fleet: LocalFleet
let dex: Dex
let git: GitServer
let etcd: Etcd
let cluster: KubeCluster
let kubelet: KubeletStub
let agent: LocalAgent
let browser: WatchedBrowser
let context: BrowserContext
let page: Page

const MAPS = Array.from({ length: 8 }, (_, index) => `map-${index}`)
/** Git says how a service of this site is called: the value comes from a Config. */
const CONFIG = `apiVersion: skerry.dev/v1
kind: Config
metadata: {name: colours}
spec: {data: {colour: blue}, secrets: {door: hunter2}}
`

beforeAll(async () => {
  const folder = tempDir()
  const oidcConfig = join(folder, 'oidc.json')
  kubelet = startKubeletStub()
  const startCluster = async () => {
    etcd = await startEtcd()
    cluster = await startKubeCluster({ name: 'oslo', etcd, controllers: true, kwok: false })
    await kubelet.register(cluster, 'node-1')
  }
  const startServer = async () => {
    fleet = await createLocalFleet({ serverEnv: { SKERRY_OIDC_CONFIG: oidcConfig } })
    dex = await startDex({ redirectUris: [`${fleet.serverUrl}/auth/callback`] })
    const clientSecretFile = join(folder, 'secret')
    writeFileSync(clientSecretFile, CLIENT.secret, { mode: 0o600 })
    const provider = { name: 'dex', issuer: dex.issuer, clientId: CLIENT.id, clientSecretFile }
    writeFileSync(oidcConfig, JSON.stringify({ providers: [provider] }), { mode: 0o600 })
    await fleet.startServer()
    git = await createGitServer({ dir: join(tempDir(), 'git') })
    await git.commit(
      {
        'web/web.yaml': deploymentYaml('web'),
        'web/conf.yaml': configMapYaml('conf', { colour: 'blue' }),
        'loose/conf.yaml.liquid': configMapYaml('loose', { colour: '{{ config.colour }}' }),
        ...Object.fromEntries(MAPS.map((name) => [`maps/${name}.yaml`, configMapYaml(name, { v: '1' })])),
      },
      'first',
    )
    const binding =
      'apiVersion: skerry.dev/v1\nkind: RoleBinding\nmetadata: {name: ops}\nspec: {projects: ["*"], role: fleet-admin, subjects: [{group: "dex:ops"}]}\n'
    await apply(repositoryYaml('apps', git.url), `---\n${CONFIG}`, `---\n${binding}`)
    browser = await startWatchedBrowser()
    context = await browser.context()
    page = await context.newPage()
  }
  await Promise.all([startCluster(), startServer()])
}, CLUSTER_START_TIMEOUT_MS)
afterAll(async () => {
  await browser?.stop()
  await fleet?.stop()
  await cluster?.stop()
  await etcd?.stop()
  await kubelet?.stop()
  await git?.stop()
  await dex?.stop()
})

const apply = (...documents: string[]) => fleet.run(['apply', '-f', '-'], { stdin: documents.join('') })
const push = async (files: Record<string, string | null>) => {
  const commit = await git.commit(files, 'change')
  await fleet.webhook('apps')
  return commit
}
const kubectl = (...args: string[]) => cluster.kubectl(args)
const open = (path: string, of = page) => of.goto(`${fleet.serverUrl}/dashboard/${path}`)

test('a person signs in with a provider and joins a cluster with the printed command', async () => {
  await open('join')
  await page.click('a:text-is("Sign in with dex")')
  await page.click('a[href*="/auth/forge"]')
  await page.fill('input[name=name]', 'oslo')
  await page.fill('form:has(input[name=name]) textarea[name=labels]', 'env=prod')
  await page.click('button:text-is("Create the command")')
  await page.fill('dialog input[name=reason]', 'the office in Oslo')
  await page.click('dialog button[type=submit]')
  const { args } = programsInShell((await page.locator('.copy-box pre').textContent()) ?? '')
  const joinToken = args.find((one) => one.startsWith('joinToken.value='))?.slice('joinToken.value='.length) ?? ''
  agent = await fleet.addAgent({ name: 'oslo', cluster, joinToken })
  await page.waitForSelector('[role=status] >> text=oslo has joined')
  const { items } = await fleet.api<{ items: Array<{ reason: string; actor: { name: string } }> }>('/audit?kind=JoinToken')
  expect(items.map(({ reason, actor }) => [actor.name, reason])).toEqual([['bob', 'the office in Oslo']])
})

test('applied services arrive in the page of the cluster, and effective values name their Config', async () => {
  await page.click('a:text-is("Open the cluster")')
  await page.waitForFunction(() => document.querySelector('h1')?.textContent === 'oslo')
  await apply(
    serviceYaml({ name: 'web' }),
    serviceYaml({ name: 'loose', sync: '{drift: report}', extra: 'configFrom: [{name: colours}]' }),
    serviceYaml({ name: 'maps' }),
  )
  for (const name of ['web', 'loose', 'maps']) await page.waitForSelector(`main a[href$="/clusters/oslo/default/${name}"]`)
  await eventually('applied', async () => (await kubectl('get', 'cm', 'loose', '-n', 'loose', '-o', 'name')).includes('loose'))
  await open('services/default/loose/render?cluster=oslo')
  await page.waitForSelector('table[aria-label="Effective values for oslo"] >> text=Config/colours')
  const values = await page.textContent('table[aria-label="Effective values for oslo"]')
  expect(values).toContain('blue')
  expect(values).not.toContain('hunter2')
})

test('an object that kubectl deletes is back, and the page shows the healing in a second tab, too', async () => {
  const other = await context.newPage()
  await open('activity', other)
  await open('clusters/oslo/default/web')
  await page.waitForSelector('.object-row >> text=conf')
  const uid = await kubectl('get', 'cm', 'conf', '-n', 'web', '-o', 'jsonpath={.metadata.uid}')
  await kubectl('delete', 'cm', 'conf', '-n', 'web')
  await eventually('healed', async () => {
    const now = await kubectl('get', 'cm', 'conf', '-n', 'web', '-o', 'jsonpath={.metadata.uid}').catch(() => uid)
    return now !== '' && now !== uid
  })
  await page.waitForSelector('main >> text=/[Dd]rift|deleted|restored/')
  await other.waitForSelector('main >> text=/[Dd]rift|restored/')
  await other.close()
})

test('a difference names the field, both values, its manager and the time', async () => {
  await kubectl('-n', 'loose', 'patch', 'cm', 'loose', '--type=merge', '-p', '{"data":{"colour":"red"}}')
  await open('clusters/oslo/default/loose?object=/ConfigMap/loose/loose&tab=diff')
  await page.waitForSelector('.field-diff code >> text=.data.colour')
  expect(await page.locator('.field-diff .side-value pre').allTextContents()).toEqual(['blue', 'red'])
  expect(await page.textContent('.field-diff')).toContain('kubectl-patch')
  const written = await page.locator('.field-diff time').first().getAttribute('datetime')
  expect(Math.abs(Date.parse(written ?? '') - Date.now())).toBeLessThan(120_000)
})

test('logs come from the kubelet as they are written', async () => {
  kubelet.log = 'one\ntwo\n'
  kubelet.follow = async function* () {
    for (let n = 3; n < 1_000; n++) {
      await Bun.sleep(100)
      yield `line ${n}\n`
    }
  }
  await eventually(
    'a Pod has a node',
    async () => (await kubectl('get', 'pods', '-n', 'web', '-o', 'jsonpath={.items[*].spec.nodeName}')) !== '',
  )
  await open('clusters/oslo/default/web?object=apps/Deployment/web/web&tab=logs')
  await page.waitForSelector('.log >> text=two')
  await page.waitForSelector('.log >> text=line 5')
})

test('deletions that Git asks for wait for a person, who confirms their exact names; a viewer cannot', async () => {
  await push(Object.fromEntries(MAPS.slice(1).map((name) => [`maps/${name}.yaml`, null])))
  await open('needs-you')
  await page.waitForSelector('.needs li:has-text("Prune")')
  const { token } = await fleet.api<{ token: string }>('/tokens', {
    method: 'POST',
    body: { name: 'looker', role: 'viewer', expires: '24h' },
  })
  const others = await browser.context({ token })
  const viewer = await others.newPage()
  await page.click('.needs li:has-text("Prune") a.button')
  await page.waitForSelector(`.name-list >> text=ConfigMap maps/${MAPS[1]}`)
  expect(await page.locator('.name-list li:has-text("ConfigMap maps/")').count()).toBe(MAPS.length - 1)
  await viewer.goto(page.url())
  await viewer.waitForSelector(`.name-list >> text=ConfigMap maps/${MAPS[1]}`)
  await viewer.click('main button.is-denied:has-text("Confirm")')
  await viewer.waitForSelector('dialog .note.calm')
  expect(await viewer.locator('dialog input[name=reason]').count()).toBe(0)
  const id = new URL(page.url()).pathname.split('/').at(-1)
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const refused = await fetch(`${fleet.serverUrl}/api/v1/confirmations/${id}/confirm`, { method: 'POST', headers })
  expect(refused.status).toBe(403)
  expect(await kubectl('get', 'cm', '-n', 'maps', '-o', 'name')).toContain('map-7')
  await page.click('main button.primary')
  await page.fill('dialog input[name=reason]', 'moved to another service')
  await page.click('dialog button[type=submit]')
  await eventually('deleted', async () => !(await kubectl('get', 'cm', '-n', 'maps', '-o', 'name')).includes('map-7'))
  await others.close()
})

test('commits wait for an agent that is away, a server that restarts resumes the page, and nothing is lost', async () => {
  await context.close() // its page would be cut off, too, and nothing else may go wrong in it
  const cut = await browser.context({ token: fleet.token, expected: /net::ERR_/ })
  const other = await cut.newPage()
  await open('clusters/oslo/default/web', other)
  await other.waitForSelector('.object-row >> text=conf')
  await other.waitForSelector('.live.is-live')
  await agent.kill()
  await fleet.killServer()
  await other.waitForSelector('.live.is-lost')
  expect(await other.locator('.object-row >> text=conf').count()).toBeGreaterThan(0)
  await fleet.startServer()
  await other.waitForSelector('.live.is-live', { timeout: 45_000 })
  const commit = await push({ 'web/conf.yaml': configMapYaml('conf', { colour: 'green' }) })
  await other.waitForSelector(`main >> text=${commit.slice(0, 7)}`)
  await agent.start()
  await eventually('applied', async () => (await kubectl('get', 'cm', 'conf', '-n', 'web', '-o', 'jsonpath={.data.colour}')) === 'green')
  await other.waitForFunction(
    (short) => [...document.querySelectorAll('.progress li')].filter((one) => one.textContent?.includes(short)).length >= 3,
    commit.slice(0, 7),
  )
  await cut.close()
})

test('nothing was wrong on the console, no request was refused, and nothing broke the content policy', () => {
  expect(browser.wrong).toEqual([])
})
