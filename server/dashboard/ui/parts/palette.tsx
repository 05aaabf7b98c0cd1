// Search and commands in one field: pages and actions at once, and whatever the fleet has by that name from the server
// as one types. A verb before a name acts on it: `suspend oslo`, `sync web`, `restart api`.

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import type { SqlAnswer } from '../../../../shared/model/fleet-sql.ts'
import { shortCommit } from '../format.ts'
import { signOut } from '../state/account.ts'
import { type ActionAsked, askAction, type Spoken, spokenOf, type Verb } from '../state/actions.ts'
import { call } from '../state/api.ts'
import { type Seen, seenOf, serviceSeen } from '../state/mark-of.ts'
import { canRestart, objectSeen, RESTARTED, refKey, refOf } from '../state/object-tree.ts'
import { pages, queryText } from '../state/place.ts'
import type { ClusterView, ObjectView, RepositoryView, ServiceView } from '../state/reads.ts'
import { chooseTheme, THEMES } from '../state/theme.ts'
import { text } from '../words/first.ts'
import { MarkShape, seenWord } from './mark.tsx'
import { paletteOpen } from './palette-state.ts'

interface Entry {
  group: string
  label: string
  detail: string
  seen?: Seen
  href?: string
  run?: () => void
}

const WAIT_MS = 120
const EACH_MAX = 6

function fixedEntries(): Entry[] {
  const page = (label: string, href: string): Entry => ({ group: text.search.groups.pages, label, detail: '', href })
  const command = (label: string, run: () => void): Entry => ({ group: text.search.groups.commands, label, detail: '', run })
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
    ...THEMES.map((theme) => command(text.search.theme(settings.themes[theme]), () => chooseTheme(theme))),
    command(settings.signOut, () => void signOut()),
  ]
}

interface Found {
  clusters: ClusterView[]
  services: ServiceView[]
  repositories: RepositoryView[]
  objects: ObjectView[]
}

/** `kinds`: only objects of these; none: all. */
async function read(name: string, kinds: readonly string[], signal: AbortSignal): Promise<Found> {
  const itemsOf = <T,>(page: Promise<{ items: T[] }>): Promise<T[]> =>
    page.then(
      ({ items }) => items,
      () => [], // a list that the person may not read has nothing in it
    )
  const query = { search: name, limit: EACH_MAX }
  const [clusters, services, repositories, objects] = await Promise.all([
    itemsOf(call('GET /clusters', { query, signal })),
    itemsOf(call('GET /services', { query: { ...query, sort: 'name' }, signal })),
    itemsOf(call('GET /repositories', { query, signal })),
    Promise.all((kinds.length === 0 ? [''] : kinds).map((kind) => itemsOf(call('GET /objects', { query: { ...query, kind }, signal })))),
  ])
  return { clusters, services, repositories, objects: objects.flat() }
}

async function found(spoken: Spoken, typed: string, signal: AbortSignal): Promise<Entry[]> {
  if (spoken.verbs.length > 0 && spoken.name !== '') {
    const of = await read(spoken.name, spoken.verbs.includes('restart') ? RESTARTED : [], signal)
    const actions = actionsOn(of, spoken.verbs)
    if (actions.length > 0) return actions
  }
  const [of, [images, commits]] = await Promise.all([
    read(typed, [], signal),
    typed.length < SQL_LETTERS_MIN
      ? Promise.resolve<[Entry[], Entry[]]>([[], []])
      : Promise.all([imagesLike(typed, signal), commitsLike(typed, signal)]),
  ])
  return [...entriesOf(of), ...images, ...commits]
}

const labelOf = ({ metadata: { name, project = '' } }: { metadata: { name: string; project?: string | undefined } }): string =>
  `${project}/${name}`

