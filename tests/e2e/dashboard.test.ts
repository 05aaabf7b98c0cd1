// The dashboard in a real browser, over the real server and simulated sites that speak the real protocol: a person
// signs in, sees changes without a reload, acts, loses the connection and comes back. An error on the console, a
// refused request and a violation of the content policy fail the file.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { waitUntil } from '../../scripts/local-cluster/child-process.ts'
import { CLIENT, type Dex, startDex } from '../../scripts/local-oidc/dex.ts'
import { DemoSite } from '../../server/dev/demo-site.ts'
import { settledPage, startWatchedBrowser, type WatchedBrowser } from '../support/dashboard-browser.ts'
import { type DemoFleet, startDemoFleet } from '../support/demo-fleet.ts'
import { programsInShell } from '../support/shell-stubs.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(120_000)

let demo: DemoFleet
let dex: Dex
let browser: WatchedBrowser
let page: Page
/** Shows the service of a site that is cut off at the beginning, and is touched no more. */
let away: Page

const [BROKEN, SUSPENDED, LOGGED, DRIFTED, LABELLED, PRUNED, AWAY, KEPT, REVOKED] = [0, 1, 2, 3, 4, 5, 6, 7, 8] as const
const nameOf = (index: number) => demo.site(index).choice.name
const open = (path: string, of = page) => of.goto(`${demo.fleet.serverUrl}/dashboard/${path}`)

beforeAll(async () => {
  const folder = tempDir()
  const oidcConfig = join(folder, 'oidc.json')
  const beforeServer = async (serverUrl: string) => {
    dex = await startDex({ redirectUris: [`${serverUrl}/auth/callback`] })
    const clientSecretFile = join(folder, 'secret')
    writeFileSync(clientSecretFile, CLIENT.secret, { mode: 0o600 })
    const provider = { name: 'dex', issuer: dex.issuer, clientId: CLIENT.id, clientSecretFile }
    writeFileSync(oidcConfig, JSON.stringify({ providers: [provider] }), { mode: 0o600 })
  }
  demo = await startDemoFleet(12, { serverEnv: { SKERRY_OIDC_CONFIG: oidcConfig }, beforeServer })
  browser = await startWatchedBrowser()
  page = await (await browser.context()).newPage()
}, 180_000)
afterAll(async () => {
  await browser?.stop()
  await demo?.stop()
  await dex?.stop()
})

/** The window of the page belongs to somebody else from now on. */
const become = (token: string) =>
  page.evaluate((other) => {
    const before = sessionStorage.getItem('skerry-token') ?? ''
    sessionStorage.setItem('skerry-token', other)
    return before
  }, token)

const auditOf = async (verb: string) =>
  (
    await demo.api<{ items: Array<{ cluster: string; reason: string; actor: { kind: string; name: string } }> }>(
      'GET',
      `/audit?verb=${verb}`,
    )
  ).items

test('a token opens the fleet: each cluster is a mark, and numbers lead to lists', async () => {
  await page.goto(`${demo.fleet.serverUrl}/`)
  await page.fill('input[name=token]', demo.fleet.token)
  await page.keyboard.press('Enter')
  await page.waitForFunction((count) => document.querySelectorAll('.chart a[data-id]').length === count, demo.sites.length)
  expect(new URL(page.url()).pathname).toBe('/dashboard/')
  await page.waitForFunction(() => document.querySelectorAll('.m-ok').length >= 12)
  away = await (await browser.context({ token: demo.fleet.token })).newPage()
  await open(`clusters/${nameOf(AWAY)}/shop/web`, away)
  await away.waitForSelector('.object-row .m-ok')
  demo.site(AWAY).goOffline()
})

test('a service that breaks turns the mark of its cluster without a reload', async () => {
  await demo.site(BROKEN).degrade('shop/web')
  await page.waitForSelector(`.chart a[aria-label="${nameOf(BROKEN)}, degraded"]`)
  await page.waitForFunction(() => document.querySelector('.numbers .is-bad b')?.textContent === '1')
  await demo.site(BROKEN).heal('shop/web')
  await page.waitForSelector(`.chart a[aria-label="${nameOf(BROKEN)}, in sync"]`)
})

