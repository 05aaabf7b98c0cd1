// One namespace of a real API server with a service in it, and the people who change things there behind the agent's
// back.
import type { ApiResource } from '../../agent/cluster/cluster.ts'
import { objectPath } from '../../agent/cluster/discovery.ts'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import { type K8sObject, k8sObjectSchema } from '../../shared/kube/object.ts'
import type { KubeCluster } from './kube-cluster.ts'
import type { ReconcileKit, RowOptions } from './reconcile-kit.ts'

/** Somebody who is not the agent: writes under a field manager's name. */
export interface Somebody {
  merge(target: string, patch: unknown, subresource?: string): Promise<void>
  strategic(target: string, patch: unknown): Promise<void>
  json(target: string, patch: unknown): Promise<void>
  /** Server-side apply; without force a conflict throws. */
  apply(yaml: string, options?: { force?: boolean; subresource?: string }): Promise<void>
  create(yaml: string): Promise<void>
  /** Reads, changes, puts back, as controllers do. */
  update(target: string, change: (object: K8sObject) => void, apiVersion?: string): Promise<void>
  remove(target: string): Promise<void>
}

export interface DriftSite {
  readonly ns: string
  kubectl(args: readonly string[], stdin?: string): Promise<string>
  /** Waits for the user's next revision to be carried out. */
  revise(manifest: string, options?: RowOptions): Promise<void>
  as(manager: string): Somebody
  /** The agent's watches bring nothing until the deed is done. */
  unnoticed(deed: () => Promise<unknown>): Promise<void>
  /** The agent has heard of the object as it is now, and had its turn. */
  seen(target: string): Promise<void>

  /** `Kind/name`, or `Kind.group/name` where two groups have the kind. */
  get(target: string): Promise<K8sObject | null>
}

export interface DriftCase {
  /** Unique; says what happened outside. */
  name: string
  /** What the user committed. `$NS` is the case's own name, for objects without a namespace. */
  manifest: string
  options?: RowOptions
  /** A kind that an older Kubernetes does not serve: there the case is left out. */
  needs?: string
  before?(site: DriftSite): Promise<unknown>
  /** Of the first pass; default: one for each object of the manifest. */
  firstWrites?: number
  /** How the service stands after the first pass; default Synced. */
  firstReason?: string
  /** What somebody does when all is applied. */
  deed(site: DriftSite): Promise<unknown>
  /** Null means that nothing of ours was changed. Members left out are not looked at. */
  drift: null | {
    target: string
    action?: 'healed' | 'reported' | 'contested' | 'failed'
    paths?: string[]
    manager?: string
    deleted?: boolean
    count?: number
  }
  /** Requests of the agent that change something, after the deed. */
  writes: number
  /** Parts of live objects in the end, by target. Undefined means that the member is not there. Null means that there
   *  is no such object. */
  live?: Record<string, object | null>
  /** False: what the API server holds in the end is not all that Git says (reported, yielded, refused). */
  same?: false
}

export const objectsOf = (manifest: string, ns: string): K8sObject[] => {
  const parsed = parseYamlDocuments(manifest.replaceAll('$NS', ns), { file: `${ns}.yaml` })
  if (parsed.problems.length > 0) throw new Error(JSON.stringify(parsed.problems))
  return parsed.documents.map(({ value }) => k8sObjectSchema.parse(value))
}

interface SiteDeps {
  server: KubeCluster
  resources(): readonly ApiResource[]
  kit: ReconcileKit
  desire(manifest: string, options: RowOptions | undefined): void
  quiet(): Promise<void>
  heard(object: K8sObject): Promise<void>
  unnoticed(deed: () => Promise<unknown>): Promise<void>
}

