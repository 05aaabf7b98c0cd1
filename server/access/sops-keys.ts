// Age keys that the operator gave this server (`--sops-keys`), for SOPS files that a program needs in clear. They stay
// in the control process: a worker gets the data key of one file, for a project that may use the key.
import { createHash } from 'node:crypto'
import { openAge } from '../../shared/adapters/age.ts'
import { type PlacedAgeKey, readAgeKeyFolder } from '../../shared/adapters/age-key-folder.ts'
import { AppError } from '../../shared/runtime/error.ts'

export interface ServerSopsKeys {
  /** Names the keys of a project; '' without any. */
  version(project: string): string
  recipients(project: string): string[]
  /** `stanzas`: recipients with the data key as an age file. Null means that no key of the project opens any. */
  dataKey(project: string, stanzas: ReadonlyArray<readonly [recipient: string, enc: string]>): Promise<Uint8Array | null>
}

export const NO_SOPS_KEYS: ServerSopsKeys = { version: () => '', recipients: () => [], dataKey: async () => null }

/** Read once: another key counts from the next start. Throws AppError `bad_options` for a folder with anything that
 *  cannot be used. */
export async function loadSopsKeys(folder: string): Promise<ServerSopsKeys> {
  const { keys, problems } = await readAgeKeyFolder(folder)
  if (problems.length > 0 || keys.length === 0)
    throw new AppError('bad_options', {
      doing: 'read --sops-keys',
      detail: problems.length > 0 ? problems.join('; ') : `${folder} has no *.agekey file`,
      remedy: 'Put files of age-keygen there, with names that end with .agekey, or leave the option out.',
    })
  const of = (project: string): PlacedAgeKey[] => keys.filter((key) => key.project === null || key.project === project)
  const recipients = (project: string) => [...new Set(of(project).map(({ recipient }) => recipient))].sort()
  return {
    recipients,
    version(project) {
      const own = recipients(project)
      return own.length === 0 ? '' : createHash('sha256').update(own.join('\n')).digest('hex').slice(0, 16)
    },
    async dataKey(project, stanzas) {
      for (const [recipient, enc] of stanzas)
        for (const key of of(project).filter((one) => one.recipient === recipient)) {
          const opened = await openAge(key, enc)
          if (opened !== null) return opened
        }
      return null
    },
  }
}
