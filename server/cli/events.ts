// events: what happened, and with --follow what happens from now on.
import { type EventView, eventViewSchema, listOf } from '../../shared/model/views.ts'
import { type Context, type Output, printItems } from './context.ts'
import { follow, gathered, patiently } from './follow.ts'
import { streamPrinter } from './stream-printer.ts'
import { eventColumns } from './tables.ts'

/** Hints within this time are answered by one read. */
const GATHER_MS = 100
const PAGE = 500

export interface EventOptions {
  project?: string | undefined
  cluster?: string | undefined
  service?: string | undefined
  trace?: string | undefined
  /** Milliseconds. */
  since?: number | undefined
  follow?: true | undefined
  limit: number
  output?: Output
  headers?: boolean
}

export async function events(context: Context, options: EventOptions): Promise<void> {
  const { io } = context
  const { cluster, service, project, trace, limit } = options
  const client = context.client()
  const since = options.since === undefined ? undefined : Math.max(io.clock.nowMs() - options.since, 0)
  const read = async (query: { limit: number; after?: number }) =>
    (await client.get('/events', listOf(eventViewSchema), { cluster, service, project, trace, since, ...query })).items
  const nameOf = (event: EventView) => `event/${event.id}`
  if (options.follow !== true) {
    const items = await read({ limit })
    if (since !== undefined && items.length >= limit) io.stderr.write(`only the newest ${limit} events are shown; --limit shows more\n`)
    printItems(context, items, { nameOf, single: false, none: 'no events', columns: eventColumns(io.clock.nowMs(), true) }, options)
    return
  }
  const print = streamPrinter<EventView>(context, options, { nameOf, columns: () => eventColumns(null, true) })
  const signal = io.signal ?? new AbortController().signal
  let after: number | null = null
  for await (const _ of gathered(follow(context, ['event'], signal), GATHER_MS, io.clock)) {
    if (after === null) {
      const first = await read({ limit })
      print(first)
      after = first.at(-1)?.id ?? 0
      continue
    }
    for (;;) {
      const since: number = after
      const items: EventView[] = await patiently(context, signal, () => read({ after: since, limit: PAGE }))
      print(items)
      after = items.at(-1)?.id ?? after
      if (items.length < PAGE) break
    }
  }
}
