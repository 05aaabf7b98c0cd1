// Light, dark, or as the system says; a choice of this browser.
import { signal } from '@preact/signals'

const KEY = 'skerry-theme'
export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const stored = localStorage.getItem(KEY)
export const theme = signal<Theme>(THEMES.find((one) => one === stored) ?? 'system')

export function applyTheme(): void {
  if (theme.value === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = theme.value
}

export function chooseTheme(chosen: Theme): void {
  theme.value = chosen
  localStorage.setItem(KEY, chosen)
  applyTheme()
}
