// The dashboard in a real browser, over the real server and simulated sites that speak the real protocol: signing in, seeing a change without a reload, acting by keyboard,
// losing the connection and coming back. An error on the console, a violation of the content policy and a finding of axe fail it.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import axe from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'
import { createGitServer, type GitServer } from '../../scripts/local-cluster/git-http-server.ts'
import { createLocalFleet, type LocalFleet } from '../../scripts/local-cluster/local-fleet.ts'
import { CLIENT, type Dex, startDex } from '../../scripts/local-oidc/dex.ts'
import { demoSites, manifests } from '../../server/dev/demo-content.ts'
import { DemoSite } from '../../server/dev/demo-site.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(60_000)
const CHROMIUM = process.env['SKERRY_CHROMIUM'] ?? '/usr/bin/chromium'
if (!existsSync(CHROMIUM)) throw new Error(`${CHROMIUM} is missing: apt-get install chromium, or set SKERRY_CHROMIUM`)

let fleet: LocalFleet
let dex: Dex
let git: GitServer
let browser: Browser
let page: Page
const sites: DemoSite[] = []
const wrong: string[] = []

beforeAll(async () => {
  const folder = tempDir()
  const oidcConfig = join(folder, 'oidc.json')
  fleet = await createLocalFleet({ serverEnv: { SKERRY_REQUESTS_PER_SECOND: '0', SKERRY_OIDC_CONFIG: oidcConfig } })
  dex = await startDex({ redirectUris: [`${fleet.serverUrl}/auth/callback`] })
  const clientSecretFile = join(folder, 'secret')
  writeFileSync(clientSecretFile, CLIENT.secret, { mode: 0o600 })
  const provider = { name: 'dex', issuer: dex.issuer, clientId: CLIENT.id, clientSecretFile }
  writeFileSync(oidcConfig, JSON.stringify({ providers: [provider] }), { mode: 0o600 })
  await fleet.startServer()
  git = await createGitServer({ dir: join(tempDir(), 'git') })
  await git.commit({ 'web/app.yaml': manifests('web', '1.0.0'), 'broken/app.yaml': 'kind: {\n' }, 'first')
  const metadata = { project: 'shop' }
  const head = { apiVersion: 'skerry.dev/v1' }
  const service = (name: string) => ({
    ...{ ...head, kind: 'Service', metadata: { ...metadata, name } },
    spec: { source: { repository: 'apps', path: name }, targets: { selector: {} }, namespace: name },
  })
  const repository = {
    ...head,
    kind: 'Repository',
    metadata: { ...metadata, name: 'apps' },
    spec: { git: { url: git.url, ref: 'main' }, poll: '5s' },
  }
  await api('POST', '/apply', { resources: [repository, service('web'), service('broken')] })
  for (const choice of demoSites(12)) {
    const { token } = (await api('POST', '/join-tokens', { labels: choice.labels, uses: 1, expires: '1h' })) as { token: string }
    const site = new DemoSite(fleet.serverUrl, choice)
    await site.join(token)
    site.goOnline()
    sites.push(site)
  }
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
  page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
  page.on('console', (message) => {
    if (message.type() === 'error' && !isExpected) wrong.push(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => wrong.push(`error: ${error.message}`))
})
afterAll(async () => {
  for (const site of sites) site.goOffline()
  await browser?.close()
  await git?.stop()
  await dex?.stop()
  await fleet?.stop()
})

/** The connection is cut on purpose. */
let isExpected = false

async function api(method: string, path: string, body?: unknown): Promise<unknown> {
  const headers = { authorization: `Bearer ${fleet.token}`, 'content-type': 'application/json' }
  const answer = await fetch(`${fleet.serverUrl}/api/v1${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  if (!answer.ok) throw new Error(`${method} ${path}: HTTP ${answer.status} ${await answer.text()}`)
  return answer.json()
}

/** Findings of axe on the current page, in both themes. */
async function findings(): Promise<string[]> {
  const found: string[] = []
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    await page.evaluate(axe.source)
    const { violations } = await page.evaluate(() => (window as never as { axe: typeof axe }).axe.run({ resultTypes: ['violations'] }))
    found.push(
      ...violations.flatMap(({ id, nodes }) =>
        nodes.slice(0, 3).map(({ target, failureSummary }) => `${colorScheme} ${id} ${target}: ${failureSummary}`),
      ),
    )
  }
  return found
}

test('a token opens the fleet: each cluster is a mark, and numbers lead to lists', async () => {
  await page.goto(`${fleet.serverUrl}/`)
  expect(await findings()).toEqual([])
  await page.fill('input[name=token]', fleet.token)
  await page.keyboard.press('Enter')
  await page.waitForFunction((count) => document.querySelectorAll('.chart a[data-id]').length === count, sites.length)
  expect(new URL(page.url()).pathname).toBe('/dashboard/')
  await page.waitForFunction(() => document.querySelectorAll('.m-ok').length >= 12)
})

test('a service that breaks turns the mark of its cluster without a reload', async () => {
  const [site] = sites
  await site?.degrade('shop/web')
  await page.waitForSelector(`.chart a[aria-label="${site?.choice.name}, degraded"]`)
  await page.waitForFunction(() => document.querySelector('.numbers .is-bad b')?.textContent === '1')
  await site?.heal('shop/web')
  await page.waitForSelector(`.chart a[aria-label="${site?.choice.name}, in sync"]`)
})

test('every page is free of findings in both themes', async () => {
  const name = sites[0]?.choice.name
  const paths = [
    '',
    'clusters',
    `clusters?cluster=${name}`,
    `clusters/${name}`,
    `clusters/${name}/shop/web`,
    'services',
    `clusters/${name}/shop/web?object=apps/Deployment/web/web&tab=logs`,
    `clusters/${name}/shop/web?object=apps/Deployment/web/web&tab=yaml`,
    'services/shop/web',
    'services/shop/web/render',
    `clusters/${name}/history`,
    `clusters/${name}/shop/web/history`,
    'query?sql=SELECT%20name%20FROM%20clusters',
    'notifications',
  ]
  const more = [
    'services/shop/broken',
    'repositories',
    'repositories/shop/apps',
    'needs-you',
    'activity',
    'access',
    'join',
    'settings',
    'nowhere',
  ]
  for (const path of [...paths, ...more]) {
    await page.goto(`${fleet.serverUrl}/dashboard/${path}`)
    await page.waitForSelector('h1')
    await page.waitForFunction(() => document.querySelector('.main .waiting') === null)
    expect([path, ...(await findings())]).toEqual([path])
  }
})

test('by keyboard alone: search a cluster, open it, suspend it with a reason', async () => {
  const name = sites[1]?.choice.name ?? ''
  await page.goto(`${fleet.serverUrl}/dashboard/`)
  await page.waitForSelector('.numbers')
  await page.keyboard.press('/')
  await page.keyboard.type(name)
  await page.waitForSelector(`[role=option] >> text=${name}`)
  await page.keyboard.press('Enter')
  await page.waitForFunction((wanted) => document.querySelector('h1')?.textContent === wanted, name)
  await page.focus('button:text-is("Suspend")')
  await page.keyboard.press('Enter')
  await page.waitForSelector('dialog input[name=reason]')
  await page.focus('dialog input[name=reason]')
  await page.keyboard.type('maintenance')
  await page.keyboard.press('Enter')
  await page.waitForSelector('button:text-is("Resume")')
  const { items } = (await api('GET', '/suspensions')) as { items: Array<{ cluster: string; reason: string }> }
  expect(items.map(({ cluster, reason }) => [cluster, reason])).toEqual([[name, 'maintenance']])
})

test('an object shows its Pods, logs as they are written, and its restart names what it replaces', async () => {
  const name = sites[2]?.choice.name ?? ''
  await page.goto(`${fleet.serverUrl}/dashboard/clusters/${name}/shop/web`)
  await page.click('.objects .fold')
  await page.waitForFunction(() => document.querySelectorAll('.children .depth-2').length === 2)
  await page.click('.children .depth-2')
  await page.waitForSelector('.log >> text=level=info')
  const written = () => document.querySelectorAll('.log-piece > div').length
  const before = await page.evaluate(written)
  await page.waitForFunction((count) => document.querySelectorAll('.log-piece > div').length > count, before)
  await page.click('.object-row[aria-pressed=false]')
  await page.click('[data-tab=yaml]')
  await page.waitForSelector('.code >> text=apiVersion')
  await page.keyboard.press('ArrowLeft')
  await page.waitForSelector('[data-tab=logs][aria-selected=true]')
  await page.click('button:text-is("Restart")')
  await page.waitForSelector('dialog .name-list li')
  expect(await page.locator('dialog .name-list li').count()).toBe(2)
  await page.fill('dialog input[name=reason]', 'stuck connection')
  await page.click('dialog button[type=submit]')
  await page.waitForSelector('dialog', { state: 'detached' })
  const { items } = (await api('GET', '/audit?verb=restart')) as { items: Array<{ cluster: string; reason: string }> }
  expect(items.map(({ cluster, reason }) => [cluster, reason])).toEqual([[name, 'stuck connection']])
})

test('drift is shown field by field with its manager, and why says what is wrong', async () => {
  const [, , , site] = sites
  await site?.drift('shop/web', false)
  await page.goto(`${fleet.serverUrl}/dashboard/clusters/${site?.choice.name}/shop/web?object=apps/Deployment/web/web&tab=diff`)
  await page.waitForSelector('.field-diff code >> text=.spec.replicas')
  expect(await page.locator('.side-value pre').first().textContent()).toBe('2')
  expect(await page.textContent('.field-diff')).toContain('cluster-proportional-autoscaler')
  await page.waitForSelector('.causes li')
})

test('labels are written after their effect was shown', async () => {
  const name = sites[4]?.choice.name ?? ''
  await page.goto(`${fleet.serverUrl}/dashboard/clusters/${name}`)
  await page.click('button:text-is("Edit labels")')
  await page.fill('dialog textarea', 'env=lab\nring=9')
  await page.click('dialog button:text-is("Preview")')
  await page.waitForSelector('dialog h3:text-is("Effect")')
  expect(((await api('GET', `/clusters/${name}`)) as { metadata: { labels: object } }).metadata.labels).not.toEqual({
    env: 'lab',
    ring: '9',
  })
  await page.fill('dialog input[name=reason]', 'moved to the lab')
  await page.click('dialog button:text-is("Change labels")')
  await page.waitForSelector('.tag >> text=env=lab')
  expect(((await api('GET', `/clusters/${name}`)) as { metadata: { labels: object } }).metadata.labels).toEqual({ env: 'lab', ring: '9' })
})

test('a query answers in a table, can be shared by its address, and its errors are shown', async () => {
  const sql = 'SELECT cluster, service FROM placements ORDER BY cluster LIMIT 3'
  await page.goto(`${fleet.serverUrl}/dashboard/query?sql=${encodeURIComponent(sql)}`)
  await page.waitForSelector('table.sql tbody tr')
  expect(await page.locator('table.sql tbody tr').count()).toBe(3)
  expect(await page.locator('table.sql a').first().getAttribute('href')).toContain('/dashboard/clusters/')
  isExpected = true
  await page.fill('textarea', 'DELETE FROM clusters')
  await page.keyboard.press('Control+Enter')
  await page.waitForSelector('.note[role=alert]')
  isExpected = false
})

test('a refused prune is confirmed by its exact names, and a second tab sees it go', async () => {
  const [, , , , , site] = sites
  await site?.refusePrune('shop/web')
  const context = await browser.newContext()
  const other = await context.newPage()
  await other.addInitScript((token) => sessionStorage.setItem('skerry-token', token), fleet.token)
  await other.goto(`${fleet.serverUrl}/dashboard/needs-you`)
  await page.goto(`${fleet.serverUrl}/dashboard/needs-you`)
  await page.click('.needs li:has-text("Prune") a.button')
  await page.waitForSelector('.name-list >> text=Deployment web/web')
  await other.waitForSelector('.needs li:has-text("Prune")')
  await page.click('button.primary')
  await page.fill('dialog input[name=reason]', 'moved to another service')
  await page.click('dialog button[type=submit]')
  await other.waitForFunction(() => !document.body.textContent?.includes('Prune: confirmation pending'))
  await context.close()
})

test('a cluster joins with the printed command and appears without a reload', async () => {
  await page.goto(`${fleet.serverUrl}/dashboard/join`)
  await page.fill('textarea', 'env=lab')
  await page.click('button:text-is("Create join token")')
  await page.fill('dialog input[name=reason]', 'new lab')
  await page.click('dialog button[type=submit]')
  await page.waitForSelector('.copy-box pre')
  const command = (await page.locator('.copy-box pre').textContent()) ?? ''
  const site = new DemoSite(fleet.serverUrl, { name: 'lab-1', labels: {}, kubernetesVersion: 'v1.34.0', nodeCount: 1 })
  await site.join(/--join-token (\S+)/.exec(command)?.[1] ?? '')
  site.goOnline()
  sites.push(site)
  await page.waitForSelector('[role=status] >> text=lab-1 has joined')
})

test('access answers a question about a right, and hides what the caller may not read', async () => {
  await page.goto(`${fleet.serverUrl}/dashboard/access`)
  await page.selectOption('select[name=kind]', 'Cluster')
  await page.selectOption('select[name=verb]', 'cluster:label')
  await page.click('button:text-is("Check")')
  await page.waitForSelector('.note.calm >> text=fleet-admin')
  expect(await page.locator('table').count()).toBeGreaterThanOrEqual(2)
  const { token } = (await api('POST', '/tokens', { name: 'looker', role: 'viewer', expires: '24h' })) as { token: string }
  const admin = await page.evaluate((other) => {
    const before = sessionStorage.getItem('skerry-token') ?? ''
    sessionStorage.setItem('skerry-token', other)
    return before
  }, token)
  await page.reload()
  await page.waitForFunction(() => document.querySelectorAll('.note.calm').length === 3)
  expect(await page.locator('.note.calm').allTextContents()).toEqual([
    expect.stringContaining('read RoleBinding'),
    expect.stringContaining('read Role'),
    expect.stringContaining('token:read'),
  ])
  expect(await page.locator('input[name=name][pattern]').count()).toBe(0)
  await page.goto(`${fleet.serverUrl}/dashboard/clusters/${sites[0]?.choice.name}/shop/web?object=apps/Deployment/web/web&tab=logs`)
  await page.waitForSelector('[role=tabpanel] .note.calm')
  expect(await page.locator('button:text-is("Restart")').count()).toBe(0)
  await page.evaluate((before) => sessionStorage.setItem('skerry-token', before), admin)
})

test('a person signs in through a provider, sees the audit log as rights allow, and signs out', async () => {
  const binding = { projects: ['*'], role: 'project-admin', subjects: [{ group: 'dex:ops' }] }
  const resource = { apiVersion: 'skerry.dev/v1', kind: 'RoleBinding', metadata: { name: 'ops' }, spec: binding }
  await api('POST', '/apply', { resources: [resource] })
  const context = await browser.newContext()
  const other = await context.newPage()
  const failed: string[] = []
  other.on('response', (response) => {
    if (response.status() >= 400) failed.push(response.url())
  })
  await other.goto(`${fleet.serverUrl}/dashboard/activity?view=audit&kind=RoleBinding`)
  await other.click('a:text-is("Sign in with dex")')
  await other.click('a[href*="/auth/forge"]')
  await other.waitForSelector('.audit li >> text=ops')
  expect(new URL(other.url()).search).toBe('?view=audit&kind=RoleBinding')
  expect(await other.locator('.audit li').count()).toBe(1)
  expect(await other.textContent('.rail .person')).toContain('bob')
  await other.goto(`${fleet.serverUrl}/dashboard/access`)
  await other.waitForSelector('[aria-label="Sessions"] >> text=this browser')
  await other.click('.rail button:text-is("Sign out")')
  await other.waitForSelector('input[name=token]')
  await other.reload()
  await other.waitForSelector('input[name=token]')
  expect(failed).toEqual([])
  await context.close()
  const { items } = (await api('GET', '/audit?verb=sign-out')) as { items: Array<{ actor: { kind: string; name: string } }> }
  expect(items.map(({ actor }) => [actor.kind, actor.name])).toEqual([['user', 'bob']])
})

test('a lost connection keeps the page, says so, and is resumed', async () => {
  isExpected = true
  await page.goto(`${fleet.serverUrl}/dashboard/`)
  await page.waitForSelector('.live.is-live')
  await page.waitForSelector('.chart a[data-id]')
  await page.context().setOffline(true)
  await page.waitForSelector('.live.is-lost')
  const [site] = sites
  await site?.degrade('shop/web')
  expect(await page.locator('.chart a[data-id]').count()).toBe(sites.length)
  await page.context().setOffline(false)
  await page.waitForSelector(`.chart a[aria-label="${site?.choice.name}, degraded"]`)
  isExpected = false
})

test('nothing was wrong on the console, and nothing broke the content policy', () => {
  expect(wrong).toEqual([])
})
