// Search and commands in one field: pages and actions at once, clusters, services and objects from the server as one types.

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import type { SqlAnswer } from '../../../../shared/model/fleet-sql.ts'
import { count, shortCommit } from '../format.ts'
import { signOut } from '../state/account.ts'
import { call, type Page } from '../state/api.ts'
import { type Mark, markOfWords } from '../state/mark-of.ts'
import { pages } from '../state/place.ts'
import type { ClusterView, ObjectView, ServiceView } from '../state/reads.ts'
import { chooseTheme } from '../state/theme.ts'
import { text } from '../words.ts'
import { MarkShape } from './mark.tsx'
import { paletteOpen } from './palette-state.ts'

interface Entry {
  group: string
  label: string
  detail: string
  mark?: Mark
  href?: string
  run?: () => void
}

const WAIT_MS = 120
const EACH_MAX = 6

function fixedEntries(): Entry[] {
  const page = (label: string, href: string): Entry => ({ group: text.search.groups.pages, label, detail: '', href })
  const command = (label: string, detail: string, run: () => void): Entry => ({ group: text.search.groups.commands, label, detail, run })
  const { nav, settings } = text
  return [
    page(nav.fleet, pages.fleet()),
    page(nav.clusters, pages.clusters()),
    page(nav.services, pages.services()),
    page(nav.repositories, pages.repositories()),
    page(nav.needs, pages.needs()),
    page(nav.query, pages.query()),
    page(nav.activity, pages.activity()),
    page(nav.notifications, pages.notifications()),
    page(nav.access, pages.access()),
    page(nav.join, pages.join()),
    page(nav.settings, pages.settings()),
    command(`${settings.theme}: ${settings.themes.light}`, '', () => chooseTheme('light')),
    command(`${settings.theme}: ${settings.themes.dark}`, '', () => chooseTheme('dark')),
    command(`${settings.theme}: ${settings.themes.system}`, '', () => chooseTheme('system')),
    command(settings.signOut, '', () => void signOut()),
  ]
}

async function found(words: string, signal: AbortSignal): Promise<Entry[]> {
  const { groups } = text.search
  const empty = { items: [], continue: null }
  const ask = <T,>(path: string, query: Record<string, string | number>) =>
    call<Page<T>>('GET', path, { query, signal }).catch((): Page<T> => empty)
  const [clusters, services, objects] = await Promise.all([
    ask<ClusterView>('/clusters', { search: words, limit: EACH_MAX }),
    ask<ServiceView>('/services', { limit: 500 }),
    ask<ObjectView>('/objects', { search: words, limit: EACH_MAX }),
  ])
  const [images, commits] =
    words.length < SQL_LETTERS_MIN ? [[], []] : await Promise.all([imagesLike(words, signal), commitsLike(words, signal)])
  const parts = words.toLowerCase().split(/\s+/)
  return [
    ...clusters.items.map(
      ({ metadata: { name }, status }): Entry => ({
        ...{ group: groups.clusters, label: name, detail: status.reason, href: pages.cluster(name) },
        mark: status.liveness.word === 'Online' ? markOfWords(status, status.reason) : 'offline',
      }),
    ),
    ...services.items
      .filter(({ metadata: { name, project = '' } }) => parts.every((one) => `${project}/${name}`.includes(one)))
      .slice(0, EACH_MAX)
      .map(
        ({ metadata: { name, project = '' }, status }): Entry => ({
          ...{ group: groups.services, label: `${project}/${name}`, detail: status.reason, href: pages.service(project, name) },
          mark: markOfWords(status, status.reason),
        }),
      ),
    ...objects.items.map(
      (object): Entry => ({
        ...{
          group: groups.objects,
          label: `${object.kind} ${object.name}`,
          detail: `${object.cluster} · ${object.project}/${object.service}`,
        },
        ...{ href: pages.placement(object.cluster, object.project, object.service), mark: markOfWords(object, object.reason) },
      }),
    ),
    ...images,
    ...commits,
  ]
}

/** Fewer letters are in nearly everything. */
const SQL_LETTERS_MIN = 3
const quoted = (words: string): string => `'${words.toLowerCase().replaceAll("'", "''")}'`
const rowsOf = (sql: string, signal: AbortSignal): Promise<SqlAnswer['rows']> =>
  call<SqlAnswer>('POST', '/query', { body: { sql, limit: EACH_MAX }, signal }).then(
    ({ rows }) => rows,
    () => [],
  )

