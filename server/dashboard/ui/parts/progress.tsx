// How far the desired revision came, as one line: received, applied, healthy. A gap between the last two is a gap in
// the line. Of an offline cluster it is what was reported last.
import { shortCommit } from '../format.ts'
import type { PlacementView } from '../state/reads.ts'
import { text } from '../words/first.ts'
import { Age } from './time.tsx'

type Progressed = Pick<
  PlacementView,
  'desired' | 'received' | 'applied' | 'healthy' | 'health' | 'objectCount' | 'healthyCount' | 'liveness'
>

export function Progress({ view }: { view: Progressed }) {
  const { desired, received, applied, healthy, liveness } = view
  const isAway = liveness.word !== 'Online'
  const isHealthy = !isAway && (view.health === 'Healthy' || healthy === null)
  const points = [
    { word: text.placement.received, point: received },
    { word: text.placement.applied, point: applied },
    // That it was healthy once is not that it is.
    { word: isHealthy ? text.placement.healthy : text.placement.wasHealthy, point: healthy, isPast: !isHealthy && !isAway },
  ]
  return (
    <ol class={isAway ? 'progress is-away' : 'progress'} aria-label={isAway ? text.placement.lastProgress : text.placement.progress}>
      <li class="is-here">
        <b>{text.placement.desired}</b>
        <span class="mono">{desired === null ? text.absent : shortCommit(desired.commit)}</span>
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
