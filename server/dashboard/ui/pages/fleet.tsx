// The first page: the fleet at one glance. Five numbers, the chart of marks, what needs a person, what just happened.
import { useEffect, useRef } from 'preact/hooks'
import { number } from '../format.ts'
import { Chart } from '../parts/chart.tsx'
import { EventFeed } from '../parts/feed.tsx'
import { Head } from '../parts/head.tsx'
import { NeedsList } from '../parts/needs-list.tsx'
import { isWriting } from '../parts/palette-state.ts'
import { agedClass, Empty, RefusalNote, Shown, Waiting } from '../parts/states.tsx'
import { chooseGroup, type Fleet, fleet, numbers } from '../state/fleet.ts'
import { useNeeds } from '../state/needs.ts'
import { pages } from '../state/place.ts'
import { useEvents } from '../state/reads.ts'
import { text } from '../words/first.ts'

const FEED_SHOWN = 8
const NEEDS_SHOWN = 4

export function FleetPage() {
  const shown = { ...fleet.state.value, refresh: () => fleet.refresh() }
  return (
    <>
      <Head title={text.fleet.title} />
      <Numbers />
      <div class="two">
        <section>
          <GroupHead value={shown.value} />
          <div class="panel chart">
            <Shown of={shown} rows={8}>
              {(value) => (value.clusters.size === 0 ? <NoClusters /> : <Chart fleet={value} />)}
            </Shown>
          </div>
        </section>
        <div class="stack wide">
          <NeedsYou />
          <JustNow />
        </div>
      </div>
    </>
  )
}

function Numbers() {
  const known = numbers.value
  const marks = known?.marks
  const of = (label: string, n: number | undefined, query: string, look: string) => (
    <a href={pages.clusters(query)} class={n === undefined || n === 0 ? 'is-none' : look}>
      <b>{n === undefined ? text.absent : number(n)}</b>
      <span>{label}</span>
    </a>
  )
  return (
    <nav class={`numbers aged ${agedClass()}`} aria-label={text.numbers.label}>
      {of(text.numbers.ok, marks?.ok, '?state=ok', '')}
      {of(text.numbers.changing, marks?.changing, '?state=changing', '')}
      {of(text.numbers.bad, marks?.bad, '?state=bad', 'is-bad')}
      {of(text.numbers.drift, marks?.drift, '?state=drift', 'is-warn')}
      {of(text.numbers.offlineMixed, marks?.offline, '?state=offline', 'is-away')}
    </nav>
  )
}

function GroupHead({ value }: { value: Fleet | null }) {
  const select = useRef<HTMLSelectElement>(null)
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'g' || isWriting(event) || event.ctrlKey || event.metaKey) return
      event.preventDefault()
      select.current?.focus()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
  return (
    <div class="section-head">
      <h2>{text.fleet.by(value?.by ?? null)}</h2>
      <span class="hint">{text.fleet.hint}</span>
      {value !== null && value.labels.length > 0 && (
        <span class="group-by">
          <label>
            <span class="hidden">{text.fleet.groupLabel}</span>
            <select ref={select} value={value.by ?? ''} onChange={(event) => chooseGroup(event.currentTarget.value)}>
              {value.labels.map(({ key, values }) => (
                <option key={key} value={key}>
                  {key} ({values})
                </option>
              ))}
            </select>
          </label>
        </span>
      )}
    </div>
  )
}

function NoClusters() {
  return (
    <Empty title={text.fleet.empty} next={text.fleet.emptyNext}>
      <a class="button primary" href={pages.join()}>
        {text.nav.join}
      </a>
    </Empty>
  )
}

function NeedsYou() {
  const needs = useNeeds()
  return (
    <section>
      <div class="section-head">
        <h2>{text.fleet.needs}</h2>
        {needs.total > NEEDS_SHOWN && <a href={pages.needs()}>{text.needs.waits(needs.total)}</a>}
      </div>
      <div class="panel">
        {!needs.isKnown && needs.total === 0 ? (
          needs.refusal === null ? (
            <Waiting rows={2} />
          ) : (
            <RefusalNote refusal={needs.refusal} retry={needs.refresh} />
          )
        ) : needs.total === 0 ? (
          <p class="padded muted">{text.fleet.needsNothing}</p>
        ) : (
          <NeedsList items={needs.items.slice(0, NEEDS_SHOWN)} />
        )}
      </div>
    </section>
  )
}

function JustNow() {
  const events = useEvents()
  return (
    <section>
      <div class="section-head">
        <h2>{text.fleet.newest}</h2>
        <a href={pages.activity()}>{text.fleet.all}</a>
      </div>
      <Shown of={events} rows={5}>
        {({ items }) =>
          items.length === 0 ? <p class="muted">{text.fleet.nothingYet}</p> : <EventFeed items={items.toReversed()} most={FEED_SHOWN} />
        }
      </Shown>
    </section>
  )
}
