// A table of any length: only the rows in view are in the page. j, k and the arrow keys move, Enter opens; the row that has the keyboard keeps it while others change.
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { type Range, windowOf } from '../state/window-of.ts'

export interface Column<T> {
  key: string
  head: string
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
}

export const ROW_HEIGHT = 32
/** Drawn before the height of the window is known. */
const FIRST_ROWS = 30

export function VirtualRows<T>({ label, items, columns, keyOf, hrefOf, rowClass, chosen, onChoose, onRange }: RowsProps<T>) {
  const body = useRef<HTMLDivElement>(null)
  const [range, setRange] = useState<Range>({ from: 0, to: Math.min(items.length, FIRST_ROWS) })
  const count = items.length
  useLayoutEffect(() => {
    const look = () => {
      const box = body.current?.getBoundingClientRect()
      if (box === undefined) return
      const seen = windowOf({ top: box.top, viewHeight: window.innerHeight, rowHeight: ROW_HEIGHT, count })
      setRange((before) => (before.from === seen.from && before.to === seen.to ? before : seen))
      onRange?.(seen)
    }
    look()
    window.addEventListener('scroll', look, { passive: true })
    window.addEventListener('resize', look)
    return () => {
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
    const next = body.current?.querySelector<HTMLElement>(`[data-row="${at + step}"] a`)
    next?.focus()
    next?.scrollIntoView({ block: 'nearest' })
  }
  return (
    <div class="rows" style={tracks} role="table" aria-label={label} aria-rowcount={count + 1} onKeyDown={move}>
      <div class="rows-head" role="rowgroup">
        <div role="row" class="line">
          {columns.map(({ key, head, weight }) => (
            <div key={key} role="columnheader" class={`clip w${weight ?? 0}`}>
              {head}
            </div>
          ))}
        </div>
      </div>
      <div class="rows-body" role="rowgroup" ref={body} style={{ height: `${count * ROW_HEIGHT}px` }}>
        {items.slice(range.from, range.to).map((item, offset) => {
          const index = range.from + offset
          const key = keyOf(item)
          return (
            <div
              key={key}
              role="row"
              aria-rowindex={index + 2}
              data-row={index}
              class={`line ${rowClass?.(item) ?? ''} ${chosen === key ? 'is-chosen' : ''}`}
              style={{ transform: `translateY(${index * ROW_HEIGHT}px)` }}
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
