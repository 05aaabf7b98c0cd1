// Everything that waits for a person.
import { Head } from '../parts/head.tsx'
import { NeedsList } from '../parts/needs-list.tsx'
import { Empty, RefusalNote, Waiting } from '../parts/states.tsx'
import { useNeeds } from '../state/needs.ts'
import { text } from '../words/first.ts'

export function NeedsPage() {
  const { items, isKnown, total, refusal, refresh } = useNeeds()
  return (
    <>
      <Head title={text.needs.title} />
      <div class="narrow">
        {total > 0 && (
          <div class="section-head">
            <h2>{text.needs.waits(total)}</h2>
          </div>
        )}
        <div class="panel">
          {total > 0 ? (
            <>
              <NeedsList items={items} />
              {total > items.length && <p class="padded small muted">{text.needs.more(items.length, total)}</p>}
            </>
          ) : isKnown ? (
            <Empty title={text.needs.empty} next={text.needs.emptyNext} />
          ) : refusal === null ? (
            <Waiting rows={5} />
          ) : (
            <RefusalNote refusal={refusal} retry={refresh} />
          )}
        </div>
      </div>
    </>
  )
}
