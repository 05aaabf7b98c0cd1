// People who ask a cluster and one who follows a log, in a process of the lowest priority: they sit at other computers,
// and their own work must not be measured. A line of JSON on stdin begins a load, an empty one ends it; then the
// process writes what it received as one line.
import { setPriority } from 'node:os'
import { createInterface } from 'node:readline'

export interface AskLoad {
  url: string
  token: string
  askers: number
  everyMs: number
  /** Time after which the load is whole: the result counts from then on. */
  settleMs: number
  question: object
  /** The question for a log to follow. Null means that nobody follows one. */
  follow: object | null
}
export interface AskLoadResult {
  /** Time of each answer. */
  askMs: number[]
  bytes: number
  ms: number
}

if (import.meta.main) {
  setPriority(19)
  let leave = new AbortController()
  let running: Promise<AskLoadResult> | null = null
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === '') {
      leave.abort()
      process.stdout.write(`${JSON.stringify(await running)}\n`)
    } else {
      leave = new AbortController()
      running = load(JSON.parse(line) as AskLoad, leave.signal)
    }
  }
}

async function load({ url, token, askers, everyMs, settleMs, question, follow }: AskLoad, signal: AbortSignal): Promise<AskLoadResult> {
  const result: AskLoadResult = { askMs: [], bytes: 0, ms: 0 }
  const sinceMs = performance.now() + settleMs
  const ask = async (asked: object): Promise<Response> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ question: asked }), signal })
    if (!response.ok) throw new Error(`ask: ${response.status} ${await response.text()}`)
    return response
  }
  const askOften = async (n: number) => {
    await Bun.sleep((n * everyMs) / askers)
    while (!signal.aborted) {
      const askedMs = performance.now()
      const text = await (await ask(question)).text()
      if (!text.includes('"t":"object"')) throw new Error(`a question was not answered: ${text}`)
      if (askedMs >= sinceMs) result.askMs.push(performance.now() - askedMs)
      await Bun.sleep(Math.max(0, askedMs + everyMs - performance.now()))
    }
  }
  const followLog = async (log: object) => {
    for await (const chunk of (await ask(log)).body ?? new ReadableStream<Uint8Array>())
      if (performance.now() >= sinceMs) result.bytes += chunk.length
  }
  const unlessLeft = (error: unknown) => {
    if (!signal.aborted) throw error
  }
  // Askers end after their pauses, in which nothing is asked any more.
  signal.addEventListener('abort', () => {
    result.ms = performance.now() - sinceMs
  })
  const all = Array.from({ length: askers }, (_, n) => askOften(n))
  if (follow !== null) all.push(followLog(follow))
  await Promise.all(all.map((one) => one.catch(unlessLeft)))
  return result
}
