// A table of any length: only the rows in view are in the page. j, k and the arrow keys move, Enter opens; the row that
// has the keyboard keeps it while others change.
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { nextSort, type SortBy } from '../state/list-view.ts'
import { type Range, windowOf } from '../state/window-of.ts'
import { text } from '../words/first.ts'

export interface Column<T> {
  key: string
  head: string
  /** Key of the order that a click on its head chooses. Absent means no order. */
  sort?: string
  /** Shown only if a person chose it. */
  isExtra?: boolean
  /** A CSS grid track. */
  width: string
  cell(item: T): ComponentChildren
  /** Hidden where the list is narrower: 1 goes last. */
  weight?: 1 | 2 | 3
}

interface RowsProps<T> {
  label: string
  items: readonly T[]
  columns: readonly Column<T>[]
  keyOf(item: T): string
  hrefOf(item: T): string
  /** Link text of the row, in the first column. */
  rowClass?(item: T): string
  chosen?: string | null
  onChoose?(item: T): void
  onRange?(range: Range): void
  sort?: SortBy
  onSort?(sort: SortBy): void
  /** Heads of groups that follow each other, with the number of their items. Absent means no groups. */
  groupOf?(item: T): string
}

type Line<T> = { kind: 'item'; item: T } | { kind: 'head'; name: string; count: number }

/** Items with the head of each group before its first one. */
export function linesOf<T>(items: readonly T[], groupOf: (item: T) => string): Line<T>[] {
  const lines: Line<T>[] = []
  let head: Extract<Line<T>, { kind: 'head' }> | null = null
  for (const item of items) {
    const name = groupOf(item)
    if (head === null || head.name !== name) {
      head = { kind: 'head', name, count: 0 }
      lines.push(head)
    }
    head.count += 1
    lines.push({ kind: 'item', item })
  }
  return lines
}

/** Without groups, nothing is made of items that are not shown. */
const linesIn = <T,>(lines: readonly Line<T>[] | null, items: readonly T[], { from, to }: Range): readonly Line<T>[] =>
  lines?.slice(from, to) ?? items.slice(from, to).map((item) => ({ kind: 'item', item }))

export const ROW_HEIGHT = 32
/** The title of the page, its filters and the head of the list are at least so high. */
const ABOVE_PX = 140
/** Drawn before the place of the list in the window is known: what a window of this height shows. */
const firstRows = (): number => Math.ceil((window.innerHeight - ABOVE_PX) / ROW_HEIGHT)

