// The head of a page: its title, and the search that is also the command palette.
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { text } from '../words/first.ts'
import { Icon } from './icons.tsx'
import { openPalette } from './palette-state.ts'

interface HeadProps {
  title: string
  /** The kind of thing, or where it is. */
  crumb?: ComponentChildren
  /** Names that one could copy into a terminal are set in monospace. */
  named?: boolean
  children?: ComponentChildren
}

export function Head({ title, crumb, named = false, children }: HeadProps) {
  useEffect(() => {
    document.title = `${title} · ${text.product}`
  }, [title])
  return (
    <header class="head">
      <div class="stack" style={{ gap: 0 }}>
        {crumb !== undefined && <span class="crumb small muted">{crumb}</span>}
        <h1 class={named ? 'mono' : undefined}>{title}</h1>
      </div>
      <div class="row">
        {children}
        <button
          type="button"
          class="search-button"
          onClick={openPalette}
          aria-label={text.search.placeholder}
          aria-keyshortcuts="/ Control+K"
        >
          <Icon name="search" />
          <span class="clip">{text.search.placeholder}</span>
          <kbd>/</kbd>
        </button>
      </div>
    </header>
  )
}
