// The files of `skerry render -f`: which service, of which cluster, with which Configs; checked as the server checks
// what is applied. Pure.
import { type Labels, labelsSchema } from '../../shared/model/labels.ts'
import { type Applicable, type ClusterResource, projectOf, type ServiceResource } from '../../shared/model/resources.ts'
import { AppError, type Problem } from '../../shared/runtime/error.ts'
import { parseResources, type ResourceFile } from '../cli/resource-files.ts'
import { specProblems } from '../http/resource-checks.ts'
import type { ConfigLayer } from '../render/config-merge.ts'
import type { ClusterInputs } from '../render/inputs.ts'
import { checkPatchesHere } from '../render/patch/patches.ts'

/** All that is wrong at once, with the line of its field. */
export async function readResources(files: readonly ResourceFile[]): Promise<{ resources: Applicable[]; problems: Problem[] }> {
  const { read, problems } = parseResources(files)
  const found = await Promise.all(
    read.map(async ({ resource, placeOf }) =>
      (await specProblems(resource, checkPatchesHere)).map(({ path, message }) => ({
        path: placeOf(path),
        message: `${path}: ${message}`,
      })),
    ),
  )
  return { resources: read.map(({ resource }) => resource), problems: [...problems, ...found.flat()] }
}

/** `wanted`: a name, also as `svc/NAME`; '' where the files hold one. Throws `bad_options`. */
export function chooseService(resources: readonly Applicable[], wanted: string): ServiceResource {
  const services = resources.filter((one) => one.kind === 'Service')
  const found = wanted === '' ? services : services.filter(({ metadata }) => metadata.name === wanted.replace(/^(svc|services?)\//, ''))
  const [service, ...others] = found
  if (service !== undefined && others.length === 0) return service
  const names = services.map(({ metadata }) => metadata.name).join(', ')
  const detail = service === undefined ? `the files have no Service ${wanted}` : `service missing: the files have ${names}`
  throw new AppError('bad_options', { detail, remedy: 'Name the service: skerry render NAME -f FILE --dir PATH' })
}

export interface ClusterFlags {
  clusterName?: string | undefined
  clusterLabels?: string | undefined
  kubeVersion?: string | undefined
  apiVersions?: string | undefined
}

export interface LocalCluster {
  inputs: ClusterInputs
  spec: ClusterResource['spec'] | undefined
}

/** Null for no cluster in particular. Flags override the facts that the files give for the cluster of that name. */
export function clusterOf(resources: readonly Applicable[], flags: ClusterFlags): LocalCluster | null {
  const { clusterName, clusterLabels, kubeVersion = '', apiVersions = '' } = flags
  if (Object.values(flags).every((flag) => flag === undefined)) return null
  const name = clusterName ?? 'local'
  const held = resources.find((one) => one.kind === 'Cluster' && one.metadata.name === name) as ClusterResource | undefined
  const labels: Labels = { ...held?.metadata.labels, ...readLabels(clusterLabels ?? '') }
  const served = Object.fromEntries(apiVersions.split(',').flatMap((one) => (one.trim() === '' ? [] : [[one.trim(), true as const]])))
  const kubernetesVersion = kubeVersion === '' || kubeVersion.startsWith('v') ? kubeVersion : `v${kubeVersion}`
  return { inputs: { name, labels, facts: { kubernetesVersion, apiVersions: served } }, spec: held?.spec }
}

function readLabels(text: string): Labels {
  const parts = text.split(',').filter((part) => part.trim() !== '')
  const read = labelsSchema.safeParse(Object.fromEntries(parts.map((part) => part.trim().split('=', 2))))
  if (read.success && parts.every((part) => part.includes('='))) return read.data
  throw new AppError('bad_options', { doing: 'read --cluster-labels', detail: 'expected key=value,key=value' })
}

/**
 * The Configs of the service's project. A mark in the place of a secret is shown as it is: a text. A value from outside
 * is not read here; like other secrets it is shown as a mark.
 */
export function configLayers(resources: readonly Applicable[], project: string): ReadonlyMap<string, ConfigLayer> {
  const configs = resources.filter((one) => one.kind === 'Config').filter((one) => projectOf(one) === project)
  return new Map(configs.map(({ metadata, spec }) => [metadata.name, secretLayer(spec.data, { ...outsideOf(spec), ...spec.secrets })]))
}

const outsideOf = ({ valueFrom = [] }: { valueFrom?: readonly { name: string }[] | undefined }): Record<string, string> =>
  Object.fromEntries(valueFrom.map(({ name }) => [name, `valueFrom ${name}`]))

const secretLayer = (data: ConfigLayer['values'], secrets: Readonly<Record<string, string>>): ConfigLayer => ({
  values: { ...data, ...secrets },
  secrets: new Set(Object.keys(secrets)),
})

/** `PATH`, or `REPOSITORY=PATH,…`: where the content of each repository is. */
export function folderOf(dirs: string, repository: string): string | null {
  if (!dirs.includes('=')) return dirs
  const entry = dirs.split(',').find((one) => one.startsWith(`${repository}=`))
  return entry === undefined ? null : entry.slice(repository.length + 1)
}