test('an object shows its Pods, logs as they are written, and its restart names what it replaces', async () => {
  await open(`clusters/${nameOf(LOGGED)}/shop/web`)
  await page.click('.objects .fold')
  await page.waitForFunction(() => document.querySelectorAll('[data-depth="2"]').length === 2)
  await page.click('[data-depth="2"]')
  await page.waitForSelector('.log >> text=level=info')
  const written = () => document.querySelectorAll('.log-piece > div').length
  const before = await page.evaluate(written)
  await page.waitForFunction((count) => document.querySelectorAll('.log-piece > div').length > count, before)
  await page.click('.object-row[data-depth="0"]:has-text("Deployment")')
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
  expect((await auditOf('restart')).map(({ cluster, reason }) => [cluster, reason])).toEqual([[nameOf(LOGGED), 'stuck connection']])
})

test('drift is shown field by field with its manager, and why says what is wrong', async () => {
  await demo.site(DRIFTED).drift('shop/web', false)
  await open(`clusters/${nameOf(DRIFTED)}/shop/web?object=apps/Deployment/web/web&tab=diff`)
  await page.waitForSelector('.field-diff code >> text=.spec.replicas')
  expect(await page.locator('.side-value pre').first().textContent()).toBe('2')
  expect(await page.textContent('.field-diff')).toContain('cluster-proportional-autoscaler')
  await page.waitForSelector('.causes li')
  await open('services/shop/web')
  await page.click(`.causes a:text-is("${nameOf(DRIFTED)}")`)
  await page.waitForSelector('.object-row .m-drift')
})

test('labels are written after their effect was shown', async () => {
  const labels = async () => (await demo.api<{ metadata: { labels: object } }>('GET', `/clusters/${nameOf(LABELLED)}`)).metadata.labels
  await open(`clusters/${nameOf(LABELLED)}`)
  await page.click('button:text-is("Edit labels")')
  await page.fill('dialog textarea', 'env=lab\nring=9')
  await page.click('dialog button:text-is("Preview")')
  await page.waitForSelector('dialog h3:text-is("Effect")')
  expect(await labels()).not.toEqual({ env: 'lab', ring: '9' })
  await page.fill('dialog input[name=reason]', 'moved to the lab')
  await page.click('dialog button:text-is("Change labels")')
  await page.waitForSelector('.tag >> text=env=lab')
  expect(await labels()).toEqual({ env: 'lab', ring: '9' })
})

test('a command of the palette says how many clusters it is for, with their names, and asks for a reason', async () => {
  await open('services')
  await settledPage(page)
  await page.keyboard.press('Control+k')
  await page.keyboard.type('suspend web')
  await page.click('[role=option]:has-text("shop/web")')
  await page.waitForSelector(`dialog .name-list li:has-text("${nameOf(SUSPENDED)}")`)
  expect(await page.locator('dialog .name-list li').count()).toBe(demo.sites.length)
  expect(await page.textContent('dialog')).toContain(`${demo.sites.length} clusters`)
  await page.keyboard.press('Escape')
  await page.waitForSelector('dialog', { state: 'detached' })
  const { items } = await demo.api<{ items: unknown[] }>('GET', '/suspensions')
  expect(items).toEqual([])
})

test('a sync that waits is found among what needs attention, and names its clusters and objects', async () => {
  const source = { repository: 'apps', path: 'web' }
  const spec = { source, targets: { selector: {} }, namespace: 'manual', sync: { mode: 'manual' } }
  const resource = { apiVersion: 'skerry.dev/v1', kind: 'Service', metadata: { project: 'shop', name: 'manual' }, spec }
  await demo.api('POST', '/apply', { resources: [resource] })
  const waiting = async () => {
    const { items } = await demo.api<{ items: Array<{ reason: string }> }>('GET', '/placements?project=shop&service=manual&limit=100')
    return items.filter(({ reason }) => reason === 'ManualSync').length
  }
  const online = demo.sites.filter((site) => site.online).length
  await page.waitForFunction(() => document.querySelector('.rail a[href$="/services"] .n')?.textContent === '3')
  await waitUntil('the service waits in each cluster that is online', async () => (await waiting()) === online)
  await open('needs-you')
  await page.click('.needs li:has-text("shop/manual") button:has-text("Sync now")')
  await page.waitForSelector(`dialog .name-list li:text-is("${nameOf(SUSPENDED)}")`)
  await page.waitForSelector('dialog .name-list li:has-text("Deployment manual/web")')
  await page.fill('dialog input[name=reason]', 'checked in the lab')
  await page.click('dialog button[type=submit]')
  await page.waitForSelector('dialog', { state: 'detached' })
  await page.waitForSelector('.needs li:has-text("shop/manual")', { state: 'detached' })
  await waitUntil('no cluster waits', async () => (await waiting()) === 0)
  expect([...new Set((await auditOf('sync')).map(({ reason }) => reason))]).toEqual(['checked in the lab'])
})

