// Views of one thing behind one line of tabs. Arrow keys move between them, as the pattern of the ARIA guide says.
import type { ComponentChildren } from 'preact'

interface TabsProps<T extends string> {
  label: string
  tabs: ReadonlyArray<{ id: T; label: string }>
  chosen: T
  onChoose(id: T): void
  children: ComponentChildren
}

export function Tabs<T extends string>({ label, tabs, chosen, onChoose, children }: TabsProps<T>) {
  const move = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
    if (step === 0) return
    event.preventDefault()
    const at = tabs.findIndex(({ id }) => id === chosen)
    const next = tabs[(at + step + tabs.length) % tabs.length]
    if (next === undefined) return
    onChoose(next.id)
    const list = event.currentTarget as HTMLElement
    list.querySelector<HTMLElement>(`[data-tab="${next.id}"]`)?.focus()
  }
  return (
    <div class="tabbed">
      <div role="tablist" aria-label={label} class="tabs" onKeyDown={move}>
        {tabs.map(({ id, label: word }) => (
          <button
            key={id}
            type="button"
            role="tab"
            data-tab={id}
            aria-selected={id === chosen}
            aria-controls="tab-panel"
            tabIndex={id === chosen ? 0 : -1}
            onClick={() => onChoose(id)}
          >
            {word}
          </button>
        ))}
      </div>
      <div role="tabpanel" id="tab-panel" aria-label={tabs.find(({ id }) => id === chosen)?.label ?? label}>
        {children}
      </div>
    </div>
  )
}
