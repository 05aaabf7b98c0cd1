// `skerry admin-token`: an admin token for a person who may write the server's disk, if nobody can sign in. It is
// short-lived, needs a reason, and is in the audit log.
import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join, resolve } from 'node:path'
import { isFolderInUse } from '../../shared/adapters/data-folder.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { OptionTable } from '../../shared/runtime/options.ts'
import { systemRandom } from '../../shared/runtime/random.ts'
import { createApiTokens } from '../access/api-tokens.ts'
import { STORE } from '../backup/manifest.ts'
import { fleetEvent } from '../fleet/fleet-event.ts'
import { warning } from '../messages/event-messages.ts'
import { actAs } from '../store/audit/caller.ts'
import { SCHEMA_NEWEST } from '../store/engines/store-file.ts'
import { openPostgresStore, openSqliteStore } from '../store/kysely-store.ts'
import type { Store } from '../store/store.ts'
import { type PostgresPlace, readStorePlace } from '../store/store-place.ts'
import { inspectStore } from '../store/upkeep/store-check.ts'
import { SERVER_OPTIONS } from './server-options.ts'
import { type Flags, runVerb, type VerbIo } from './verb-io.ts'

const HOUR_MS = 3_600_000
const REASON_MAX = 500
/** The log of a store that is being written may end in a half of a commit. */
const OPEN_TRIES = 5
const OPEN_WAIT_MS = 200

export const ADMIN_TOKEN_OPTIONS = {
  data: { ...SERVER_OPTIONS.data, help: 'Data folder of the server, which may run.' },
  store: SERVER_OPTIONS.store,
  storeFile: SERVER_OPTIONS.storeFile,
  reason: { type: 'text', placeholder: 'TEXT', help: 'Why the token is needed; it is recorded.', required: true },
  expires: { type: 'interval', help: 'Lifetime, at most 24h.', default: '1h', leastMs: 60_000 },
} as const satisfies OptionTable

export const runAdminToken = (flags: Flags, io: VerbIo): Promise<number> =>
  runVerb('admin-token', ADMIN_TOKEN_OPTIONS, flags, io, async ({ data, store: url, storeFile, reason, expires }) => {
    const wrong =
      expires > 24 * HOUR_MS
        ? '--expires is more than 24h'
        : reason.length > REASON_MAX
          ? `--reason has more than ${REASON_MAX} characters`
          : null
    if (wrong !== null) throw new AppError('bad_options', { detail: wrong, remedy: 'See `skerry admin-token --help`.' })
    const place = readStorePlace({ url, asFlag: flags['store'] !== undefined, file: storeFile, env: io.env })
    const store = await openStore(resolve(data), place, io.clock)
    try {
      const { username, uid } = userInfo()
      const actor = { kind: 'local', id: `uid ${uid}`, name: username, verified: true } as const
      const { id, token } = await actAs(actor, { reason }, async () => {
        const expiresMs = io.clock.nowMs() + expires
        const made = await createApiTokens({ store, clock: io.clock }).create(
          { name: 'break-glass', role: 'admin', expiresMs },
          { name: `${username} on the server` },
        )
        const until = new Date(expiresMs).toISOString()
        const said = warning('BreakGlassToken', { name: username, uid, id: made.id, until, why: reason })
        await store.appendEvents([fleetEvent(io.clock.nowMs(), said, {})])
        return made
      })
      // The token alone on stdout: SKERRY_TOKEN=$(skerry admin-token …).
      io.out(`${token}\n`)
      io.err(`${id}: admin token, recorded with its reason; revoke it when you are done: skerry token revoke ${id}\n`)
      return 0
    } finally {
      await store.close()
    }
  })

async function openStore(dataDir: string, postgres: PostgresPlace | null, clock: Clock): Promise<Store> {
  const file = join(dataDir, STORE)
  if (postgres === null && !existsSync(file))
    throw new AppError('bad_options', {
      detail: `${dataDir} has no fleet store`,
      remedy: 'Set --data to the data folder of the server, or --store if its fleet store is a database.',
    })
  const look = await inspectStore(postgres ?? { file })
  await look.close()
  // A program of another version would migrate the store under the running server.
  if (look.schema !== SCHEMA_NEWEST)
    throw new AppError('bad_options', {
      detail: `the fleet store has schema ${look.schema ?? 'unknown'}; this program needs schema ${SCHEMA_NEWEST}`,
      remedy: 'Use the program version of the server.',
    })
  const options = { clock, random: systemRandom }
  if (postgres !== null) return openPostgresStore(postgres, options)
  for (let tries = 1; ; tries++) {
    try {
      return await openSqliteStore(file, options)
    } catch (error) {
      const isTorn = error instanceof AppError && error.code === 'store_damaged' && isFolderInUse(dataDir)
      if (!isTorn || tries >= OPEN_TRIES) throw error
      await clock.sleep(OPEN_WAIT_MS)
    }
  }
}