test('reading Git again names the services that follow, and a revoked cluster the services that stay there', async () => {
  await open('services/shop/broken') // its state says what to do, and has the button for it
  await page.click('main button:text-is("Read Git now")')
  await page.waitForSelector(`dialog .name-list li:has-text("web · ${demo.sites.length} clusters")`)
  await page.fill('dialog input[name=reason]', 'the webhook is broken')
  await page.click('dialog button[type=submit]')
  await page.waitForSelector('dialog', { state: 'detached' })
  expect((await auditOf('refresh')).map(({ reason }) => reason)).toEqual(['the webhook is broken'])
  const revoked = async () => (await demo.api<{ spec: { revoked: boolean } }>('GET', `/clusters/${nameOf(REVOKED)}`)).spec.revoked
  const act = async (label: string, reason: string) => {
    await page.click(`main button:text-is("${label}")`)
    await page.waitForSelector('dialog .name-list li:text-is("shop/web")')
    await page.fill('dialog input[name=reason]', reason)
    await page.click('dialog button[type=submit]')
    await page.waitForSelector('dialog', { state: 'detached' })
  }
  await open(`clusters/${nameOf(REVOKED)}`)
  await act('Revoke', 'stolen machine')
  await page.waitForSelector('main button:text-is("Admit again")')
  expect(await revoked()).toBe(true)
  await act('Admit again', 'found again')
  await page.waitForSelector('main button:text-is("Revoke")')
  expect(await revoked()).toBe(false)
})

test('a query answers in a table, is saved for everybody, and its errors are shown', async () => {
  const sql = 'SELECT cluster, service FROM placements ORDER BY cluster LIMIT 3'
  await open(`query?sql=${encodeURIComponent(sql)}`)
  await page.waitForSelector('table.sql tbody tr')
  expect(await page.locator('table.sql tbody tr').count()).toBe(3)
  expect(await page.locator('table.sql a').first().getAttribute('href')).toContain('/dashboard/clusters/')
  await page.click('.section-head button:text-is("Save")')
  await page.fill('dialog input.mono', 'placed')
  await page.fill('dialog input[name=reason]', 'asked each week')
  await page.click('dialog button[type=submit]')
  await page.waitForSelector('.picks li:has-text("placed")')
  expect(await demo.api('GET', '/saved-queries/placed')).toMatchObject({ sql })
  const context = await browser.context({ token: demo.fleet.token, expected: /\/api\/v1\/query/ })
  const other = await context.newPage()
  await open(`query?sql=${encodeURIComponent('DELETE FROM clusters')}`, other)
  await other.waitForSelector('.note[role=alert]')
  await context.close()
})

test('a refused prune is confirmed by its exact names; its page says so without an error, and a second tab sees it go', async () => {
  await demo.site(PRUNED).refusePrune('shop/web')
  const context = await browser.context({ token: demo.fleet.token })
  const other = await context.newPage()
  await open('needs-you', other)
  await open('needs-you')
  await page.click('.needs li:has-text("Prune") a.button')
  await page.waitForSelector('.name-list >> text=Deployment web/web')
  await other.waitForSelector('.needs li:has-text("Prune")')
  await page.click('main button.primary')
  await page.fill('dialog input[name=reason]', 'moved to another service')
  await page.click('dialog button[type=submit]')
  await other.waitForFunction(() => !document.body.textContent?.includes('Prune: confirmation pending'))
  await page.waitForSelector('main [role=status] >> text=Confirmed')
  await page.waitForFunction(() => document.querySelector('main .name-list') === null)
  await page.reload()
  await page.waitForSelector('main >> text=no longer pending')
  await context.close()
})

test('a person keeps the objects: the entry goes, and the reason is recorded and shown with the service', async () => {
  await demo.site(KEPT).refusePrune('shop/web')
  await open('needs-you')
  await page.click('.needs li:has-text("Prune") a.button')
  await page.click('main button:text-is("Keep the objects")')
  await page.waitForSelector('dialog .name-list >> text=Deployment web/web')
  await page.fill('dialog input[name=reason]', 'the migration is not over')
  await page.click('dialog button[type=submit]')
  await page.waitForSelector('main [role=status] >> text=Kept')
  await open('needs-you')
  await settledPage(page)
  expect(await page.locator('.needs li:has-text("Prune")').count()).toBe(0)
  await open(`clusters/${nameOf(KEPT)}/shop/web`)
  await page.waitForSelector('main >> text=the migration is not over')
  expect((await auditOf('refuse')).map(({ reason }) => reason)).toEqual(['the migration is not over'])
})

