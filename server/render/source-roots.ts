// The paths of a service's sources for one cluster: a path may be a template, such as overlays/{{ cluster.name }}. Its
// inputs are recorded like those of a template, so that clusters with the same folder share a render.
import { treePathSchema } from '../../shared/model/sources.ts'
import type { Problem } from '../../shared/runtime/error.ts'
import { type OpenedSource, pathSegments } from '../sources/source.ts'
import type { RenderInputs } from './inputs.ts'
import { isTemplateText, makeName } from './name-template.ts'

/** RD11. `inputsOf`: what a template of that source may look at, recorded. All that is wrong at once. */
export function placeSources<Source extends { opened: OpenedSource }>(
  sources: readonly Source[],
  inputsOf: (index: number) => RenderInputs,
): { kind: 'placed'; sources: readonly Source[] } | { kind: 'refused'; problems: Problem[] } {
  if (!sources.some(({ opened }) => isTemplateText(opened.root))) return { kind: 'placed', sources }
  const problems: Problem[] = []
  const placed = sources.map((source, index) => {
    const written = source.opened.root
    if (!isTemplateText(written)) return source
    const from = sources.length === 1 ? 'source.path' : `sources[${index}].path`
    const made = makeName(written, from, inputsOf(index))
    if (made.kind === 'refused') {
      problems.push(...made.problems)
      return source
    }
    if (treePathSchema.safeParse(made.name).success)
      return { ...source, opened: { ...source.opened, root: pathSegments(made.name).join('/') } }
    problems.push({ path: from, message: 'the template of this path must result in a relative path without ".."', excerpt: written })
    return source
  })
  return problems.length === 0 ? { kind: 'placed', sources: placed } : { kind: 'refused', problems }
}