function entriesOf({ clusters, services, repositories, objects }: Found): Entry[] {
  const { groups } = text.search
  const of = (group: string, label: string, href: string, detail: string, seen?: Seen): Entry => ({
    ...{ group, label, href },
    detail: seen?.was != null ? seenWord(seen) : detail,
    ...(seen === undefined ? {} : { seen }),
  })
  return [
    ...clusters.map((one) =>
      of(groups.clusters, one.metadata.name, pages.cluster(one.metadata.name), one.status.reason, seenOf(one.status)),
    ),
    ...services.map((one) =>
      of(groups.services, labelOf(one), pages.service(one.metadata.project ?? '', one.metadata.name), one.status.reason, serviceSeen(one)),
    ),
    ...repositories.map((one) =>
      of(groups.repositories, labelOf(one), pages.repository(one.metadata.project ?? '', one.metadata.name), one.status.reason),
    ),
    ...objects.map((one) => {
      const place = text.search.of(one.cluster, `${one.project}/${one.service}`)
      const href = pages.placement(one.cluster, one.project, one.service) + queryText({ object: refKey(one) })
      const seen = objectSeen(one)
      return { ...of(groups.objects, `${one.kind} ${one.name}`, href, place, seen), detail: place }
    }),
  ]
}

const serviceRef = ({ metadata: { project = '', name } }: ServiceView) => ({ project, name })

type Target = readonly [action: ActionAsked, name: string]
const TARGETS: Readonly<Record<Verb, (found: Found) => Target[]>> = {
  suspend: (found) => suspendable(found, 'suspend'),
  resume: (found) => suspendable(found, 'resume'),
  sync: ({ services }) =>
    services
      .filter(({ spec }) => spec.sync?.mode === 'manual')
      .map((one): Target => [{ kind: 'sync', service: serviceRef(one) }, labelOf(one)]),
  refresh: ({ repositories }) =>
    repositories.map((one): Target => [{ kind: 'refresh', project: one.metadata.project ?? '', name: one.metadata.name }, labelOf(one)]),
  restart: ({ objects }) =>
    objects.filter(canRestart).map((one): Target => {
      const { cluster, project, service } = one
      return [{ kind: 'restart', cluster, project, service, ref: refOf(one) }, text.actions.scope(`${one.kind} ${one.name}`, cluster)]
    }),
}

const suspendable = ({ services, clusters }: Found, kind: 'suspend' | 'resume'): Target[] => [
  ...services.map((one): Target => [{ kind, service: serviceRef(one) }, labelOf(one)]),
  ...clusters.map((one): Target => [{ kind, cluster: one.metadata.name }, text.search.cluster(one.metadata.name)]),
]

/** The actions of these verbs on it. The dialog of each says what it would do, and whether the person may. */
const actionsOn = (of: Found, verbs: Spoken['verbs']): Entry[] =>
  verbs.flatMap((verb) =>
    TARGETS[verb](of).map(
      ([action, name]): Entry => ({
        ...{ group: text.search.groups.actions, label: text.actions.title(text.search.verbs[verb], name), detail: '' },
        run: () => askAction(action),
      }),
    ),
  )

/** Fewer letters are in nearly everything. */
const SQL_LETTERS_MIN = 3
const quoted = (words: string): string => `'${words.toLowerCase().replaceAll("'", "''")}'`
const rowsOf = (sql: string, signal: AbortSignal): Promise<SqlAnswer['rows']> =>
  call('POST /query', { body: { sql, limit: EACH_MAX }, signal }).then(
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
    return { group: text.search.groups.images, label: String(image), detail: text.n.objects(Number(objects)), href: pages.query(sql) }
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
      ...{
        detail: text.search.of(`${project}/${repository}`, String(author ?? '')),
        href: pages.repository(String(project), String(repository)),
      },
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
      found(spokenOf(words, text.search.spoken), words.trim(), stop.signal).then(setFromServer, () => {})
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
            {entry.seen !== undefined && <MarkShape {...entry.seen} />}
            <span class="clip" title={entry.label}>
              {entry.label}
            </span>
            {entry.detail !== '' && <small class="clip">{entry.detail}</small>}
            {entry.seen !== undefined && <span class="hidden">{seenWord(entry.seen)}</span>}
          </div>
        </div>
      ))}
    </div>
  )
}