test('a cluster joins with the printed command and appears without a reload', async () => {
  await open('join')
  await page.fill('input[name=name]', 'lab-1')
  await page.fill('form:has(input[name=name]) textarea[name=labels]', 'env=lab')
  await page.click('button:text-is("Create the command")')
  await page.fill('dialog input[name=reason]', 'new lab')
  await page.click('dialog button[type=submit]')
  await page.waitForSelector('.copy-box pre')
  const { program, args } = programsInShell((await page.locator('.copy-box pre').textContent()) ?? '')
  const given = Object.fromEntries(args.filter((_, at) => args[at - 1] === '--set-string').map((pair) => pair.split(/=(.*)/s)))
  expect([program, given['cluster'], given['server']]).toEqual(['helm', 'lab-1', demo.fleet.serverUrl])
  const site = new DemoSite(demo.fleet.serverUrl, { name: 'lab-1', labels: {}, kubernetesVersion: 'v1.34.0', nodeCount: 1 })
  await site.join(given['joinToken.value'] ?? '')
  site.goOnline()
  demo.sites.push(site)
  await page.waitForSelector('[role=status] >> text=lab-1 has joined')
  await page.waitForSelector('[role=status] >> text=/Its labels select \\d services/')
})

test('what a viewer may not do is explained before a reason is typed, and what they may not read is not there', async () => {
  await open('access')
  await page.selectOption('select[name=kind]', 'Cluster')
  await page.selectOption('select[name=verb]', 'cluster:label')
  await page.click('button:text-is("Check")')
  await page.waitForSelector('.note.calm >> text=fleet-admin')
  expect(await page.locator('table').count()).toBeGreaterThanOrEqual(2)
  const { token } = await demo.api<{ token: string }>('POST', '/tokens', { name: 'looker', role: 'viewer', expires: '24h' })
  const denied = async () => (await demo.api<{ items: unknown[] }>('GET', '/audit?result=denied')).items.length
  const before = await denied()
  const admin = await become(token)
  await page.reload()
  await page.waitForFunction(() => document.querySelectorAll('.note.calm').length === 3)
  expect(await page.locator('.note.calm').allTextContents()).toEqual([
    expect.stringContaining('read RoleBinding'),
    expect.stringContaining('read Role'),
    expect.stringContaining('token:read'),
  ])
  await open(`clusters/${nameOf(BROKEN)}/shop/web?object=apps/Deployment/web/web&tab=logs`)
  await page.waitForSelector('[role=tabpanel] .note.calm')
  for (const [path, label] of [
    [`clusters/${nameOf(BROKEN)}/shop/web?object=apps/Deployment/web/web`, 'Restart'],
    [`clusters/${nameOf(BROKEN)}`, 'Suspend'],
    ['services/shop/web', 'Suspend'],
    ['repositories/shop/apps', 'Read Git now'],
  ] as const) {
    await open(path)
    await page.click(`main button.is-denied:text-is("${label}")`)
    await page.waitForSelector('dialog .note.calm')
    expect(await page.locator('dialog input[name=reason]').count()).toBe(0)
    await page.click('dialog button:text-is("Close")')
  }
  expect(await denied()).toBe(before)
  await become(admin)
})

test('a person signs in through a provider, sees the audit log as rights allow, and signs out', async () => {
  const binding = { projects: ['*'], role: 'project-admin', subjects: [{ group: 'dex:ops' }] }
  const resource = { apiVersion: 'skerry.dev/v1', kind: 'RoleBinding', metadata: { name: 'ops' }, spec: binding }
  await demo.api('POST', '/apply', { resources: [resource] })
  const context = await browser.context()
  const other = await context.newPage()
  await open('activity?view=audit&kind=RoleBinding', other)
  await other.click('a:text-is("Sign in with dex")')
  await other.click('a[href*="/auth/forge"]')
  await other.waitForSelector('.audit li >> text=ops')
  expect(new URL(other.url()).search).toBe('?view=audit&kind=RoleBinding')
  expect(await other.locator('.audit li').count()).toBe(1)
  expect(await other.textContent('.rail .person')).toContain('bob')
  await open('access', other)
  await other.waitForSelector('[aria-label="Sessions"] >> text=this browser')
  await other.click('.rail button:text-is("Sign out")')
  await other.waitForSelector('input[name=token]')
  await other.reload()
  await other.waitForSelector('input[name=token]')
  await context.close()
  expect((await auditOf('sign-out')).map(({ actor }) => [actor.kind, actor.name])).toEqual([['user', 'bob']])
})