export function VirtualRows<T>(props: RowsProps<T>) {
  const { label, items, columns, keyOf, hrefOf, rowClass, chosen, onChoose, onRange, sort, onSort, groupOf } = props
  const body = useRef<HTMLDivElement>(null)
  const isNew = useRef(true)
  const lines = useMemo(() => (groupOf === undefined ? null : linesOf(items, groupOf)), [items, groupOf])
  const count = lines?.length ?? items.length
  const [range, setRange] = useState<Range>({ from: 0, to: Math.min(count, firstRows()) })
  useLayoutEffect(() => {
    const look = () => {
      const box = body.current?.getBoundingClientRect()
      if (box === undefined) return
      const seen = windowOf({ top: box.top, viewHeight: window.innerHeight, rowHeight: ROW_HEIGHT, count })
      setRange((before) => (before.from === seen.from && before.to === seen.to ? before : seen))
      onRange?.(seen)
    }
    // The frame needs the layout anyway; here it would be a second one. A new list shows its first rows, and the rows
    // around them come after that frame.
    let after: ReturnType<typeof setTimeout> | undefined
    const frame = requestAnimationFrame(() => {
      if (isNew.current) after = setTimeout(look)
      else look()
      isNew.current = false
    })
    window.addEventListener('scroll', look, { passive: true })
    window.addEventListener('resize', look)
    return () => {
      cancelAnimationFrame(frame)
      clearTimeout(after)
      window.removeEventListener('scroll', look)
      window.removeEventListener('resize', look)
    }
  }, [count, onRange])
  const upTo = (most: number) =>
    columns
      .filter(({ weight = 0 }) => weight <= most)
      .map(({ width }) => width)
      .join(' ')
  const tracks = { '--all': upTo(3), '--mid': upTo(2), '--few': upTo(1) }
  const move = (event: KeyboardEvent) => {
    const step = event.key === 'j' || event.key === 'ArrowDown' ? 1 : event.key === 'k' || event.key === 'ArrowUp' ? -1 : 0
    const at = Number((event.target as HTMLElement).closest<HTMLElement>('[data-row]')?.dataset['row'] ?? Number.NaN)
    if (step === 0 || Number.isNaN(at) || event.ctrlKey || event.metaKey) return
    event.preventDefault()
    const row = (index: number) => body.current?.querySelector<HTMLElement>(`[data-row="${index}"] a`)
    const next = row(at + step) ?? row(at + 2 * step) // the head of a group takes no focus
    next?.focus()
    next?.scrollIntoView({ block: 'nearest' })
  }
  return (
    <div class="rows" style={tracks} role="table" aria-label={label} aria-rowcount={count + 1} onKeyDown={move}>
      <div class="rows-head" role="rowgroup">
        <div role="row" class="line">
          {columns.map((column) => (
            <HeadCell key={column.key} column={column} sort={sort} onSort={onSort} />
          ))}
        </div>
      </div>
      <div class="rows-body" role="rowgroup" ref={body} style={{ height: `${count * ROW_HEIGHT}px` }}>
        {linesIn(lines, items, range).map((line, offset) => {
          const index = range.from + offset
          const place = { transform: `translateY(${index * ROW_HEIGHT}px)` }
          if (line.kind === 'head')
            return (
              <div key={`head ${line.name}`} role="row" aria-rowindex={index + 2} data-row={index} class="line group-line" style={place}>
                <div role="cell" class="clip">
                  {text.views.groupHead(line.name, line.count)}
                </div>
              </div>
            )
          const { item } = line
          const key = keyOf(item)
          return (
            <div
              key={key}
              role="row"
              aria-rowindex={index + 2}
              data-row={index}
              class={`line ${rowClass?.(item) ?? ''} ${chosen === key ? 'is-chosen' : ''}`}
              style={place}
            >
              {columns.map(({ key: column, cell, weight }, place) => (
                <div key={column} role="cell" class={`clip w${weight ?? 0}`}>
                  {place === 0 ? (
                    <a
                      class="row-link"
                      href={hrefOf(item)}
                      onClick={(event) => {
                        if (onChoose === undefined || event.ctrlKey || event.metaKey || event.shiftKey || event.detail === 0) return
                        event.preventDefault()
                        event.stopPropagation()
                        onChoose(item)
                      }}
                    >
                      {cell(item)}
                    </a>
                  ) : (
                    cell(item)
                  )}
                </div>
              ))}
            </div>
          )
        })}
      </div>
    </div>
  )
}

interface HeadProps<T> {
  column: Column<T>
  sort: SortBy | undefined
  onSort: ((sort: SortBy) => void) | undefined
}

function HeadCell<T>({ column: { head, sort: key, weight }, sort, onSort }: HeadProps<T>) {
  const isSorted = key !== undefined && sort?.key === key
  const order = isSorted ? (sort.isDown ? 'descending' : 'ascending') : undefined
  return (
    <div role="columnheader" aria-sort={order} class={`clip w${weight ?? 0}`}>
      {key === undefined || onSort === undefined || sort === undefined ? (
        head
      ) : (
        <button
          type="button"
          class={`quiet sort ${order ?? ''}`}
          aria-label={text.views.sort(head)}
          onClick={() => onSort(nextSort(sort, key))}
        >
          {head}
          <i aria-hidden="true" />
        </button>
      )}
    </div>
  )
}
