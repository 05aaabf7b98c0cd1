// The renderer of plain manifests: every YAML and JSON file of a folder, unchanged or as the result of its template.
import type { Problem } from '../../shared/runtime/error.ts'
import { directoryFilter } from './glob.ts'
import { renderedName, renderFile } from './liquid/files.ts'
import { isManifestPath, otherRenderer } from './manifest-path.ts'
import type { RendererResult, RenderJob } from './renderer.ts'

/** Every manifest below the folder, templates rendered; all that is wrong at once. Throws AppError if the tree cannot
 *  be read or refuses a file. */
export async function renderRaw({ source, spec, inputs, meter }: RenderJob): Promise<RendererResult> {
  const { tree, root } = source
  const below = root === '' ? 0 : root.length + 1
  const job = { inputs, meter, source, templated: spec.templated === true }
  const files = new Map<string, Uint8Array>()
  const problems: Problem[] = []
  const isPicked = directoryFilter(spec.directory ?? {})
  const jsonnet = new Set<string>()
  const wanted = (path: string) => {
    const relative = path.slice(below)
    if (!isPicked(renderedName(relative))) return false
    if (isJsonnetPath(relative)) jsonnet.add(path)
    return isManifestPath(relative)
  }
  for (const [path, { bytes }] of await tree.files(root, wanted)) {
    const name = renderedName(path)
    const other = otherRenderer(name)
    if (other !== null) {
      problems.push({ path, message: `marks ${other}, which is never read as plain manifests; use a separate service for it` })
      continue
    }
    const result = await renderFile(path, bytes, job)
    if (result.kind === 'failed') problems.push(...result.problems)
    else if (files.has(name)) problems.push({ path, message: `also exists as ${name}, which is its output; keep one of the two` })
    else files.set(name, result.bytes)
  }
  const unread = [...jsonnet].sort().slice(0, 1)
  if (unread.length > 0 && files.size === 0) problems.push(...unread.map((path) => ({ path, message: JSONNET_ALONE })))
  if (problems.length > 0) return { kind: 'failed', problems, files }
  return { kind: 'rendered', files, warnings: unread.map((path) => ({ path, message: JSONNET_BESIDE })) }
}

/** A library alone renders to nothing. */
const isJsonnetPath = (path: string): boolean => path.endsWith('.jsonnet') && !path.split('/').some((segment) => segment.startsWith('.'))

const JSONNET_REMEDY = 'list a Jsonnet program in the file of `skerry server --renderers` and set render.exec.command to its name'
const JSONNET_ALONE = `Jsonnet files need a program of the operator: ${JSONNET_REMEDY}`
const JSONNET_BESIDE = `Jsonnet files are not rendered as plain manifests: ${JSONNET_REMEDY}, or leave them out with render.directory.exclude`
