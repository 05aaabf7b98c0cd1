// The Configs that a service reads its variables and values from.

import { type ServiceSpec, sourcesOf } from '../../../shared/model/resources.ts'
import { nearest } from '../../../shared/runtime/edit-distance.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import type { ServiceId } from '../../../shared/runtime/ids.ts'
import type { ConfigLayer } from '../../render/config-merge.ts'
import { type RenderError, renderErrorOf } from './rendering.ts'

/** Null if the project has none of that name. */
export type ReadConfig = (
  project: string,
  name: string,
) => Promise<{ data: Readonly<Record<string, unknown>>; secrets: Readonly<Record<string, string>> } | null>

type ServiceConfigs =
  /** By name: those of configFrom, and those of Helm's valuesFrom. */
  { kind: 'read'; configs: ReadonlyMap<string, ConfigLayer> } | { kind: 'failed'; error: RenderError }

/** `known`: names of all Configs of the project, for the one that was meant. */
export async function configsOfService(
  read: ReadConfig,
  known: (project: string) => Promise<readonly string[]>,
  { project }: ServiceId,
  spec: ServiceSpec,
): Promise<ServiceConfigs> {
  const { configFrom = [] } = spec
  const renders = [spec.render, ...sourcesOf(spec).map(({ render }) => render)]
  const names = [...configFrom, ...renders.flatMap((render) => render?.helm?.valuesFrom ?? [])].map(({ name }) => name)
  const configs = new Map<string, ConfigLayer>()
  try {
    for (const name of new Set(names)) {
      const config = await read(project, name)
      if (config === null) continue
      configs.set(name, { values: { ...config.data, ...config.secrets }, secrets: new Set(Object.keys(config.secrets)) })
    }
  } catch (error) {
    if (error instanceof AppError) return { kind: 'failed', error: renderErrorOf(error) }
    throw error
  }
  const missing = configFrom.filter(({ name, optional }) => optional !== true && !configs.has(name)).map(({ name }) => name)
  if (missing.length === 0) return { kind: 'read', configs }
  const near = missing.length === 1 ? nearest(missing[0] ?? '', await known(project)) : null
  const message = `Config ${missing.join(', ')} does not exist in project ${project}${near === null ? '' : `; did you mean ${near}?`}`
  const remedy = `Correct spec.configFrom, mark it optional there, or write it: \`skerry get configs -p ${project}\` lists the existing ones.`
  return { kind: 'failed', error: { code: 'not_found', message, problems: [], remedy } }
}
