// confirm: what waits for a person, with the exact names; and a yes to exactly those.
import { confirmationViewSchema } from '../../shared/model/views.ts'
import { path } from './client.ts'
import { type Context, type Output, printItems } from './context.ts'
import { consent } from './delete.ts'
import { answersText, confirmationText } from './describe.ts'
import { confirmationColumns } from './tables.ts'

export async function confirm(
  context: Context,
  id: string | undefined,
  options: { yes?: true | undefined; output?: Output },
): Promise<void> {
  const { io } = context
  const client = context.client()
  const nowMs = io.clock.nowMs()
  if (id === undefined) {
    const waiting = await client.list('/confirmations', confirmationViewSchema)
    if (options.output !== undefined) {
      const nameOf = (item: { id: string }) => `confirmation/${item.id}`
      printItems(context, waiting, { columns: confirmationColumns(nowMs), nameOf, single: false, none: 'nothing waits' }, options)
    } else if (waiting.length === 0) io.stderr.write('nothing waits for a person\n')
    else io.stdout.write(waiting.map((item) => `${confirmationText(item, nowMs)}${answersText(item)}`).join('\n'))
    return
  }
  const asked = await client.get(path`/confirmations/${id}`, confirmationViewSchema)
  io.stderr.write(confirmationText(asked, nowMs))
  if (asked.confirmedMs === null) await consent(context, 'Go on with exactly these?', options.yes === true)
  const confirmed =
    asked.confirmedMs === null ? await client.send('POST', path`/confirmations/${id}/confirm`, confirmationViewSchema) : asked
  io.stdout.write(`confirmation/${confirmed.id} confirmed by ${confirmed.confirmedBy ?? 'somebody'}\n`)
}
