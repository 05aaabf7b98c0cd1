// Preloaded into the server's process by the benchmark (BUN_OPTIONS), never part of the product: how late its event
// loop runs a timer. SIGUSR2 begins a measurement, the next one ends it and writes the samples. In between it costs
// nothing. With SKERRY_BENCH_PROFILE=DIR a profile of the same time goes there, and what memory holds at its end.
import { heapStats } from 'bun:jsc'
import { readFileSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { join } from 'node:path'

const file = process.env['SKERRY_BENCH_LAG']
const profileDir = process.env['SKERRY_BENCH_PROFILE']
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
  let profiler: Session | null = null
  const startProfile = () => {
    profiler = new Session()
    profiler.connect()
    profiler.post('Profiler.enable')
    profiler.post('Profiler.start')
  }
  const stopProfile = (dir: string) => {
    profiler?.post('Profiler.stop', (_, result) =>
      writeFileSync(join(dir, `server-${Date.now()}.cpuprofile`), JSON.stringify(result.profile)),
    )
    profiler?.disconnect()
    profiler = null
    const { heapSize, heapCapacity, extraMemorySize, objectTypeCounts } = heapStats()
    const counts = Object.fromEntries(Object.entries(objectTypeCounts).sort(([, a], [, b]) => b - a))
    const memory = {
      ...process.memoryUsage(),
      heapSize,
      heapCapacity,
      extraMemorySize,
      counts,
      kernel: readFileSync('/proc/self/smaps_rollup', 'utf8'),
    }
    writeFileSync(join(dir, `memory-${Date.now()}.json`), JSON.stringify(memory, null, 1))
  }
  process.on('SIGUSR2', () => {
    if (timer === null) {
      if (profileDir !== undefined) startProfile()
      samples = []
      expectedMs = performance.now() + STEP_MS
      timer = setInterval(sample, STEP_MS)
      return
    }
    clearInterval(timer)
    timer = null
    sample()
    if (profileDir !== undefined) stopProfile(profileDir)
    writeFileSync(file, JSON.stringify(samples))
  })
}
