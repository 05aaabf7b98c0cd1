// The hooks of a service: those that its revision names, those that its removal will need, and the result of each run.
// A run is in the agent's state before its object is sent and stays there when its object is gone, so that a finished
// run never repeats.
import { type ObjectRef, refKey } from '../../../shared/kube/object.ts'
import type { Phase } from '../../../shared/kube/waves.ts'
import type { RemovalOrder } from '../../../shared/model/desired.ts'
import { type HookEnd, type HookRun, type HookSpec, type Position, runSchema, specSchema } from './hook-spec.ts'

const RUN = 'hook/run/'
const REMOVAL_HOOKS = 'hook/delete/'

const runKey = (phase: Phase, key: string): string => `${phase}/${key}`

/** Shared: most services have no hooks, and each round asks for this set. */
const NOTHING_HELD: ReadonlySet<string> = new Set()

export class HookBook {
  /** The hooks of the revision, by key. */
  specs = new Map<string, HookSpec>()
  /** Those that cannot run, because their kind is not served or they have an error: work that waits for them keeps
   *  waiting. */
  unread: readonly HookSpec[] = []
  /** Objects that annotations keep from being applied; existing ones stay. */
  skipped = new Set<string>()
  /** Hooks of the last complete revision that run when the service is removed. */
  readonly removalSpecs = new Map<string, HookSpec>()
  /** The position of the revision. Null means that it has no order. */
  position: Position | null = null
  /** More than one wave. */
  hasWaves = false
  /** PR14: objects of former runs whose deletion a person is asked to confirm. */
  heldBack: ReadonlyArray<{ ref: ObjectRef; what: string }> = []
  /** Why a removal waits. Null means that it does not. */
  removalWait: string | null = null
  /** Digest of the completed revision: from then on it is only healed. */
  finished: string | null = null
  /** `atMs` of the removal order whose hooks have all ended. */
  removalHooksDoneMs: number | null = null
  readonly #runs = new Map<string, HookRun>()
  readonly #changed = new Map<string, unknown>()
  /** By UID: events of a watch, until they are recorded. An object may be gone before its service reconciles. */
  readonly #seen = new Map<string, HookEnd>()
  /** UIDs whose end was searched in Events. */
  readonly #asked = new Set<string>()

  constructor(facts: ReadonlyMap<string, unknown> = new Map()) {
    for (const [key, doc] of facts) {
      const run = key.startsWith(RUN) ? runSchema.safeParse(doc).data : undefined
      if (run !== undefined) this.#runs.set(key.slice(RUN.length), run)
      const spec = key.startsWith(REMOVAL_HOOKS) ? specSchema.safeParse(doc).data : undefined
      if (spec !== undefined) this.removalSpecs.set(spec.key, spec)
    }
  }

  isOrdered(): boolean {
    return this.hasWaves || this.specs.size > 0 || this.unread.length > 0 || this.#runs.size > 0
  }

  /** It is in an order, or was until just now. Nothing else of a service has phases. */
  isInUse(): boolean {
    return this.isOrdered() || this.position !== null || this.#changed.size > 0
  }

  run(phase: Phase, key: string): HookRun | null {
    return this.#runs.get(runKey(phase, key)) ?? null
  }

  *runs(): Generator<{ phase: Phase; key: string; run: HookRun }> {
    for (const [id, run] of this.#runs) {
      const slash = id.indexOf('/')
      yield { phase: id.slice(0, slash) as Phase, key: id.slice(slash + 1), run }
    }
  }

  setRun(phase: Phase, key: string, run: HookRun | null): void {
    const id = runKey(phase, key)
    if (run === null) this.#runs.delete(id)
    else this.#runs.set(id, run)
    this.#changed.set(RUN + id, run)
  }

  /** By kind and name: in which namespace it would be is not known. */
  isUnread(key: string): boolean {
    const [group, kind, , name] = key.split('/')
    return this.unread.some(({ key: other }) => {
      const [itsGroup, itsKind, , itsName] = other.split('/')
      return group === itsGroup && kind === itsKind && name === itsName
    })
  }

