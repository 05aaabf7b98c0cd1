// Texts of `skerry-agent status` beside those of enforcement, problems and services.
import { partsOf, type Table, textsOf } from '../../shared/runtime/messages.ts'

/** Lines of their own; the next step is a line, too. */
export const STATUS_WARNINGS = {
  head_late: {
    text: ({ length }: { length: string }) => `the server has not signed its head for ${length}`,
    next: 'Upgrade the server if it is older than this agent. Otherwise look for a proxy that answers in its place.',
  },
  head_never: {
    text: 'the server has not signed its head since this agent started; nothing is deleted until it does',
    next: 'Upgrade the server if it is older than this agent. Otherwise look for a proxy that answers in its place.',
  },
  budget_spent: {
    text: 'the daily budget is used up: until midnight UTC reports are hourly; changes still arrive',
    next: 'No action needed. To report sooner, raise --daily-bytes and restart the agent.',
  },
  other_recipient: {
    text: ({ other }: { other: string }) => `the server seals to ${other} instead, and keeps it; pages with Secrets are refused`,
    next: 'Ask who changed the recipient in the fleet store of the server; the event RecipientChanged has both fingerprints.',
  },
  policy_unreadable: {
    text: ({ problem }: { problem: string }) => `the file cannot be read; its last valid content stays in use: ${problem}`,
  },
} satisfies Table

export const statusWarning = partsOf(STATUS_WARNINGS)

/** Values of a line. */
export const STATUS_WORDS = {
  running: { text: ({ version }: { version: string }) => `running, version ${version}` },
  not_running: { text: 'not running: this is the last known status' },
  not_joined: { text: 'not joined yet' },
  joined: {
    text: ({ cluster, agent, incarnation }: { cluster: string; agent: string; incarnation: number }) =>
      `${cluster}, agent ${agent}, incarnation ${incarnation}`,
  },
  link: {
    text: ({ server, state, length, contact }: { server: string; state: string; length: string; contact: string }) =>
      `${server}: ${state} for ${length}, last contact ${contact}`,
  },
  contact: { text: ({ length }: { length: string }) => `${length} ago` },
  no_contact: { text: 'never' },
  // States of the link. Only `not joined`, `refuses this agent` and `not syncing` need a person at the site.
  'link.connected': { text: 'connected' },
  'link.no_answer': { text: 'no answer yet' },
  'link.differences': { text: 'fetching the differences' },
  'link.page': { text: 'fetching a large page' },
  'link.parts': {
    text: ({ have, parts, size }: { have: number; parts: number; size: string }) =>
      `fetching a large page, ${have} of ${parts} parts (${size} in total),`,
  },
  'link.restore': { text: 'ok at this site; the server has a pending confirmation' },
  'link.disk_full': { text: 'not syncing, because the disk is full,' },
  'link.unreachable': { text: 'unreachable' },
  'link.not_syncing': { text: 'not syncing' },
  'link.not_asked': { text: 'not asked' },
  'link.refused': { text: 'refuses this agent' },
  'link.not_joined': { text: 'not joined' },
  'link.unknown': { text: 'unknown: the agent does not run' },
  traffic_stopped: { text: ({ bytes }: { bytes: string }) => `${bytes} today, until it stopped` },
  replica: {
    text: ({ rows, state, position }: { rows: number; state: string; position: string }) => `${rows} rows, ${state}, position ${position}`,
  },
  replica_empty: { text: 'empty: nothing received yet' },
  replica_verified: { text: 'verified' },
  replica_damaged: { text: 'damaged: enforcement continues after it is fetched again' },
  no_age_keys: { text: 'none at this site' },
  resync: {
    text: ({ compared, differences }: { compared: number; differences: number }) =>
      `${compared} lists compared, ${differences} missed changes found`,
  },
  outbox_empty: { text: 'empty' },
  outbox: { text: ({ rows }: { rows: number }) => `${rows} rows wait for the server` },
  // The table of services.
  service_received: { text: 'received; not processed yet' },
  shown_by_confirm: {
    text: ({ line, service }: { line: string; service: string }) => `${line}; \`skerry-agent confirm ${service}\` shows them`,
  },
  'no_services.not_joined': { text: 'No services: the agent has not joined yet.' },
  'no_services.nothing': { text: 'No services: nothing received yet.' },
  'no_services.none': { text: 'No services: no service targets this cluster yet.' },
} satisfies Table

export const statusWords = textsOf(STATUS_WORDS)
