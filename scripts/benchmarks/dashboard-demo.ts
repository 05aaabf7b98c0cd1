// `skerry dev --demo-data` as a person tries it: from the command to a link, and to a chart with the whole fleet on it.
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { freePort } from '../local-cluster/child-process.ts'
import { benchPrograms } from './server-process.ts'

const CLUSTERS = 500
const TIMEOUT_MS = 180_000
const root = join(import.meta.dir, '../..')

export interface DemoTimes {
  linkMs: number
  /** All marks are drawn, and most of them are those of clusters that reported. */
  chartMs: number
}

export async function measureDemo(browser: Browser): Promise<DemoTimes> {
  const program = benchPrograms() === 'source' ? [process.execPath, join(root, 'server/main.ts')] : [join(root, 'dist/skerry')]
  const flags = ['dev', '--demo-data', '--clusters', String(CLUSTERS), '--listen', `127.0.0.1:${freePort()}`]
  const startMs = performance.now()
  const child = Bun.spawn([...program, ...flags], { stdout: 'pipe', stderr: 'ignore' })
  try {
    const url = await printedLink(child.stdout)
    const linkMs = performance.now() - startMs
    const page = await browser.newPage({ viewport: { width: 1440, height: 940 } })
    await page.goto(url)
    await page.waitForFunction(
      (count) => {
        const [all, silent] = ['.chart a[data-id]', '.chart .m-unknown'].map((one) => document.querySelectorAll(one).length)
        return (all ?? 0) >= count && (silent ?? count) < count / 2
      },
      CLUSTERS,
      { timeout: TIMEOUT_MS },
    )
    return { linkMs, chartMs: performance.now() - startMs }
  } finally {
    child.kill('SIGTERM')
    await child.exited
  }
}

/** Leaves the stream open: a program whose output nobody takes ends. */
async function printedLink(output: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<string> {
  const reader = output.pipeThrough(new TextDecoderStream()).getReader()
  for (let said = ''; ; ) {
    const { done, value = '' } = await reader.read()
    said += value
    const link = /http:\S+#sign-in=[\w-]+/.exec(said)?.[0]
    if (link !== undefined) return link
    if (done) throw new Error(`skerry dev printed no link: ${said}`)
  }
}
