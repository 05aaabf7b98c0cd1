// server-key: which keys the server has, new ones in their place, and earlier ones that are revoked.
import { listOf, serverKeyViewSchema } from '../../shared/model/views.ts'
import { KEY_LINKS_MAX } from '../../shared/protocol/key-links.ts'
import { noContent } from './client.ts'
import { countText } from './columns.ts'
import { type Context, type Output, printItems } from './context.ts'
import { consent } from './delete.ts'
import { UsageError } from './io.ts'
import type { ROTATED_KEYS } from './outputs.ts'
import { rotateKeys } from './secrets.ts'
import { serverKeyColumns } from './tables.ts'

export async function listServerKeys(context: Context, options: { output?: Output; headers?: boolean }): Promise<void> {
  const keys = await context.client().list('/server-keys', serverKeyViewSchema)
  const nameOf = ({ fingerprint }: { fingerprint: string }) => `server-key/${fingerprint}`
  printItems(context, keys, { columns: serverKeyColumns(context.io.clock.nowMs()), nameOf, single: false, none: 'no keys' }, options)
}

export type RotatedKey = (typeof ROTATED_KEYS)[number]

export async function rotateServerKey(context: Context, which: RotatedKey, { yes }: { yes?: true | undefined }): Promise<void> {
  const isSure = yes === true
  if (which === 'mac') return rotateMac(context, isSure)
  return which === 'secrets' ? rotateKeys(context, { yes }) : rotateSigning(context, isSure)
}

async function rotateSigning(context: Context, isSure: boolean): Promise<void> {
  const { io } = context
  const client = context.client()
  const before = await client.list('/server-keys', serverKeyViewSchema)
  io.stderr.write(`Server key ${before.at(-1)?.fingerprint ?? '-'} no longer signs, and its private key is destroyed.
Agents follow automatically at their next contact; existing join tokens stay valid.
An agent that misses more than ${countText(KEY_LINKS_MAX, 'rotation')} has to join again.
Agents trust the earlier key until it is revoked: skerry server-key revoke
`)
  await consent(context, 'Sign with a new key?', isSure)
  const { items } = await client.send('POST', '/server-keys/rotate', listOf(serverKeyViewSchema))
  io.stdout.write(`server-key/${items.at(-1)?.fingerprint ?? '-'} now signs\n`)
  io.stderr.write(
    'Make a backup of the data folder now. Older backups still have the old private key: protect them like the server, or delete them.\n',
  )
}

async function rotateMac(context: Context, isSure: boolean): Promise<void> {
  const { io } = context
  io.stderr.write(`All sessions of agents end, and agents open new ones automatically. All services are rendered again once.
Each webhook gets a new secret. The current secrets in forges stay valid until the next rotation of this key.
`)
  await consent(context, 'Rotate mac.key?', isSure)
  await context.client().send('POST', '/server-keys/rotate-mac', noContent)
  io.stdout.write('mac.key rotated\n')
  io.stderr.write('Make new secrets for the forges (skerry webhook-secret create NAME), then rotate once more to drop the earlier key.\n')
}

export async function revokeServerKeys(
  context: Context,
  { before, yes }: { before?: string | undefined; yes?: true | undefined },
): Promise<void> {
  const { io } = context
  const client = context.client()
  const keys = await client.list('/server-keys', serverKeyViewSchema)
  const oldest = keys.findIndex(({ fingerprint }) => fingerprint === (before ?? keys.at(-1)?.fingerprint))
  if (oldest < 0) throw new UsageError(`no server key ${before}; \`skerry server-key list\` lists them`)
  const revoked = keys.slice(0, oldest).filter(({ state }) => state !== 'revoked')
  if (revoked.length === 0)
    throw new UsageError('no earlier key is trusted, so there is nothing to revoke; run `skerry server-key rotate` first')
  io.stderr.write(`These keys are revoked: ${revoked.map(({ fingerprint }) => fingerprint).join(', ')}
Agents refuse them from their next contact on. This cannot be undone.
A server that is restored from a backup with one of these keys is refused by every agent: make a backup now, and delete older ones.
Join tokens that were made before ${keys[oldest]?.fingerprint} began to sign are deleted.
`)
  await consent(context, 'Revoke these keys?', yes === true)
  await client.send('POST', '/server-keys/revoke', listOf(serverKeyViewSchema), before === undefined ? undefined : { before })
  io.stdout.write(revoked.map(({ fingerprint }) => `server-key/${fingerprint} revoked\n`).join(''))
}
