// How a list is shown: its order, its groups and its columns. All of it is in the address, so that a list can be
// shared; a saved view is an address with a name, kept by this browser.
import { signal } from '@preact/signals'
import { useFilters } from './address.ts'
import { queryText } from './place.ts'

export interface SortBy {
  key: string
  isDown: boolean
}

export const readSort = (text: string | undefined, fallback: string): SortBy => {
  const asked = text === undefined || text === '' ? fallback : text
  return asked.startsWith('-') ? { key: asked.slice(1), isDown: true } : { key: asked, isDown: false }
}
export const sortText = ({ key, isDown }: SortBy): string => `${isDown ? '-' : ''}${key}`

/** A click on the head of a column: its own order, then the reverse. */
export const nextSort = (now: SortBy, key: string): SortBy => ({ key, isDown: now.key === key && !now.isDown })

/** The chosen ones of the known columns, in their own order; the first one always stays. None chosen: those that are
 *  shown at first. */
export function chosenColumns<T extends { key: string; isExtra?: boolean }>(all: readonly T[], text: string | undefined): T[] {
  const wanted = new Set((text ?? '').split(',').filter(Boolean))
  const some = all.filter(({ key }, at) => at === 0 || wanted.has(key))
  return text === undefined || text === '' || some.length === 1 ? all.filter(({ isExtra }) => isExtra !== true) : some
}

export interface ListView {
  sort: SortBy
  group: string
  columns: string
  set(change: { sort?: SortBy; group?: string; columns?: readonly string[] }): void
}

export function useListView(defaultSort: string): ListView {
  const { filters, set } = useFilters()
  return {
    sort: readSort(filters['sort'], defaultSort),
    group: filters['group'] ?? '',
    columns: filters['cols'] ?? '',
    set: ({ sort, group, columns }) =>
      set({
        ...(sort === undefined ? {} : { sort: sortText(sort) === defaultSort ? undefined : sortText(sort) }),
        ...(group === undefined ? {} : { group }),
        ...(columns === undefined ? {} : { cols: columns.join(',') }),
      }),
  }
}

export interface SavedView {
  name: string
  /** Begins with `?`; empty: as the list is at first. */
  query: string
}
type Saved = Readonly<Record<string, readonly SavedView[]>>

const KEY = 'skerry-views'
const VIEWS_MAX = 30

function read(): Saved {
  try {
    const held: unknown = JSON.parse(localStorage.getItem(KEY) ?? '{}')
    if (typeof held !== 'object' || held === null) return {}
    const isView = (one: unknown): one is SavedView =>
      typeof (one as SavedView | null)?.name === 'string' && typeof (one as SavedView).query === 'string'
    return Object.fromEntries(Object.entries(held).map(([list, views]) => [list, Array.isArray(views) ? views.filter(isView) : []]))
  } catch {
    return {}
  }
}

const saved = signal<Saved>(read())
export const viewsOf = (list: string): readonly SavedView[] => saved.value[list] ?? []

function keep(list: string, views: readonly SavedView[]): void {
  saved.value = { ...saved.value, [list]: views.slice(-VIEWS_MAX) }
  localStorage.setItem(KEY, JSON.stringify(saved.value))
}
export const forgetView = (list: string, name: string): void =>
  keep(
    list,
    viewsOf(list).filter((one) => one.name !== name),
  )
/** `filters`: of the address; what only says which row is open is no part of a view. */
export function saveView(list: string, name: string, { cluster: _, ...filters }: Record<string, string>): void {
  keep(list, [...viewsOf(list).filter((one) => one.name !== name), { name, query: queryText(filters) }])
}
