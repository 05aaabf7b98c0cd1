// Which files of a source are templates, and what they become. Partials are read from the service's folder through the
// recorded tree.
import { setImmediate } from 'node:timers/promises'
import type { Problem } from '../../../shared/runtime/error.ts'
import type { JobSource, RenderJob } from '../renderer.ts'
import { decodeUtf8 } from '../utf8.ts'
import { partialsOf, renderText } from './engine.ts'
import type { Partials } from './run.ts'

const TEMPLATE_END = '.liquid'
/** Partials of one template, with those that they render. */
const PARTIALS_MAX = 100
const MANIFEST = /\.(ya?ml|json)$/i

export type TemplateJob = Pick<RenderJob, 'inputs' | 'meter'> & { templated: boolean; source: JobSource }

/** LQ1: what a file is called when it is rendered. */
export const renderedName = (path: string): string => (path.endsWith(TEMPLATE_END) ? path.slice(0, -TEMPLATE_END.length) : path)
/** The other way round. */
export const templateName = (path: string): string => `${path}${TEMPLATE_END}`

/** `templated` (of the render spec): all manifests are templates, not only those whose names say so. */
export const isTemplate = (path: string, templated: boolean): boolean =>
  path.endsWith(TEMPLATE_END) || (templated && (MANIFEST.test(path) || path.slice(path.lastIndexOf('/') + 1) === 'Kustomization'))

export type RenderedFile = { kind: 'rendered'; bytes: Uint8Array } | { kind: 'failed'; problems: Problem[] }

/**
 * Renders a template; returns the bytes of a file that is none. Templates run in this thread, so other work has its
 * turn before each.
 */
export async function renderFile(path: string, bytes: Uint8Array, job: TemplateJob): Promise<RenderedFile> {
  if (!isTemplate(path, job.templated)) return { kind: 'rendered', bytes }
  await setImmediate()
  const text = decodeUtf8(bytes)
  if (text === null) return { kind: 'failed', problems: [{ path, message: 'is a template, but not UTF-8 text' }] }
  const { partials, problems } = await partialsFor(text, path, job.source)
  // Not rendered without them: it would say that they are not there.
  if (problems.length > 0) return { kind: 'failed', problems }
  const rendered = renderText(text, { file: path }, job.inputs, partials, job.meter)
  return rendered.kind === 'failed' ? rendered : { kind: 'rendered', bytes: new TextEncoder().encode(rendered.text) }
}

async function partialsFor(text: string, file: string, { tree, root }: JobSource): Promise<{ partials: Partials; problems: Problem[] }> {
  const partials = new Map<string, { file: string; text: string }>()
  const problems: Problem[] = []
  const wanted = [...partialsOf(text, file, false)]
  for (let name = wanted.shift(); name !== undefined; name = wanted.shift()) {
    if (partials.has(name) || problems.length > 0) continue
    if (partials.size >= PARTIALS_MAX) {
      problems.push({ path: file, message: `needs more than ${PARTIALS_MAX} partials` })
      continue
    }
    const path = partialPath(root, name)
    // A name that leads out counts as missing; the template that renders it reports it, with its line.
    const found = path === null ? null : await tree.file(path)
    if (found === null || path === null) continue
    const content = decodeUtf8(found.bytes)
    if (content === null) problems.push({ path, message: 'is a partial, but not UTF-8 text' })
    else {
      partials.set(name, { file: path, text: content })
      wanted.push(...partialsOf(content, path, true))
    }
  }
  return { partials, problems }
}

function partialPath(root: string, name: string): string | null {
  const segments = name.split('/')
  if (name === '' || name.includes('\\') || segments.some((segment) => ['', '.', '..'].includes(segment))) return null
  return [...root.split('/').filter((segment) => segment !== '' && segment !== '.'), ...segments].join('/') + TEMPLATE_END
}
