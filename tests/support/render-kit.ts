// What renders in a test: the real renderers, a cache in memory, and no programs unless a sandbox is given.

import type { ServiceRendererDeps } from '../../server/ingest/render/service-render.ts'
import { createRenderCache } from '../../server/render/cache/renders.ts'
import { createRenderers } from '../../server/render/renderers.ts'
import type { Sandbox } from '../../server/render/sandbox.ts'
import type { RenderJobsDeps } from '../../server/worker/render-jobs.ts'
import { sha256Hex } from '../../shared/kube/canonical.ts'
import { AppError } from '../../shared/runtime/error.ts'

const NO_PROGRAMS: Sandbox = {
  run: () => Promise.reject(new AppError('renderer_missing')),
  version: async () => null,
}
export const testMac = (text: string): string => sha256Hex(`test ${text}`).slice(0, 32)

export type MemoryRendering = Pick<ServiceRendererDeps, 'cache' | 'config' | 'build'> & Omit<RenderJobsDeps, 'sources'>

export function memoryRendering(sandbox: Sandbox = NO_PROGRAMS): MemoryRendering {
  return {
    cache: createRenderCache({ mac: testMac, files: null }),
    renderers: createRenderers(),
    sandbox,
    config: async () => null,
    build: 'test',
  }
}
