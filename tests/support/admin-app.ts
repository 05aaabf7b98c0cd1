// The whole admin API over a real store in memory, with actions that only note what they were asked.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { createApiTokens } from '../../server/access/api-tokens.ts'
import { type AuditTrail, createAuditTrail } from '../../server/access/audit-trail.ts'
import { createConfigKeys } from '../../server/access/config-keys.ts'
import { createSecretRotation } from '../../server/access/rotate-secrets.ts'
import { loadSecretBox, type SecretBox } from '../../server/access/secret-box.ts'
import { loadServerKeys } from '../../server/access/server-keys.ts'
import type { DeleteOutcome } from '../../server/actions/port.ts'
import { createRemovalPlans } from '../../server/actions/removal-plans.ts'
import type { App, AppDeps } from '../../server/app.ts'
import { createApp } from '../../server/app.ts'
import { removeSubject } from '../../server/fleet/plan-service.ts'
import type { ResourceKey } from '../../server/fleet/records.ts'
import type { ConfirmedData } from '../../server/fleet/removal-effect.ts'
import { networkOf } from '../../server/http/caller-address.ts'
import { checkPatchesHere } from '../../server/render/patch/patches.ts'
import { openSqliteStore } from '../../server/store/kysely-store.ts'
import type { Store } from '../../server/store/store.ts'
import { sealViewSchema } from '../../shared/model/sealing-views.ts'
import { type Clock, systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { tempDir } from './temp-dir.ts'

/** What is confirmed with a deed: ` with NAME in 2 clusters`. */
const dataText = (confirmed: ConfirmedData): string =>
  [...confirmed].map(([service, clusters]) => ` with ${[...clusters.values()].join()} of ${service} in ${clusters.size}`).join('')

export interface TestAdmin {
  app: App
  trail: AuditTrail
  store: Store
  token: string
  clock: { nowMs: number }
  /** Rendered sets by the key that desired rows name. */
  content: Map<string, Uint8Array>
  /** What the app asked of the fleet. */
  asked: string[]
  outcome: { deleteService: DeleteOutcome }
  call(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<{ status: number; headers: Headers; body: unknown }>
}

/** What overrides may be made of. */
const SEALED = sealViewSchema.parse({ step: 'finished', done: true, key: '00000000', left: [], removed: 0, shards: 0, error: null })

type Made = Pick<AppDeps, 'store' | 'clock'> & { box: SecretBox }

export async function createTestAdmin(
  overrides: Partial<AppDeps> | ((made: Made) => Partial<AppDeps>) = {},
  nowMs = 1_000_000,
): Promise<TestAdmin> {
  const store = await openSqliteStore(':memory:', { clock: systemClock, random: seededRandom(7) })
  const time = { nowMs }
  const clock: Clock = { nowMs: () => time.nowMs, monotonicMs: () => time.nowMs, sleep: () => setImmediate() }
  const tokens = createApiTokens({ store, clock })
  const token = (await tokens.createFirst(async () => {})) ?? ''
  const keys = keysFolder()
  const box = loadSecretBox(keys)
  const own = typeof overrides === 'function' ? overrides({ store, clock, box }) : overrides
  const { secrets = createConfigKeys(box) } = own
  const asked: string[] = []
  const content: TestAdmin['content'] = new Map()
  const outcome: TestAdmin['outcome'] = { deleteService: { kind: 'deleted' } }
  const note = (text: string, by = '') => asked.push(by === '' ? text : `${text} by ${by}`)
  const trail = createAuditTrail({ store, networkOf, clock, log: silentLogger })
  const app = createApp({
    store,
    trail,
    tokens,
    clock,
    logger: silentLogger,
    serverKeys: loadServerKeys(keys),
    secrets,
    rotation: await createSecretRotation({
      ...{ store, keys: secrets, clock, log: silentLogger },
      pace: async () => {},
      stopping: new AbortController().signal,
    }),
    seals: { view: async () => SEALED, begin: async () => SEALED, settled: async () => {} },
    renders: {
      render: async () => null,
      variants: async () => null,
      origin: async () => null,
      objects: async () => ({ kind: 'rendered', objects: new Map() }),
    },
    previews: { diff: async () => null },
    isConfined: true,
    notifier: { test: async () => ({ delivered: true, durationMs: 1, detail: 'sent' }), retry: async () => true },
    checkPatches: checkPatchesHere,
    restore: NO_RESTORE,
    removals: createRemovalPlans({ store, content: { get: async (sha256) => content.get(sha256) ?? null }, owners: NO_OWNERS, clock }),
    owners: NO_OWNERS,
    readTimesOf: () => null,
    webhook: async (project, name) => ({ url: `https://skerry.example/webhooks/v1/${project}/${name}`, secret: 'hmac:0123456789abcdef' }),
    async newWebhookSecret(project, name) {
      await store.nextWebhookNumber({ kind: 'Repository', project, name }, 'uid')
      return { url: `https://skerry.example/webhooks/v1/${project}/${name}`, secret: 'hook-secret' }
    },
    version: () => ({ version: '1.2.3' }),
    ready: () => true,
    requestsPerSecond: 0, // the clock stands still
    stopping: new AbortController().signal,
    metrics: async () => new Response(''),
    actions: {
      async deleteService({ project, service }, by, confirmed = new Map()) {
        note(`delete ${project}/${service}${dataText(confirmed)}`, by)
        return outcome.deleteService
      },
      async takeBackDeletion({ project, service }, by) {
        note(`take back ${project}/${service}`, by)
        return store.takeBackDeletion({ kind: 'Service', project, name: service }, removeSubject({ project, service }), time.nowMs)
      },
      async deleteCluster(name, by, ifVersion) {
        note(`delete cluster ${name}`, by)
        return store.deleteCluster(name, ifVersion)
      },
      async confirm(id, by, confirmed = new Map(), upTo) {
        note(`confirm ${id}${upTo === undefined ? '' : ` up to ${upTo}`}${dataText(confirmed)}`, by)
        return store.confirm(id, by, time.nowMs, upTo)
      },
      async refuse(id, { by, why, upTo }) {
        note(`refuse ${id} (${why})`, by)
        return store.refuse(id, { by, why, upTo, nowMs: time.nowMs })
      },
      suspensionsChanged: async () => void note('suspensions changed'),
      objectOrder: async () => null,
      planSync: async () => null,
      allowSync: async () => null,
      onChanged: (keys: readonly ResourceKey[], confirmed: ConfirmedData = new Map()) =>
        note(`${keys.map(({ kind, project, name }) => `changed ${kind} ${project}/${name}`).join(', ')}${dataText(confirmed)}`),
    },
    ...own,
  })
  return {
    content,
    app,
    trail,
    store,
    token,
    clock: time,
    asked,
    outcome,
    async call(method, path, body, headers = {}) {
      const response = await app.fetch(
        new Request(`http://localhost${path}`, {
          method,
          headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
          ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
        }),
      )
      const text = await response.text()
      const json = (response.headers.get('content-type') ?? '').includes('json')
      return { status: response.status, headers: response.headers, body: json && text !== '' ? JSON.parse(text) : text }
    },
  }
}

let keyFiles: { name: string; bytes: Uint8Array }[] | undefined

/** A folder of its own with keys that were made once a process: making them waits for the disk. */
function keysFolder(): string {
  const folder = tempDir()
  for (const { name, bytes } of keyFiles ?? []) writeFileSync(join(folder, name), bytes, { mode: 0o600 })
  if (keyFiles === undefined) {
    loadSecretBox(folder)
    loadServerKeys(folder)
    keyFiles = readdirSync(folder).map((name) => ({ name, bytes: readFileSync(join(folder, name)) }))
  }
  return folder
}

/** No service names an object of another one. */
const NO_OWNERS: AppDeps['owners'] = {
  takersOfAll: async () => () => new Map(),
  takersOf: async () => new Map(),
  holdersOf: async () => [],
}

const NO_RESTORE: AppDeps['restore'] = {
  pendingSinceMs: async () => null,
  plan: async () => ({ pending: false, sinceMs: null, token: null, clusters: [], unknownAgents: [] }),
  confirm: async () => ({ clusters: 0, marked: 0 }),
}

export const repositoryDoc = (name: string, extra: Record<string, unknown> = {}) => ({
  apiVersion: 'skerry.dev/v1',
  kind: 'Repository',
  metadata: { name, ...extra },
  spec: { git: { url: 'https://git.example/apps.git' } },
})
export const serviceDoc = (name: string, extra: Record<string, unknown> = {}, repository = 'apps') => ({
  apiVersion: 'skerry.dev/v1',
  kind: 'Service',
  metadata: { name, ...extra },
  spec: { source: { repository, path: name }, targets: { selector: { matchLabels: { env: 'prod' } } } },
})
