// Where the sources of a service are for one cluster: a path may be a template, such as overlays/{{ cluster.name }}. What it is made of is looked at as a template's inputs are,
// so that clusters whose folder is the same share a render.
import { treePathSchema } from '../../shared/model/sources.ts'
import type { Problem } from '../../shared/protocol/error.ts'
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
    problems.push({ path: from, message: 'the template of this path makes no relative path without ".."', excerpt: written })
    return source
  })
  return problems.length === 0 ? { kind: 'placed', sources: placed } : { kind: 'refused', problems }
}
