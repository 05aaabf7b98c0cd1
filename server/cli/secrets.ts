// secrets: whether rendered Secrets are sealed to their clusters.
import { z } from 'zod'
import { type RotationAnswer, type RotationView, rotationAnswerSchema } from '../../shared/model/rotation-views.ts'
import { type SealView, sealViewSchema } from '../../shared/model/seal-views.ts'
import { agentCredentialSchema } from '../../shared/model/sign-in.ts'
import { webhookAnswerSchema } from '../../shared/model/views.ts'
import { AppError } from '../../shared/protocol/error.ts'
import { path } from './client.ts'
import { countText } from './columns.ts'
import { type Context, type Output, printItems } from './context.ts'
import { consent } from './delete.ts'
import { UsageError } from './io.ts'
import { WEBHOOK_HELP } from './source-facts.ts'

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

/** `wait` false: the server goes on by itself; `skerry secrets rotation` shows how far it is. */
export async function rotateKeys(context: Context, { yes, wait = true }: { yes?: true | undefined; wait?: boolean }): Promise<void> {
  const { io } = context
  io.stderr.write(`Each Config gets another data key, its secrets are sealed anew, and the earlier master key is destroyed.
Marks (hmac:…) of secrets change. An earlier backup without keys can then be opened only with the keys of its time.
`)
  await consent(context, 'Rotate the keys of secrets?', yes === true)
  const client = context.client()
  let { rotation } = await client.send('POST', '/secrets/rotate-key', rotationAnswerSchema)
  let said = ''
  while (wait && rotation?.state === 'running') {
    const text = rotation.error ?? `${rotation.configs} of ${rotation.total ?? '?'} Configs`
    if (said !== text) io.stderr.write(`${text}\n`)
    said = text
    await io.clock.sleep(LOOK_AGAIN_MS, new AbortController().signal)
    rotation = (await client.get('/secrets/rotate-key', rotationAnswerSchema)).rotation
  }
  if (rotation === null) return
  if (rotation.state === 'failed') throw new AppError('internal', { doing: 'rotate the keys of secrets', detail: rotation.error ?? '' })
  if (rotation.state === 'running') return void io.stdout.write('rotation started; `skerry secrets rotation` shows its progress\n')
  const { configs, secrets, unopened, note } = rotation
  io.stdout.write(`${countText(secrets, 'secret')} of ${countText(configs, 'Config')} sealed under new data keys\n`)
  if (note !== null) io.stderr.write(`warning: the master key was not replaced: ${note}\n`)
  if (unopened > 0)
    io.stderr.write(
      `warning: ${countText(unopened, 'secret')} were sealed under a key that this server does not have and are unchanged; write them again\n`,
    )
  io.stderr.write('Make a backup of the data folder now. Older backups still have the earlier key.\n')
}

export async function showRotation(context: Context, options: { output?: Output }): Promise<void> {
  const answer = await context.client().get('/secrets/rotate-key', rotationAnswerSchema)
  const of =
    (value: (rotation: RotationView) => string) =>
    ({ rotation }: RotationAnswer): string =>
      rotation === null ? '-' : value(rotation)
  const columns = [
    { title: 'STATUS', value: of(({ state }) => state) },
    { title: 'REASON', value: of(({ reason }) => reason) },
    { title: 'CONFIGS', value: of(({ configs, total }) => `${configs}/${total ?? '?'}`) },
    { title: 'UNOPENED', value: of(({ unopened }) => String(unopened)) },
    { title: 'MASTER KEY', value: ({ masterKey }: RotationAnswer) => masterKey },
    { title: 'MESSAGE', value: of(({ error, note }) => error ?? note ?? '') },
  ]
  printItems(context, [answer], { columns, nameOf: () => 'secrets/rotation', single: true, none: 'no rotation' }, options)
}

/** WH3 */
export async function createWebhookSecret(context: Context, name: string, project: string): Promise<void> {
  const address = path`/projects/${project}/repositories/${name}/webhook`
  const { url, secret } = await context.client().send('POST', address, webhookAnswerSchema)
  context.io.stdout.write(`Webhook:        ${url}\nWebhook secret: ${secret}\n`)
  context.io.stderr.write(`The secret is not shown again. The one before it is accepted until the next one is made.\n${WEBHOOK_HELP}`)
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
