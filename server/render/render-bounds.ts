// Checks a render against the Project of its service. The error has kind, name and file of each refused object. Pure.

import { rowRefOf } from '../../shared/kube/generated-name.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { type Bounds, boundsIn, listText, refusalText, refuseObject } from '../../shared/model/bounds.ts'
import type { Labels } from '../../shared/model/labels.ts'
import type { ProjectSpec } from '../../shared/model/projects.ts'
import type { RendererName } from '../../shared/model/render.ts'
import type { Problem } from '../../shared/runtime/error.ts'

export interface RenderBounds {
  /** Its name. */
  project: string
  /** Null if the cluster is no destination of the project. */
  bounds: Bounds | null
  renderers: readonly RendererName[] | null
  objects: number | null
  renderedBytes: number | null
}

/** `labels` null: for no cluster, so that the namespaces of all destinations are allowed. */
export function renderBounds({ name, spec }: { name: string; spec: ProjectSpec }, labels: Labels | null): RenderBounds {
  const { destinations, renderers, quotas } = spec
  const all = destinations.map(({ namespaces }) => ({ clusters: {}, namespaces }))
  return {
    project: name,
    bounds: labels === null ? (boundsIn({ ...spec, destinations: all }, {}) ?? { namespaces: [] }) : boundsIn(spec, labels),
    renderers: renderers ?? null,
    objects: quotas?.objects ?? null,
    renderedBytes: quotas?.renderedBytes ?? null,
  }
}

/** PJ3, PJ7: what is wrong with a render as a whole. */
export function setProblems(
  { project, bounds, objects, renderedBytes }: RenderBounds,
  at: string,
  docs: ReadonlyMap<string, string>,
): Problem[] {
  const of = (rule: string, why: string) => [{ path: at, message: `refused by project ${project}, rule ${rule}: ${why}` }]
  if (bounds === null) return of('destinations', 'the labels of the cluster match no destination of the project')
  if (objects !== null && docs.size > objects) return of('quotas.objects', `${docs.size} objects (allowed: ${objects})`)
  if (renderedBytes === null) return []
  const bytes = docs.values().reduce((sum, doc) => sum + Buffer.byteLength(doc), 0)
  return bytes > renderedBytes ? of('quotas.renderedBytes', `${bytes} bytes of objects (allowed: ${renderedBytes})`) : []
}

/** PJ4: null means that the object, placed in its namespace, is allowed. */
export function refusedObject({ project, bounds }: RenderBounds, object: K8sObject): string | null {
  const ref = rowRefOf(object)
  const refusal = bounds === null ? null : refuseObject(bounds, ref)
  return refusal === null ? null : refusalText(`project ${project}`, refusal, ref)
}

/** PJ6: null means that the renderer is allowed. */
export const refusedRenderer = ({ project, renderers }: RenderBounds, renderer: RendererName): string | null =>
  renderers === null || renderers.includes(renderer)
    ? null
    : `refused by project ${project}, rule renderers: ${renderer} is not allowed (allowed: ${listText(renderers)})`