test('a session that ends asks for the token again, keeps the place, and the next person gets live changes', async () => {
  const { token, id } = await demo.api<{ token: string; id: string }>('POST', '/tokens', {
    name: 'short',
    role: 'fleet-admin',
    expires: '24h',
  })
  const context = await browser.context({ expected: /HTTP 401|status of 401/ })
  const other = await context.newPage()
  await open('clusters', other)
  await other.fill('input[name=token]', token)
  await other.keyboard.press('Enter')
  await other.waitForSelector('.live.is-live')
  await demo.api('DELETE', `/tokens/${id}`)
  await other.waitForSelector('input[name=token]')
  await other.fill('input[name=token]', demo.fleet.token)
  await other.keyboard.press('Enter')
  await other.waitForSelector('.live.is-live')
  expect(new URL(other.url()).pathname).toBe('/dashboard/clusters')
  await demo.site(BROKEN).degrade('shop/web')
  await other.waitForSelector(`[data-row]:has-text("${nameOf(BROKEN)}") .m-bad`)
  await demo.site(BROKEN).heal('shop/web')
  await context.close()
})

test('a lost connection keeps the page in its place, says so, and is resumed', async () => {
  const context = await browser.context({ token: demo.fleet.token, expected: /net::ERR_/ })
  const other = await context.newPage()
  await open('', other)
  await other.waitForSelector('.live.is-live')
  await other.waitForSelector('.chart a[data-id]')
  await other.waitForFunction(() => document.querySelector('main .waiting') === null)
  await other.evaluate(() => {
    const seen = window as never as { shifted: string[] }
    seen.shifted = []
    new PerformanceObserver((list) => {
      // New lines of a feed move the older ones.
      for (const entry of list.getEntries() as Array<PerformanceEntry & { value: number; sources: Array<{ node: Element | null }> }>)
        if (entry.sources.some(({ node }) => node?.parentElement?.closest('.feed') == null))
          seen.shifted.push(
            `${entry.value.toFixed(4)} ${entry.sources.map(({ node }) => `${node?.parentElement?.className} > ${node?.nodeName} ${node?.textContent?.slice(0, 40)}`).join()}`,
          )
    }).observe({ type: 'layout-shift' })
  })
  await context.setOffline(true)
  await other.waitForSelector('.live.is-lost')
  await demo.site(BROKEN).degrade('shop/web')
  await other.waitForSelector('.lost')
  expect(await other.locator('.chart a[data-id]').count()).toBe(demo.sites.length)
  // Chart, numbers and needs are dimmed in their places: they are those of the time when the connection was lost.
  expect(await other.locator('main .aged.is-old').count()).toBeGreaterThanOrEqual(3)
  await context.setOffline(false)
  await other.waitForSelector(`.chart a[aria-label="${nameOf(BROKEN)}, degraded"]`)
  await other.waitForSelector('.lost', { state: 'detached' })
  expect(await other.evaluate(() => (window as never as { shifted: string[] }).shifted)).toEqual([])
  await context.close()
})

test('an open page sees that its site is away: neither green nor red, with what was last known and since when', async () => {
  await away.waitForSelector('main >> text=/offline since/', { timeout: 200_000 }) // two lost polls and the look of the server
  await away.waitForFunction(() => document.querySelector('.object-row .m-offline') !== null)
  // A mark inside that of the offline says what was known last; the history is of earlier times.
  const now = '.state-note .m, .objects .m'
  expect(await away.locator(now).evaluateAll((all) => all.filter((one) => one.closest('.m-offline') === null).length)).toBe(0)
  await open('services/shop/web')
  await page.waitForSelector('main .m-offline')
  demo.site(AWAY).goOnline()
  await away.waitForSelector('.object-row > .m-ok', { timeout: 60_000 })
  await away.waitForSelector('main >> text=/offline since/', { state: 'detached' })
}, 280_000)

test('nothing was wrong on the console, no request was refused, and nothing broke the content policy', () => {
  expect(browser.wrong).toEqual([])
})