  /** HK8: of a complete revision. Runs of hooks that left Git are completed. */
  take(specs: ReadonlyMap<string, HookSpec>, unread: readonly HookSpec[] = []): void {
    this.specs = new Map(specs)
    this.unread = unread
    this.heldBack = []
    this.removalWait = null
    this.removalHooksDoneMs = null
    for (const { phase, key, run } of [...this.runs()]) {
      if (run.outcome !== 'running' && specs.get(key)?.phases.includes(phase) !== true && !this.isUnread(key)) this.setRun(phase, key, null)
    }
    const needed = [...specs.values()].filter(({ phases }) => phases.includes('pre-delete') || phases.includes('post-delete'))
    for (const key of [...this.removalSpecs.keys()]) {
      if (needed.some((spec) => spec.key === key) || this.isUnread(key)) continue
      this.removalSpecs.delete(key)
      this.#changed.set(REMOVAL_HOOKS + key, null)
    }
    for (const spec of needed) {
      const known = this.removalSpecs.get(spec.key)
      if (known?.hash === spec.hash && known.wave === spec.wave) continue
      this.removalSpecs.set(spec.key, spec)
      this.#changed.set(REMOVAL_HOOKS + spec.key, spec)
    }
  }

  /** A removal order: runs of revisions are deleted with everything else. */
  takeRemoval(): void {
    this.specs = new Map()
    this.unread = []
    this.skipped = new Set()
    this.heldBack = []
    this.hasWaves = false
    for (const { phase, key } of [...this.runs()]) if (phase !== 'pre-delete' && phase !== 'post-delete') this.setRun(phase, key, null)
  }

  /** The hooks of a removal have ended: their objects go too. */
  endRemovalHooks(orderMs: number): void {
    this.removalWait = null
    this.removalHooksDoneMs = orderMs
    for (const { phase, key } of [...this.runs()]) this.setRun(phase, key, null)
    // So that a restart does not begin again.
    for (const key of this.removalSpecs.keys()) this.#changed.set(REMOVAL_HOOKS + key, null)
    this.removalSpecs.clear()
  }

  /** HK7: objects that are neither pruned nor healed: those of known runs, and those whose phase will come. */
  held(): ReadonlySet<string> {
    if (this.skipped.size === 0 && this.#runs.size === 0 && this.specs.size === 0) return NOTHING_HELD
    const keys = new Set(this.skipped)
    for (const run of this.#runs.values()) keys.add(refKey(run.ref))
    for (const { key, phases } of this.specs.values()) if (phases.some((phase) => phase.endsWith('sync'))) keys.add(key)
    return keys
  }

  /** Called for every event of an object of the run `id`, which may have no answer yet. */
  note(uid: string, id: string, end: HookEnd): void {
    for (const run of this.#runs.values())
      if (run.outcome === 'running' && (run.uid === null ? run.run === id : run.uid === uid)) this.#seen.set(uid, end)
  }

  seen(uid: string | null): HookEnd | null {
    return uid === null ? null : (this.#seen.get(uid) ?? null)
  }

  wasAsked(uid: string | null): boolean {
    return uid !== null && this.#asked.has(uid)
  }

  /** Null if no Event reports it. */
  noteAsked(uid: string, end: HookEnd | null): void {
    this.#asked.add(uid)
    if (end !== null) this.#seen.set(uid, end)
  }

  forgetSeen(uid: string): void {
    this.#asked.delete(uid)
    this.#seen.delete(uid)
  }

  /** Facts that are not in the agent's state yet. */
  changes(): ReadonlyMap<string, unknown> {
    return this.#changed
  }

  saved(): void {
    this.#changed.clear()
  }

  /** Rows of the revision that are no ordinary objects. */
  count(): number {
    return this.specs.size + this.skipped.size
  }

  /** HK10: hooks of this order will still run, or run now. */
  awaitsRemovalHooks({ policy, atMs }: RemovalOrder): boolean {
    return policy !== 'orphan' && this.removalSpecs.size > 0 && this.removalHooksDoneMs !== atMs
  }
}
