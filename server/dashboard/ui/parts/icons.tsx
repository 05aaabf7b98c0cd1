// The few drawings of the dashboard: lines of one weight, in the colour of the text around them.
import type { JSX } from 'preact'

const PATHS = {
  fleet: 'M3 4h5v5H3zM10 4h5v5h-5zM3 11h5v5H3zM10 11h5v5h-5z',
  clusters: 'M9 2.5 15.5 6v6L9 15.5 2.5 12V6zM2.5 6 9 9.5 15.5 6M9 9.5v6',
  services: 'M3 5h12M3 9h12M3 13h7',
  repositories: 'M5.5 3v12M5.5 6.5a6 6 0 0 0 6 5M12.5 13.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4z',
  needs: 'M9 3 16 15H2zM9 7.5v3.5M9 13v.2',
  query: 'M3 4.5 7 9l-4 4.5M9 13.5h6',
  notifications: 'M4.5 12.5V8a4.5 4.5 0 0 1 9 0v4.5l1.5 1h-12zM7.5 15.5h3',
  activity: 'M2 9h3l2-5 4 10 2-5h3',
  access: 'M6 8V6a3 3 0 0 1 6 0v2M4 8h10v7H4zM9 11v2',
  join: 'M9 3v12M3 9h12',
  settings: 'M3 5h7M13 5h2M3 13h2M8 13h7M11.5 3v4M6.5 11v4',
  search: 'M8 13A5 5 0 1 0 8 3a5 5 0 0 0 0 10zM12 12l4 4',
} as const
export type IconName = keyof typeof PATHS

export function Icon({ name }: { name: IconName }): JSX.Element {
  return (
    <svg
      viewBox="0 0 18 18"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  )
}

/** A skerry: rock above the water line. */
export function Logo(): JSX.Element {
  return (
    <svg viewBox="0 0 32 32" fill="none" stroke-width="2.4" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      <path d="M5 20 11 9l5 8 3-5 8 8" stroke="var(--ink)" />
      <path d="M4 26c2-2 4-2 6 0s4 2 6 0 4-2 6 0 4 2 6 0" stroke="var(--ok)" />
    </svg>
  )
}
