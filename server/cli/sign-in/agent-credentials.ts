// Credentials of agents, listed and revoked like API tokens: `token list --agents`, `token revoke a-…`.
import { type AgentCredential, agentCredentialSchema } from '../../../shared/model/sign-in.ts'
import { clusterViewSchema } from '../../../shared/model/views.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { path } from '../client.ts'
import type { Column } from '../columns.ts'
import { type Context, type Output, printItems } from '../context.ts'
import { consent } from '../delete.ts'

const time = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')

const COLUMNS: ReadonlyArray<Column<AgentCredential>> = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'CLUSTER', value: ({ cluster }) => cluster },
  { title: 'STATE', value: ({ state }) => state },
  { title: 'JOINED', value: ({ joinedMs }) => time(joinedMs) },
  { title: 'LAST-USED', value: ({ lastUsedMs }) => (lastUsedMs === null ? null : time(lastUsedMs)) },
  { title: 'FINGERPRINT', value: ({ fingerprint }) => fingerprint },
  { title: 'RECIPIENT', value: ({ recipient, rotating }) => (rotating ? `${recipient} (rotating)` : recipient) },
]

export const isAgentId = (id: string): boolean => /^a-[0-9a-f]{16}$/.test(id)

export async function listAgentCredentials(context: Context, options: { output?: Output; headers?: boolean }): Promise<void> {
  const agents = await context.client().list('/agents', agentCredentialSchema)
  const what = { columns: COLUMNS, nameOf: ({ id }: AgentCredential) => `agent/${id}`, single: false, none: 'no agents' }
  printItems(context, agents, what, options)
}

export async function revokeAgent(context: Context, id: string, { yes }: { yes?: true | undefined }): Promise<void> {
  const client = context.client()
  const agent = (await client.list('/agents', agentCredentialSchema)).find((one) => one.id === id)
  if (agent === undefined)
    throw new AppError('not_found', { detail: `agent ${id} does not exist`, remedy: 'List them with `skerry token list --agents`.' })
  const { cluster } = agent
  await consent(context, `Revoke the credential of the agent of ${cluster}? It can no longer sync; applied objects stay.`, yes === true)
  const { apiVersion, kind, metadata, spec } = await client.get(path`/clusters/${cluster}`, clusterViewSchema)
  const document = { apiVersion, kind, metadata: { name: metadata.name, labels: metadata.labels }, spec: { ...spec, revoked: true } }
  await client.send('PUT', path`/clusters/${cluster}`, clusterViewSchema, document)
  context.io.stdout.write(`agent/${id} revoked (cluster ${cluster}); set spec.revoked to false to admit it again\n`)
}
