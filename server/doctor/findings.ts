// The findings of the doctor, each with its meaning and what to do, and the document that it prints.
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
const REPORT = 'Report it with this output. Nothing is lost in clusters. A restart does not correct it.'
const BY_ITSELF = 'No action needed: the server removes them at its next start.'

export const FINDINGS = define({
  folder_open: {
    severity: 'error',
    what: 'Other users of this machine can read the data folder.',
    means: 'The folder has private keys and the rendered objects of all clusters.',
    remedy:
      'Run chmod 700. If others had access, rotate all keys (`skerry server-key rotate`, `rotate mac`, `skerry secrets rotate-key`), then `skerry server-key revoke`.',
  },
  restore_unfinished: {
    severity: 'error',
    what: 'A restore into this folder was interrupted.',
    means: 'The folder is incomplete; the server refuses to start with it.',
    remedy: 'Run `skerry backup restore` again with the same --data folder.',
  },
  disk_low: {
    severity: 'warning',
    what: 'Low disk space.',
    means: 'On a full disk commits and joins are refused with 507; agents keep enforcing their state.',
    remedy: 'Free some space or enlarge the volume.',
  },
  key_missing: {
    severity: 'error',
    what: 'A key of the server is missing.',
    means: 'The server would create a new one at its next start, and agents would no longer recognize the server.',
    remedy: 'Do not start the server. Restore the file from a backup.',
  },
  key_bad: {
    severity: 'error',
    what: 'A key of the server is invalid.',
    means: 'The server cannot start, or agents would refuse its answers.',
    remedy: 'Restore the file from a backup.',
  },
  key_open: {
    severity: 'error',
    what: 'Other users of this machine can read a key of the server.',
    means: 'A holder of the key can impersonate the server to all agents.',
    remedy:
      'Run chmod 600. If others had access, rotate all keys (`skerry server-key rotate`, `rotate mac`, `skerry secrets rotate-key`), then `skerry server-key revoke`.',
  },
  key_group: {
    severity: 'note',
    what: 'A group can read a key of the server.',
    means: 'This is normal for volumes of pods with an fsGroup. Members of the group can impersonate the server to all agents.',
    remedy: 'No action needed if the group belongs to the server. Otherwise run chmod 600.',
  },
  keys_trusted: {
    severity: 'note',
    what: 'Agents also trust earlier signing keys of the server.',
    means: 'A server restored from a backup before the rotation works with them; so does a thief of such a backup.',
    remedy: 'Run `skerry server-key revoke` when no backup with an earlier key is needed, or if one was stolen.',
  },
  mac_earlier: {
    severity: 'note',
    what: 'Webhooks signed with the secret before the last rotation of mac.key are also accepted.',
    means: 'A holder of that secret can make the server read a repository.',
    remedy: 'Make new secrets for the forges (`skerry webhook-secret create NAME`), then run `skerry server-key rotate mac` once more.',
  },
  rotation_open: {
    severity: 'warning',
    what: 'A rotation of the key of secrets was not completed.',
    means: 'Some secrets of Configs are sealed under an earlier key, which still exists.',
    remedy: 'Start the server: it completes the rotation by itself. `skerry secrets rotation` shows its progress.',
  },
  store_damaged: {
    severity: 'error',
    what: 'The fleet store is damaged.',
    means: 'Resources and reports of agents may be partly lost. Agents keep enforcing their state.',
    remedy: RESTORE,
  },
  store_newer: {
    severity: 'error',
    what: 'The fleet store was written by a newer version.',
    means: 'This version can neither serve nor check it.',
    remedy: 'Use that version or a newer one.',
  },
  store_older: {
    severity: 'note',
    what: 'The fleet store has an older schema.',
    means: 'The next start migrates it; until then the doctor checks only a part of it.',
    remedy: BY_ITSELF,
  },
  restore_waits: {
    severity: 'warning',
    what: 'The server was restored from a backup, and waits for a confirmation.',
    means: 'The state of these clusters is newer than its store. Agents receive no changes and keep enforcing their state.',
    remedy: 'Run `skerry restore` to see the plan, then `skerry restore confirm`.',
  },
  project_as_agent: {
    severity: 'note',
    what: 'A Project does not say which ServiceAccount applies its services.',
    means: 'Services without sync.serviceAccount act with the rights of the agent, which may be those of the whole cluster.',
    remedy: 'Set spec.serviceAccounts of the Project to a default or required, or to agent if that is intended.',
  },
  backup_failed: {
    severity: 'warning',
    what: 'The last backup failed.',
    means: 'If the disk of this machine is lost now, the changes since the last complete backup are lost.',
    remedy: 'Correct the cause; the server tries again every 15 minutes. `skerry backup create --into` tries at once.',
  },
  backup_late: {
    severity: 'warning',
    what: 'No complete backup since the last one was due.',
    means: 'If the disk of this machine is lost now, the changes since the last complete backup are lost.',
    remedy: 'Start the server if it is stopped. If it runs, read its log.',
  },
  row_without_owner: {
    severity: 'error',
    what: 'Rows of the fleet store refer to missing rows.',
    means: 'A deletion was incomplete, or another program wrote to the store.',
    remedy: REPORT,
  },
  row_missing: {
    severity: 'error',
    what: 'A required row is missing.',
    means: 'A write was incomplete, or another program deleted rows.',
    remedy: RESTORE,
  },
  count_wrong: {
    severity: 'error',
    what: 'A stored count differs from the rows.',
    means: 'Numbers on overview pages, or the limit of reports of an agent, are wrong; clusters are not affected.',
    remedy: `Start the server once with --recount. ${REPORT}`,
  },
  number_wrong: {
    severity: 'error',
    what: 'A counter is lower than numbers that were already used.',
    means: 'A number would be used twice, and watchers that resume after it would miss changes.',
    remedy: RESTORE,
  },
  integer_range: {
    severity: 'error',
    what: 'A number is negative, fractional or above 2^53.',
    means: 'It would be rounded silently. No version of the server writes it.',
    remedy: RESTORE,
  },
  content_lost: {
    severity: 'error',
    what: 'A revision that clusters need is not in the content store.',
    means: 'Shard files cannot be rebuilt: the server would not start after a crash, and backups fail.',
    remedy: 'Push a commit that changes the service, or restore the file from a backup.',
  },
  content_damaged: {
    severity: 'error',
    what: 'The hash of a file in the content store that clusters need differs from its name.',
    means: 'The file counts as lost: shard files cannot be rebuilt with it.',
    remedy: 'Push a commit that changes the service, or restore the file from a backup.',
  },
  content_past_lost: {
    severity: 'warning',
    what: 'An earlier revision is missing in the content store, or damaged.',
    means: 'The revision can be listed but not read. No active revision needs it.',
    remedy: 'Restore the file from a backup if you need it.',
  },
  secret_clear: {
    severity: 'warning',
    what: 'A rendered Secret is in clear.',
    means: 'It was rendered before this fleet sealed its rows. Whoever reads the data folder or a backup of it reads the Secret.',
    remedy: 'Run `skerry secrets seal --all`, then `skerry secrets status`: it names services that do not render.',
  },
  sealing_off: {
    severity: 'warning',
    what: 'This fleet does not seal rendered Secrets.',
    means: 'Content store, shard files, backups and replicas of agents hold rendered Secrets in clear.',
    remedy: 'Upgrade all agents, then run `skerry secrets seal --all`.',
  },
  sealing_unfinished: {
    severity: 'warning',
    what: 'The sealing of this fleet was begun and is not finished.',
    means: 'Sets of past revisions, and services that do not render, may hold secrets in clear.',
    remedy: 'Run `skerry secrets status`, correct the services that it names, then run `skerry secrets seal --all` again.',
  },
  backup_clear: {
    severity: 'warning',
    what: 'Archives of backups are from before this fleet sealed its rows.',
    means: 'They hold rendered Secrets in clear, encrypted only to the recipients of the backup.',
    remedy: 'Delete them when a newer backup was read back.',
  },
  content_foreign: {
    severity: 'note',
    what: 'The folder of the content store has unknown files.',
    means: 'The server never reads or removes them.',
    remedy: 'Remove them if they are not needed.',
  },
  shard_missing: {
    severity: 'note',
    what: 'A shard file is missing.',
    means: 'The server rebuilds it from the fleet store; its agents fetch the differences.',
    remedy: BY_ITSELF,
  },
  shard_damaged: {
    severity: 'warning',
    what: 'A shard file is damaged.',
    means:
      'The server rebuilds it from the fleet store within the hour, or at the next start; its agents fetch the differences. Nothing is lost.',
    remedy: 'Check the disk. A restart rebuilds the file immediately.',
  },
  shard_unreadable: {
    severity: 'warning',
    what: 'A shard file cannot be read.',
    means: 'The file may be intact: this user may not read it, or it was busy.',
    remedy: 'Run the doctor as the user of the server, or again in a minute.',
  },
  shard_stranger: {
    severity: 'note',
    what: 'A shard file is not the one that the fleet store recorded.',
    means: 'The store was moved or restored. The server rebuilds the file at the next start.',
    remedy: BY_ITSELF,
  },
  shard_behind: {
    severity: 'note',
    what: 'Clusters lack revisions in their shard file.',
    means: 'This is normal after a crash: they are written at the next start.',
    remedy: BY_ITSELF,
  },
  shard_behind_running: {
    severity: 'warning',
    what: 'Clusters lack revisions in their shard file while the server runs.',
    means: 'A write to the file failed or is pending; the next publication writes them.',
    remedy: 'Run the doctor again in a minute. If the problem persists, read the log of the server and restart it.',
  },
  shard_ahead: {
    severity: 'warning',
    what: 'A shard file knows newer revisions of clusters than the fleet store.',
    means:
      'The store is older than the file, for example restored from a backup. The server rebuilds the file and waits for a confirmation before it serves agents.',
    remedy: 'After the next start, run `skerry restore` and confirm the plan.',
  },
  shard_unknown_cluster: {
    severity: 'note',
    what: 'A shard file holds clusters that the fleet store does not know.',
    means: 'They were deleted before a crash. They are removed at the next start.',
    remedy: BY_ITSELF,
  },
  shard_rows: {
    severity: 'error',
    what: 'Rows of clusters in a shard file differ from the fleet store.',
    means: 'Agents receive objects that differ from the desired state.',
    remedy:
      'Stop the server, remove the file, and start the server, which rebuilds it from the fleet store. Then report the problem with this output.',
  },
  sandbox_broken: {
    severity: 'note',
    what: 'Render programs cannot be isolated on this host: bubblewrap does not work.',
    means: 'Charts, kustomizations, TypeScript and custom renderers do not work (`sandbox_unavailable`); plain manifests and Liquid do.',
    remedy:
      'Install bubblewrap and allow user namespaces on this host, or start the server with `--render-sandbox limits`, which renders charts and kustomizations only.',
  },
  sandbox_no_proc: {
    severity: 'note',
    what: 'A sandbox cannot have its own /proc on this host, as in most containers.',
    means: 'TypeScript and custom renderers do not work (`sandbox_unavailable`); charts and kustomizations do.',
    remedy:
      'No action needed if they are not used. Otherwise give the container an unmasked /proc (Kubernetes: procMount: Unmasked, with hostUsers: false).',
  },
  sandbox_off: {
    severity: 'note',
    what: 'The server renders with process limits and Landlock, without bubblewrap.',
    means: 'TypeScript and custom renderers are refused. Without Landlock (Linux 5.13) no render program runs.',
    remedy: 'Use `--render-sandbox bubblewrap` where user namespaces are allowed.',
  },
  program_missing: {
    severity: 'note',
    what: 'Programs that sources or renderers may need are missing.',
    means: 'Sources and services that need them report an error; all others work.',
    remedy:
      'No action needed if they are not used. Otherwise install them, and set their paths with `--helm`, `--helm3`, `--kustomize` or `--renderers`.',
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
  /** Schema of the fleet store; null means unknown. */
  schema: z.number().int().nullable(),
  /** Neither errors nor warnings. */
  fine: z.boolean(),
  tookMs: z.number().int().nonnegative(),
  /** Counts made on the way, by name. */
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
