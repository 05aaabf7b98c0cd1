// How far the desired revision came, as one line: received, applied, healthy. A gap between the last two is a gap in the line.
import { shortCommit } from '../format.ts'
import type { PlacementView } from '../state/reads.ts'
import { text } from '../words.ts'
import { Age } from './time.tsx'

export function Progress({
  view,
}: {
  view: Pick<PlacementView, 'desired' | 'received' | 'applied' | 'healthy' | 'health' | 'objectCount' | 'healthyCount'>
}) {
  const { desired, received, applied, healthy } = view
  const isHealthy = view.health === 'Healthy' || healthy === null
  const points = [
    { word: text.placement.received, point: received },
    { word: text.placement.applied, point: applied },
    // That it was healthy once is not that it is.
    { word: isHealthy ? text.placement.healthy : text.placement.wasHealthy, point: healthy, isPast: !isHealthy },
  ]
  return (
    <ol class="progress" aria-label={text.placement.progress}>
      <li class="is-here">
        <b>{text.placement.desired}</b>
        <span class="mono">{desired === null ? '–' : shortCommit(desired.commit)}</span>
        <span class="faint small">
          {desired === null ? text.placement.leaves : text.placement.objectsOf(view.healthyCount, view.objectCount)}
        </span>
      </li>
      {points.map(({ word, point, isPast = false }) => {
        const isHere = point !== null && desired !== null && point.digest === desired.digest && !isPast
        return (
          <li key={word} class={isHere ? 'is-here' : ''}>
            <b>{word}</b>
            <span class="mono">{point === null ? text.placement.notYet : shortCommit(point.commit)}</span>
            <span class="faint small">{point !== null && <Age ms={point.atMs} />}</span>
          </li>
        )
      })}
    </ol>
  )
}
