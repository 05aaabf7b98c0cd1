// scripts/bench dashboard: the waiting times of a person who looks at 5,000 clusters with 40 services each, in Chromium
// over the real server.
import { existsSync } from 'node:fs'
import { type Browser, type CDPSession, chromium, type Page } from 'playwright-core'
import { measureDemo } from './dashboard-demo.ts'
import { type LargeFleet, startLargeFleet } from './dashboard-fleet.ts'
import { percentile, rounded } from './figures.ts'
import { runParts, type Say } from './parts.ts'

const CLUSTERS = Number(process.env['SKERRY_BENCH_AGENTS'] ?? 5_000)
const AGENTS = 400
const ROWS_PER_S = 1_000
const OPENINGS = 5
const EVENTS = 20
const FRAMES_MS = 12_000
const HEAP_MS = 75_000
const HEAP_SAMPLES = 10
const HOUR_MS = 3_600_000
const HOUR_SAMPLES = 60
/** Code and caches that come with the first updates are no growth. */
const HEAP_WARM_MS = 10_000
const CHROMIUM = process.env['SKERRY_CHROMIUM'] ?? '/usr/bin/chromium'

function launch(): Promise<Browser> {
  if (!existsSync(CHROMIUM)) throw new Error(`${CHROMIUM} is missing: apt-get install chromium, or set SKERRY_CHROMIUM`)
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--enable-precise-memory-info'] })
}

async function benchPages(say: Say): Promise<Record<string, number>> {
  const large = await startLargeFleet(CLUSTERS, AGENTS)
  const browser = await launch()
  try {
    const [firstLists, sizes] = await measureOpenings(browser, large, say)
    const page = await openPage(browser, large, 'clusters')
    await rowsShown(page)
    await page.waitForTimeout(2_000) // what is loaded when nobody waits
    const filters = await measureFilter(page)
    say(`filter: p50 ${rounded(percentile(filters, 50))} ms, max ${rounded(Math.max(...filters))} ms`)
    const events = await measureEvents(browser, large, say)
    const updates = large.tellRows(ROWS_PER_S)
    const startMs = performance.now()
    await page.waitForTimeout(2_000)
    const fps = await measureFrames(page)
    const longest = await longestTask(page, say)
    const growth = slope(await measureHeap(page, say, HEAP_MS, HEAP_SAMPLES)) * HOUR_MS
    const told = await updates.stop()
    say(`${rounded(told / ((performance.now() - startMs) / 1_000), 0)} rows a second were told`)
    return {
      js_gzip_kb: sizes,
      first_list_ms: rounded(percentile(firstLists, 50)),
      filter_ms: rounded(percentile(filters, 95)),
      event_to_pixel_ms: rounded(percentile(events, 95)),
      fps: rounded(fps),
      longest_task_ms: rounded(longest),
      heap_growth_mb_per_hour: rounded(growth),
    }
  } finally {
    await browser.close()
    await large.stop()
  }
}

/** The list of clusters stays open for an hour while rows come in. */
async function benchHour(say: Say): Promise<Record<string, number>> {
  const large = await startLargeFleet(CLUSTERS, AGENTS)
  const browser = await launch()
  try {
    const page = await openPage(browser, large, 'clusters')
    await rowsShown(page)
    const updates = large.tellRows(ROWS_PER_S)
    const samples = await measureHeap(page, say, HOUR_MS, HOUR_SAMPLES)
    await updates.stop()
    return { heap_hour_growth_mb: rounded(slope(samples) * HOUR_MS), heap_hour_end_mb: rounded(samples.at(-1)?.mb ?? Number.NaN) }
  } finally {
    await browser.close()
    await large.stop()
  }
}

async function benchDemo(say: Say): Promise<Record<string, number>> {
  const browser = await launch()
  try {
    const { linkMs, chartMs } = await measureDemo(browser)
    say(`link after ${rounded(linkMs, 0)} ms`)
    return { demo_link_ms: rounded(linkMs, 0), demo_chart_ms: rounded(chartMs, 0) }
  } finally {
    await browser.close()
  }
}

