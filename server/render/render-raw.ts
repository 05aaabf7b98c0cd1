// The renderer of plain manifests: every YAML and JSON file of a folder as it is, or as what its template makes of it.
import type { Problem } from '../../shared/protocol/error.ts'
import { renderedName, renderFile } from './liquid/files.ts'
import { isManifestPath, otherRenderer } from './manifest-path.ts'
import type { RendererResult, RenderJob } from './renderer.ts'

/** Every manifest below the folder, templates rendered; all that is wrong at once. Throws AppError if the tree cannot be read or refuses a file. */
export async function renderRaw({ source, spec, inputs, meter }: RenderJob): Promise<RendererResult> {
  const { tree, root } = source
  const below = root === '' ? 0 : root.length + 1
  const job = { inputs, meter, source, templated: spec.templated === true }
  const files = new Map<string, Uint8Array>()
  const problems: Problem[] = []
  for (const [path, { bytes }] of await tree.files(root, (path) => isManifestPath(path.slice(below)))) {
    const name = renderedName(path)
    const other = otherRenderer(name)
    if (other !== null) {
      problems.push({ path, message: `marks ${other}, which is never read as plain manifests; give it a service of its own` })
      continue
    }
    const result = await renderFile(path, bytes, job)
    if (result.kind === 'failed') problems.push(...result.problems)
    else if (files.has(name)) problems.push({ path, message: `is also there as ${name}, which is what it becomes; keep one of the two` })
    else files.set(name, result.bytes)
  }
  return problems.length > 0 ? { kind: 'failed', problems, files } : { kind: 'rendered', files, warnings: [] }
}
