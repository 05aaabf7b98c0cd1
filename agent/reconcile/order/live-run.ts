// Which run of a hook a live object is of. Pure.
import type { Health } from '../../../shared/kube/health.ts'
import { groupOf, type K8sObject } from '../../../shared/kube/object.ts'
import { HOOK_RUN_ANNOTATION } from '../../../shared/kube/waves.ts'

/** Of which run a live object is, and whether that has ended. */
export interface LiveRun {
  id: string
  ended: 'no' | 'well' | 'ill'
}

/** HK3. Undefined: it is of no hook. */
export function liveRunOf(object: K8sObject, health: Health): LiveRun | undefined {
  const id = object.metadata.annotations?.[HOOK_RUN_ANNOTATION]
  return id === undefined ? undefined : { id, ended: endedOf(object, health) }
}

function endedOf(object: K8sObject, { word }: Health): LiveRun['ended'] {
  if (object.kind === 'Pod' && groupOf(object.apiVersion) === '') {
    const phase = (object['status'] as { phase?: unknown } | undefined)?.phase
    // A Pod that is Ready has not done its work yet, and one that crashes may still do it.
    return phase === 'Succeeded' ? 'well' : phase === 'Failed' ? 'ill' : 'no'
  }
  return word === 'Healthy' ? 'well' : word === 'Degraded' ? 'ill' : 'no'
}
