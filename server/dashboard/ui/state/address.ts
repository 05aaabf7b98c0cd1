// Filters are in the address: a filtered list can be shared, and going back removes a filter.
import { useLocation } from 'preact-iso'
import { queryText } from './place.ts'

export function useFilters(): { filters: Record<string, string>; set(change: Record<string, string | undefined>): void } {
  const { path, query, route } = useLocation()
  return {
    filters: query,
    set: (change) => route(path + queryText({ ...query, ...change }), true),
  }
}
