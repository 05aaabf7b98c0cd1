// The position in a revision: pre-sync hooks, then the waves of the sync phase, then post-sync hooks. Pure: the missing
// parts of each wave and the state of each hook are inputs.
import { refText } from '../../../../shared/kube/object.ts'
import { compareRefs } from '../../../../shared/kube/order.ts'
import type { Phase } from '../../../../shared/kube/waves.ts'
import { deletionText } from '../../../messages/deletion-messages.ts'
import { orderText } from '../../../messages/service-messages.ts'
import type { InventoryEntry } from '../../../state/agent-state.ts'
import type { HookRun, HookSpec, Position, Wait } from '../../snapshot/hook-spec.ts'
import { type Closed, closed, WAITING_FOR_HOOK, WAITING_FOR_WAVE } from '../../snapshot/situation.ts'
import type { Gate } from '../gates/gates.ts'

export interface WaveState {
  unapplied: Wait | null
  unhealthy: Wait | null
  /** The first that failed, of those. */
  failed: Wait | null
}
const CLEAR_WAVE: WaveState = Object.freeze({ unapplied: null, unhealthy: null, failed: null })

export interface HookState {
  outcome: HookRun['outcome'] | 'none'
  message: string
  sinceMs: number
}

export interface PhaseFacts {
  digest: string
  specs: readonly HookSpec[]
  stateOf(phase: Phase, spec: HookSpec): HookState
  /** The waves of ordinary objects. */
  waves: ReadonlyMap<number, WaveState>
  waitForHealth: boolean
}

/** OR3, HK2: the phase and wave at which the revision is. */
export function positionOf(facts: PhaseFacts): Position {
  const position = standOf(facts)
  const failed = position.hookFailed || [...facts.waves].some(([wave, { failed: found }]) => found !== null && isBegun(position, wave))
  if (!failed) return position
  return { ...position, failHooks: hookWave(facts, 'sync-fail')?.open ?? [] }
}

/** Only objects whose turn came can have failed: existing ones of later waves are of the former revision. */
const isBegun = ({ phase, wave: now }: Position, wave: number): boolean => phase !== 'pre-sync' && (phase !== 'sync' || wave <= now)

function standOf(facts: PhaseFacts): Position {
  const { digest, waves, specs, waitForHealth } = facts
  const base = { digest, wave: 0, hooks: [], failHooks: [], waitsFor: null, applied: false, hookFailed: false }
  const before = hookWave(facts, 'pre-sync')
  if (before !== null) return { ...base, phase: 'pre-sync', ...standing(before) }
  const numbers = new Set(waves.keys())
  for (const { phases, wave } of specs) if (phases.includes('sync')) numbers.add(wave)
  const order = [...numbers].sort((a, b) => a - b)
  for (const wave of order) {
    const hooks = hookWave(facts, 'sync', wave)
    const { unapplied, unhealthy, failed } = waves.get(wave) ?? CLEAR_WAVE
    const isLast = wave === order.at(-1)
    if (hooks !== null) {
      const stand = standing(hooks)
      const waitsFor = stand.hookFailed ? stand.waitsFor : (failed ?? unapplied ?? stand.waitsFor)
      return { ...base, phase: 'sync', ...stand, waitsFor, ...lastIf(isLast) }
    }
    if (unapplied !== null || (waitForHealth && unhealthy !== null)) {
      const waitsFor = failed ?? unapplied ?? unhealthy
      return { ...base, phase: 'sync', wave, waitsFor, applied: isLast && unapplied === null, ...lastIf(isLast) }
    }
  }
  const wave = order.at(-1) ?? 0
  const late = order.map((number) => waves.get(number)?.failed ?? waves.get(number)?.unhealthy ?? null).find((found) => found !== null)
  if (late !== undefined) return { ...base, phase: 'sync', wave, waitsFor: late, applied: true }
  const after = hookWave(facts, 'post-sync')
  if (after !== null) return { ...base, phase: 'post-sync', ...standing(after), applied: true }
  return { ...base, phase: 'done', wave, applied: true }
}

const lastIf = (isLast: boolean): { last?: true } => (isLast ? { last: true } : {})

interface HookWave {
  wave: number
  open: HookSpec[]
  wait: Wait
}

const standing = ({ wave, open, wait }: HookWave) => ({ wave, hooks: open, waitsFor: wait, hookFailed: wait.failed !== null })

