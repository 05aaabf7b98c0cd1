// Decisions that wait for a person: what, where, since when, one sentence of consequence, and the button that resolves it.
import type { Need } from '../state/needs.ts'
import { MarkShape } from './mark.tsx'
import { Age } from './time.tsx'

export function NeedsList({ items }: { items: readonly Need[] }) {
  return (
    <ul class="needs">
      {items.map(({ id, mark, title, said, sinceMs, href, action }) => (
        <li key={id}>
          <MarkShape mark={mark} />
          <div class="said">
            <div class="top">
              <h3>{title}</h3>
              {sinceMs !== null && (
                <span class="small faint">
                  <Age ms={sinceMs} />
                </span>
              )}
            </div>
            <p>{said}</p>
            <div>
              <a class="button" href={href}>
                {action}
                <span class="hidden"> {title}</span>
              </a>
            </div>
          </div>
        </li>
      ))}
    </ul>
  )
}
