// Whether the palette is open, and the keys that open it from anywhere.
import { signal } from '@preact/signals'

export const paletteOpen = signal(false)
export const openPalette = (): void => {
  paletteOpen.value = true
}

/** Keys of single letters are for pages, not for text fields. */
export const isWriting = (event: KeyboardEvent): boolean => {
  const { target } = event
  return target instanceof HTMLElement && (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))
}

document.addEventListener('keydown', (event) => {
  const isShortcut = (event.key === 'k' && (event.ctrlKey || event.metaKey)) || (event.key === '/' && !isWriting(event) && !event.ctrlKey)
  if (!isShortcut || document.querySelector('dialog[open]:not(.palette)') !== null) return
  event.preventDefault()
  openPalette()
})
