// Options of archives of backups, checked before anything is read or written.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { areOfOneKind, isIdentity, isRecipient } from '../../../shared/adapters/age-streams.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { flagName, type OptionTable, type OptionValues } from '../../../shared/runtime/options.ts'
import type { PostgresPlace } from '../../store/store-place.ts'
import type { BackupPlan } from './backups.ts'
import { isS3, openPlace } from './place.ts'
import { parseSchedule, SCHEDULE_FORM } from './schedule.ts'
import type { BackupPlace } from './stored.ts'

export const KEEP_DEFAULT = 14

const into = {
  type: 'text',
  placeholder: 'PLACE',
  help: 'Folder, or s3://BUCKET/PREFIX?endpoint=URL&region=REGION, for archives of backups. The credentials of S3 are read from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.',
} as const
const recipients = {
  type: 'text',
  placeholder: 'AGE',
  help: 'Recipients that archives are encrypted to: age1…, separated by commas, or a file with one on each line.',
} as const
const keep = {
  type: 'integer',
  placeholder: 'COUNT',
  help: 'Newest archives to keep; 0: all.',
  default: String(KEEP_DEFAULT),
} as const
const unencrypted = {
  type: 'flag',
  help: 'Allow archives in S3 without recipients. They contain private keys and the Secrets of clusters.',
} as const

/** Options of `backup create`. */
export const ARCHIVE_OPTIONS = { into, recipients, keep, unencrypted } as const satisfies OptionTable
/** Options of `skerry server`. */
export const BACKUP_OPTIONS = {
  backupInto: { ...into, help: `${into.help} Default: the server makes no backups.` },
  backupSchedule: {
    type: 'text',
    placeholder: 'WHEN',
    help: 'Time between backups, at least 15m, or five fields of cron in UTC, such as "0 3 * * *".',
    default: '24h',
  },
  backupRecipients: recipients,
  backupKeep: keep,
  backupUnencrypted: unencrypted,
} as const satisfies OptionTable
export const IDENTITY_OPTION = {
  identity: { type: 'text', placeholder: 'FILE', help: 'File of age-keygen with the identity that opens an encrypted archive.' },
} as const satisfies OptionTable

type Env = Readonly<Record<string, string | undefined>>

export interface ArchiveTarget {
  place: BackupPlace
  recipients: readonly string[]
}

/** Throws `bad_options`. */
export function readTarget(
  { into, recipients, unencrypted }: { into: string; recipients?: string | undefined; unencrypted: boolean },
  env: Env,
): ArchiveTarget {
  const place = openPlace(into, env)
  const found = recipients === undefined ? [] : readRecipients(recipients)
  if (found.length > 0 && unencrypted) throw wrong('recipients and unencrypted exclude each other', 'Remove one of them.')
  if (found.length === 0 && place.remote && !unencrypted)
    throw wrong(
      `${place.text} is on other machines, and there are no recipients`,
      'Make a key with age-keygen, keep it away from the server, and set the recipients to its public key. Or allow archives without encryption.',
    )
  return { place, recipients: found }
}

export function readRecipients(text: string): string[] {
  const lines = text.startsWith('age1') ? text.split(',') : readText(text).split('\n')
  const found = lines.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'))
  const bad = found.find((line) => !isRecipient(line))
  if (bad !== undefined)
    throw wrong(
      isIdentity(bad) ? 'a recipient is a private key: AGE-SECRET-KEY-…' : `${JSON.stringify(bad.slice(0, 80))} is not a recipient of age`,
      'Set public keys of age-keygen, which begin with age1. Plugins and ssh keys are not supported.',
    )
  if (found.length === 0) throw wrong(`${text} has no recipients`, 'Write one age1… on each line.')
  if (!areOfOneKind(found))
    throw wrong('recipients age1… and age1pq… are mixed', 'Use one kind: the weaker one decides who can open the archive.')
  return found
}

/** Throws `bad_options`. */
export function readIdentities(file: string): string[] {
  const found = readText(file)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
  if (found.length > 0 && found.every(isIdentity)) return found
  throw wrong(`${file} has no identity of age, or something else`, 'Set a file of age-keygen. Its lines begin with AGE-SECRET-KEY-.')
}

function readText(file: string): string {
  try {
    return readFileSync(resolve(file), 'utf8')
  } catch (error) {
    throw wrong(
      `${file} cannot be read: ${error instanceof Error && 'code' in error ? String(error.code) : String(error)}`,
      `Check the file of ${flagName('recipients')} or ${flagName('identity')}.`,
    )
  }
}

const wrong = (detail: string, remedy: string): AppError => new AppError('bad_options', { doing: 'back up', detail, remedy })

type Planned = OptionValues<typeof BACKUP_OPTIONS>

/** The arguments and the environment of the process that makes one. Null means that the server makes none. Throws
 *  `bad_options`. */
export function planBackups(
  options: Planned,
  { dataDir, place }: { dataDir: string; place: PostgresPlace | null },
  env: Env,
): BackupPlan | null {
  const { backupInto: into, backupSchedule: schedule, backupRecipients, backupKeep, backupUnencrypted: unencrypted } = options
  if (into === undefined) return null
  if (parseSchedule(schedule) === null)
    throw wrong(`the schedule ${JSON.stringify(schedule)} has no times`, `Set --backup-schedule to ${SCHEDULE_FORM}.`)
  const { recipients } = readTarget({ into, unencrypted, recipients: backupRecipients }, env)
  const own = Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('SKERRY_')))
  return {
    schedule,
    args: [
      ...['--data', dataDir, '--into', isS3(into) ? into : resolve(into), '--keep', String(backupKeep)],
      ...(recipients.length === 0 ? [] : ['--recipients', recipients.join(',')]),
      ...(unencrypted ? ['--unencrypted'] : []),
    ],
    // The database is not connected to; that there is one decides what is in the backup.
    env: place === null ? own : { ...own, SKERRY_STORE: ANY_DATABASE },
  }
}

const ANY_DATABASE = 'postgres://skerry@localhost/skerry'
