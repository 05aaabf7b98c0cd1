// What the doctor can find, each with what it means and what to do, and the document that it answers with.
import { z } from 'zod'

/**
 * `error`: something is lost or wrong. `warning`: it soon may be. `note`: nothing to do; the server fixes it by itself,
 * or it is normal.
 */
export const SEVERITIES = ['error', 'warning', 'note'] as const
type Severity = (typeof SEVERITIES)[number]

interface FindingEntry {
  severity: Severity
  what: string
  means: string
  remedy: string
}
const define = <const T extends Record<string, FindingEntry>>(table: T) => table

const RESTORE = 'Stop the server, keep a copy of the data folder, and restore the newest backup (`skerry backup restore`).'
const REPORT = 'Report it with this document. Nothing is lost in clusters; a restart does not mend it, and it does no harm meanwhile.'
const BY_ITSELF = 'Nothing: the server does it at its next start.'

export const FINDINGS = define({
  folder_open: {
    severity: 'error',
    what: 'Others on this machine can read the data folder.',
    means: 'It holds private keys and everything that the clusters run.',
    remedy:
      'chmod 700 it; if strangers had access, rotate all keys (`skerry server-key rotate`, `rotate mac`, `rotate secrets`), then `skerry server-key revoke`.',
  },
  restore_unfinished: {
    severity: 'error',
    what: 'A restore into this folder was cut off.',
    means: 'The folder is incomplete; the server refuses to start with it.',
    remedy: 'Run `skerry backup restore` again with the same --data folder.',
  },
  disk_low: {
    severity: 'warning',
    what: 'There is little space left.',
    means: 'On a full disk commits and joins are refused with 507; agents go on enforcing what they hold.',
    remedy: 'Free some space or enlarge the volume.',
  },
  key_missing: {
    severity: 'error',
    what: 'A key of the server is missing.',
    means: 'The server would make a new one at its next start, and no agent would know it any more.',
    remedy: 'Do not start the server. Put the file back from a backup.',
  },
  key_bad: {
    severity: 'error',
    what: 'A key of the server cannot be used.',
    means: 'The server cannot start, or no agent would take its word.',
    remedy: 'Put the file back from a backup.',
  },
  key_open: {
    severity: 'error',
    what: 'Others on this machine can read a key of the server.',
    means: 'Who has it can speak to every agent as the server.',
    remedy:
      'chmod 600 it; if strangers had access, rotate all keys (`skerry server-key rotate`, `rotate mac`, `rotate secrets`), then `skerry server-key revoke`.',
  },
  key_group: {
    severity: 'note',
    what: 'A group can read a key of the server.',
    means: 'Volumes of pods with an fsGroup are like that. Who is in that group can speak to every agent as the server.',
    remedy: 'Nothing, if the group is the server’s own; else chmod 600 it.',
  },
  keys_trusted: {
    severity: 'note',
    what: 'Agents trust earlier signing keys of the server, too.',
    means: 'A server that is restored from a backup of before the rotation works with them, and so would whoever stole such a backup.',
    remedy: 'When no backup with an earlier key is needed any more, or if one was stolen: `skerry server-key revoke`.',
  },
  mac_earlier: {
    severity: 'note',
    what: 'Webhooks that are signed with the secret from before the last rotation of mac.key are accepted, too.',
    means: 'Whoever has that secret can make the server look at a repository.',
    remedy:
      'Copy the new secrets into the forges (`skerry describe repository NAME --show-secret`), then run `skerry server-key rotate mac` once more.',
  },
  rotation_open: {
    severity: 'warning',
    what: 'A rotation of the keys of secrets was not finished.',
    means: 'Some secrets of Configs are sealed under an earlier key, which is still there.',
    remedy: 'Finish it: `skerry server-key rotate secrets`.',
  },
  store_damaged: {
    severity: 'error',
    what: 'The fleet store is damaged.',
    means: 'What people wrote and agents reported may be lost in part. Agents go on enforcing what they hold.',
    remedy: RESTORE,
  },
  store_newer: {
    severity: 'error',
    what: 'The fleet store was written by a newer version.',
    means: 'This version can neither serve nor look through it.',
    remedy: 'Use that version or a newer one.',
  },
  store_older: {
    severity: 'note',
    what: 'The fleet store has an older schema.',
    means: 'It is brought forward at the next start; until then only a part of it can be looked through.',
    remedy: BY_ITSELF,
  },
  restore_waits: {
    severity: 'warning',
    what: 'The server was set back to a backup, and waits for a person.',
    means: 'The agents of these clusters know more than it does. No agent gets a page; all go on enforcing what they hold.',
    remedy: 'Read the plan with `skerry restore`, then say `skerry restore confirm`.',
  },
  row_without_owner: {
    severity: 'error',
    what: 'Rows of the fleet store belong to something that is not there.',
    means: 'Something was deleted in part, or written by something else than the server.',
    remedy: REPORT,
  },
  row_missing: {
    severity: 'error',
    what: 'A row that must be there is missing.',
    means: 'Something was written in part, or deleted by something else than the server.',
    remedy: RESTORE,
  },
  count_wrong: {
    severity: 'error',
    what: 'A count that is kept with the rows differs from the rows.',
    means: 'Numbers on overview pages, or the bound on what an agent may report, are off; what is in clusters is not touched.',
    remedy: `Start the server once with --recount. ${REPORT}`,
  },
  number_wrong: {
    severity: 'error',
    what: 'A number that only grows was overtaken by those that were given out.',
    means: 'It would be given out twice, and who resumes after it would miss something.',
    remedy: RESTORE,
  },
  integer_range: {
    severity: 'error',
    what: 'A number is negative, fractional or above 2^53.',
    means: 'It would be rounded in silence. No version writes it.',
    remedy: RESTORE,
  },
  content_lost: {
    severity: 'error',
    what: 'A revision that clusters shall have is not in the content store.',
    means: 'Shard files cannot be made anew with it: the server would not start after a crash, and no backup can be made.',
    remedy: 'Push a commit that changes the service, or put the file back from a backup.',
  },
  content_damaged: {
    severity: 'error',
    what: 'A file of the content store, which clusters shall have, does not hash to its name.',
    means: 'As if it were lost: shard files cannot be made anew with it.',
    remedy: 'Push a commit that changes the service, or put the file back from a backup.',
  },
  content_past_lost: {
    severity: 'warning',
    what: 'A revision of the past is not in the content store, or damaged.',
    means: 'It can be listed and no more. Nothing that is in force needs it.',
    remedy: 'Put the file back from a backup if you want it.',
  },
  secret_clear: {
    severity: 'warning',
    what: 'A rendered Secret is in clear.',
    means: 'It was rendered before this fleet sealed its rows. Whoever reads the data folder or a backup of it reads the Secret.',
    remedy: 'Run `skerry secrets seal --all`, then `skerry secrets status`: it names services that do not render.',
  },
  content_foreign: {
    severity: 'note',
    what: 'The content store’s folder holds files that are not its own.',
    means: 'They are never read and never removed.',
    remedy: 'Remove them if nobody needs them.',
  },
  shard_missing: {
    severity: 'note',
    what: 'A shard file is missing.',
    means: 'It is made anew from the fleet store; its agents fetch what differs.',
    remedy: BY_ITSELF,
  },
  shard_damaged: {
    severity: 'warning',
    what: 'A shard file is damaged.',
    means: 'It is made anew from the fleet store within the hour, or at the next start; its agents fetch what differs. Nothing is lost.',
    remedy: 'Look after the disk; a restart makes it anew at once.',
  },
  shard_unreadable: {
    severity: 'warning',
    what: 'A shard file cannot be read.',
    means: 'That says nothing about the file: this user may not read it, or it was busy.',
    remedy: 'Run the doctor as the user of the server, and again in a minute.',
  },
  shard_stranger: {
    severity: 'note',
    what: 'A shard file is not the one that the fleet store knows.',
    means: 'The store was somewhere else meanwhile, or was restored. The file is made anew at the next start.',
    remedy: BY_ITSELF,
  },
  shard_behind: {
    severity: 'note',
    what: 'Clusters lack revisions in their shard file.',
    means: 'After a crash that is normal: they are written at the next start.',
    remedy: BY_ITSELF,
  },
  shard_behind_running: {
    severity: 'warning',
    what: 'Clusters lack revisions in their shard file while the server runs.',
    means: 'A write to the file failed, or is still to come: the next publication writes them.',
    remedy: 'Look again in a minute. If it stays, read the server’s log and restart it.',
  },
  shard_ahead: {
    severity: 'warning',
    what: 'A shard file knows newer revisions of clusters than the fleet store.',
    means: 'The store was set back, to a backup perhaps. The server makes the file anew and waits for a person before it serves agents.',
    remedy: 'After the next start read `skerry restore` and confirm the plan.',
  },
  shard_unknown_cluster: {
    severity: 'note',
    what: 'A shard file holds clusters that the fleet store does not know.',
    means: 'They were deleted, and a crash came between. They are removed at the next start.',
    remedy: BY_ITSELF,
  },
  shard_rows: {
    severity: 'error',
    what: 'Rows of clusters in a shard file are not what the fleet store says.',
    means: 'Agents get something else than what is desired.',
    remedy:
      'Stop the server, remove the named file, start it: the file is made anew from the fleet store. Then report it with this document.',
  },
  sandbox_broken: {
    severity: 'note',
    what: 'Programs cannot be kept apart from this server here: bubblewrap does not work.',
    means:
      'Charts, kustomizations, TypeScript and renderers of others are not rendered (`sandbox_unavailable`); plain manifests and Liquid are.',
    remedy:
      'Install bubblewrap and allow user namespaces on this host, or start the server with `--render-sandbox limits`, which renders charts and kustomizations only.',
  },
  sandbox_no_proc: {
    severity: 'note',
    what: 'A sandbox gets no /proc of its own here, as in most containers.',
    means: 'TypeScript and renderers of others are not rendered (`sandbox_unavailable`); charts and kustomizations are.',
    remedy:
      'Nothing, if nobody needs them; else give the container an unmasked /proc (Kubernetes: procMount: Unmasked, with hostUsers: false).',
  },
  sandbox_off: {
    severity: 'note',
    what: 'The server renders with limits of the process and Landlock, without bubblewrap.',
    means: 'TypeScript and renderers of others are refused. Without Landlock (Linux 5.13) nothing is rendered by programs.',
    remedy: 'Use `--render-sandbox bubblewrap` where user namespaces are allowed.',
  },
  program_missing: {
    severity: 'note',
    what: 'Programs that sources or renderers may need are not here.',
    means: 'Whatever needs them is not read or not rendered, and says so; everything else goes on.',
    remedy: 'Nothing, if nobody needs them; else install them, and name them with `--helm`, `--helm3`, `--kustomize` or `--renderers`.',
  },
})
export type FindingCode = keyof typeof FINDINGS

