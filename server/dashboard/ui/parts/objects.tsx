// The objects of a service in a cluster by wave, worst first in each, and below an object what others made of it, down
// to Pods.
import { useState } from 'preact/hooks'
import { type AskedRef, type At, linesOf, useAnswer, within } from '../state/ask.ts'
import { markOfWords, type Seen } from '../state/mark-of.ts'
import { mayOwn, type ObjectGroup, objectSeen, refKey, refOf, saidOf } from '../state/object-tree.ts'
import type { ObjectView } from '../state/reads.ts'
import { text } from '../words/first.ts'
import { more } from '../words/later.ts'
import { Live } from './live-answer.tsx'
import { MarkShape, seenWord } from './mark.tsx'

interface ObjectsProps {
  at: At
  groups: readonly ObjectGroup[]
  chosen: string | null
  onChoose(key: string): void
  /** Children come from the agent. */
  canAsk: boolean
}

export function Objects({ at, groups, chosen, onChoose, canAsk }: ObjectsProps) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set())
  const toggle = (key: string) => {
    const next = new Set(open)
    if (!next.delete(key)) next.add(key)
    setOpen(next)
  }
  return (
    <div class="objects" role="group" aria-label={text.placement.objects} onKeyDown={moveBetweenRows}>
      {groups.map((group) => (
        <section key={`${group.phase} ${group.wave}`}>
          {groups.length > 1 && <h3 class="wave">{headOf(group)}</h3>}
          <ul>
            {group.items.map((item) => {
              const key = refKey(item)
              return (
                <ObjectItem
                  key={key}
                  at={at}
                  item={item}
                  isOpen={canAsk && open.has(key)}
                  canOpen={canAsk && mayOwn(item)}
                  chosen={chosen}
                  onChoose={onChoose}
                  onToggle={() => toggle(key)}
                />
              )
            })}
          </ul>
        </section>
      ))}
    </div>
  )
}

const headOf = ({ phase, wave }: ObjectGroup): string => {
  const words = phase === null ? null : (more.objects.phases[phase] ?? phase)
  return [words, words === null || wave !== 0 ? more.objects.wave(wave) : null].filter(Boolean).join(' · ')
}

interface ItemProps {
  at: At
  item: ObjectView
  isOpen: boolean
  canOpen: boolean
  chosen: string | null
  onChoose(key: string): void
  onToggle(): void
}

function ObjectItem({ at, item, isOpen, canOpen, chosen, onChoose, onToggle }: ItemProps) {
  const seen = objectSeen(item)
  const key = refKey(item)
  return (
    <li>
      <div class="object-line">
        {canOpen && (
          <button
            type="button"
            class="quiet fold"
            aria-expanded={isOpen}
            aria-label={more.ask.childrenOf(`${item.kind} ${item.name}`)}
            onClick={onToggle}
          >
            <i aria-hidden="true" />
          </button>
        )}
        <Row
          of={item}
          seen={seen}
          said={seen.mark === 'ok' ? '' : item.message || item.reason}
          isChosen={chosen === key}
          onChoose={() => onChoose(key)}
        />
      </div>
      {isOpen && <Children key={item.sinceMs} at={at} of={refOf(item)} chosen={chosen} onChoose={onChoose} />}
    </li>
  )
}

interface RowProps {
  of: AskedRef
  seen: Seen
  said: string
  isChosen: boolean
  onChoose(): void
  depth?: number
}

const DEPTH_SHOWN = 6

function Row({ of, seen, said, isChosen, onChoose, depth = 0 }: RowProps) {
  return (
    <button
      type="button"
      class={`quiet object-row ${seen.mark === 'offline' ? 'is-away' : ''}`}
      style={{ '--depth': Math.min(depth, DEPTH_SHOWN) }}
      data-depth={depth}
      aria-pressed={isChosen}
      onClick={onChoose}
    >
      <MarkShape {...seen} />
      <span class="muted kind clip" title={of.kind}>
        {of.kind}
      </span>
      <span class="mono clip" title={[of.namespace, of.name].filter(Boolean).join('/')}>
        {of.name}
      </span>
      <span class="muted clip why" title={said}>
        {saidOf(of, said)}
      </span>
      <span class="hidden">{seenWord(seen)}</span>
    </button>
  )
}

function Children({ at, of, chosen, onChoose }: { at: At; of: AskedRef; chosen: string | null; onChoose(key: string): void }) {
  const answer = useAnswer(at.cluster, { question: { kind: 'tree', ref: of }, within: within(at) })
  const all = linesOf(answer, 'child')
  const depths = new Map<string, number>()
  for (const { uid, parent } of all) depths.set(uid, parent === null ? 0 : (depths.get(parent) ?? 0) + 1)
  const children = all.filter(({ parent }) => parent !== null)
  return (
    <div class="children">
      <Live answer={answer} hasLines={children.length > 0} empty={more.ask.noChildren}>
        {children.map(({ ref, uid, health, reason, message }) => {
          const mark = markOfWords({ sync: 'Synced', health }, reason)
          return (
            <Row
              key={uid}
              of={ref}
              seen={{ mark, was: null }}
              said={mark === 'ok' ? '' : message || reason}
              isChosen={chosen === refKey(ref)}
              onChoose={() => onChoose(refKey(ref))}
              depth={depths.get(uid) ?? 1}
            />
          )
        })}
      </Live>
    </div>
  )
}

/** j, k and the arrow keys, as in other lists; the arrows to the sides open and close. */
function moveBetweenRows(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey) return
  const row = document.activeElement as HTMLElement
  const isOpening = event.key === 'ArrowRight' || event.key === 'ArrowLeft'
  const fold = isOpening ? row.closest('.object-line')?.querySelector<HTMLElement>('.fold') : null
  if (fold != null && (fold.getAttribute('aria-expanded') === 'true') === (event.key === 'ArrowLeft')) {
    event.preventDefault()
    fold.click()
    return
  }
  const step = event.key === 'j' || event.key === 'ArrowDown' ? 1 : event.key === 'k' || event.key === 'ArrowUp' ? -1 : 0
  if (step === 0) return
  const rows = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('.object-row')]
  const next = rows[rows.indexOf(row) + step]
  if (next === undefined) return
  event.preventDefault()
  next.focus()
}
