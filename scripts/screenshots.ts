// Pictures of every page of a running dashboard, in both themes and three widths, for review. It reports console errors
// and refusals of the content policy, too.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Browser, chromium, type Page } from 'playwright-core'
import { UGLY_STATES } from './screenshot-states.ts'

const USAGE = `Usage: scripts/screenshots --url URL --token TOKEN [--out DIR] [--only PAGE,…] [--widths WIDTH,…] [--themes light,dark]

Examples:
  scripts/screenshots --url http://127.0.0.1:8080 --token TOKEN            all pages into build/screenshots
  scripts/screenshots --url … --token … --only fleet,clusters --widths 1440
  scripts/screenshots --url … --token … --only ugly                        nothing there, refused, failed, many, long, lost
`
const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    token: { type: 'string' },
    out: { type: 'string', default: 'build/screenshots' },
    only: { type: 'string' },
    widths: { type: 'string', default: '360,1024,1440' },
    themes: { type: 'string', default: 'light,dark' },
    help: { type: 'boolean', short: 'h', default: false },
  },
})
const { url, token } = values
if (values.help || url === undefined || token === undefined) {
  process.stdout.write(USAGE)
  process.exit(values.help ? 0 : 2)
}
const HEIGHTS: Readonly<Record<string, number>> = { '360': 740, '1024': 768 }
const SETTLE_MS = 900

const ask = async <T>(path: string): Promise<T> => {
  const answer = await fetch(`${url}/api/v1${path}`, { headers: { authorization: `Bearer ${token}` } })
  return (await answer.json()) as T
}
interface Named {
  metadata: { name: string; project: string }
}
interface Placed {
  cluster: string
  project: string
  service: string
}

/** Paths of pages, with one example of each kind of thing that is not as Git says. */
async function pagePaths(): Promise<Record<string, string>> {
  const { items: bad } = await ask<{ items: Placed[] }>('/placements?health=Degraded&limit=1')
  const { items: drifted } = await ask<{ items: Placed[] }>('/objects?drift=open&limit=1')
  const { items: questions } = await ask<{ items: Array<{ id: string }> }>('/confirmations?limit=1')
  const { items: repositories } = await ask<{ items: Named[] }>('/repositories?limit=10')
  const one = bad[0] ?? { cluster: 'none', project: 'shop', service: 'web' }
  const other = drifted[0] ?? one
  const repository = repositories.find(({ metadata }) => metadata.project === 'shop') ?? repositories[0]
  return {
    fleet: '',
    clusters: 'clusters',
    'clusters-side': `clusters?state=bad&cluster=${one.cluster}`,
    cluster: `clusters/${one.cluster}`,
    placement: `clusters/${one.cluster}/${one.project}/${one.service}`,
    'placement-drift': `clusters/${other.cluster}/${other.project}/${other.service}`,
    services: 'services',
    service: `services/${one.project}/${one.service}`,
    repositories: 'repositories',
    repository: `repositories/${repository?.metadata.project}/${repository?.metadata.name}`,
    needs: 'needs-you',
    confirmation: `needs-you/${questions[0]?.id ?? 'none'}`,
    activity: 'activity',
    access: 'access',
    join: 'join',
    settings: 'settings',
    query: 'query?sql=SELECT%20cluster%2C%20service%2C%20reason%2C%20since_ms%20FROM%20placements%20LIMIT%2040',
    notifications: 'notifications',
    render: `services/${one.project}/${one.service}/render?cluster=${one.cluster}`,
    logs: `clusters/${one.cluster}/${one.project}/${one.service}?object=apps/Deployment/${one.service}/${one.service}&tab=logs`,
    history: `clusters/${other.cluster}/history`,
    diff: `clusters/${other.cluster}/${other.project}/${other.service}?object=apps/Deployment/${other.service}/${other.service}&tab=diff`,
    'not-found': 'nowhere',
  }
}

async function open(browser: Browser, width: string, theme: string): Promise<Page> {
  const page = await browser.newPage({
    viewport: { width: Number(width), height: HEIGHTS[width] ?? 940 },
    colorScheme: theme === 'dark' ? 'dark' : 'light',
  })
  page.on('console', (message) => {
    // Refusals are put there on purpose.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      process.stderr.write(`console: ${message.text()} (${page.url()})\n`)
  })
  page.on('pageerror', (error) => process.stderr.write(`error: ${error.message} (${page.url()})\n`))
  return page
}

const out = values.out
mkdirSync(out, { recursive: true })
const browser = await chromium.launch({ executablePath: process.env['SKERRY_CHROMIUM'] ?? '/usr/bin/chromium', args: ['--no-sandbox'] })
const paths = await pagePaths()
const only = values.only?.split(',')
for (const theme of values.themes.split(','))
  for (const width of values.widths.split(',')) {
    const page = await open(browser, width, theme)
    const shoot = (name: string) => page.screenshot({ path: join(out, `${name}-${theme}-${width}.png`) })
    await page.goto(`${url}/dashboard/`)
    await page.waitForSelector('input[name=token]')
    if (only === undefined || only.includes('sign-in')) await shoot('sign-in')
    await page.fill('input[name=token]', token)
    await page.click('button[type=submit]')
    await page.waitForSelector('.numbers')
    for (const [name, path] of Object.entries(paths)) {
      if (only !== undefined && !only.includes(name)) continue
      await page.goto(`${url}/dashboard/${path}`)
      await page.waitForSelector('h1')
      await page.waitForTimeout(SETTLE_MS)
      if (name.startsWith('placement'))
        await page
          .locator('.objects button')
          .first()
          .click({ timeout: 2_000 })
          .catch(() => {})
      await shoot(name)
    }
    if (only === undefined || only.includes('palette')) {
      await page.goto(`${url}/dashboard/`)
      await page.waitForSelector('.numbers')
      await page.keyboard.press('/')
      await page.keyboard.type('pay')
      await page.waitForTimeout(SETTLE_MS)
      await shoot('palette')
    }
    for (const [name, state] of Object.entries(UGLY_STATES)) {
      if (only !== undefined && !only.includes(name) && !only.includes('ugly')) continue
      await page.context().setOffline(false)
      await page.unrouteAll({ behavior: 'ignoreErrors' })
      await state.before?.(page)
      await page.goto(`${url}/dashboard/${state.path}`)
      await page.waitForSelector('h1')
      await page.waitForTimeout(SETTLE_MS)
      await state.after?.(page)
      await shoot(name)
    }
    await page.close()
  }
await browser.close()
process.stdout.write(`screenshots: ${out}\n`)
