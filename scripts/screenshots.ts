// Pictures of every page of the dashboard, in both themes and three widths, for review: over a fleet that it starts
// itself, or over a server that is there. It reports console errors and refusals of the content policy, too.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Browser, chromium, type Page } from 'playwright-core'
import { type OwnServer, startOwnServer } from './screenshot-server.ts'
import { ACTED, OPENED, UGLY_STATES } from './screenshot-states.ts'

const USAGE = `Usage: scripts/screenshots [--url URL --token TOKEN] [--out DIR] [--only PAGE,…] [--widths WIDTH,…] [--themes light,dark] [--clusters COUNT]

Examples:
  scripts/screenshots                                   starts a still demo fleet, and writes all pages into build/screenshots
  scripts/screenshots --only fleet,clusters --widths 1440
  scripts/screenshots --only ugly                       nothing there, refused, failed, many, long, lost
  scripts/screenshots --url http://127.0.0.1:8080 --token TOKEN    a server that is running
`
const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    token: { type: 'string' },
    out: { type: 'string', default: 'build/screenshots' },
    only: { type: 'string' },
    widths: { type: 'string', default: '360,1024,1440' },
    themes: { type: 'string', default: 'light,dark' },
    clusters: { type: 'string', default: '500' },
    help: { type: 'boolean', short: 'h', default: false },
  },
})
if (values.help || (values.url === undefined) !== (values.token === undefined)) {
  process.stdout.write(USAGE)
  process.exit(values.help ? 0 : 2)
}
const HEIGHTS: Readonly<Record<string, number>> = { '360': 740, '1024': 768 }
const SETTLE_MS = 900
/** Trouble comes to the demo fleet after it has settled. */
const TROUBLE_MS = 240_000

const own: OwnServer | null = values.url === undefined ? await startOwnServer(Number(values.clusters)) : null
const { url, token } = own ?? { url: values.url ?? '', token: values.token ?? '' }

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
interface Attended {
  items: Array<{ kind: string; id: string }>
}

/** Everything that is not as it should be is there. */
async function troubleIsThere(): Promise<void> {
  const until = Date.now() + TROUBLE_MS
  while (Date.now() < until) {
    const { items } = await ask<Attended>('/attention?limit=100')
    const kinds = new Set(items.map(({ kind }) => kind))
    const { items: away } = await ask<{ items: Named[] }>('/clusters?liveness=Offline&limit=1')
    if (away.length > 0 && ['confirmation', 'render', 'contested', 'sync'].every((kind) => kinds.has(kind))) return
    await Bun.sleep(1_000)
  }
}

