// The live objects of all services, updated by one watch for each owned resource, and by follow-ups for objects that
// such a watch does not show. It reports changes and never judges; a reconciliation reads from here and fetches
// nothing.

import { withBinding } from '../../../../shared/kube/claim-binding.ts'
import { AWAITED, fields, isEmptyStatus, isSilence } from '../../../../shared/kube/health-object.ts'
import { type K8sObject, type ObjectRef, refKey } from '../../../../shared/kube/object.ts'
import type { ApiResource } from '../../../cluster/cluster.ts'
import { type FollowUp, FollowUps } from './follow-ups.ts'
import { KindWatch, type KindWatchDeps, UNKNOWN } from './kind-watch.ts'
import { type HealthFacts, type LiveObject, type LiveView, liveObjectOf } from './live-object.ts'
import { Settling } from './settling.ts'
import type { StorageClasses } from './storage-classes.ts'

export interface WatchesDeps extends Omit<KindWatchDeps, 'followUps' | 'judge' | 'noted'> {
  health?: Pick<HealthFacts, 'optionsOf'>
  /** Receives the watched volume claims; knows how their StorageClasses bind. */
  classes?: Pick<StorageClasses, 'note' | 'binds'>
}

export const resourceKey = ({ group, version, kind }: { group: string; version: string; kind: string }): string =>
  `${group}/${version}/${kind}`

export class Watches {
  readonly #deps: WatchesDeps
  readonly #watches = new Map<string, KindWatch>()
  /** Kinds with an object whose status was reported, by resource. */
  readonly #reporting = new Set<string>()
  readonly #settling: Settling
  readonly #followUps: FollowUps

  constructor(deps: WatchesDeps) {
    this.#deps = deps
    const { clock, signal, sink } = deps
    this.#settling = new Settling({ clock, signal, due: (id) => this.#settle(id) })
    this.#followUps = new FollowUps({
      ...deps,
      sink: {
        standing: (resource, key) => this.#of(resource)?.standing(key) ?? 'settled',
        seen: (resource, event) => this.#of(resource)?.put(event.object, event.kind === 'present'),
        missed: (resource, ref) => void this.#of(resource)?.confirm(ref),
        read: async (resource, ref) => ((await this.#of(resource)?.read(ref)) ?? null) === null,
        turned: (resource) => sink.turned(resource),
      },
    })
  }

  #of = (resource: ApiResource): KindWatch | undefined => this.#watches.get(resourceKey(resource))

  /** RC5: starts a watch for each new resource and stops those of removed ones with a report, because no other event
   *  says that their objects are unknown now. */
  follow(resources: ReadonlyMap<string, ApiResource>): void {
    const left: ApiResource[] = []
    for (const [key, watch] of this.#watches) {
      if (resources.has(key)) continue
      watch.stop()
      this.#watches.delete(key)
      this.#followUps.endAll(watch.resource)
      left.push(watch.resource)
    }
    for (const [key, resource] of resources) {
      const watch = this.#watches.get(key)
      if (watch === undefined) this.#watches.set(key, new KindWatch(this.#kindDeps(), resource))
      else if (watch.serve(resource)) this.#followUps.endAll(resource)
    }
    for (const resource of left) this.#deps.sink.turned(resource)
  }

