// The objects of a service in a cluster, worst first, and below a workload what Kubernetes made of it, down to Pods.
import { useState } from 'preact/hooks'
import { type AskedRef, type At, linesOf, useAnswer, within } from '../state/ask.ts'
import { byUrgency, type Mark, markOfWords } from '../state/mark-of.ts'
import type { ObjectView } from '../state/reads.ts'
import { text } from '../words.ts'
import { more } from '../words-more.ts'
import { Live } from './live-answer.tsx'
import { MarkShape } from './mark.tsx'

export const refKey = ({ group, kind, namespace, name }: AskedRef): string => `${group}/${kind}/${namespace}/${name}`
export const refOf = ({ group, kind, namespace, name }: AskedRef): AskedRef => ({ group, kind, namespace, name })

/** Null if the text is not the key of an object. */
export function parseRefKey(key: string): AskedRef | null {
  const [group, kind, namespace, name, ...more] = key.split('/')
  if (group === undefined || !kind || namespace === undefined || !name || more.length > 0) return null
  return { group, kind, namespace, name }
}

/** Workloads come before the objects that they use. */
export const runs = ({ group, kind }: Pick<AskedRef, 'group' | 'kind'>): boolean =>
  group === 'apps' || group === 'batch' || (group === '' && kind === 'Pod')

const isDrifting = ({ drift }: ObjectView): boolean => drift !== null && drift.action !== 'healed'
export const objectMark = (object: ObjectView): Mark => {
  const mark = markOfWords(object, object.reason)
  return mark !== 'bad' && isDrifting(object) ? 'drift' : mark
}

export const sortedObjects = (items: readonly ObjectView[]): ObjectView[] =>
  items
    .map((item) => ({ item, mark: objectMark(item) }))
    .sort((a, b) => byUrgency(a.mark, b.mark) || Number(runs(b.item)) - Number(runs(a.item)) || (refKey(a.item) < refKey(b.item) ? -1 : 1))
    .map(({ item }) => item)

interface ObjectsProps {
  at: At
  items: readonly ObjectView[]
  chosen: string | null
  onChoose(key: string): void
  /** Children come from the agent. */
  canAsk: boolean
}

export function Objects({ at, items, chosen, onChoose, canAsk }: ObjectsProps) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set())
  const toggle = (key: string) => {
    const next = new Set(open)
    if (!next.delete(key)) next.add(key)
    setOpen(next)
  }
  return (
    <ul class="objects" onKeyDown={moveBetweenRows}>
      {sortedObjects(items).map((item) => {
        const key = refKey(item)
        const mark = objectMark(item)
        const isOpen = open.has(key)
        return (
          <li key={key}>
            <div class="object-line">
              {canAsk && runs(item) && (
                <button
                  type="button"
                  class="quiet fold"
                  aria-expanded={isOpen}
                  aria-label={more.ask.childrenOf(`${item.kind} ${item.name}`)}
                  onClick={() => toggle(key)}
                >
                  <i aria-hidden="true" />
                </button>
              )}
              <Row
                of={item}
                mark={mark}
                said={mark === 'ok' ? '' : item.message || item.reason}
                isChosen={chosen === key}
                onChoose={() => onChoose(key)}
              />
            </div>
            {isOpen && <Children key={item.sinceMs} at={at} of={refOf(item)} chosen={chosen} onChoose={onChoose} />}
          </li>
        )
      })}
    </ul>
  )
}

interface RowProps {
  of: AskedRef
  mark: Mark
  said: string
  isChosen: boolean
  onChoose(): void
  depth?: number
}

function Row({ of, mark, said, isChosen, onChoose, depth = 0 }: RowProps) {
  return (
    <button type="button" class={`quiet object-row depth-${Math.min(depth, 3)}`} aria-pressed={isChosen} onClick={onChoose}>
      <MarkShape mark={mark} />
      <span class="muted kind clip">{of.kind}</span>
      <span class="mono clip" title={[of.namespace, of.name].filter(Boolean).join('/')}>
        {of.name}
      </span>
      <span class="muted clip why" title={said}>
        {said}
      </span>
      <span class="hidden">{text.marks[mark]}</span>
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
              mark={mark}
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

/** j, k and the arrow keys, as in other lists. */
function moveBetweenRows(event: KeyboardEvent): void {
  const step = event.key === 'j' || event.key === 'ArrowDown' ? 1 : event.key === 'k' || event.key === 'ArrowUp' ? -1 : 0
  if (step === 0 || event.ctrlKey || event.metaKey) return
  const rows = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('.object-row')]
  const next = rows[rows.indexOf(document.activeElement as HTMLElement) + step]
  if (next === undefined) return
  event.preventDefault()
  next.focus()
}