/** A page of a context of its own: nothing is in its cache. */
async function openPage(browser: Browser, { fleet }: LargeFleet, path: string): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 940 } })
  await context.addInitScript((token) => sessionStorage.setItem('skerry-token', token), fleet.token)
  await context.addInitScript(watchTasks)
  const page = await context.newPage()
  await page.goto(`${fleet.serverUrl}/dashboard/${path}`, { waitUntil: 'commit' })
  return page
}

const rowsShown = (page: Page): Promise<unknown> => page.waitForSelector('.rows-body [data-row="5"]')

async function measureOpenings(browser: Browser, large: LargeFleet, say: Say): Promise<[number[], number]> {
  const taken: number[] = []
  let scripts: string[] = []
  for (let n = 0; n <= OPENINGS; n++) {
    const context = await browser.newContext({ viewport: { width: 1440, height: 940 } })
    await context.addInitScript((token) => {
      sessionStorage.setItem('skerry-token', token)
      const look = () => {
        if (document.querySelector('.rows-body [data-row="5"]') === null) return void requestAnimationFrame(look)
        const drawn = new MessageChannel()
        drawn.port1.onmessage = () => performance.mark('rows')
        drawn.port2.postMessage(null) // is delivered after the frame that has the rows
      }
      requestAnimationFrame(look)
    }, large.fleet.token)
    const page = await context.newPage()
    await page.goto(`${large.fleet.serverUrl}/dashboard/clusters`, { waitUntil: 'commit' })
    await page.waitForFunction(() => performance.getEntriesByName('rows').length > 0)
    const { rowsMs, files } = await page.evaluate(() => ({
      rowsMs: performance.getEntriesByName('rows')[0]?.startTime ?? Number.NaN,
      files: performance
        .getEntriesByType('resource')
        .map(({ name }) => name)
        .filter((name) => name.endsWith('.js')),
    }))
    // The first one warms the server.
    if (n > 0) taken.push(rowsMs)
    scripts = files
    await context.close()
  }
  const kb = rounded((await Promise.all(scripts.map(gzipBytes))).reduce((sum, bytes) => sum + bytes, 0) / 1_000)
  say(`opening: ${taken.map((ms) => rounded(ms, 0)).join(', ')} ms; ${scripts.length} scripts`)
  return [taken, kb]
}

async function gzipBytes(url: string): Promise<number> {
  const response = await fetch(url, { headers: { 'accept-encoding': 'gzip' }, decompress: false })
  return (await response.arrayBuffer()).byteLength
}

async function measureFilter(page: Page): Promise<number[]> {
  const taken: number[] = []
  for (const word of ['store', 'ship', 'kiosk-1', 'plant-02'])
    for (let length = 1; length <= 5; length++) taken.push(await typed(page, word.slice(0, length)))
  for (const word of ['00', '1', '2', '']) taken.push(await typed(page, word))
  return taken
}

/** From the input event to the frame in which the rows are drawn. */
const typed = (page: Page, words: string): Promise<number> =>
  page.evaluate(async (value) => {
    const field = document.querySelector<HTMLInputElement>('.filters input[type=search]')
    if (field === null) throw new Error('no filter field')
    const startMs = performance.now()
    field.value = value
    field.dispatchEvent(new InputEvent('input', { bubbles: true }))
    await new Promise(requestAnimationFrame)
    const drawn = new MessageChannel()
    const done = new Promise((resolve) => {
      drawn.port1.onmessage = resolve
    })
    drawn.port2.postMessage(null) // is delivered after the frame
    await done
    return performance.now() - startMs
  }, words)