/** Paths of pages, with one example of each kind of thing that is not as Git says. */
async function pagePaths(): Promise<Record<string, string>> {
  const { items: bad } = await ask<{ items: Placed[] }>('/placements?health=Degraded&limit=1')
  const { items: drifted } = await ask<{ items: Placed[] }>('/objects?drift=open&limit=1')
  const { items: questions } = await ask<{ items: Array<{ id: string }> }>('/confirmations?limit=1')
  const { items: repositories } = await ask<{ items: Named[] }>('/repositories?limit=10')
  const { items: away } = await ask<{ items: Named[] }>('/clusters?liveness=Offline&limit=1')
  const one = bad[0] ?? { cluster: 'none', project: 'shop', service: 'web' }
  const other = drifted[0] ?? one
  const repository = repositories.find(({ metadata }) => metadata.project === 'shop') ?? repositories[0]
  const offline = away[0]?.metadata.name ?? one.cluster
  const object = (of: Placed) => `object=apps/Deployment/${of.service}/${of.service}`
  return {
    fleet: '',
    clusters: 'clusters',
    'clusters-grouped': 'clusters?group=region&sort=services',
    'clusters-side': `clusters?state=bad&cluster=${one.cluster}`,
    cluster: `clusters/${one.cluster}`,
    'cluster-offline': `clusters/${offline}`,
    placement: `clusters/${one.cluster}/${one.project}/${one.service}`,
    'placement-drift': `clusters/${other.cluster}/${other.project}/${other.service}`,
    'placement-offline': `clusters/${offline}/shop/web`,
    services: 'services',
    service: `services/${one.project}/${one.service}`,
    'service-failed': 'services/shop/loyalty',
    repositories: 'repositories',
    repository: `repositories/${repository?.metadata.project}/${repository?.metadata.name}`,
    needs: 'needs-you',
    confirmation: `needs-you/${questions[0]?.id ?? 'none'}`,
    activity: 'activity',
    audit: 'activity?view=audit',
    access: 'access',
    join: 'join',
    settings: 'settings',
    query: 'query?sql=SELECT%20cluster%2C%20service%2C%20reason%2C%20since_ms%20FROM%20placements%20LIMIT%2040',
    notifications: 'notifications',
    render: `services/${one.project}/${one.service}/render?cluster=${one.cluster}`,
    logs: `clusters/${one.cluster}/${one.project}/${one.service}?${object(one)}&tab=logs`,
    events: `clusters/${one.cluster}/${one.project}/${one.service}?${object(one)}&tab=events`,
    yaml: `clusters/${one.cluster}/${one.project}/${one.service}?${object(one)}&tab=yaml`,
    history: `clusters/${other.cluster}/history`,
    diff: `clusters/${other.cluster}/${other.project}/${other.service}?${object(other)}&tab=diff`,
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

async function shootAll(browser: Browser): Promise<void> {
  const out = values.out
  mkdirSync(out, { recursive: true })
  const paths = await pagePaths()
  const only = values.only?.split(',')
  const isWanted = (name: string, group = name) => only === undefined || only.includes(name) || only.includes(group)
  for (const theme of values.themes.split(','))
    for (const width of values.widths.split(',')) {
      const page = await open(browser, width, theme)
      const shoot = (name: string) => page.screenshot({ path: join(out, `${name}-${theme}-${width}.png`) })
      const go = async (path: string) => {
        await page.goto(`${url}/dashboard/${path}`)
        await page.waitForSelector('h1')
        await page.waitForTimeout(SETTLE_MS)
      }
      await page.goto(`${url}/dashboard/`)
      await page.waitForSelector('input[name=token]')
      if (isWanted('sign-in')) await shoot('sign-in')
      await page.fill('input[name=token]', token)
      await page.click('button[type=submit]')
      await page.waitForSelector('.numbers')
      for (const [name, path] of Object.entries(paths)) {
        if (!isWanted(name)) continue
        await go(path)
        if (OPENED[name] !== undefined) {
          await OPENED[name](page).catch(() => {})
          await page.waitForTimeout(SETTLE_MS) // the agent is asked
        }
        await shoot(name)
      }
      for (const [name, { of, act }] of Object.entries(ACTED)) {
        if (!isWanted(name, 'dialogs')) continue
        await go(paths[of] ?? '')
        await act(page).catch((error: unknown) => process.stderr.write(`${name}: ${String(error)}\n`))
        await page.waitForTimeout(SETTLE_MS)
        await shoot(name)
      }
      for (const [name, state] of Object.entries(UGLY_STATES)) {
        if (!isWanted(name, 'ugly')) continue
        await page.context().setOffline(false)
        await page.unrouteAll({ behavior: 'ignoreErrors' })
        await state.before?.(page)
        await go(state.of === undefined ? state.path : (paths[state.of] ?? ''))
        await state.after?.(page)
        await shoot(name)
      }
      await page.close()
    }
  process.stdout.write(`screenshots: ${out}\n`)
}

const browser = await chromium.launch({ executablePath: process.env['SKERRY_CHROMIUM'] ?? '/usr/bin/chromium', args: ['--no-sandbox'] })
try {
  if (own !== null) await troubleIsThere()
  await shootAll(browser)
} finally {
  await browser.close()
  await own?.stop()
}
