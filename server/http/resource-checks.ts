// Errors that no schema can express and that should not appear at night: found when a resource is written.
import type { RenderSpec } from '../../shared/model/render.ts'
import { type Applicable, projectOf, sourcesOf } from '../../shared/model/resources.ts'
import { NO_RANGE } from '../../shared/model/sources.ts'
import type { Problem } from '../../shared/runtime/error.ts'
import { wrongGlobs } from '../render/glob.ts'
import type { CheckPatches, PatchSet } from '../render/patch/patches.ts'
import { contradictions } from '../render/renderer-options.ts'
import { isRange } from '../sources/range.ts'
import { healthProblems } from './health-problems.ts'

/** Throws what `checkPatches` throws. */
export const specProblems = async (resource: Applicable, checkPatches: CheckPatches): Promise<Problem[]> => [
  ...sizeProblems(resource),
  ...(await healthProblems(resource)),
  ...(await problemsOfPatches(resource, checkPatches)),
  ...rangesOf(resource).flatMap(({ range, path }) => (range === undefined || isRange(range) ? [] : [{ path, message: NO_RANGE }])),
  ...rendersOf(resource).flatMap(({ render, from }) => [...contradictions(render, from), ...wrongGlobs(render, from)]),
]

/** Labels of one resource. */
export const LABELS_MAX = 200
/** Labels, conditions and values of all selectors of one resource: each of them is compared with each cluster. */
export const SELECTOR_PARTS_MAX = 2_000

/** Limits of writes only: what is stored already stays readable. */
function sizeProblems({ metadata, spec }: Applicable): Problem[] {
  const labels = Object.keys(metadata.labels ?? {}).length
  const parts = selectorParts(spec)
  return [
    ...(labels > LABELS_MAX ? [{ path: 'metadata.labels', message: `${labels} labels; at most ${LABELS_MAX}` }] : []),
    ...(parts > SELECTOR_PARTS_MAX
      ? [{ path: 'spec', message: `its selectors have ${parts} labels, conditions and values; at most ${SELECTOR_PARTS_MAX}` }]
      : []),
  ]
}

/** Counts the parts of every selector in a document, wherever that stands. */
function selectorParts(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + selectorParts(item), 0)
  return Object.entries(value).reduce((sum, [key, held]) => {
    if (key === 'matchLabels') return sum + Object.keys(Object(held)).length
    if (key !== 'matchExpressions' || !Array.isArray(held)) return sum + selectorParts(held)
    return sum + held.reduce<number>((parts, { values = [] }: { values?: unknown[] }) => parts + 1 + values.length, 0)
  }, 0)
}

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
