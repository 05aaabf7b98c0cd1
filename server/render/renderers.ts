// All renderers by their names in a service's spec.
import type { RendererName } from '../../shared/model/render.ts'
import { renderExec } from './exec/exec-renderer.ts'
import { createHelmRenderer } from './helm/helm-renderer.ts'
import { renderKustomize } from './kustomize/kustomize-renderer.ts'
import { renderRaw } from './render-raw.ts'
import type { Renderer } from './renderer.ts'
import { renderTypescript } from './typescript/typescript-renderer.ts'

export const createRenderers = (): Readonly<Record<RendererName, Renderer>> => ({
  raw: renderRaw,
  helm: createHelmRenderer(),
  kustomize: renderKustomize,
  typescript: renderTypescript,
  exec: renderExec,
})
