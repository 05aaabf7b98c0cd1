// The renderer of plain manifests: every YAML and JSON file of a folder as it is, or as what its template makes of it.
import type { Problem } from '../../shared/protocol/error.ts'
import { renderText } from './liquid-engine.ts'
import { isManifestPath, otherRenderer } from './manifest-path.ts'
import type { RendererResult, RenderJob } from './renderer.ts'

const TEMPLATE = /\.liquid$/i

export async function renderRaw({ source: { tree, root }, spec, inputs }: RenderJob): Promise<RendererResult> {
  const below = root === '' ? 0 : root.length + 1
  const found = await tree.files(root, (path) => isManifestPath(path.slice(below)))
  const files = new Map<string, Uint8Array>()
  const problems: Problem[] = []
  for (const [path, { bytes }] of found) {
    const other = otherRenderer(path)
    if (other !== null)
      problems.push({ path, message: `marks ${other}, which is never read as plain manifests; give it a service of its own` })
    else if (spec.templated === true || TEMPLATE.test(path)) {
      const result = renderText(new TextDecoder().decode(bytes), { file: path }, inputs)
      if (result.kind === 'failed') problems.push(...result.problems)
      else files.set(path.replace(TEMPLATE, ''), new TextEncoder().encode(result.text))
    } else files.set(path, bytes)
  }
  return problems.length > 0 ? { kind: 'failed', problems, files } : { kind: 'rendered', files, warnings: [] }
}
