// CG7: all secrets of Configs are sealed anew, each Config under another data key, in slices, while the server serves.
// The store has how far it is, so that a server that was stopped in between goes on.
import { randomBytes } from 'node:crypto'
import { type RotationView, rotationViewSchema } from '../../shared/model/sealing-views.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { ERRORS } from '../../shared/runtime/error-table.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { Pace } from '../../shared/runtime/pace.ts'
import { fleetEvent } from '../fleet/fleet-event.ts'
import { news, warning } from '../messages/event-messages.ts'
import type { Store } from '../store/store.ts'
import type { ConfigKeys } from './config-keys.ts'
import { isDue, isOfAnotherMaster, opensAny, resealConfig } from './config-secrets.ts'

export interface SecretRotation {
  /** The newest rotation; null means that there was none yet. */
  view(): RotationView | null
  /** Answers when a new master key is in use; the rest goes on behind it. While one is under way, this is that one. */
  begin(by: string): Promise<RotationView>
  /** At a start: goes on with what was cut off, and seals under data keys what an earlier version sealed, or another
   *  master key wraps. */
  resume(): Promise<void>
  /** Resolves when nothing is under way. */
  settled(): Promise<void>
}

export interface SecretRotationDeps {
  store: Pick<Store, 'listResources' | 'resealConfig' | 'appendEvents' | 'secretRotation' | 'setSecretRotation'>
  keys: ConfigKeys
  clock: Pick<Clock, 'nowMs' | 'sleep'>
  pace: Pace
  log: Logger
  stopping: AbortSignal
}

const PAGE = 200
/** After an error that may pass: the key service does not answer. */
const RETRY_MS = 30_000

export async function createSecretRotation(deps: SecretRotationDeps): Promise<SecretRotation> {
  const { store, keys, clock, log, stopping } = deps
  let state = rotationViewSchema.nullable().parse(JSON.parse((await store.secretRotation()) ?? 'null'))
  keys.rotation = state?.id ?? ''
  let running: Promise<void> | null = null

  const keep = async (next: RotationView): Promise<RotationView> => {
    state = next
    await store.setSecretRotation(JSON.stringify(next))
    return next
  }
  const attempt = async (begun: RotationView): Promise<void> => {
    await keys.settled() // what was sealed under the earlier master key has committed, and is found
    const counts = await sealAll(deps, begun, (counts) => {
      state = { ...begun, ...counts }
    })
    if (stopping.aborted) return // it goes on at the next start
    if (begun.reason === 'rotation') await keys.forgetEarlier()
    // The event comes first: a reader of the finished state finds it. After a kill in between, it is written again.
    await store.appendEvents([doneEvent(begun, counts, clock.nowMs())])
    await keep({ ...begun, ...counts, state: 'finished', error: null, finishedMs: clock.nowMs() })
    log.info('secrets of Configs are sealed anew', { reason: begun.reason, ...counts })
  }
  const run = async (begun: RotationView): Promise<void> => {
    while (!stopping.aborted) {
      try {
        return await attempt(begun)
      } catch (error) {
        const mayPass = error instanceof AppError && ERRORS[error.code].retryable
        log.error('secrets of Configs cannot be sealed anew', { error: describeError(error) })
        const failed: RotationView = { ...(state ?? begun), state: mayPass ? 'running' : 'failed', error: describeError(error) }
        // A store that cannot be written either: the next start goes on.
        await keep(failed).catch((lost: unknown) => log.error('a rotation cannot be noted', { error: describeError(lost) }))
        if (!mayPass) return
        await clock.sleep(RETRY_MS, stopping)
      }
    }
  }
  const start = (begun: RotationView) => {
    running = run(begun).finally(() => {
      running = null
    })
  }
  const newState = async (reason: RotationView['reason'], by: string): Promise<RotationView> => {
    const id = randomBytes(4).toString('hex')
    const none = { total: null, configs: 0, secrets: 0, unopened: 0, finishedMs: null, error: null, note: null }
    const begun = await keep({ ...none, id, reason, by, state: 'running', masterKey: keys.master, startedMs: clock.nowMs() })
    keys.rotation = id
    return begun
  }
  /** Repeated after a cut: a master key that the earlier attempt made stays. */
  const rotateMaster = async (begun: RotationView): Promise<RotationView> => keep({ ...begun, note: await keys.rotate() })
  const again = (cut: RotationView): RotationView => ({ ...cut, state: 'running', error: null, masterKey: keys.master })

  return {
    view: () => state,
    async begin(by) {
      if (running !== null && state !== null && state.reason === 'rotation') return state
      await running // sealing after an upgrade is short
      const isCut = state !== null && state.state !== 'finished' && state.reason === 'rotation'
      const begun = await rotateMaster(isCut && state !== null ? again(state) : await newState('rotation', by))
      start(begun)
      return begun
    },
    async resume() {
      if (state !== null && state.state !== 'finished') start(state.reason === 'rotation' ? await rotateMaster(again(state)) : again(state))
      else if (await hasEarlier(deps)) start(await newState('upgrade', 'skerry'))
    },
    settled: async () => void (await running),
  }
}

function doneEvent({ reason, by, masterKey }: RotationView, { configs, secrets, unopened }: Counts, nowMs: number) {
  const sealed = { by: reason === 'rotation' ? by : '', secrets, configs, masterKey }
  const said = unopened === 0 ? news('SecretKeyRotated', sealed) : warning('SecretKeyRotated.unopened', { ...sealed, unopened })
  return fleetEvent(nowMs, said, {})
}

/** Whether something that opens is sealed as an earlier version did, or its data key is wrapped by another master key.
 */
async function hasEarlier({ store, keys, pace }: SecretRotationDeps): Promise<boolean> {
  for await (const { project, name, spec } of allConfigs(store)) {
    await pace()
    if (isOfAnotherMaster(keys, spec) && (await opensAny(keys, { project, name }, spec))) return true
  }
  return false
}

type Counts = Pick<RotationView, 'total' | 'configs' | 'secrets' | 'unopened'>

/** In rounds, until one misses none that somebody wrote meanwhile. */
async function sealAll(
  { store, keys, pace, stopping }: SecretRotationDeps,
  begun: Counts,
  onProgress: (counts: Counts) => void,
): Promise<Counts> {
  const counts: Counts = { total: begun.configs, configs: begun.configs, secrets: begun.secrets, unopened: 0 }
  let total = begun.configs
  for await (const { spec } of allConfigs(store)) if (isDue(keys, spec)) total++
  for (let missed = 1; missed > 0 && !stopping.aborted; ) {
    missed = 0
    counts.unopened = 0
    for await (const { project, name, version, spec } of allConfigs(store)) {
      if (stopping.aborted) break
      await pace()
      if (!isDue(keys, spec)) continue
      const anew = await resealConfig(keys, { project, name }, spec)
      counts.unopened += anew.unopened
      if (anew.spec === null) continue
      if (await store.resealConfig({ kind: 'Config', project, name }, version, anew.spec)) {
        counts.configs++
        counts.secrets += anew.secrets
        counts.total = Math.max(total, counts.configs)
        onProgress({ ...counts })
      } else missed++
    }
  }
  return { ...counts, total: Math.max(total, counts.configs) }
}

async function* allConfigs(store: Pick<Store, 'listResources'>) {
  for (let after: string | undefined; ; ) {
    const page = await store.listResources('Config', { limit: PAGE, ...(after === undefined ? {} : { after }) })
    yield* page.items
    if (page.next === null) return
    after = page.next
  }
}
