// health-check: the health of objects from files, as an agent would tell it, and which rule decides. Runs on this
// machine; a server is asked for its rules only with --from-server.
import { compileFleetRule, compileServiceHealth } from '../../shared/adapters/cel.ts'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import { decidingClass } from '../../shared/kube/claim-binding.ts'
import type { FleetRule } from '../../shared/kube/fleet-rule.ts'
import { type HealthOptions, healthOf } from '../../shared/kube/health.ts'
import type { HealthWord } from '../../shared/kube/health-object.ts'
import { type K8sObject, k8sObjectSchema, refOf } from '../../shared/kube/object.ts'
import { FLEET, type HealthRuleResource, projectOf, type ServiceResource } from '../../shared/model/resources.ts'
import { isWell } from '../../shared/model/status.ts'
import { healthRuleViewSchema } from '../../shared/model/views.ts'
import { AppError, type Problem } from '../../shared/runtime/error.ts'
import type { Column } from './columns.ts'
import { type Context, errorText, type Output, printItems } from './context.ts'
import { readAll, UsageError } from './io.ts'
import { parseResources, type ResourceFile, readResourceFiles } from './resource-files.ts'

export interface HealthCheckOptions {
  filename?: string[] | undefined
  rule?: string[] | undefined
  service?: string | undefined
  crd?: string[] | undefined
  fromServer?: true | undefined
  recursive?: true | undefined
  output?: Output
  headers?: boolean
}

interface Checked {
  group: string
  kind: string
  namespace: string
  name: string
  health: HealthWord
  reason: string
  message: string
  /** Which rule decided. */
  rule: string
}

const UNHEALTHY = 1
const FAILED = 2

/** HR7: resolves with the exit code: 0 when all objects are Healthy or Suspended, 1 when one is not, 2 when they cannot
 *  be judged. */
export async function healthCheck(context: Context, options: HealthCheckOptions): Promise<number> {
  try {
    const checked = await check(context, options)
    const single = checked.length === 1
    printItems(
      context,
      checked,
      { columns: COLUMNS, nameOf: ({ kind, name }) => `${kind.toLowerCase()}/${name}`, single, none: '' },
      options,
    )
    return checked.every(({ health }) => isWell(health)) ? 0 : UNHEALTHY
  } catch (error) {
    if (error instanceof UsageError) throw error
    context.io.stderr.write(errorText(error))
    return FAILED
  }
}

const COLUMNS: Column<Checked>[] = [
  { title: 'KIND', value: ({ kind }) => kind },
  { title: 'NAMESPACE', value: ({ namespace }) => (namespace === '' ? null : namespace) },
  { title: 'NAME', value: ({ name }) => name },
  { title: 'HEALTH', value: ({ health }) => health, colour: true },
  { title: 'REASON', value: ({ reason, health }) => (reason === health ? null : reason) },
  { title: 'RULE', value: ({ rule }) => rule },
  { title: 'MESSAGE', value: ({ message }) => message },
]

async function check(context: Context, options: HealthCheckOptions): Promise<Checked[]> {
  const { filename = [], rule = [], crd = [], service, recursive } = options
  if (filename.length === 0) throw new UsageError('nothing to check: give -f FILE, -f DIR or -f -')
  if ([...filename, ...rule, ...crd, service].filter((path) => path === '-').length > 1)
    throw new UsageError('stdin can be read only once: use - once')
  const read = (paths: readonly string[]) => readResourceFiles(paths, recursive === true, () => readAll(context.io))
  const objects = objectsIn(await read(filename))
  const resources = parseResources(await read([...rule, ...(service === undefined ? [] : [service])]))
  if (resources.problems.length > 0)
    throw new AppError('invalid_resource', { detail: 'rules cannot be read', problems: resources.problems })
  const found = resources.read.map(({ resource }) => resource)
  const placeOf = (rule: HealthRuleResource, path: string) =>
    resources.read.find(({ resource }) => resource === rule)?.placeOf(path) ?? 'server'
  const rules = [...found.filter(isHealthRule), ...(await serverRules(context, options))]
  const judge = await judgeOf(serviceIn(found, service), rules, placeOf)
  const reports = crd.length === 0 ? () => undefined : reportsOf(objectsIn(await read(crd)))
  return objects.map((object) => judge(object, context.io.clock.nowMs(), reports(object)))
}

type Resource = ReturnType<typeof parseResources>['read'][number]['resource']
const isHealthRule = (resource: Resource): resource is HealthRuleResource => resource.kind === 'HealthRule'

