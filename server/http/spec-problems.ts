// What no schema can see and nobody should meet at night: found when a resource is written.
import type { Patch, RenderSpec } from '../../shared/model/render.ts'
import { type Applicable, sourcesOf } from '../../shared/model/resources.ts'
import type { Problem } from '../../shared/protocol/error.ts'
import { patchProblems } from '../render/patch/patches.ts'
import { contradictions } from '../render/renderer-of.ts'
import { healthProblems } from './health-problems.ts'

export const specProblems = async (resource: Applicable): Promise<Problem[]> => [
  ...(await healthProblems(resource)),
  ...patchesOf(resource).flatMap(({ patches, from }) => patchProblems(patches, from)),
  ...rendersOf(resource).flatMap(({ render, from }) => contradictions(render, from)),
]

/** Those of sources are theirs only in `sources`: `source` has none of its own. */
function rendersOf(resource: Applicable): Array<{ render: RenderSpec; from: string }> {
  if (resource.kind !== 'Service') return []
  const { render, sources = [] } = resource.spec
  const ofSources = sources.flatMap((one, index) =>
    one.render === undefined ? [] : [{ render: one.render, from: `spec.sources[${index}].render` }],
  )
  return [...(render === undefined ? [] : [{ render, from: 'spec.render' }]), ...ofSources]
}

interface Patches {
  patches: readonly Patch[]
  /** Where they are. */
  from: string
}

function patchesOf(resource: Applicable): Patches[] {
  if (resource.kind !== 'Service' && resource.kind !== 'Cluster') return []
  const { spec } = resource
  const overrides = (spec.overrides ?? []).map(({ patches = [] }, index) => ({ patches, from: `spec.overrides[${index}].patches` }))
  if (resource.kind === 'Cluster') return overrides
  const { sources } = resource.spec
  const ofSources = (sources === undefined ? [] : sourcesOf(resource.spec)).map(({ render }, index) => ({
    patches: render?.patches ?? [],
    from: `spec.sources[${index}].render.patches`,
  }))
  return [{ patches: resource.spec.render?.patches ?? [], from: 'spec.render.patches' }, ...ofSources, ...overrides]
}
