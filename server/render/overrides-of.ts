// The differences of a cluster: the overrides of the service that match it, and its own settings. Clusters with equal
// ones share one object, so that most of a fleet costs a check of its labels.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { type Labels, matchesSelector } from '../../shared/model/labels.ts'
import type { ClusterOverride, ConfigData, Override, Patch } from '../../shared/model/render.ts'
import { DEFAULT_PROJECT, type ServiceSpec } from '../../shared/model/resources.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { type ConfigLayer, type MergedConfig, mergeLayers } from './config-merge.ts'
import type { RenderBounds } from './render-bounds.ts'
import type { HelmLayer } from './renderer.ts'

/** The part of a Cluster's spec that renders read. */
export interface ClusterSettings {
  config?: ConfigData | undefined
  overrides?: readonly ClusterOverride[] | undefined
}

/** For messages: `overrides[2]`, `cluster overrides[0]`. */
export interface PatchLayer {
  from: string
  patches: readonly Patch[]
}

export interface RenderSettings {
  /** Merged on the first read: most renders never need it. */
  readonly config: MergedConfig
  /** Levels of `config`, from the lowest to the highest. */
  layers?: readonly ConfigLayer[]
  /** From the lowest to the highest. */
  helmValues: readonly HelmLayer[]
  patches: readonly PatchLayer[]
  /** Some of the service's overrides are for other clusters. */
  leavesOut?: boolean
  /** Absent means that the project has no boundary. */
  bounds?: RenderBounds
}

/** `isNobody`: a render for no cluster. `site`: variables from a ConfigMap of the cluster, above all others. */
export type SettingsOf = (
  cluster: { labels: Labels; isNobody?: boolean; site?: { layers: readonly ConfigLayer[]; text: string } | undefined } & ClusterSettings,
) => RenderSettings

/** `configs`: what `configFrom` names, in its order. A cluster that is null has nothing of its own. */
export function settingsFor(
  id: ServiceId,
  spec: Pick<ServiceSpec, 'config' | 'overrides'>,
  configs: readonly ConfigLayer[],
  boundsOf?: (labels: Labels | null) => RenderBounds,
): SettingsOf {
  const { config = {}, overrides = [] } = spec
  const base = [...configs, { values: config, from: 'service' }]
  const made = new Map<string, Map<string, RenderSettings>>()
  return (cluster) => {
    const meant = overrides.map(({ selector }) => matchesSelector(cluster.labels, selector))
    const own = (cluster.overrides ?? []).filter(
      ({ service, project }) => service === id.service && (project ?? DEFAULT_PROJECT) === id.project,
    )
    const bounds = boundsOf?.(cluster.isNobody === true ? null : cluster.labels)
    const ofBounds = bounds === undefined ? '' : canonicalJson(bounds)
    const place = `${meant.map(Number).join('')} ${own.map(textOf).join()} ${ofBounds}`
    const ofPlace = made.get(place) ?? new Map<string, RenderSettings>()
    made.set(place, ofPlace)
    const configText = `${cluster.config === undefined ? '' : textOf(cluster.config)} ${cluster.site?.text ?? ''}`
    const known = ofPlace.get(configText)
    if (known !== undefined) return known
    const chosen = overrides.flatMap((override, index) => (meant[index] === true ? [{ from: `overrides[${index}]`, override }] : []))
    const last = own.map((override, index) => ({ from: `cluster overrides[${index}]`, override }))
    const ofCluster = [{ values: cluster.config ?? {}, from: 'cluster' }, ...configsOf(last)]
    const layers: ConfigLayer[] = [...base, ...configsOf(chosen), ...ofCluster, ...(cluster.site?.layers ?? [])]
    const all = [...chosen, ...last]
    const settings = settingsOf(layers, helmValuesOf(all), patchesOf(all), meant.includes(false), bounds)
    ofPlace.set(configText, settings)
    return settings
  }
}

function settingsOf(
  layers: readonly ConfigLayer[],
  helmValues: readonly HelmLayer[],
  patches: readonly PatchLayer[],
  leavesOut: boolean,
  bounds: RenderBounds | undefined,
): RenderSettings {
  let merged: MergedConfig | null = null
  return {
    get config() {
      merged ??= mergeLayers(layers)
      return merged
    },
    layers,
    helmValues,
    patches,
    leavesOut,
    ...(bounds === undefined ? {} : { bounds }),
  }
}

type Layers = ReadonlyArray<{ from: string; override: Pick<Override, 'config' | 'helm' | 'patches'> }>
const configsOf = (layers: Layers): ConfigLayer[] => layers.map(({ from, override: { config = {} } }) => ({ values: config, from }))
const helmValuesOf = (layers: Layers): HelmLayer[] =>
  layers.flatMap(({ from, override: { helm } }) => {
    if (helm === undefined) return []
    const { values = {}, valuesFiles } = helm
    return [{ from, values, ...(valuesFiles === undefined ? {} : { valuesFiles }) }]
  })
const patchesOf = (layers: Layers): PatchLayer[] =>
  layers.flatMap(({ from, override: { patches = [] } }) => (patches.length === 0 ? [] : [{ from, patches }]))

/**
 * The store returns a cluster's config as one and the same object until it is written again: its text is made once, not
 * in each reconciliation of each service.
 */
const texts = new WeakMap<object, string>()
function textOf(value: object): string {
  const known = texts.get(value) ?? canonicalJson(value)
  texts.set(value, known)
  return known
}