async function measureEvents(browser: Browser, large: LargeFleet, say: Say): Promise<number[]> {
  const page = await openPage(browser, large, '')
  await page.waitForSelector('.live.is-live')
  await page.waitForSelector('.chart a[data-id]')
  await page.waitForTimeout(2_000)
  const taken: number[] = []
  for (let n = 0; n < EVENTS; n++) {
    const agent = large.agents[60 + n]
    if (agent === undefined) throw new Error('too few agents')
    await page.evaluate((id) => {
      const mark = () => document.querySelector(`.chart a[data-id="${id}"] .m`)?.className
      const before = mark()
      const seen = { atMs: 0 }
      Object.assign(window, { seen })
      const look = () => {
        if (mark() !== before) seen.atMs = Date.now()
        else requestAnimationFrame(look)
      }
      requestAnimationFrame(look)
    }, agent.id)
    const sentMs = Date.now()
    await agent.tell(0, 40, true)
    // Where it was degraded before, it becomes healthy.
    await page
      .waitForFunction(() => (window as never as { seen: { atMs: number } }).seen.atMs > 0, null, { timeout: 3_000 })
      .catch(() => agent.tell(0, 40, false))
    const atMs = await page.evaluate(() => (window as never as { seen: { atMs: number } }).seen.atMs)
    if (atMs > 0) taken.push(atMs - sentMs)
    await page.waitForTimeout(1_200)
  }
  say(`${taken.length} events: p50 ${rounded(percentile(taken, 50))} ms, max ${rounded(Math.max(...taken))} ms`)
  await page.context().close()
  return taken
}

const measureFrames = (page: Page): Promise<number> =>
  page.evaluate(async (forMs) => {
    const startMs = performance.now()
    let frames = 0
    let way = 1
    while (performance.now() - startMs < forMs) {
      await new Promise(requestAnimationFrame)
      frames += 1
      const before = window.scrollY
      window.scrollBy(0, 12 * way)
      if (window.scrollY === before) way = -way
    }
    return frames / ((performance.now() - startMs) / 1_000)
  }, FRAMES_MS)

interface Watched {
  tasks: number[]
}

/** Runs in the browser. */
function watchTasks(): void {
  const watched: Watched = { tasks: [] }
  Object.assign(window, { watched })
  new PerformanceObserver((list) => watched.tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: 'longtask' })
}

/** The browser tells only of tasks over 50 ms; 0 means that there was none. */
async function longestTask(page: Page, say: Say): Promise<number> {
  const tasks = await page.evaluate(() => (window as never as { watched: Watched }).watched.tasks)
  say(`${tasks.length} tasks over 50 ms${tasks.length === 0 ? '' : `: ${tasks.map((ms) => rounded(ms, 0)).join(', ')} ms`}`)
  return Math.max(0, ...tasks)
}

interface HeapSample {
  atMs: number
  mb: number
}

/** Samples at equal intervals, each after a collection of garbage. */
async function measureHeap(page: Page, say: Say, forMs: number, count: number): Promise<HeapSample[]> {
  const cdp = await page.context().newCDPSession(page)
  await page.evaluate(() => window.scrollTo(0, 0))
  await page.waitForTimeout(HEAP_WARM_MS)
  const samples: HeapSample[] = []
  for (let n = 0; n < count; n++) {
    samples.push({ atMs: performance.now(), mb: await heapMb(cdp) })
    await page.waitForTimeout((forMs - HEAP_WARM_MS) / count)
  }
  say(`heap: ${samples.map(({ mb }) => rounded(mb, 2)).join(', ')} MB`)
  return samples
}

async function heapMb(cdp: CDPSession): Promise<number> {
  await cdp.send('HeapProfiler.collectGarbage')
  await cdp.send('HeapProfiler.collectGarbage')
  return (await cdp.send('Runtime.getHeapUsage')).usedSize / 1e6
}

/** MB a millisecond, by least squares. */
function slope(samples: readonly HeapSample[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const [x, y] = [mean(samples.map(({ atMs }) => atMs)), mean(samples.map(({ mb }) => mb))]
  const sum = (of: (sample: HeapSample) => number) => samples.reduce((all, sample) => all + of(sample), 0)
  return sum(({ atMs, mb }) => (atMs - x) * (mb - y)) / sum(({ atMs }) => (atMs - x) ** 2)
}

const PARTS = { pages: benchPages, demo: benchDemo, hour: benchHour }

export const benchDashboard = (say: Say, only: string | null): Promise<Record<string, number>> => runParts('dashboard', PARTS, say, only)
