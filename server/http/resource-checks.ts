// Errors that no schema can express and that should not appear at night: found when a resource is written.
import type { RenderSpec } from '../../shared/model/render.ts'
import { type Applicable, projectOf, sourcesOf } from '../../shared/model/resources.ts'
import { NO_RANGE } from '../../shared/model/sources.ts'
import type { Problem } from '../../shared/protocol/error.ts'
import { wrongGlobs } from '../render/glob.ts'
import type { CheckPatches, PatchSet } from '../render/patch/patches.ts'
import { contradictions } from '../render/renderer-options.ts'
import { isRange } from '../sources/range.ts'
import { healthProblems } from './health-problems.ts'

/** Throws what `checkPatches` throws. */
export const specProblems = async (resource: Applicable, checkPatches: CheckPatches): Promise<Problem[]> => [
  ...(await healthProblems(resource)),
  ...(await problemsOfPatches(resource, checkPatches)),
  ...rangesOf(resource).flatMap(({ range, path }) => (range === undefined || isRange(range) ? [] : [{ path, message: NO_RANGE }])),
  ...rendersOf(resource).flatMap(({ render, from }) => [...contradictions(render, from), ...wrongGlobs(render, from)]),
]

function rangesOf({ kind, spec }: Applicable): Array<{ range: string | undefined; path: string }> {
  if (kind === 'Repository') {
    const { git, oci } = spec
    return [
      { range: git?.semver, path: 'spec.git.semver' },
      { range: oci?.semver, path: 'spec.oci.semver' },
    ]
  }
  if (kind !== 'Service') return []
  const { source, sources = [] } = spec
  return [
    { range: source?.version, path: 'spec.source.version' },
    ...sources.map(({ version }, index) => ({ range: version, path: `spec.sources[${index}].version` })),
  ]
}

/** Those of sources are theirs only in `sources`: `source` has none of its own. */
function rendersOf(resource: Applicable): Array<{ render: RenderSpec; from: string }> {
  if (resource.kind !== 'Service') return []
  const { render, sources = [] } = resource.spec
  const ofSources = sources.flatMap((one, index) =>
    one.render === undefined ? [] : [{ render: one.render, from: `spec.sources[${index}].render` }],
  )
  return [...(render === undefined ? [] : [{ render, from: 'spec.render' }]), ...ofSources]
}

/** Patches may be YAML, which a text can make slow to read. */
function problemsOfPatches(resource: Applicable, checkPatches: CheckPatches): Problem[] | Promise<Problem[]> {
  const sets = patchesOf(resource).filter(({ patches }) => patches.length > 0)
  return sets.length === 0 ? [] : checkPatches(projectOf(resource), sets)
}

function patchesOf(resource: Applicable): PatchSet[] {
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
