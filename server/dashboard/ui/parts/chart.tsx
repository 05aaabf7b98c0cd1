// The chart: every cluster is one mark, grouped by a label. One tab stop; arrow keys move between marks, Enter opens,
// hovering or focusing tells what it is.
import { Component } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { ChartCluster } from '../../../../shared/model/chart.ts'
import type { Fleet } from '../state/fleet.ts'
import { lastKnownMark, type Mark, markOfCluster } from '../state/mark-of.ts'
import { pages } from '../state/place.ts'
import { text } from '../words/first.ts'
import { awayWord } from './cluster-state.ts'
import { Legend, MarkWord, seenWord } from './mark.tsx'

interface Group {
  name: string
  clusters: ChartCluster[]
}

export function groupsOf({ clusters, by }: Fleet): Group[] {
  const groups = new Map<string, ChartCluster[]>()
  for (const cluster of clusters.values()) {
    const key = by === null ? '' : (cluster.group ?? text.fleet.noValue)
    const held = groups.get(key)
    if (held === undefined) groups.set(key, [cluster])
    else held.push(cluster)
  }
  return [...groups]
    .map(([name, some]) => ({ name, clusters: some.sort((a, b) => (a.name < b.name ? -1 : 1)) }))
    .sort((a, b) => Number(a.name === text.fleet.noValue) - Number(b.name === text.fleet.noValue) || compareNames(a.name, b.name))
}

/** region-2 stands before region-10. */
const padded = (name: string): string => name.replace(/\d+/g, (digits) => digits.padStart(12, '0'))
const compareNames = (a: string, b: string): number => (padded(a) < padded(b) ? -1 : 1)

/** Clusters above which marks are smaller. */
const DENSE_ABOVE = 1_500

interface Pointed {
  cluster: ChartCluster
  x: number
  y: number
}

export function Chart({ fleet }: { fleet: Fleet }) {
  const groups = useMemo(() => groupsOf(fleet), [fleet])
  const [pointed, setPointed] = useState<Pointed | null>(null)
  const root = useRef<HTMLDivElement>(null)
  const at = useRef(fleet)
  at.current = fleet
  useEffect(() => {
    const here = root.current
    if (here === null) return
    const show = (event: Event) => {
      const link = (event.target as Element).closest<HTMLAnchorElement>('a[data-id]')
      const cluster = link === null ? undefined : at.current.clusters.get(link.dataset['id'] ?? '')
      if (link === null || cluster === undefined) return setPointed(null)
      const box = link.getBoundingClientRect()
      setPointed({ cluster, x: box.left + box.width / 2, y: box.bottom })
    }
    const hide = () => setPointed(null)
    const move = (event: KeyboardEvent) => moveFocus(here, event)
    here.addEventListener('pointerover', show)
    here.addEventListener('focusin', show)
    here.addEventListener('pointerleave', hide)
    here.addEventListener('focusout', hide)
    here.addEventListener('keydown', move)
    window.addEventListener('scroll', hide, { passive: true })
    return () => {
      here.removeEventListener('pointerover', show)
      here.removeEventListener('focusin', show)
      here.removeEventListener('pointerleave', hide)
      here.removeEventListener('focusout', hide)
      here.removeEventListener('keydown', move)
      window.removeEventListener('scroll', hide)
    }
  }, [])
  return (
    <div ref={root} class={fleet.clusters.size > DENSE_ABOVE ? 'is-dense' : undefined}>
      {groups.map((group, index) => (
        <GroupField key={group.name} group={group} first={index === 0} named={fleet.by !== null} />
      ))}
      <Legend />
      {pointed !== null && <Card {...pointed} />}
    </div>
  )
}

/** Drawn again only when a mark of it changed: the others of a large fleet cost nothing. */
class GroupField extends Component<{ group: Group; first: boolean; named: boolean }> {
  override shouldComponentUpdate(next: { group: Group }): boolean {
    return signature(next.group) !== signature(this.props.group)
  }

