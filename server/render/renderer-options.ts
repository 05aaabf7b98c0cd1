// RD5: what a render spec says to which renderer, and where it contradicts itself. Pure.
import type { RendererName, RenderSpec } from '../../shared/model/render.ts'
import type { Problem } from '../../shared/runtime/error.ts'

/** The renderer that each field of options is for. */
export const RENDERER_OF = {
  directory: 'raw',
  helm: 'helm',
  kustomize: 'kustomize',
  typescript: 'typescript',
  exec: 'exec',
} as const satisfies Record<string, RendererName>
export type WithOptions = keyof typeof RENDERER_OF
const WITH_OPTIONS = Object.keys(RENDERER_OF) as WithOptions[]

export const optionsIn = (render: RenderSpec): WithOptions[] =>
  WITH_OPTIONS.filter((name) => render[name] !== undefined && Object.keys(render[name]).length > 0)

/** RD5, where it can be seen without the files. */
export function contradictions(render: RenderSpec, from: string): Problem[] {
  const { type = 'auto', exec } = render
  const only = type === 'auto' ? (exec === undefined ? null : 'exec') : type
  if (only === null) return []
  const why = type === 'auto' ? `${from}.exec renders it` : `${from}.type is ${type}`
  return optionsIn(render)
    .filter((name) => RENDERER_OF[name] !== only)
    .map((name) => ({ path: `${from}.${name}`, message: `it would have no effect: ${why}; remove one of the two` }))
}
