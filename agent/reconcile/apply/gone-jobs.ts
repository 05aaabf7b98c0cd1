// Finds out, before a reconciliation plans, which Jobs with a TTL have ended: from the watch, and for a Job that
// disappeared without a watch from its Events, which Kubernetes keeps for an hour. Without such an Event it is unknown
// whether the Job ended. It then runs again, once: Kubernetes itself guarantees only that a Job runs at least once.
import type { ObjectRef } from '../../../shared/kube/object.ts'
import { liveIn } from '../plan/turn-view.ts'
import type { Requests, Site, Storage } from '../ports.ts'
import { isJob } from '../snapshot/finished-jobs.ts'
import type { HookEnd } from '../snapshot/hook-spec.ts'
import { endOf, jobEndIn } from '../snapshot/live-run.ts'
import type { ServiceModel } from '../snapshot/service-model.ts'
import { remember } from './remember.ts'

/** JB1, JB2: settles the Jobs that a TTL deleted. */
export async function settleJobs(model: ServiceModel, deps: Site & Requests & Storage): Promise<void> {
  for (const key of [...model.queue.dirty].filter(isJob)) {
    const entry = model.inventory.get(key)
    if (entry === undefined || entry.uid === null) continue
    const { ref, apiVersion, uid } = entry
    const view = liveIn(deps, { key, ref, apiVersion })
    const hasTtl = entry.appliedDoc?.includes('"ttlSecondsAfterFinished"') === true
    if (view.kind === 'present' && view.live.run?.id === '') {
      noteEnd(model, deps, key, view.live.uid, endOf(view.live))
      // A policy of the cluster gave it the TTL: once it is gone, nothing else would say so.
      if (!hasTtl) remember(model, deps, model.finishedJobs.mayEnd(key, view.live.uid))
    }
    const isUnsettled =
      view.kind === 'absent' && model.finishedJobs.endOf(key, uid) === null && (hasTtl || model.finishedJobs.hasTtl(key, uid))
    if (isUnsettled && model.finishedJobs.ask(uid)) noteEnd(model, deps, key, uid, await readJobEnd(deps, model.key, ref, uid))
  }
}

function noteEnd(model: ServiceModel, deps: Storage, key: string, uid: string, end: HookEnd | null): void {
  remember(model, deps, end === null ? null : model.finishedJobs.note(key, uid, end))
}

/** JB2, HK4: null means that no Event tells it, or the agent may not list Events. */
export async function readJobEnd(
  { kinds, signal, asking }: Pick<Site & Requests, 'kinds' | 'signal' | 'asking'>,
  service: string,
  { namespace }: Pick<ObjectRef, 'namespace'>,
  uid: string,
): Promise<HookEnd | null> {
  const lookup = kinds.find('', 'v1', 'Event')
  if (lookup.kind !== 'served') return null
  const ends: HookEnd[] = []
  const options = { namespace, fieldSelector: `involvedObject.uid=${uid}`, signal }
  // A missing Job is put back only if it has not ended.
  await asking({ service, purpose: 'heal' }).list(lookup.resource, options, (event, isThere) => {
    const end = isThere ? jobEndIn(event) : null
    if (end !== null) ends.push(end)
  })
  return ends[0] ?? null
}
