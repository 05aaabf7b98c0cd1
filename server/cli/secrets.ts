// secrets: whether rendered Secrets are sealed to their clusters.
import { z } from 'zod'
import {
  type RotationAnswer,
  type RotationView,
  rotationAnswerSchema,
  type SealView,
  sealViewSchema,
} from '../../shared/model/sealing-views.ts'
import { type AgentCredential, agentCredentialSchema } from '../../shared/model/sign-in.ts'
import { webhookAnswerSchema } from '../../shared/model/views.ts'
import { AppError } from '../../shared/runtime/error.ts'
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

interface RotateOptions {
  selector?: string | undefined
  all?: true | undefined
  yes?: true | undefined
}

export async function rotateRecipient(context: Context, clusters: readonly string[], options: RotateOptions): Promise<void> {
  const { selector, all, yes } = options
  if ([clusters.length > 0, selector !== undefined, all === true].filter(Boolean).length !== 1)
    throw new UsageError('cluster rotate-recipient needs names of clusters, -l SELECTOR or --all')
  const client = context.client()
  const agents = await chosenAgents(context, clusters, selector)
  const [first] = agents
  const what =
    agents.length === 1 && first !== undefined
      ? `Replace the recipient key ${first.recipient} of ${first.cluster}? Its agent fetches its rows anew.`
      : `Replace the recipient keys of ${agents.length} clusters? Their agents fetch their rows anew.`
  await consent(context, what, yes === true)
  for (let start = 0; start < agents.length; start += ASKED_AT_ONCE)
    await Promise.all(
      agents.slice(start, start + ASKED_AT_ONCE).map(async ({ id }) => {
        await client.send('POST', path`/agents/${id}/rotate-recipient`, z.unknown())
        context.io.stdout.write(`agent/${id} makes another recipient key at its next contact\n`)
      }),
    )
  context.io.stderr.write('`skerry token list --agents` shows the fingerprints, and agents that were asked and have not answered yet.\n')
}

/** Requests at the same time. The server writes their changes in shared commits. */
const ASKED_AT_ONCE = 32

async function chosenAgents(context: Context, clusters: readonly string[], selector: string | undefined): Promise<AgentCredential[]> {
  const client = context.client()
  const agents = await client.list('/agents', agentCredentialSchema)
  const wanted = new Set(
    selector === undefined
      ? clusters
      : (await client.list('/clusters', named, { labelSelector: selector })).map(({ metadata }) => metadata.name),
  )
  const missing = clusters.filter((name) => !agents.some(({ cluster }) => cluster === name))
  const chosen = selector === undefined && clusters.length === 0 ? agents : agents.filter(({ cluster }) => wanted.has(cluster))
  if (missing.length > 0 || chosen.length === 0)
    throw new AppError('not_found', {
      detail: missing.length > 0 ? `no agent of cluster ${missing.join(', ')}` : 'no cluster is selected',
      remedy: 'List them with `skerry token list --agents`.',
    })
  return chosen.sort((a, b) => (a.cluster < b.cluster ? -1 : 1))
}
const named = z.object({ metadata: z.object({ name: z.string() }) })

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
  if (view.step === 'finished' && !view.done) io.stderr.write(`${leftText(view)}. \`skerry secrets status\` shows what is left.\n`)
  if (view.step === 'finished')
    io.stderr.write(
      'Make a backup of the data folder now. Older copies that the server does not know of still hold Secrets in clear: delete them.\n',
    )
}

/** Says where clear text is left outside of the server. */
function leftText({ step, done, replicas, backups }: SealView): string {
  if (step !== 'finished' || done) return step === 'finished' ? 'nothing is left in clear' : ''
  const parts = [
    ...(replicas.count === 0
      ? []
      : [`${replicas.count} agents have not fetched their rows since this server started (${replicas.first.join(', ')})`]),
    ...(backups.newestMs === null
      ? []
      : [`${backups.count} backups are from before, the newest of ${new Date(backups.newestMs).toISOString()}`]),
  ]
  return parts.join('; ')
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

/** WH3: shows the secret of a webhook once. */
export async function createWebhookSecret(context: Context, name: string, project: string): Promise<void> {
  const address = path`/projects/${project}/repositories/${name}/webhook`
  const { url, secret } = await context.client().send('POST', address, webhookAnswerSchema)
  context.io.stdout.write(`Webhook:        ${url}\nWebhook secret: ${secret}\n`)
  context.io.stderr.write(`The secret is shown only once. The previous secret stays valid until the next one is created.\n${WEBHOOK_HELP}`)
}

function print(context: Context, view: SealView, options: { output?: Output }): void {
  const columns = [
    { title: 'STATUS', value: ({ step }: SealView) => step },
    { title: 'KEY', value: ({ key }: SealView) => key ?? '-' },
    { title: 'SERVICES', value: ({ left }: SealView) => (left.length === 0 ? '-' : left.join(',')) },
    { title: 'REPLICAS', value: ({ replicas }: SealView) => String(replicas.count) },
    { title: 'BACKUPS', value: ({ backups }: SealView) => String(backups.count) },
    { title: 'MESSAGE', value: (shown: SealView) => shown.error ?? leftText(shown) },
  ]
  printItems(context, [view], { columns, nameOf: () => 'secrets/seal', single: true, none: 'no status' }, options)
}
