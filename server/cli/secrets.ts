// secrets: whether rendered Secrets are sealed to their clusters.
import { z } from 'zod'
import { type SealView, sealViewSchema } from '../../shared/model/seal-views.ts'
import { agentCredentialSchema } from '../../shared/model/sign-in.ts'
import { AppError } from '../../shared/protocol/error.ts'
import { path } from './client.ts'
import { type Context, type Output, printItems } from './context.ts'
import { consent } from './delete.ts'
import { UsageError } from './io.ts'

/** Between two looks at a server that is sealing. */
const LOOK_AGAIN_MS = 1_000
const UNDER_WAY: ReadonlySet<SealView['step']> = new Set(['rendering', 'rewriting', 'cleaning'])

export async function showSeal(context: Context, options: { output?: Output }): Promise<void> {
  print(context, await context.client().get('/secrets/seal', sealViewSchema), options)
}

export async function rotateRecipient(context: Context, cluster: string, { yes }: { yes?: true | undefined }): Promise<void> {
  const client = context.client()
  const agent = (await client.list('/agents', agentCredentialSchema)).find((one) => one.cluster === cluster)
  if (agent === undefined)
    throw new AppError('not_found', { detail: `cluster ${cluster} does not exist`, remedy: 'List them with `skerry get clusters`.' })
  await consent(context, `Replace the recipient key ${agent.recipient} of ${cluster}? Its agent fetches its rows anew.`, yes === true)
  await client.send('POST', path`/agents/${agent.id}/rotate-recipient`, z.unknown())
  context.io.stdout.write(`agent/${agent.id} makes another recipient key at its next contact; see \`skerry token list --agents\`\n`)
}

interface SealOptions {
  all?: true | undefined
  newKey?: true | undefined
  yes?: true | undefined
}

export async function sealAll(context: Context, { all, newKey, yes }: SealOptions): Promise<void> {
  if (all !== true) throw new UsageError('secrets seal needs --all: the rows of all services are sealed')
  const { io } = context
  const client = context.client()
  io.stderr.write(`All services are rendered again, and each Secret is sealed to its cluster.
Hooks of services with Secrets run once more. Each agent fetches its rows anew.
An agent that is too old to open sealed rows enforces what it holds until it is upgraded.
`)
  await consent(context, 'Seal all rows?', yes === true)
  let view = await client.send('POST', '/secrets/seal', sealViewSchema, { newKey: newKey === true })
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
