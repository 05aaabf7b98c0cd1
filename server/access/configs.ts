// Reads Configs for those who need their values: credentials of sources, and renders.
import { AppError } from '../../shared/protocol/error.ts'
import type { Store } from '../store/store.ts'
import { type OpenedConfig, openConfig } from './config-secrets.ts'
import type { SecretBox } from './secret-box.ts'

export interface Configs {
  /** Null: the project has none of that name. Throws `credential_missing` when its secrets do not open. */
  read(project: string, name: string): Promise<OpenedConfig | null>
  /** The secrets alone, for a source; throws `credential_missing` when there is no such Config. */
  credentials(project: string, name: string): Promise<Readonly<Record<string, string>>>
}

export function createConfigs(store: Pick<Store, 'getResource'>, box: SecretBox): Configs {
  const read: Configs['read'] = async (project, name) => {
    const held = await store.getResource({ kind: 'Config', project, name })
    return held === null ? null : openConfig(box, { project, name }, held.spec)
  }
  return {
    read,
    async credentials(project, name) {
      const config = await read(project, name)
      if (config === null)
        throw new AppError('credential_missing', {
          detail: `there is no Config ${name} in project ${project}`,
          remedy: `Write the Config ${name} with \`skerry apply -f\`, or correct auth.secretRef of the Repository.`,
        })
      return config.secrets
    },
  }
}