function serviceIn(resources: readonly Resource[], path: string | undefined): ServiceResource | null {
  const services = resources.filter((resource) => resource.kind === 'Service')
  if (path !== undefined && services.length !== 1) throw new UsageError(`expected one Service in ${path}, found ${services.length}`)
  return path === undefined ? null : (services[0] ?? null)
}

async function serverRules({ client }: Context, { fromServer }: HealthCheckOptions): Promise<HealthRuleResource[]> {
  return fromServer === true ? client().list('/health-rules', healthRuleViewSchema) : []
}

function objectsIn(files: readonly ResourceFile[]): K8sObject[] {
  const objects: K8sObject[] = []
  const problems: Problem[] = []
  for (const { name, text } of files) {
    const parsed = parseYamlDocuments(text, { file: name })
    problems.push(...parsed.problems)
    for (const { value, line } of parsed.documents) {
      for (const item of itemsOf(value)) {
        const object = k8sObjectSchema.safeParse(item)
        if (object.success) objects.push(object.data)
        else problems.push({ path: `${name}:${line}`, message: 'expected a Kubernetes object with apiVersion, kind and metadata.name' })
      }
    }
  }
  if (problems.length > 0) throw new AppError('bad_request', { detail: 'objects cannot be read', problems, remedy: 'Correct the files.' })
  if (objects.length === 0) throw new UsageError('no object in the files')
  return objects
}

interface Definition {
  group?: string
  names?: { kind?: string }
  versions?: Array<{ name?: string; subresources?: { status?: unknown } }>
}

/** By the given CRDs: whether the kind of an object has a status to report; undefined means that none of them defines
 *  it. */
function reportsOf(definitions: readonly K8sObject[]): (object: K8sObject) => boolean | undefined {
  const known = new Map<string, boolean>()
  for (const { kind, metadata, spec } of definitions as Array<K8sObject & { spec?: Definition }>) {
    if (kind !== 'CustomResourceDefinition')
      throw new UsageError(`expected CustomResourceDefinitions in --crd, found ${kind} ${metadata.name}`)
    for (const { name, subresources } of spec?.versions ?? [])
      known.set(`${spec?.group}/${name} ${spec?.names?.kind}`, subresources?.status !== undefined)
  }
  return ({ apiVersion, kind }) => known.get(`${apiVersion} ${kind}`)
}

/** A list, as `kubectl get -o yaml` prints it, stands for its items. */
const itemsOf = (value: unknown): readonly unknown[] =>
  typeof value === 'object' && value !== null && 'items' in value && Array.isArray(value.items) ? value.items : [value]

type PlaceOf = (rule: HealthRuleResource, path: string) => string

/** HR2: the rules of a service, then those of its project, then those of the fleet. Without a service, rules of all
 *  projects are asked. */
async function judgeOf(service: ServiceResource | null, rules: readonly HealthRuleResource[], placeOf: PlaceOf) {
  const concerned = rules.filter((rule) => service === null || [FLEET, service.metadata.project].includes(projectOf(rule)))
  const rank = (rule: HealthRuleResource) => `${projectOf(rule) === FLEET ? 1 : 0} ${projectOf(rule)}/${rule.metadata.name}`
  const fleetRules: FleetRule[] = []
  for (const rule of concerned.toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1))) fleetRules.push(await compiled(rule, placeOf))
  const own = await Promise.all((service?.spec.health ?? []).map(compileServiceHealth))
  const refused = own.find((rule) => typeof rule === 'string')
  if (refused !== undefined) throw new AppError('invalid_resource', { detail: refused })
  const options: Partial<HealthOptions> = {
    waitForAddress: service?.spec.sync.waitForAddress ?? false,
    rules: own.filter((rule) => typeof rule !== 'string'),
    fleetRules,
  }
  return (object: K8sObject, nowMs: number, hasStatus: boolean | undefined): Checked => {
    let rule = ''
    const { word, reason, message } = healthOf(object, nowMs, hasStatus === undefined ? options : { ...options, hasStatus }, (decided) => {
      rule = decided
    })
    const note = decidingClass(object) === undefined ? '' : '; in a cluster it is Healthy when its StorageClass binds at first use'
    return { ...refOf(object), health: word, reason, message: message + note, rule }
  }
}

async function compiled(rule: HealthRuleResource, placeOf: PlaceOf): Promise<FleetRule> {
  const project = projectOf(rule)
  const id = project === FLEET ? rule.metadata.name : `${project}/${rule.metadata.name}`
  const found = await compileFleetRule(id, rule.spec)
  if (!('why' in found)) return found
  const path = `spec.${found.path}`
  const problems = [{ path: placeOf(rule, path), message: `${path}: ${found.why}` }]
  throw new AppError('invalid_resource', { detail: `HealthRule ${id} has an invalid expression`, problems })
}
