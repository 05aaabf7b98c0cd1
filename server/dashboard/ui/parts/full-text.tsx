// The whole text of what is cut off in the row, the entry or the button that has the keyboard. A pointer has the title
// of each text, and a screen reader reads all of it anyway.
// In a list whose field keeps the keyboard (the palette), the option that it points at counts.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

interface Place {
  style: { left: number; top?: number; bottom?: number }
  texts: readonly string[]
}

const WIDTH = 420
const TEXTS_MAX = 6
/** Below it; otherwise it stands above. */
const ROOM = 160

export function FullText() {
  const [place, setPlace] = useState<Place | null>(null)
  const card = useRef<HTMLDivElement>(null)
  // Above an open dialog, which lies above everything that was there before it.
  useLayoutEffect(() => {
    if (card.current?.matches(':popover-open')) card.current.hidePopover()
    card.current?.showPopover()
  }, [place])
  useEffect(() => {
    const look = (target: EventTarget | null) =>
      setPlace(target instanceof HTMLElement && target.matches(':focus-visible') ? placeOf(target) : null)
    const show = ({ target }: FocusEvent) => look(target)
    const hide = () => setPlace(null)
    const onKey = ({ key, target }: KeyboardEvent) => {
      if (key === 'Escape') hide()
      else if (pointedBy(target) !== null) requestAnimationFrame(() => look(target)) // it has moved by then
    }
    document.addEventListener('focusin', show)
    document.addEventListener('focusout', hide)
    document.addEventListener('keydown', onKey)
    window.addEventListener('scroll', hide, { passive: true })
    return () => {
      document.removeEventListener('focusin', show)
      document.removeEventListener('focusout', hide)
      document.removeEventListener('keydown', onKey)
      window.removeEventListener('scroll', hide)
    }
  }, [])
  if (place === null) return null
  const { style, texts } = place
  return (
    <div class="card full-text" popover="manual" aria-hidden="true" style={style} ref={card}>
      {texts.map((one) => (
        <span key={one}>{one}</span>
      ))}
    </div>
  )
}

/** The option that a field points at. Null if it points at none. */
function pointedBy(field: EventTarget | null): HTMLElement | null {
  const id = field instanceof HTMLElement ? field.getAttribute('aria-activedescendant') : null
  return id === null ? null : document.getElementById(id)
}

/** Null if nothing is cut off there. */
function placeOf(focused: HTMLElement): Place | null {
  const whole = pointedBy(focused) ?? focused.closest<HTMLElement>('[role=row], li') ?? focused
  const cut = [whole, ...whole.querySelectorAll<HTMLElement>('.clip, .what, [title]')].filter(isCut)
  if (cut.length === 0) return null
  const texts = new Set(cut.map((one) => (one.title || one.textContent || '').trim()).filter(Boolean))
  const box = whole.getBoundingClientRect()
  const left = Math.max(12, Math.min(box.left + 12, window.innerWidth - WIDTH - 12))
  const isLow = box.bottom > window.innerHeight - ROOM
  const style = isLow ? { left, bottom: window.innerHeight - box.top + 4 } : { left, top: box.bottom + 4 }
  return { style, texts: [...texts].slice(0, TEXTS_MAX) }
}

const isCut = (one: HTMLElement): boolean =>
  getComputedStyle(one).overflow !== 'visible' && (one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1)
