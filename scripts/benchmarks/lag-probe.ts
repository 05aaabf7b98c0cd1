// Preloaded into the server's process by the benchmark (BUN_OPTIONS), never part of the product: how late its event loop runs a timer. SIGUSR2 begins a
// measurement, the next one ends it and writes the samples. In between it costs nothing.
import { writeFileSync } from 'node:fs'

const file = process.env['SKERRY_BENCH_LAG']
const STEP_MS = 2

if (file !== undefined && process.argv.includes('server')) {
  let timer: ReturnType<typeof setInterval> | null = null
  let samples: number[] = []
  let expectedMs = 0
  // At a fixed pace: a loop that was blocked for 100 ms was late for each of the 50 samples in it, not once.
  const sample = () => {
    const nowMs = performance.now()
    for (; expectedMs <= nowMs; expectedMs += STEP_MS) samples.push(Math.round((nowMs - expectedMs) * 10) / 10)
  }
  process.on('SIGUSR2', () => {
    if (timer === null) {
      samples = []
      expectedMs = performance.now() + STEP_MS
      timer = setInterval(sample, STEP_MS)
      return
    }
    clearInterval(timer)
    timer = null
    sample()
    writeFileSync(file, JSON.stringify(samples))
  })
}