export function createDriftSite(ns: string, deps: SiteDeps): DriftSite {
  const { server } = deps
  const request = async (method: string, path: string, body?: unknown, type = 'application/json') => {
    const answer = await fetch(server.server + path, {
      method,
      headers: { authorization: `Bearer ${server.token}`, 'content-type': type, 'user-agent': 'somebody-else' },
      tls: { ca: server.caPem },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: answer.status, json: (await answer.json()) as Record<string, unknown> }
  }
  const must = async (...args: Parameters<typeof request>) => {
    const { status, json } = await request(...args)
    if (status >= 300) throw new Error(`${args[0]} ${args[1]}: ${status} ${String(json['message'])}`)
    return json
  }
  const resourceOf = (kindAndGroup: string, version?: string): ApiResource => {
    const [kind = '', ...group] = kindAndGroup.split('.')
    const found = deps
      .resources()
      .find(
        (resource) =>
          resource.kind === kind &&
          (group.length === 0 || resource.group === group.join('.')) &&
          (version === undefined || resource.version === version),
      )
    if (found === undefined) throw new Error(`${kindAndGroup} is not served`)
    return found
  }
  const pathOf = (target: string, version?: string) => {
    const [kind = '', name = ''] = target.replaceAll('$NS', ns).split('/')
    return objectPath(resourceOf(kind, version), ns, name)
  }
  const pathOfObject = ({ apiVersion, kind, metadata }: K8sObject, withName: boolean) => {
    const [version = '', group = ''] = apiVersion.split('/').reverse()
    const resource = deps.resources().find((one) => one.kind === kind && one.group === group && one.version === version)
    if (resource === undefined) throw new Error(`${kind} of ${apiVersion} is not served`)
    const full = objectPath(resource, ns, metadata.name ?? '')
    return withName ? full : full.slice(0, full.lastIndexOf('/'))
  }
  const get = async (target: string, version?: string) => {
    const { status, json } = await request('GET', pathOf(target, version))
    if (status === 404) return null
    if (status >= 300) throw new Error(`GET ${target}: ${status}`)
    return json as K8sObject
  }
  const as = (manager: string): Somebody => {
    const by = `?fieldManager=${encodeURIComponent(manager)}`
    const under = (path: string, subresource?: string) => (subresource === undefined ? path : `${path}/${subresource}`)
    const patch = async (target: string, body: unknown, type: string, subresource?: string) =>
      void (await must('PATCH', under(pathOf(target), subresource) + by, body, type))
    return {
      merge: (target, body, subresource) => patch(target, body, 'application/merge-patch+json', subresource),
      strategic: (target, body) => patch(target, body, 'application/strategic-merge-patch+json'),
      json: (target, body) => patch(target, body, 'application/json-patch+json'),
      async apply(yaml, { force = false, subresource } = {}) {
        for (const object of objectsOf(yaml, ns)) {
          const path = under(pathOfObject(object, true), subresource)
          await must('PATCH', `${path}${by}&force=${force}`, object, 'application/apply-patch+yaml')
        }
      },
      async create(yaml) {
        for (const object of objectsOf(yaml, ns)) await must('POST', pathOfObject(object, false) + by, object)
      },
      async update(target, change, version) {
        for (let attempt = 0; ; attempt += 1) {
          const object = await get(target, version)
          if (object === null) throw new Error(`${target} is not there`)
          change(object)
          const { status, json } = await request('PUT', pathOf(target, version) + by, object)
          if (status < 300) return
          if (status !== 409 || attempt > 10) throw new Error(`PUT ${target}: ${status} ${String(json['message'])}`)
        }
      },
      remove: async (target) => void (await must('DELETE', pathOf(target), { propagationPolicy: 'Background' })),
    }
  }
  return {
    ns,
    as,
    get,
    kubectl: (args, stdin) =>
      server.kubectl(['--namespace', ns, ...args.map((arg) => arg.replaceAll('$NS', ns))], {
        ...(stdin === undefined ? {} : { stdin: stdin.replaceAll('$NS', ns) }),
      }),
    async revise(manifest, options) {
      deps.desire(manifest, options)
      await deps.quiet()
    },
    unnoticed: deps.unnoticed,
    async seen(target) {
      const object = await get(target)
      if (object !== null) await deps.heard(object)
      await deps.quiet()
    },
  }
}
