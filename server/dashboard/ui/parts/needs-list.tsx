// The list of things that wait for a person: what, where, since when, one sentence of consequence, and the buttons that
// resolve it.
import { askAction } from '../state/actions.ts'
import type { Need } from '../state/needs.ts'
import { text } from '../words/first.ts'
import { ActionButton } from './action.tsx'
import { MarkShape } from './mark.tsx'
import { RefreshButton, syncRight } from './service-actions.tsx'
import { agedClass } from './states.tsx'
import { Age } from './time.tsx'

export function NeedsList({ items }: { items: readonly Need[] }) {
  return (
    <ul class={`needs aged ${agedClass()}`}>
      {items.map((need) => (
        <li key={need.id}>
          <MarkShape mark={need.mark} />
          <div class="said">
            <div class="top">
              <h3>{need.title}</h3>
              {need.sinceMs !== null && (
                <span class="small faint">
                  <Age ms={need.sinceMs} />
                </span>
              )}
            </div>
            <p title={need.said}>{need.said}</p>
            <div class="row">
              <a class="button" href={need.href}>
                {need.label}
                <span class="hidden"> {need.title}</span>
              </a>
              <NeedAction need={need} />
            </div>
          </div>
        </li>
      ))}
    </ul>
  )
}

function NeedAction({ need: { action, title } }: { need: Need }) {
  if (action?.kind === 'sync')
    return (
      <ActionButton
        right={syncRight(action)}
        label={text.actions.sync}
        about={`${text.actions.sync}: ${title}`}
        onClick={() => askAction(action)}
      />
    )
  return action?.kind === 'refresh' ? <RefreshButton project={action.project} name={action.name} about={title} /> : null
}
