// events: what happened, and with --follow what happens from now on.
import { toYaml } from '../../shared/adapters/yaml.ts'
import { type EventView, eventViewSchema, listOf } from '../../shared/model/views.ts'
import { renderTable } from './columns.ts'
import { type Context, type Output, printItems, usesColour } from './context.ts'
import { eventColumns } from './tables.ts'

const POLL_MS = 1_000

export interface EventOptions {
  project?: string | undefined
  cluster?: string | undefined
  service?: string | undefined
  follow?: true | undefined
  limit: number
  output?: Output
  headers?: boolean
}

export async function events(context: Context, options: EventOptions): Promise<void> {
  const { io } = context
  const { cluster, service, project, limit, follow } = options
  const client = context.client()
  const filter = { cluster, service, project }
  const first = (await client.get('/events', listOf(eventViewSchema), { ...filter, limit })).items
  const what = { nameOf: (event: EventView) => `event/${event.id}`, single: false, none: 'no events' }
  if (follow !== true) {
    printItems(context, first, { ...what, columns: eventColumns(io.clock.nowMs(), true) }, options)
    return
  }
  const print = streamPrinter(context, options)
  print(first)
  let after = first.at(-1)?.id ?? 0
  while (io.signal?.aborted !== true) {
    await io.clock.sleep(POLL_MS, io.signal)
    const { items } = await client.get('/events', listOf(eventViewSchema), { ...filter, after, limit: 500 })
    print(items)
    after = items.at(-1)?.id ?? after
  }
}

/** A stream has no end to close a list with: one JSON document a line. Its columns stay where they are until a wider word comes. */
function streamPrinter({ io }: Context, { output, headers }: EventOptions): (items: readonly EventView[]) => void {
  const widths: number[] = []
  let titles = headers !== false
  return (items) => {
    if (output === 'json') io.stdout.write(items.map((event) => `${JSON.stringify(event)}\n`).join(''))
    else if (output === 'yaml') io.stdout.write(items.map((event) => `---\n${toYaml(event)}`).join(''))
    else if (output === 'name') io.stdout.write(items.map((event) => `event/${event.id}\n`).join(''))
    else if (items.length > 0) {
      const style = { wide: output === 'wide', headers: titles, colours: usesColour(io), widths }
      io.stdout.write(renderTable(eventColumns(null, true), items, style))
      titles = false
    }
  }
}
