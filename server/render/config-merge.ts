// Variables of templates from their layers: maps into maps, any other value replaces the former one, null removes it
// (RFC 7386). The names of secrets are carried along, so that reading one is recognized.

/** One level of variables: of a Config, the service, an override, or the cluster. */
export type ConfigLayer = {
  values: Readonly<Record<string, unknown>>
  /** For people: which level it is. */
  from?: string
  /** Those of `values` that are secrets. */
  secrets?: ReadonlySet<string>
}

export interface MergedConfig {
  values: Readonly<Record<string, unknown>>
  /** Names whose value is, or holds, a secret. */
  secrets: ReadonlySet<string>
}

/** Later layers win. */
export function mergeLayers(layers: readonly ConfigLayer[]): MergedConfig {
  let values: Readonly<Record<string, unknown>> = {}
  const secrets = new Set<string>()
  for (const layer of layers) {
    values = mergeMaps(values, layer.values)
    for (const name of Object.keys(layer.values)) {
      if (layer.secrets?.has(name) === true) secrets.add(name)
      else secrets.delete(name) // a secret is a text: whatever came over it took its place
    }
  }
  return { values, secrets }
}

/** RFC 7386 of two maps, which stay as they are. */
export function mergeMaps(base: Readonly<Record<string, unknown>>, over: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const merged = new Map(Object.entries(base))
  for (const [name, value] of Object.entries(over)) {
    const before = merged.get(name)
    if (value === null) merged.delete(name)
    else merged.set(name, isMap(value) ? mergeMaps(isMap(before) ? before : {}, value) : value)
  }
  return Object.fromEntries(merged)
}

const isMap = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)