  render() {
    const { group, first, named } = this.props
    return (
      <div class="group" role="group" aria-label={named ? group.name : text.fleet.title}>
        <div class="group-name">
          {named ? group.name : text.nav.clusters}
          <small>{text.fleet.sites(group.clusters.length)}</small>
        </div>
        <div class="field">
          {group.clusters.map((cluster, index) => {
            const mark = markOfCluster(cluster)
            return (
              <a
                key={cluster.id}
                href={pages.cluster(cluster.name)}
                data-id={cluster.id}
                tabIndex={first && index === 0 ? 0 : -1}
                aria-label={`${cluster.name}, ${wordOf(cluster)}`}
              >
                <span class={`m m-${mark}`} />
              </a>
            )
          })}
        </div>
      </div>
    )
  }
}

const wordOf = (cluster: ChartCluster): string => {
  const mark = markOfCluster(cluster)
  return seenWord({ mark, was: mark === 'offline' ? lastKnownMark(cluster) : null })
}

const signatures = new WeakMap<Group, string>()
function signature(group: Group): string {
  const held = signatures.get(group)
  if (held !== undefined) return held
  const made = group.clusters.map((cluster) => `${cluster.id}${wordOf(cluster)}`).join()
  signatures.set(group, made)
  return made
}

function moveFocus(root: HTMLElement, event: KeyboardEvent): void {
  const steps: Record<string, (links: HTMLElement[], from: number) => number> = {
    ArrowRight: (_, from) => from + 1,
    ArrowLeft: (_, from) => from - 1,
    Home: () => 0,
    End: (links) => links.length - 1,
    ArrowDown: (links, from) => nearest(links, from, 1),
    ArrowUp: (links, from) => nearest(links, from, -1),
  }
  const step = steps[event.key]
  const focused = document.activeElement
  if (step === undefined || !(focused instanceof HTMLElement) || focused.dataset['id'] === undefined) return
  const links = [...root.querySelectorAll<HTMLElement>('a[data-id]')]
  const to = links[step(links, links.indexOf(focused))]
  if (to === undefined) return
  event.preventDefault()
  focused.tabIndex = -1
  to.tabIndex = 0
  to.focus()
}

/** The mark in the next or the previous line that is closest. */
function nearest(links: readonly HTMLElement[], from: number, way: 1 | -1): number {
  const here = links[from]?.getBoundingClientRect()
  if (here === undefined) return from
  let best = from
  let bestTop: number | null = null
  let bestGap = Number.POSITIVE_INFINITY
  for (let index = from + way; index >= 0 && index < links.length; index += way) {
    const box = links[index]?.getBoundingClientRect()
    if (box === undefined || Math.abs(box.top - here.top) < 4) continue
    bestTop ??= box.top
    if (Math.abs(box.top - bestTop) >= 4) break
    const gap = Math.abs(box.left - here.left)
    if (gap < bestGap) [best, bestGap] = [index, gap]
  }
  return best
}

const CARD_WIDTH = 320

function Card({ cluster, x, y }: Pointed) {
  const mark = markOfCluster(cluster)
  const left = Math.max(12, Math.min(x - 40, window.innerWidth - CARD_WIDTH - 12))
  const above = y > window.innerHeight - 120
  return (
    <div class="card" role="tooltip" style={above ? { left, bottom: window.innerHeight - y + 22 } : { left, top: y + 6 }}>
      <b>{cluster.name}</b>
      <MarkWord mark={mark} word={stateWords(cluster, mark)} />
      {mark === 'offline' && <MarkWord mark={lastKnownMark(cluster)} word={text.fleet.lastKnown(text.marks[lastKnownMark(cluster)])} />}
      <span>{text.fleet.servicesOf(cluster.bad, cluster.services)}</span>
    </div>
  )
}

export function stateWords({ liveness }: ChartCluster, mark: Mark, was: Mark | null = null): string {
  return awayWord({ liveness }, { mark, was }) ?? text.marks[mark]
}
