// Plain files as they would be rendered, without sources, inputs or a cache.

import { isManifestPath } from '../../server/render/manifest-path.ts'
import { readManifests } from '../../server/render/manifests.ts'
import { type RenderResult, type RowsOf, rowsOf } from '../../server/render/object-rows.ts'

export function renderFiles({ files, ...input }: RowsOf & { files: ReadonlyMap<string, Uint8Array> }): RenderResult {
  const manifests = new Map([...files].filter(([path]) => isManifestPath(path)))
  return rowsOf(input, readManifests(manifests))
}
