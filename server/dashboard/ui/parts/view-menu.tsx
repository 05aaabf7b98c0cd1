// How a list is shown, in one menu: its groups, its columns, and views that this browser keeps.
import { useRef, useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { useFilters } from '../state/address.ts'
import { chosenColumns, forgetView, type ListView, saveView, viewsOf } from '../state/list-view.ts'
import { text } from '../words/first.ts'
import type { Column } from './virtual-rows.tsx'

const words = text.views

interface MenuProps<T> {
  /** Name of the list, under which views are kept. */
  list: string
  view: ListView
  columns: readonly Column<T>[]
  /** Fields that the rows can be grouped by. */
  groups: ReadonlyArray<{ key: string; label: string }>
}

/** The width of the open menu, and some room beside it. */
const WIDTH = 300

export function ViewMenu<T>({ list, view, columns, groups }: MenuProps<T>) {
  const menu = useRef<HTMLDetailsElement>(null)
  /** It opens to the left, because there is no room to the right of the button. */
  const [isEnd, setEnd] = useState(false)
  const shown = chosenColumns(columns, view.columns)
  const toggle = (key: string) => {
    const keys = shown.map((column) => column.key)
    view.set({ columns: keys.includes(key) ? keys.filter((one) => one !== key) : [...keys, key] })
  }
  return (
    <details
      class="menu"
      ref={menu}
      onToggle={({ currentTarget }) => setEnd(currentTarget.getBoundingClientRect().left + WIDTH > window.innerWidth)}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || menu.current === null) return
        event.stopPropagation()
        menu.current.open = false
        menu.current.querySelector('summary')?.focus()
      }}
    >
      <summary class="button">{words.title}</summary>
      <div class={`menu-body stack wide ${isEnd ? 'is-end' : ''}`}>
        {groups.length > 0 && (
          <label>
            {words.group}
            <select value={view.group} onChange={(event) => view.set({ group: event.currentTarget.value })}>
              <option value="">{words.noGroup}</option>
              {groups.map(({ key, label }) => (
                <option key={key} value={key}>
                  {label}
                </option>
              ))}
            </select>
          </label>
        )}
        <fieldset class="plain stack">
          <legend class="small muted">{words.columns}</legend>
          {columns.slice(1).map(({ key, head }) => (
            <label key={key} class="check">
              <input type="checkbox" checked={shown.some((column) => column.key === key)} onChange={() => toggle(key)} />
              {head}
            </label>
          ))}
        </fieldset>
        <SavedViews list={list} />
      </div>
    </details>
  )
}

function SavedViews({ list }: { list: string }) {
  const { path, route } = useLocation()
  const { filters } = useFilters()
  const [name, setName] = useState('')
  const views = viewsOf(list)
  return (
    <div class="stack">
      <h2>{words.saved}</h2>
      {views.length === 0 && <p class="small muted">{words.none}</p>}
      <ul>
        {views.map((view) => (
          <li key={view.name} class="row spread">
            <button type="button" class="quiet clip" onClick={() => route(path + view.query)}>
              {view.name}
            </button>
            <button type="button" class="quiet" aria-label={words.forget(view.name)} onClick={() => forgetView(list, view.name)}>
              ×
            </button>
          </li>
        ))}
      </ul>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault()
          if (name.trim() === '') return
          saveView(list, name.trim(), filters)
          setName('')
        }}
      >
        <input
          aria-label={words.name}
          placeholder={words.name}
          maxLength={60}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <button type="submit" disabled={name.trim() === ''} title={words.save}>
          {text.actions.save}
        </button>
      </form>
    </div>
  )
}