  #kindDeps(): KindWatchDeps {
    return {
      ...this.#deps,
      followUps: this.#followUps,
      judge: (resource, object) => this.#liveOf(resource, object),
      noted: (resource, key, before, now) => this.#noted(resource, key, before, now),
    }
  }

  view(resource: ApiResource, key: string): LiveView {
    return this.#of(resource)?.view(key) ?? UNKNOWN
  }

  /** LS1: undefined where the resource is not watched at all. */
  followUp(resource: ApiResource, key: string): Pick<FollowUp, 'source'> | null | undefined {
    return this.#of(resource) === undefined ? undefined : this.#followUps.get(resource, key)
  }

  /** In any version, which show the same objects; another plural of the kind may show others. */
  isComplete({ group, plural }: ApiResource): boolean {
    for (const watch of this.#watches.values())
      if (watch.resource.group === group && watch.resource.plural === plural && watch.isComplete()) return true
    return false
  }

  /** RC5: called before a delete is sent; the returned function takes the answer. */
  deleting(resource: ApiResource, ref: ObjectRef, uid: string): (isGone: boolean) => void {
    return this.#of(resource)?.deleting(ref, uid) ?? (() => {})
  }

  kinds(): Iterable<KindWatch> {
    return this.#watches.values()
  }

  versionOf(resource: ApiResource, key: string): string | null {
    return this.#of(resource)?.versionOf(key) ?? null
  }

  contradicted(resource: ApiResource, key: string): void {
    this.#of(resource)?.contradicted(key)
  }

  *all(): Generator<{ key: string; apiVersion: string; live: LiveObject }> {
    for (const watch of this.#watches.values()) {
      const { group, version } = watch.resource
      const apiVersion = group === '' ? version : `${group}/${version}`
      for (const [key, live] of watch.objects()) yield { key, apiVersion, live }
    }
  }

  accept(resource: ApiResource, object: K8sObject): LiveObject {
    return this.#of(resource)?.accept(object) ?? this.#liveOf(resource, object)
  }

  markDeleting(resource: ApiResource, key: string, text: string): void {
    this.#of(resource)?.markDeleting(key, text)
  }

  judgeAgain(resource: ApiResource, ref: ObjectRef): boolean {
    return this.#of(resource)?.judgeAgain(ref) ?? false
  }

  /** HR6: rules of the fleet for this kind changed. `project` is empty for rules of all projects. */
  judgeKindAgain({ group, kind, project }: { group: string; kind: string; project: string }): void {
    for (const watch of this.#watches.values())
      if (watch.resource.group === group && watch.resource.kind === kind) watch.judgeAllAgain(project)
  }

  /** `uid`: only that object. */
  drop(resource: ApiResource, key: string, uid?: string): void {
    this.#of(resource)?.drop(key, uid)
  }

  release(key: string): void {
    for (const watch of this.#watches.values()) watch.release(key)
  }

  /** LS1: its service reports it as missing. Created without our label, no labelled watch would show it. */
  followMissing(resource: ApiResource, ref: ObjectRef): void {
    if (this.#of(resource)?.standing(refKey(ref)) === 'absent') this.#followUps.begin(resource, ref)
  }

  /** HE17: its grace time is over. */
  #settle(id: string): void {
    const cut = id.indexOf(' ')
    this.#watches.get(id.slice(0, cut))?.rejudge(id.slice(cut + 1), ({ health }) => health.settles?.health)
  }

  /** HE20: more, or something else, is known of StorageClasses. */
  bindingsChanged(): void {
    const { classes } = this.#deps
    if (classes === undefined) return
    for (const watch of this.#watches.values()) {
      if (watch.resource.kind !== 'PersistentVolumeClaim') continue
      for (const [key] of watch.objects())
        watch.rejudge(key, ({ health, pendingClass }) =>
          pendingClass === undefined ? undefined : withBinding(health, pendingClass, classes.binds),
        )
    }
  }

  #liveOf(resource: ApiResource, object: K8sObject): LiveObject {
    const { clock, health, classes } = this.#deps
    const siblingsReport = this.#noteReport(resource, object)
    const binds = classes === undefined ? {} : { binds: classes.binds }
    return liveObjectOf(object, clock.nowMs(), { ...health, hasStatus: resource.hasStatus, siblingsReport, ...binds })
  }

  /** HE17: whether its controller has reported a status for an object of this kind. The first report makes the silence
   *  about others a fact. */
  #noteReport(resource: ApiResource, object: K8sObject): boolean {
    const key = resourceKey(resource)
    if (this.#reporting.has(key)) return true
    if (resource.hasStatus !== true || isEmptyStatus(fields(object['status']))) return false
    this.#reporting.add(key)
    const watch = this.#watches.get(key)
    for (const [name] of watch?.objects() ?? []) watch?.rejudge(name, ({ health }) => (isSilence(health) ? AWAITED : undefined))
    return true
  }

  #noted(resource: ApiResource, key: string, before: LiveObject | undefined, now: LiveObject | undefined): void {
    if (before?.pendingClass !== undefined || now?.pendingClass !== undefined) this.#deps.classes?.note(key, now ?? null)
    const atMs = now?.health.settles?.atMs
    if (now !== undefined && (atMs !== undefined || this.#settling.isBusy())) this.#settling.note(`${resourceKey(resource)} ${key}`, atMs)
  }
}
