// The legend of the marks and the keys, one key away on every page.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { text } from '../words/first.ts'
import { Legend } from './mark.tsx'
import { isWriting } from './palette-state.ts'

export function LegendDialog() {
  const [isOpen, setOpen] = useState(false)
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'l' || isWriting(event) || event.ctrlKey || event.metaKey || event.altKey) return
      if (document.querySelector('dialog[open]') === null) setOpen(true)
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
  return isOpen ? <OpenLegend onClose={() => setOpen(false)} /> : null
}

function OpenLegend({ onClose }: { onClose(): void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} class="legend-dialog" onClose={onClose} aria-label={text.fleet.legend}>
      <div class="body">
        <h2>{text.fleet.legend}</h2>
        <Legend />
        <h2>{text.settings.keyboard}</h2>
        <Keys />
        <div class="ends">
          <button type="button" onClick={() => dialog.current?.close()}>
            {text.actions.close}
          </button>
        </div>
      </div>
    </dialog>
  )
}

export function Keys() {
  return (
    <dl class="keys">
      {text.settings.keys.map(([keys, what]) => (
        <>
          <dt class="row tight">
            {keys.map((key) => (
              <kbd key={key}>{key}</kbd>
            ))}
          </dt>
          <dd>{what}</dd>
        </>
      ))}
    </dl>
  )
}
