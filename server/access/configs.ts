// Reads Configs for code that needs their values: credentials of sources, and renders.
import { placeOf, repositorySpecSchema } from '../../shared/model/resources.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { CredentialUse } from '../sources/sources.ts'
import type { Store } from '../store/store.ts'
import { boundHosts, decideHost, type HostDecision, hostOf } from './config-hosts.ts'
import type { ConfigKeys } from './config-keys.ts'
import { bindConfig, bindingOf, type OpenedConfig, openConfig } from './config-secrets.ts'

export interface Configs {
  /** Null if the project has no Config of that name. Throws `credential_missing` when its secrets cannot be opened. */
  read(project: string, name: string): Promise<OpenedConfig | null>
  /** CG8: the secrets alone, to be sent as `use` says; throws `credential_missing` when there is no such Config, and
   *  `source_refused` for a host to which it is not bound. The first use binds it. */
  credentials(project: string, name: string, use: CredentialUse): Promise<Readonly<Record<string, string>>>
  /** SO56: the first of these Configs that is bound to the host of the URL. Null means none of them is. Binds nothing.
   */
  boundTo(project: string, names: readonly string[], url: string): Promise<string | null>
}

const PAGE = 500
/** Another writer changed the Config meanwhile, each time. */
const BIND_TRIES_MAX = 5

export function createConfigs(store: Pick<Store, 'getResource' | 'listResources' | 'resealConfig'>, keys: ConfigKeys): Configs {
  const heldOf = (project: string, name: string) => store.getResource({ kind: 'Config', project, name })
  return {
    async read(project, name) {
      const held = await heldOf(project, name)
      return held === null ? null : openConfig(keys, { project, name }, held.spec)
    },
    async credentials(project, name, use) {
      for (let tries = 0; tries < BIND_TRIES_MAX; tries++) {
        const held = await heldOf(project, name)
        if (held === null)
          throw new AppError('credential_missing', {
            detail: `Config ${name} does not exist in project ${project}`,
            remedy: `Write the Config ${name} with \`skerry apply -f\`, or correct auth.secretRef where it is named.`,
          })
        const { secrets } = await openConfig(keys, { project, name }, held.spec)
        const binding = bindingOf(held.spec)
        const others = boundHosts(binding) === null ? await hostsOf(store, project, name) : []
        const decision = decideHost(binding, use, others)
        if (decision.kind === 'refused') throw refusal(name, decision, boundHosts(binding) ?? [])
        if (decision.kind === 'allowed') return secrets
        if (await store.resealConfig({ kind: 'Config', project, name }, held.version, bindConfig(held.spec, decision.firstUse)))
          return secrets
      }
      throw new AppError('conflict', { detail: `the Config ${name} in project ${project} changed too often while its hosts were bound` })
    },
    async boundTo(project, names, url) {
      for (const name of names) {
        const held = await heldOf(project, name)
        if (held !== null && boundHosts(bindingOf(held.spec))?.includes(hostOf(url)) === true) return name
      }
      return null
    },
  }
}

/** Hosts of the Repositories that name the Config. */
async function hostsOf(store: Pick<Store, 'listResources'>, project: string, config: string): Promise<string[]> {
  const hosts = new Set<string>()
  for (let after: string | undefined; ; ) {
    const page = await store.listResources('Repository', { project, limit: PAGE, ...(after === undefined ? {} : { after }) })
    for (const { spec } of page.items) {
      const { auth, url } = placeOf(repositorySpecSchema.parse(JSON.parse(spec))).spec
      if (auth?.secretRef === config) hosts.add(hostOf(url))
    }
    if (page.next === null) return [...hosts]
    after = page.next
  }
}

const refusal = (config: string, { host }: Extract<HostDecision, { kind: 'refused' }>, hosts: readonly string[]): AppError =>
  new AppError('source_refused', {
    detail: `the Config ${config} is not sent to ${host}: it is bound to ${hosts.length === 0 ? 'no host' : hosts.join(', ')}`,
    remedy: `If its secrets are for ${host}, add that host to spec.hosts of the Config ${config} and write their values again; else correct the address of the Repository or NotificationSink.`,
  })
