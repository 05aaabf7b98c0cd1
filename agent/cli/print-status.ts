// The text of `skerry-agent status`. Pure: a report in, lines out.
import { cutText } from '../../shared/runtime/cut-text.ts'
import { recipientsText } from '../../shared/sops/parcel.ts'
import type { AgentReport, LinkReport } from '../observe/report.ts'

/** The state of sync in words. Only `not joined`, `refuses this agent` and `not syncing` need a person at the site;
 *  none of them changes enforced objects. */
function linkText({ state, error, parts, lastContactMs }: LinkReport, isJoined: boolean): string {
  switch (state) {
    case 'following':
      return lastContactMs === null ? 'no answer yet' : 'connected'
    case 'refetching':
      return 'fetching the differences'
    case 'fetching_parts':
      return parts === null
        ? 'fetching a large page'
        : `fetching a large page, ${parts.have} of ${parts.of} parts (${bytesText(parts.bytes)} in total),`
    case 'restore_pending':
      return 'ok at this site; the server has a pending confirmation'
    case 'offline':
      if (error?.code === 'disk_full') return 'not syncing, because the disk is full,'
      return error === null || error.code === 'server_unreachable' ? 'unreachable' : 'not syncing'
    case 'halted':
      if (error?.code === 'link_insecure') return 'not asked'
      return isJoined ? 'refuses this agent' : 'not joined'
    default:
      return state
  }
}

/** Longer than the hour after which the server is asked again, and the longest poll. */
const HEAD_LATE_MS = 2 * 3_600_000

/** PR7: a link that answers and never lets the server's signature through. */
function headLines({ state, sinceMs, headSignedMs }: LinkReport, nowMs: number): Array<[string, string]> {
  if (state !== 'following' || nowMs - (headSignedMs ?? sinceMs) < (headSignedMs === null ? 60_000 : HEAD_LATE_MS)) return []
  const since = headSignedMs === null ? 'since this agent started; nothing is deleted until it does' : `for ${age(nowMs - headSignedMs)}`
  return [
    ['', `the server has not signed its head ${since}`],
    ['next step', 'Upgrade the server if it is older than this agent. Otherwise look for a proxy that answers in its place.'],
  ]
}

/** Today's traffic, and the consequences of a spent budget. */
function trafficLines({ metered, budgetBytes, waitSeconds }: LinkReport, todayBytes: number): Array<[string, string]> {
  const used = budgetBytes > 0 ? `${bytesText(todayBytes)} of ${bytesText(budgetBytes)} today` : `${bytesText(todayBytes)} today`
  const line: [string, string] = ['traffic', `${used}${metered ? ', metered' : ''}, polls of ${age(waitSeconds * 1_000)}`]
  if (budgetBytes === 0 || todayBytes < budgetBytes) return [line]
  return [
    line,
    ['', 'the daily budget is used up: until midnight UTC reports are hourly; changes still arrive'],
    ['next step', 'No action needed. To report sooner, raise --daily-bytes and restart the agent.'],
  ]
}

export function statusText(report: AgentReport, nowMs: number): string {
  const { link, replica } = report
  const lines: Array<[string, string]> = [
    ['agent', report.running ? `running, version ${report.version}` : 'not running: this is the last known status'],
    [
      'cluster',
      report.clusterId === null ? 'not joined yet' : `${report.clusterId}, agent ${report.agentId}, incarnation ${report.incarnation}`,
    ],
    ...(report.recipient === null ? [] : [['recipient', report.recipient] as [string, string]]),
    ...(report.foreignRecipient === null ? [] : foreignLines(report.foreignRecipient)),
    ['enforcement', `${report.enforcement.state}${report.enforcement.message === '' ? '' : `: ${report.enforcement.message}`}`],
  ]
  if (link !== null)
    lines.push([
      'server',
      `${link.server}: ${linkText(link, report.clusterId !== null)} for ${age(nowMs - link.sinceMs)}, last contact ${link.lastContactMs === null ? 'never' : `${age(nowMs - link.lastContactMs)} ago`}`,
    ])
  else if (report.clusterId !== null) lines.push(['server', 'unknown: the agent does not run'])
  if (link?.error) lines.push(['', `${link.error.message} (${link.error.code})`], ['next step', link.error.remedy])
  if (link !== null) lines.push(...headLines(link, nowMs), ...trafficLines(link, report.todayBytes))
  else if (report.todayBytes > 0) lines.push(['traffic', `${bytesText(report.todayBytes)} today, until it stopped`])
  if (replica !== null) {
    const state = replica.verified ? 'verified' : 'damaged: enforcement continues after it is fetched again'
    lines.push([
      'replica',
      replica.position === null
        ? 'empty: nothing received yet'
        : `${replica.rows} rows, ${state}, position ${replica.position.split('.').slice(1, 3).join('.')}`,
    ])
  }
  if (report.policy !== null) lines.push(...policyLines(report.policy))
  if (report.ageKeys !== null) lines.push(...ageKeyLines(report.ageKeys))
  if (report.disk !== null) lines.push(['disk', report.disk])
  const { compared, differences } = report.resync ?? { compared: 0, differences: 0 }
  if (compared > 0) lines.push(['resync', `${compared} lists compared, ${differences} missed changes found`])
  lines.push(['outbox', report.outboxDepth === 0 ? 'empty' : `${report.outboxDepth} rows wait for the server`])
  const head = lines.map(([name, text]) => `${name.padEnd(12)} ${text}`)
  return [...head, '', ...serviceTable(report)].join('\n')
}

