// What an apply changes in clusters that keep a service: overrides of the service that begin or cease to be for a relabelled cluster, and another namespace. Pure.
import { type Labels, matchesSelector, selectorText } from '../../shared/model/labels.ts'
import type { ServiceSpec } from '../../shared/model/resources.ts'
import type { KeptChange } from '../../shared/model/views.ts'

/** By the place in `spec.overrides`, as errors name it. */
export function changedOverrides({ overrides = [] }: Pick<ServiceSpec, 'overrides'>, before: Labels, after: Labels): KeptChange[] {
  return overrides.flatMap(({ selector }, index): KeptChange[] => {
    const [was, is] = [matchesSelector(before, selector), matchesSelector(after, selector)]
    if (was === is) return []
    return [
      { what: was ? 'override_lost' : 'override_gained', detail: `overrides[${index}] (${selectorText(selector) || 'every cluster'})` },
    ]
  })
}

/** Objects that name no namespace themselves are made anew there, and those of before are pruned. */
export function changedNamespace(before: Pick<ServiceSpec, 'namespace'>, after: Pick<ServiceSpec, 'namespace'>): KeptChange[] {
  if (before.namespace === after.namespace) return []
  return [{ what: 'namespace', detail: `from ${before.namespace ?? 'none'} to ${after.namespace ?? 'none'}` }]
}