const findingSchema = z.object({
  code: z.string(),
  severity: z.enum(SEVERITIES),
  what: z.string(),
  /** The first of them. */
  where: z.array(z.string()),
  /** How often it was found. */
  count: z.number().int().positive(),
  means: z.string(),
  remedy: z.string(),
})

export const doctorReportSchema = z.object({
  version: z.string(),
  data: z.string(),
  server: z.enum(['running', 'stopped']),
  store: z.enum(['sqlite', 'postgres']),
  /** Of the fleet store; null: unknown. */
  schema: z.number().int().nullable(),
  /** Neither errors nor warnings. */
  fine: z.boolean(),
  tookMs: z.number().int().nonnegative(),
  /** What was counted on the way, by name. */
  facts: z.record(z.string(), z.union([z.number(), z.string()])),
  findings: z.array(findingSchema),
})
export type DoctorReport = z.infer<typeof doctorReportSchema>

const NAMED_MAX = 10

export interface Findings {
  /** `count`: that many more places which are not named. */
  tell(code: FindingCode, where: string, count?: number): void
  fact(name: string, value: number | string): void
  facts: Record<string, number | string>
  /** Errors first, then in the order in which they were found. */
  list(): DoctorReport['findings']
}

export function createFindings(): Findings {
  const found = new Map<FindingCode, { where: string[]; count: number }>()
  const facts: Record<string, number | string> = {}
  return {
    facts,
    fact: (name, value) => {
      facts[name] = value
    },
    tell(code, where, count = 1) {
      const held = found.get(code) ?? { where: [], count: 0 }
      held.count += count
      if (held.where.length < NAMED_MAX) held.where.push(where)
      found.set(code, held)
    },
    list: () =>
      [...found]
        .map(([code, { where, count }]) => ({ code, ...FINDINGS[code], where, count }))
        .sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity)),
  }
}
