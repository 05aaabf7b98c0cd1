// server-key: which key the server signs with, and a new one in its place.
import { listOf, serverKeyViewSchema } from '../../shared/model/views.ts'
import { KEY_LINKS_MAX } from '../../shared/protocol/key-links.ts'
import { countText } from './columns.ts'
import { type Context, type Output, printItems } from './context.ts'
import { consent } from './delete.ts'
import { serverKeyColumns } from './tables.ts'

export async function listServerKeys(context: Context, options: { output?: Output; headers?: boolean }): Promise<void> {
  const keys = await context.client().list('/server-keys', serverKeyViewSchema)
  const nameOf = ({ fingerprint }: { fingerprint: string }) => `server-key/${fingerprint}`
  printItems(context, keys, { columns: serverKeyColumns(context.io.clock.nowMs()), nameOf, single: false, none: 'no keys' }, options)
}

export async function rotateServerKey(context: Context, { yes }: { yes?: true | undefined }): Promise<void> {
  const { io } = context
  const client = context.client()
  const before = await client.list('/server-keys', serverKeyViewSchema)
  io.stderr.write(`Server key ${before.at(-1)?.fingerprint ?? '-'} signs no more, and its private half is destroyed.
Agents follow by themselves when they next make contact; join tokens that were printed before stay good.
An agent that misses more than ${countText(KEY_LINKS_MAX, 'rotation')} has to join again.
`)
  await consent(context, 'Sign with a new key from now on?', yes === true)
  const { items } = await client.send('POST', '/server-keys/rotate', listOf(serverKeyViewSchema))
  io.stdout.write(`server-key/${items.at(-1)?.fingerprint ?? '-'} signs from now on\n`)
  io.stderr.write(
    'Make a backup of the data folder now. Older ones still hold the old private key: keep them as safe as the server, or delete them.\n',
  )
}
