// The objects of a service in a cluster, by kind in the order in which they are applied, and one of them in full.
import { byUrgency, markOfWords } from '../state/mark-of.ts'
import type { ObjectView } from '../state/reads.ts'
import { text } from '../words.ts'
import { MarkShape } from './mark.tsx'
import { StateNote } from './state-note.tsx'
import { Age } from './time.tsx'

export const objectKey = ({ group, kind, namespace, name }: ObjectView): string => `${group}/${kind}/${namespace}/${name}`

/** Workloads come before the objects that they use. */
const runs = ({ group }: ObjectView): boolean => group === 'apps' || group === 'batch'

export function Objects({ items, chosen, onChoose }: { items: readonly ObjectView[]; chosen: string | null; onChoose(key: string): void }) {
  const sorted = items
    .map((item) => ({ item, mark: objectMark(item) }))
    .sort(
      (a, b) =>
        byUrgency(a.mark, b.mark) || Number(runs(b.item)) - Number(runs(a.item)) || (objectKey(a.item) < objectKey(b.item) ? -1 : 1),
    )
  return (
    <ul class="objects">
      {sorted.map(({ item, mark }) => {
        const key = objectKey(item)
        return (
          <li key={key}>
            <button type="button" class="quiet" aria-pressed={chosen === key} onClick={() => onChoose(key)}>
              <MarkShape mark={mark} />
              <span class="muted kind clip">{item.kind}</span>
              <span class="mono clip" title={`${item.namespace}/${item.name}`}>
                {item.name}
              </span>
              <span class="muted clip why" title={item.message}>
                {mark === 'ok' ? '' : item.message || item.reason}
              </span>
            </button>
          </li>
        )
      })}
    </ul>
  )
}

const isDrifting = ({ drift }: ObjectView): boolean => drift !== null && drift.action !== 'healed'
const objectMark = (object: ObjectView) => {
  const mark = markOfWords(object, object.reason)
  return mark !== 'bad' && isDrifting(object) ? 'drift' : mark
}

export function ObjectPanel({ object }: { object: ObjectView }) {
  const { namespace, name, group, drift, images = [], warnings = [] } = object
  return (
    <div class="stack wide">
      <div>
        <p class="mono">{name}</p>
        <p class="small muted">{[namespace, group].filter(Boolean).join(' · ')}</p>
      </div>
      <StateNote mark={objectMark(object)} state={object} />
      {drift !== null && (
        <div class="stack">
          <h3>{text.placement.drift}</h3>
          <p>
            {drift.deleted === true ? text.placement.wasDeleted : text.placement.fields(drift.paths.length)}{' '}
            {text.placement.by(drift.manager)}, {text.placement.driftActions[drift.action]} (<Age ms={drift.healedMs ?? drift.detectedMs} />
            )
          </p>
          {drift.paths.length > 0 && (
            <ul class="name-list">
              {drift.paths.map((path) => (
                <li key={path}>{path}</li>
              ))}
            </ul>
          )}
        </div>
      )}
      {images.length > 0 && (
        <div class="stack">
          <h3>{text.placement.images}</h3>
          <ul class="name-list">
            {images.map((image) => (
              <li key={image}>{image}</li>
            ))}
          </ul>
        </div>
      )}
      {warnings.length > 0 && (
        <div class="stack">
          <h3>{text.placement.warnings}</h3>
          {warnings.map((warning) => (
            <p key={warning} class="small">
              {warning}
            </p>
          ))}
        </div>
      )}
    </div>
  )
}