async function imagesLike(words: string, signal: AbortSignal): Promise<Entry[]> {
  const rows = await rowsOf(
    `SELECT image, count(*) AS objects FROM images WHERE lower(image) LIKE ${quoted(`%${words}%`)} GROUP BY image ORDER BY objects DESC`,
    signal,
  )
  return rows.map(([image, objects]): Entry => {
    const sql = `SELECT cluster, project, service, kind, namespace, name FROM images WHERE image = '${String(image).replaceAll("'", "''")}'`
    return { group: text.search.groups.images, label: String(image), detail: count(Number(objects), 'object'), href: pages.query(sql) }
  })
}

async function commitsLike(words: string, signal: AbortSignal): Promise<Entry[]> {
  const rows = await rowsOf(
    `SELECT project, repository, "commit", subject, author FROM commits
     WHERE "commit" LIKE ${quoted(`${words}%`)} OR lower(subject) LIKE ${quoted(`%${words}%`)} OR lower(author) LIKE ${quoted(`%${words}%`)}
     ORDER BY seen_ms DESC`,
    signal,
  )
  return rows.map(
    ([project, repository, commit, subject, author]): Entry => ({
      ...{ group: text.search.groups.commits, label: `${shortCommit(String(commit))} ${subject ?? ''}` },
      ...{ detail: `${project}/${repository} · ${author ?? ''}`, href: pages.repository(String(project), String(repository)) },
    }),
  )
}

export function Palette() {
  return paletteOpen.value ? <OpenPalette /> : null
}

function OpenPalette() {
  const { route } = useLocation()
  const dialog = useRef<HTMLDialogElement>(null)
  const [words, setWords] = useState('')
  const [fromServer, setFromServer] = useState<Entry[] | null>(null)
  const [chosen, setChosen] = useState(0)
  // Before the next key: what is typed right after the shortcut belongs into the field.
  useLayoutEffect(() => dialog.current?.showModal(), [])
  useEffect(() => {
    setChosen(0)
    if (words.trim() === '') return setFromServer([])
    const stop = new AbortController()
    setFromServer(null)
    const timer = setTimeout(() => {
      found(words.trim(), stop.signal).then(setFromServer, () => {})
    }, WAIT_MS)
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [words])
  const asked = words.trim().toLowerCase()
  const fixed = fixedEntries().filter(({ label }) => label.toLowerCase().includes(asked))
  const entries = [...(fromServer ?? []), ...fixed]
  const close = () => {
    paletteOpen.value = false
  }
  const open = (entry: Entry | undefined) => {
    if (entry === undefined) return
    close()
    entry.run?.()
    if (entry.href !== undefined) route(entry.href)
  }
  const onKey = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step !== 0) {
      event.preventDefault()
      const next = (chosen + step + entries.length) % Math.max(1, entries.length)
      setChosen(next)
      document.getElementById(`found-${next}`)?.scrollIntoView({ block: 'nearest' })
    } else if (event.key === 'Enter') {
      event.preventDefault()
      open(entries[chosen])
    }
  }
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label={text.search.label}
      onClose={close}
      onClick={(event) => event.target === dialog.current && close()}
    >
      <input
        type="text"
        role="combobox"
        aria-label={text.search.label}
        aria-expanded="true"
        aria-controls="found"
        aria-activedescendant={entries.length === 0 ? undefined : `found-${chosen}`}
        placeholder={text.search.placeholder}
        value={words}
        onInput={(event) => setWords(event.currentTarget.value)}
        onKeyDown={onKey}
        spellcheck={false}
        autocomplete="off"
      />
      <Entries entries={entries} chosen={chosen} open={open} />
      <p class="tip" role="status">
        {fromServer === null ? text.search.searching : entries.length === 0 ? text.search.none(words) : text.search.hint}
      </p>
    </dialog>
  )
}

function Entries({ entries, chosen, open }: { entries: readonly Entry[]; chosen: number; open(entry: Entry): void }) {
  return (
    <div id="found" role="listbox" aria-label={text.search.label} class="found">
      {entries.map((entry, index) => (
        <div key={`${entry.group}${entry.label}${entry.detail}`}>
          {entry.group !== entries[index - 1]?.group && (
            <div class="group-title" role="presentation">
              {entry.group}
            </div>
          )}
          <div id={`found-${index}`} role="option" aria-selected={index === chosen} tabIndex={-1} onClick={() => open(entry)}>
            {entry.mark !== undefined && <MarkShape mark={entry.mark} />}
            <span class="clip">{entry.label}</span>
            {entry.detail !== '' && <small class="clip">{entry.detail}</small>}
          </div>
        </div>
      ))}
    </div>
  )
}