/** LX4: the line for an unreadable policy file. */
function policyLines({ file, rules, problem }: NonNullable<AgentReport['policy']>): Array<[string, string]> {
  const lines: Array<[string, string]> = [['local policy', `${rules} (${file})`]]
  if (problem !== null) lines.push(['', `the file cannot be read; its last valid content stays in use: ${problem}`])
  return lines
}

/** SL15: the lines about a server that seals to another recipient key. */
const foreignLines = (other: string): Array<[string, string]> => [
  ['', `the server seals to ${other} instead, and keeps it; pages with Secrets are refused`],
  ['next step', 'Ask who changed the recipient in the fleet store of the server; the event RecipientChanged has both fingerprints.'],
]

/** The recipients to encrypt SOPS files to. */
const ageKeyLines = ({ recipients, problems }: NonNullable<AgentReport['ageKeys']>): Array<[string, string]> =>
  [recipients.length === 0 ? 'none at this site' : recipientsText(recipients), ...problems].map((text, index) => [
    index === 0 ? 'age keys' : '',
    text,
  ])

type ServiceReport = NonNullable<AgentReport['services'][number]['status']>

/** With the options of a person at the site. */
function serviceMessage(name: string, { message, refusal }: ServiceReport): string {
  const line = message.split('\n')[0] ?? ''
  return refusal === undefined ? line : `${line}; \`skerry-agent confirm ${name}\` shows them`
}

function serviceTable(report: AgentReport): string[] {
  if (report.services.length === 0) return [noServices(report)]
  const rows = [['SERVICE', 'SYNC', 'HEALTH', 'OBJECTS', 'COMMIT', 'MESSAGE']]
  for (const { name, status } of report.services) {
    rows.push(
      status === null
        ? [name, 'Unknown', 'Unknown', '-', '-', 'received; not processed yet']
        : [
            name,
            status.sync,
            status.health,
            `${status.healthyCount}/${status.objectCount}`,
            status.applied?.commit.slice(0, 8) ?? '-',
            cutText(serviceMessage(name, status)),
          ],
    )
  }
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => Bun.stringWidth(row[column] ?? '')))) ?? []
  const full = report.services.flatMap(({ name, status }) => {
    const message = status === null ? '' : serviceMessage(name, status)
    return cutText(message) === message ? [] : [`${name}: ${message}`]
  })
  const table = rows.map((row) =>
    row
      .map((cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - Bun.stringWidth(cell))))
      .join('  ')
      .trimEnd(),
  )
  return full.length === 0 ? table : [...table, '', ...full]
}

function noServices({ clusterId, replica }: AgentReport): string {
  if (clusterId === null) return 'No services: the agent has not joined yet.'
  return replica?.position == null ? 'No services: nothing received yet.' : 'No services: no service targets this cluster yet.'
}

/** `640 B`, `12.3 kB`, `1.5 MB`: thousands, as tariffs count. */
export function bytesText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`
  if (bytes < 999_950) return `${(bytes / 1_000).toFixed(1)} kB`
  return `${(bytes / 1_000_000).toFixed(1)} MB`
}

/** `850 ms`, `12 s`, `4 min`, `3 h`, `2 d`: the largest unit that fits. */
export function age(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  const steps: Array<[number, string]> = [
    [86_400_000, 'd'],
    [3_600_000, 'h'],
    [60_000, 'min'],
    [1_000, 's'],
  ]
  for (const [unit, name] of steps) if (ms >= unit) return `${Math.floor(ms / unit)} ${name}`
  return '0 s'
}
