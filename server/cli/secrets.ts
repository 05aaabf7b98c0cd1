// secrets: whether rendered Secrets are sealed to their clusters.
import { type SealView, sealViewSchema } from '../../shared/model/seal-views.ts'
import { type Context, type Output, printItems } from './context.ts'
import { consent } from './delete.ts'

/** Between two looks at a server that is sealing. */
const LOOK_AGAIN_MS = 1_000
const UNDER_WAY: ReadonlySet<SealView['step']> = new Set(['rendering', 'rewriting', 'cleaning'])

export async function showSeal(context: Context, options: { output?: Output }): Promise<void> {
  print(context, await context.client().get('/secrets/seal', sealViewSchema), options)
}

export async function sealAll(context: Context, { yes }: { yes?: true | undefined }): Promise<void> {
  const { io } = context
  const client = context.client()
  io.stderr.write(`All services are rendered again, and each Secret is sealed to its cluster.
Hooks of services with Secrets run once more. Each agent fetches its rows anew.
An agent that is too old to open sealed rows enforces what it holds until it is upgraded.
`)
  await consent(context, 'Seal all rows?', yes === true)
  let view = await client.send('POST', '/secrets/seal', sealViewSchema)
  let said = ''
  while (UNDER_WAY.has(view.step)) {
    if (said !== view.step) io.stderr.write(`${view.step}\n`)
    said = view.step
    await io.clock.sleep(LOOK_AGAIN_MS, new AbortController().signal)
    view = await client.get('/secrets/seal', sealViewSchema)
  }
  print(context, view, {})
  if (view.step === 'finished')
    io.stderr.write('Make a backup of the data folder now. Older ones still hold Secrets in clear: delete them.\n')
}

function print(context: Context, view: SealView, options: { output?: Output }): void {
  const columns = [
    { title: 'STATUS', value: ({ step }: SealView) => step },
    { title: 'KEY', value: ({ key }: SealView) => key ?? '-' },
    { title: 'LEFT', value: ({ left }: SealView) => (left.length === 0 ? '-' : left.join(',')) },
    { title: 'MESSAGE', value: ({ error }: SealView) => error ?? '' },
  ]
  printItems(context, [view], { columns, nameOf: () => 'secrets/seal', single: true, none: 'no status' }, options)
}
