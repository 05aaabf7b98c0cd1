// Which clusters lose something that may be lost to other facts. Asked only of renders that look at facts, where those
// are not what they were: most commits read no set.
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { decodeRenderedSet } from '../desired/rendered-set.ts'
import type { PlanInput } from '../fleet/plan-service.ts'
import type { DesiredService } from '../fleet/records.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { GoodRender } from './render/rendering.ts'

/** RL5: losses that only other facts of the cluster explain prune nothing by themselves. */
export async function findLosses(
  content: Pick<ContentStore, 'get'>,
  current: readonly DesiredService[],
  renderIn: (clusterId: ClusterId) => GoodRender | null,
): Promise<PlanInput['loses']> {
  const asked = new Map<string, Map<GoodRender['objects'], DesiredService[]>>()
  for (const row of current) {
    const render = renderIn(row.clusterId)
    if (render === null || row.setSha === null || !mayBeFacts(row, render)) continue
    const byObjects = asked.get(row.setSha) ?? new Map<GoodRender['objects'], DesiredService[]>()
    asked.set(row.setSha, byObjects)
    const rows = byObjects.get(render.objects) ?? []
    byObjects.set(render.objects, rows)
    rows.push(row)
  }
  const losing = new Set<DesiredService>()
  for (const [setSha, byObjects] of asked) {
    const bytes = await content.get(setSha)
    const names = bytes === null ? null : [...decodeRenderedSet(bytes).keys()]
    for (const [objects, rows] of byObjects)
      if (names === null || names.some((name) => !objects.has(name))) for (const row of rows) losing.add(row)
  }
  return (row) => losing.has(row)
}

const mayBeFacts = ({ doc, factsKey }: DesiredService, render: GoodRender): boolean =>
  doc !== null &&
  doc.removal === undefined &&
  doc.digest !== render.digest &&
  render.factsKey !== undefined &&
  (doc.factsOnly === true || factsKey !== render.factsKey)