/** The first wave of hooks of the phase (or that very wave) in which not all succeeded. Null means that all have. */
export function hookWave({ specs, stateOf }: Pick<PhaseFacts, 'specs' | 'stateOf'>, phase: Phase, only?: number): HookWave | null {
  const open = specs
    .filter((spec) => spec.phases.includes(phase) && (only === undefined || spec.wave === only))
    .map((spec) => ({ spec, state: stateOf(phase, spec) }))
    .filter(({ state }) => state.outcome !== 'succeeded')
    .sort((a, b) => a.spec.wave - b.spec.wave || compareRefs(a.spec.ref, b.spec.ref))
  const [first] = open
  if (first === undefined) return null
  const here = open.filter(({ spec }) => spec.wave === first.spec.wave)
  const failed = here.find(({ state }) => state.outcome === 'failed')
  const { spec, state } = failed ?? first
  const wait: Wait = {
    ref: spec.ref,
    lacks: 'finished',
    sinceMs: state.sinceMs,
    failed: failed === undefined ? null : state.message || orderText('it_failed'),
    detail: failed === undefined ? state.message : '',
  }
  // After a failure nothing more begins; running hooks are completed.
  const mayGo = here.filter(({ state: { outcome } }) => (failed === undefined ? outcome !== 'failed' : outcome === 'running'))
  return { wave: first.spec.wave, open: mayGo.map((item) => item.spec), wait }
}

const timeText = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')

/** The position of a revision, or of a removal. */
type Standing = Pick<Position, 'wave' | 'waitsFor'> & { phase: string }

function waitedText({ phase, wave }: Standing, { ref, lacks }: Wait): string {
  const object = refText(ref)
  if (lacks === 'finished') return orderText('hook', { phase, object })
  return phase === 'sync' ? orderText('wave', { wave, object }) : orderText('phase', { phase, object })
}

/** The same text as long as it waits for the same. `isRemoval`: a hook of a removal order. */
export function waitText(position: Standing, isRemoval = false): string {
  const { waitsFor } = position
  if (waitsFor === null) return ''
  const { lacks, sinceMs, failed } = waitsFor
  const waited = { what: waitedText(position, waitsFor), since: timeText(sinceMs) }
  if (lacks === 'finished') {
    if (failed === null) return orderText('hook_running', waited)
    return orderText(isRemoval ? 'removal_hook_failed' : 'hook_failed', { ...waited, why: failed })
  }
  if (failed === null) return orderText(lacks === 'healthy' ? 'not_healthy' : 'not_applied', waited)
  return orderText(lacks === 'healthy' ? 'degraded' : 'refused', { ...waited, why: failed.replace(/\.$/, '') })
}

const HOOK_FAILED = 'HookFailed'

/** OR3, HK2: new documents wait for their wave, and all of them for pre-sync. Applied documents are healed meanwhile
 *  (DR6). */
export function orderGate(position: Position | null, inventory: ReadonlyMap<string, InventoryEntry>): Gate {
  if (position === null || position.phase === 'done' || position.phase === 'post-sync') return () => null
  const words: { text: string | null } = { text: null }
  const shut = (reason: string): Closed => {
    words.text ??= waitText(position)
    return closed(reason, words.text)
  }
  return ({ key, ref, wave = 0, onlyIfAbsent }, deed) => {
    if (deed !== 'change' || onlyIfAbsent) return null
    // Hooks and earlier waves may live in it.
    if (ref.kind === 'Namespace' && ref.group === '' && (inventory.get(key)?.appliedDoc ?? null) === null) return null
    if (position.phase === 'pre-sync') return shut(WAITING_FOR_HOOK)
    return wave > position.wave ? shut(position.waitsFor?.lacks === 'finished' ? WAITING_FOR_HOOK : WAITING_FOR_WAVE) : null
  }
}

export interface PhaseWords {
  reason: string
  message: string
  /** Something of the revision is not applied because of it. */
  holdsBack: boolean
  failed: boolean
  /** Only hooks follow the object that it waits for: the problem of that object explains more. */
  behindObjects?: true
}

/** For the service's own row: null if order delays nothing. */
export function phaseWords(position: Position | null): PhaseWords | null {
  if (position === null || position.waitsFor === null || position.phase === 'done') return null
  const { phase, waitsFor, applied, hookFailed } = position
  // Everything is applied and something is not healthy: that is reported elsewhere.
  if (phase === 'sync' && applied) return null
  const text = waitText(position)
  const isHook = waitsFor.lacks === 'finished'
  return {
    reason: hookFailed ? HOOK_FAILED : isHook ? WAITING_FOR_HOOK : WAITING_FOR_WAVE,
    message: waitsFor.detail === '' ? text : orderText('detailed', { text, detail: waitsFor.detail }),
    holdsBack: phase !== 'post-sync',
    failed: hookFailed,
    ...(position.last && !isHook ? { behindObjects: true } : {}),
  }
}

/** After this nothing more is evaluated: all of the revision was healthy once. */
export const finishedPosition = (digest: string): Position => ({
  digest,
  phase: 'done',
  wave: 0,
  hooks: [],
  failHooks: [],
  waitsFor: null,
  applied: true,
  hookFailed: false,
})

/** Why nothing is pruned yet. Null means that order delays nothing. */
export function pruneHold(position: Position | null): string | null {
  if (position === null || position.applied) return null
  const words = phaseWords(position)
  return words === null ? null : deletionText('after_sync_phase', { wait: words.message })
}
