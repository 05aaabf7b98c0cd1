// confirm: what waits for a person, with the exact names; and a confirmation of exactly those, or a refusal.
import { removalsViewSchema } from '../../shared/model/removal-views.ts'
import { type ConfirmationView, confirmationViewSchema } from '../../shared/model/views.ts'
import { path } from './client.ts'
import { type Context, type Output, printItems } from './context.ts'
import { consent, consentWithData } from './delete.ts'
import { answersText, confirmationText } from './describe.ts'
import { UsageError } from './io.ts'
import { dataNames, keptText, removalText } from './removal-text.ts'
import { confirmationColumns } from './tables.ts'

export async function confirm(
  context: Context,
  id: string | undefined,
  options: { yes?: true | undefined; confirmData?: readonly string[] | undefined; output?: Output },
): Promise<void> {
  const { io } = context
  const client = context.client()
  const nowMs = io.clock.nowMs()
  if (id === undefined) {
    const waiting = await client.list('/confirmations', confirmationViewSchema)
    if (options.output !== undefined) {
      const nameOf = (item: { id: string }) => `confirmation/${item.id}`
      printItems(context, waiting, { columns: confirmationColumns(nowMs), nameOf, single: false, none: 'nothing waits' }, options)
    } else if (waiting.length === 0) io.stderr.write('no pending confirmations\n')
    else io.stdout.write(waiting.map((item) => `${confirmationText(item, nowMs)}${answersText(item)}`).join('\n'))
    return
  }
  const asked = await client.get(addressOf(id, 'confirm'), confirmationViewSchema)
  io.stderr.write(confirmationText(asked, nowMs))
  const confirmed = asked.confirmedMs === null ? await ask(context, asked, options) : asked
  io.stdout.write(`confirmation/${confirmed.id} confirmed by ${confirmed.confirmedBy ?? 'an unknown person'}\n`)
}

function addressOf(id: string, verb: string): string {
  if (!/^[0-9a-z]{1,32}$/.test(id)) throw new UsageError(`${verb}: expected an id that \`skerry confirm\` lists, not "${id}"`)
  return path`/confirmations/${id}`
}

/** Nothing is deleted by it, so it asks for no consent. */
export async function refuse(context: Context, id: string, reason: string | undefined): Promise<void> {
  const { io } = context
  if (reason === undefined) throw new UsageError('refuse needs --reason TEXT: why the objects are kept; others see it')
  const client = context.client()
  const address = addressOf(id, 'refuse')
  const asked = await client.get(address, confirmationViewSchema)
  io.stderr.write(confirmationText(asked, io.clock.nowMs()))
  const upTo = asked.clusters === undefined ? '' : `?upTo=${asked.clusters.upTo}`
  const { refused } = await client.send('POST', `${address}/refuse${upTo}`, confirmationViewSchema, { reason })
  io.stdout.write(`confirmation/${id} refused by ${refused?.by ?? 'an unknown person'}; the objects are kept\n`)
}

const REMOVALS: readonly string[] = ['remove_service', 'leave_targets']
const QUESTION = 'Confirm exactly these?'

async function ask(
  context: Context,
  { id, kind, clusters }: ConfirmationView,
  { yes, confirmData = [] }: { yes?: true | undefined; confirmData?: readonly string[] | undefined },
): Promise<ConfirmationView> {
  const { io } = context
  const client = context.client()
  const address = path`/confirmations/${id}`
  if (!REMOVALS.includes(kind)) {
    if (confirmData.length > 0) throw new UsageError('--confirm-data is for removals: this confirmation covers the names shown')
    await consent(context, QUESTION, yes === true)
    return client.send('POST', `${address}/confirm${clusters === undefined ? '' : `?upTo=${clusters.upTo}`}`, confirmationViewSchema)
  }
  const { items } = await client.get(`${address}/removal`, removalsViewSchema)
  io.stderr.write(removalText(items, 'will be'))
  const names = dataNames(items)
  const data = await consentWithData(context, QUESTION, { names, given: confirmData, yes: yes === true })
  const confirmed = await client.send('POST', `${address}/confirm`, confirmationViewSchema, { confirmData: data })
  io.stderr.write(keptText(names, data, null))
  return confirmed
}
