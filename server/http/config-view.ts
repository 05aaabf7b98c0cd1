// A Config for people: marks in the place of secrets, and the state of its external sources.
import { API_VERSION } from '../../shared/model/resources.ts'
import type { ConfigView } from '../../shared/model/views.ts'
import { shownConfig, shownFetched, sourcesIn } from '../access/config-secrets.ts'
import type { StoredResource } from '../fleet/records.ts'
import { configUsers } from '../ingest/config-users.ts'
import type { Store } from '../store/store.ts'
import { readStates, type SourceStates } from '../values/value-keeper.ts'
import { sourceText } from '../values/value-source.ts'
import { metadataOf } from './resource-metadata.ts'

export async function configView(store: Pick<Store, 'listResources' | 'configState'>, resource: StoredResource): Promise<ConfigView> {
  const users = await configUsers(store, resource.project, resource.name)
  const states = readStates(await store.configState(resource.project, resource.name))
  const usedBy = users.map(({ kind, name }) => `${kind.toLowerCase()}/${name}`)
  return { ...listedConfig(resource), status: { usedBy, sources: configSources(resource.spec, states) } }
}

/** As in lists: users and sources are not looked for. */
export const listedConfig = (resource: StoredResource): ConfigView => ({
  ...{ apiVersion: API_VERSION, metadata: metadataOf(resource), kind: 'Config', spec: shownConfig(resource.spec) },
  status: { usedBy: null, sources: null },
})

function configSources(spec: string, states: SourceStates): NonNullable<ConfigView['status']['sources']> {
  const values = shownFetched(spec)
  return sourcesIn(spec).sources.map((source) => {
    const known = states[source.name]
    return {
      name: source.name,
      from: sourceText(source),
      state: known === undefined ? 'pending' : known.isOk ? 'ready' : 'failed',
      message: known === undefined || known.isOk ? null : known.message,
      sinceMs: known?.sinceMs ?? null,
      value: values[source.name] ?? null,
    }
  })
}
